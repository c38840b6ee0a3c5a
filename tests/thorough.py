"""What takes long is proven in short by `make test`, and whole by `make thorough`.

Such a test is marked `thorough`; `thorough(only=True)` if it has no short form. In short it leaves
out rows of a table, always the same ones: where it can, so that each row and each column is tried.
It never leaves out an assertion or a bound.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TypeVar
from zlib import crc32

import pytest

THOROUGH = os.environ.get("HOLDFAST_THOROUGH") == "1"

T = TypeVar("T")


def is_only_thorough(item: pytest.Item) -> bool:
    """Return True for a test that has no short form."""
    marker = item.get_closest_marker("thorough")
    return marker is not None and bool(marker.kwargs.get("only"))


def one_in(count: int, rows: Iterable[T], *, place: int = 0) -> Iterator[T]:
    """Yield all rows if thorough, otherwise one of ``count``, beginning with that at ``place``."""
    for number, row in enumerate(rows):
        if THOROUGH or number % count == place % count:
            yield row


def is_taken(count: int, name: str) -> bool:
    """Return True if thorough, otherwise for one name of ``count``: no pattern of the rows."""
    return THOROUGH or crc32(name.encode()) % count == 0
