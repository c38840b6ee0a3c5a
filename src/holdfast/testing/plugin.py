"""Holdfast for pytest: clients and handles as fixtures, closed whatever becomes of the test.

    async def test_adding(mcp_client):
        client = mcp_client("python server.py")
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

pytest loads this in every run of everyone who has Holdfast: it must be light, and nothing that
does not use it may notice. (PYTEST_DONT_REWRITE: it has no assertions.)
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from holdfast.testing.factories import (
        ClientFactory,
        HandleFactory,
        SyncClientFactory,
        SyncHandleFactory,
    )
    from holdfast.testing.fixtures import Keeper

MARKERS: Final = (
    "mcp_target(target, **options): where mcp_client leads unless it is told, and how",
    "mcp_log(path, **options): write the test's MCP calls to this file; options of CallLog",
)

_KEEPER: Final = pytest.StashKey["Keeper"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mcp", "MCP servers (Holdfast)")
    group.addoption(
        "--mcp-record",
        metavar="DIR",
        help="record the MCP calls of each test, and what the servers list, in this folder",
    )
    group.addoption(
        "--mcp-replay",
        metavar="DIR",
        help="run without MCP servers: answer from what was recorded in this folder",
    )
    parser.addini("mcp_target", "where mcp_client leads by default: a command or a URL")


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    replay = config.getoption("mcp_replay")
    if replay and config.getoption("mcp_record"):
        raise pytest.UsageError("--mcp-record and --mcp-replay do not go together")
    if replay and not Path(replay).is_dir():
        raise pytest.UsageError(f"--mcp-replay {replay}: there is no such folder")


# Fixtures


@pytest.fixture
def _mcp_keeper(request: pytest.FixtureRequest) -> Iterator[Keeper]:
    """All that the test is handed out."""
    from holdfast.testing.fixtures import Keeper

    keeper = request.node.stash[_KEEPER] = Keeper(request.node)
    yield keeper
    keeper.close()


@pytest.fixture
def mcp_client(request: pytest.FixtureRequest, _mcp_keeper: Keeper) -> ClientFactory:
    """``mcp_client(target=None, **options)``: a Holdfast client, closed when the test is over."""
    from holdfast.testing.teardown import arrange

    arrange(request)
    return _mcp_keeper.client


@pytest.fixture
def mcp_client_sync(_mcp_keeper: Keeper) -> SyncClientFactory:
    """``mcp_client_sync(target=None, **options)``: the same without await."""
    return _mcp_keeper.client_sync


@pytest.fixture
def mcp_handle(request: pytest.FixtureRequest, _mcp_keeper: Keeper) -> HandleFactory:
    """``mcp_handle(module_or_class, session=None, **options)``: a generated handle; its session
    and its client are closed when the test is over."""
    from holdfast.testing.teardown import arrange

    arrange(request)
    return _mcp_keeper.handle


@pytest.fixture
def mcp_handle_sync(_mcp_keeper: Keeper) -> SyncHandleFactory:
    """``mcp_handle_sync(module_or_class, session=None, **options)``: the same without await."""
    return _mcp_keeper.handle_sync


# The report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    keeper = item.stash.get(_KEEPER, None)
    if keeper is not None and report.failed:
        report.sections.extend(keeper.sections())
    return report
