"""How each server wants to be addressed, remembered for this process.

A server that was probed once is not probed again by the next client for it.
"""

from __future__ import annotations

from collections.abc import Hashable

from holdfast._core.eras.negotiation import Opening

MOST = 1000
_known: dict[Hashable, Opening] = {}


def recall(key: Hashable | None) -> Opening | None:
    return None if key is None else _known.get(key)


def remember(key: Hashable | None, opening: Opening | None) -> None:
    """Note what worked last; None: what was known does not work any more."""
    if key is None:
        return
    if opening is None:
        _known.pop(key, None)
        return
    if len(_known) >= MOST:
        _known.clear()
    _known[key] = opening
