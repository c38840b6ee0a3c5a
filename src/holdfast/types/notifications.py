"""Notifications that a server sends while it works: log messages and progress."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from holdfast.types.base import Meta

LogLevel: TypeAlias = str
"""One of `LOG_LEVELS`; others are read as they come."""

LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""From the least to the most severe (RFC 5424)."""


class LogMessage(Meta, kw_only=True):
    """One message; ``data`` is any JSON value, often text."""

    level: LogLevel
    data: Any
    logger: str | None = None


ProgressToken: TypeAlias = int | str


class Progress(Meta, kw_only=True):
    """The progress of a request: ``progress`` of ``total``, where the total is known."""

    progress_token: ProgressToken
    progress: int | float
    total: int | float | None = None
    message: str | None = None
