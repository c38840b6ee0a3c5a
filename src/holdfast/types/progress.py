"""Progress of a request that takes its time."""

from __future__ import annotations

from typing import TypeAlias

from holdfast.types.base import Meta

ProgressToken: TypeAlias = int | str


class Progress(Meta, kw_only=True):
    """How far a request has come: ``progress`` of ``total``, where the total is known."""

    progress_token: ProgressToken
    progress: int | float
    total: int | float | None = None
    message: str | None = None
