"""Ports are used again: what was learnt of one test's server is not true of the next."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast._core.eras import conversation


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    conversation._known.clear()
    yield
    conversation._known.clear()
