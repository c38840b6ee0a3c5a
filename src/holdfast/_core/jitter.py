"""Chance, as the pure core takes it: an iterator of numbers in [0, 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final


def _random() -> float:
    from random import random  # Not before something is lost: it takes a while to load.

    return random()


JITTER: Final[Iterator[float]] = iter(_random, None)
