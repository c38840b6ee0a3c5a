"""Ports are used again: what was learnt of one test's server is not true of the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.calls import openings


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    openings._known.clear()
    yield
    openings._known.clear()
