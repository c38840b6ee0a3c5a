"""What is parsed for the rules is let go behind them: every search for garbage goes through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.rules.source import modules


@pytest.fixture(scope="package", autouse=True)
def _parsed() -> Iterator[None]:
    yield
    modules.cache_clear()
