"""The opening that each server accepts, remembered for this process.

2026-07-28 basic/versioning, Backward Compatibility: "Clients SHOULD cache the result for the
lifetime of the server process (stdio) or origin (HTTP)".
"""

from __future__ import annotations

from collections.abc import Hashable

from holdfast._core.eras.conversation import Opening

MOST = 1000
_known: dict[Hashable, Opening] = {}


def recall(key: Hashable | None) -> Opening | None:
    return None if key is None else _known.get(key)


def remember(key: Hashable | None, opening: Opening | None) -> None:
    """Remember the opening that worked last; None: forget it."""
    if key is None:
        return
    if opening is None:
        _known.pop(key, None)
        return
    if len(_known) >= MOST:
        _known.clear()
    _known[key] = opening
