"""A server's tools: their fingerprint, what changed in them, and the lock file.

fingerprint   a registry in a few digits
changes       two registries compared, as a caller sees it
lockfile      reading and writing the lock file
guard         `Lock`: refuse a server that differs from it
commands      command lines that lead to a server
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

if TYPE_CHECKING:
    from holdfast.lock.guard import Lock as Lock

__all__ = ["Lock"]

_HOMES = {"guard": ("Lock",)}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
