"""One browser for the tests of a worker: each has a tab of its own, with its own storage."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools.chromium import chromium, started


@pytest.fixture(scope="session")
def devtools() -> Iterator[str]:
    """Start Chromium; returns the address of its DevTools."""
    if (program := chromium()) is None:
        pytest.skip("there is no Chromium")
    with started(program) as address:
        yield address
