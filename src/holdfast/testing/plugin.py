"""The pytest plugin: clients and handles as fixtures, closed however the test ends.

    async def test_adding(mcp_client):
        client = mcp_client("python server.py")
        assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"

pytest loads this in every run of every project that has Holdfast installed, so it imports nothing
else until a fixture is used. (PYTEST_DONT_REWRITE: it has no assertions.)
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from holdfast.testing.fixtures import (
        ClientFactory,
        ClientScope,
        HandleFactory,
        SyncClientFactory,
        SyncHandleFactory,
    )

MARKERS: Final = (
    "mcp_target(target, **options): the default target and options of mcp_client",
    "mcp_log(path, **options): write the test's MCP calls to this file; options of CallLog",
)

_SCOPE: Final = pytest.StashKey["ClientScope"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ``--mcp-…`` options."""
    group = parser.getgroup("mcp", "MCP servers (Holdfast)")
    group.addoption(
        "--mcp-record",
        metavar="DIR",
        help="record the MCP calls of each test, and what the servers list, in this folder",
    )
    group.addoption(
        "--mcp-replay",
        metavar="DIR",
        help="run without MCP servers: answer from the recordings in this folder",
    )
    parser.addini("mcp_target", "the default target of mcp_client: a command or a URL")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers and check the options."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    replay = config.getoption("mcp_replay")
    if replay and config.getoption("mcp_record"):
        raise pytest.UsageError("--mcp-record and --mcp-replay do not go together")
    if replay and not Path(replay).is_dir():
        raise pytest.UsageError(f"--mcp-replay {replay}: there is no such folder")


# Fixtures


@pytest.fixture
def _mcp_scope(request: pytest.FixtureRequest) -> Iterator[ClientScope]:
    """The clients and handles of the test."""
    from holdfast.testing.fixtures import ClientScope

    scope = request.node.stash[_SCOPE] = ClientScope(request.node)
    yield scope
    scope.close()


@pytest.fixture
def mcp_client(request: pytest.FixtureRequest, _mcp_scope: ClientScope) -> ClientFactory:
    """``mcp_client(target=None, **options)``: a Holdfast client, closed when the test is over."""
    from holdfast import connect
    from holdfast.testing.fixtures import arrange

    arrange(request)
    return partial(_mcp_scope.client, connect)


@pytest.fixture
def mcp_client_sync(_mcp_scope: ClientScope) -> SyncClientFactory:
    """``mcp_client_sync(target=None, **options)``: the same without await."""
    from holdfast import sync

    return partial(_mcp_scope.client, sync.connect)


@pytest.fixture
def mcp_handle(request: pytest.FixtureRequest, _mcp_scope: ClientScope) -> HandleFactory:
    """``mcp_handle(module_or_class, session=None, **options)``: a generated handle; its session
    and its client are closed when the test is over."""
    from holdfast.testing.fixtures import arrange

    arrange(request)
    return partial(_mcp_scope.handle, "connect")


@pytest.fixture
def mcp_handle_sync(_mcp_scope: ClientScope) -> SyncHandleFactory:
    """``mcp_handle_sync(module_or_class, session=None, **options)``: the same without await."""
    return partial(_mcp_scope.handle, "connect_sync")


# The report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the notes of the servers to the report of a failed test."""
    report = yield
    scope = item.stash.get(_SCOPE, None)
    if scope is not None and report.failed:
        report.sections.extend(scope.sections())
    return report
