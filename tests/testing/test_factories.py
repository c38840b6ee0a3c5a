"""The fixtures as a type checker sees them: what is asserted here, mypy checks."""

from __future__ import annotations

from typing import assert_type

import pytest

import holdfast
from holdfast import sync
from holdfast.handles import Handle, SyncHandle
from holdfast.testing import ClientFactory, HandleFactory, SyncClientFactory, SyncHandleFactory
from tests.codegen.golden import sessions


class Mine(Handle):
    """Somebody's own."""


def check_clients(mcp_client: ClientFactory, mcp_client_sync: SyncClientFactory) -> None:
    assert_type(mcp_client(), holdfast.Client)
    assert_type(mcp_client("python server.py", when_down="wait"), holdfast.Client)
    assert_type(mcp_client_sync(target=["python", "server.py"]), sync.Client)


def check_handles(mcp_handle: HandleFactory, mcp_handle_sync: SyncHandleFactory) -> None:
    assert_type(mcp_handle(Mine, "trip"), Mine)
    assert_type(mcp_handle(sessions), sessions.Tools)
    assert_type(mcp_handle(sessions.Tools, "trip", drift="off"), sessions.Tools)
    assert_type(mcp_handle_sync(sessions, "trip"), sessions.SyncTools)
    assert_type(mcp_handle_sync(SyncHandle, target="x"), SyncHandle)


@pytest.mark.req("F4")
def test_the_types_can_be_had_where_they_are_looked_for() -> None:
    import holdfast.testing as found

    for name in found.__all__:
        assert getattr(found, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Gadget'"):
        _ = found.Gadget  # type: ignore[attr-defined]
