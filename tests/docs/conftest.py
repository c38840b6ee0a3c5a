"""Pages are run side by side, from the first test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.running import Outcomes


@pytest.fixture(scope="session")
def outcomes(request: pytest.FixtureRequest) -> Iterator[Outcomes]:
    """Of the pages whose tests were chosen."""
    chosen = [
        page
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and "outcomes" in item.fixturenames
        and isinstance(page := item.callspec.params["page"], Path)
    ]
    found = Outcomes(chosen)
    yield found
    found.close()
