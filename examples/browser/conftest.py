"""What the specs are given: the shop in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.browser import mcp_tools
from examples.browser.browser import URL, command
from examples.browser.shop import open_shop
from holdfast.testing import HandleFactory


@pytest.fixture(scope="session")
def shop() -> Iterator[int]:
    with open_shop() as port:
        yield port


@pytest.fixture
def mcp(
    request: pytest.FixtureRequest, mcp_handle: HandleFactory, tmp_path: Path
) -> mcp_tools.Tools:
    """The server's tools; the server, and with it the browser, starts at the first call."""
    if request.config.getoption("mcp_replay"):
        return mcp_handle(mcp_tools)  # Neither the shop nor the browser is needed.
    return mcp_handle(
        mcp_tools, target=command(request.getfixturevalue("shop"), tmp_path), cwd=tmp_path
    )


@pytest.fixture
async def page(mcp: mcp_tools.Tools) -> mcp_tools.Tools:
    """The shop's page, open in the browser."""
    await mcp.browser_navigate(url=URL)
    return mcp
