"""The server's tools against those that the handle was generated from."""

from __future__ import annotations

import json
import logging

import pytest

from holdfast import DriftError, Tool
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.calls import State
from holdfast.handles import Registry
from holdfast.handles.drift import Drift, DriftCheck
from tests.handles.rig import COMMAND, TEXT, Desk, handle, next_state, schema

ERAS = [pytest.param(STATELESS, id="stateless"), pytest.param(HANDSHAKE, id="handshake")]
CHANGED = "notifications/tools/list_changed"

TOOLS = [
    Tool.make("nav.goto", description="Go.", input_schema=schema("url", url=TEXT)),
    Tool.make("nav.back", input_schema=schema()),
]
REGISTRY = Registry.of(TOOLS, COMMAND)


@pytest.fixture(params=ERAS)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(versions=request.param)


def check(*tools: Tool, mode: Drift = "raise", registry: Registry | None = REGISTRY) -> None:
    DriftCheck("szkrabok", registry, mode).check(tools, None)


def drift(*tools: Tool) -> DriftError:
    with pytest.raises(DriftError) as caught:
        check(*tools)
    return caught.value


# The comparison


@pytest.mark.req("H4")
def test_the_same_tools_are_no_drift_whatever_their_order_and_wording() -> None:
    url = {"required": ["url"], "type": "object", "properties": {"url": TEXT}}
    reworded = Tool.make("nav.goto", description="Go there!", input_schema=url)
    check(*TOOLS)
    check(*reversed(TOOLS))
    check(TOOLS[1], reworded)


@pytest.mark.req("H4")
def test_a_registry_is_what_a_module_can_carry() -> None:
    assert len(REGISTRY.hash) == 12
    assert json.loads(REGISTRY.schemas["nav.goto"]) == TOOLS[0].input_schema
    written = Registry(hash=REGISTRY.hash, command=REGISTRY.command, schemas=dict(REGISTRY.schemas))
    assert written == REGISTRY


@pytest.mark.req("H4")
def test_an_added_tool_is_named_and_breaks_nobody() -> None:
    error = drift(*TOOLS, Tool.make("nav.forward"))
    assert "nav.forward" in str(error)
    assert "added" in str(error)
    assert "not broken" in str(error)
    assert not error.data.breaking


@pytest.mark.req("H4")
def test_a_removed_tool_is_named_and_breaks_callers() -> None:
    error = drift(TOOLS[0])
    assert "nav.back" in str(error)
    assert "removed" in str(error)
    assert "This breaks callers." in str(error)
    assert error.data.breaking


@pytest.mark.req("H4")
def test_a_changed_tool_is_named_with_what_changed() -> None:
    stricter = Tool.make(
        "nav.goto", input_schema=schema("url", "referrer", url=TEXT, referrer=TEXT)
    )
    error = drift(stricter, TOOLS[1])
    assert "nav.goto" in str(error)
    assert "referrer" in str(error)
    assert "This breaks callers." in str(error)
    looser = Tool.make("nav.goto", input_schema=schema("url", url=TEXT, referrer=TEXT))
    assert not drift(looser, TOOLS[1]).data.breaking


@pytest.mark.req("H4")
def test_the_error_says_whose_tools_both_hashes_and_what_to_run() -> None:
    error = drift(TOOLS[0])
    first, *_, last = str(error).splitlines()
    assert first.startswith("szkrabok: drift: the server's tools have changed since")
    assert REGISTRY.hash in first
    assert last == f"Run: {COMMAND}"
    assert error.kind == "drift"


def test_a_tool_listed_twice_is_drift_too() -> None:
    assert "listed otherwise" in str(drift(*TOOLS, TOOLS[0]))


@pytest.mark.req("H4")
def test_a_warning_comes_once_for_each_state_of_the_tools(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = DriftCheck("szkrabok", REGISTRY, "warn")
    with caplog.at_level(logging.WARNING, "holdfast"):
        for tools in (TOOLS, TOOLS[:1], TOOLS, TOOLS[:1], TOOLS[1:], TOOLS[:1]):
            watch.check(tools, None)
    assert ["nav.back" in one.message for one in caplog.records] == [True, False]
    assert all(COMMAND in one.message for one in caplog.records)


@pytest.mark.req("H4")
def test_no_registry_or_no_wish_is_no_look() -> None:
    check(mode="off")
    check(registry=None)


# On a connection


@pytest.mark.req("H4")
async def test_drift_is_found_before_the_session_is_opened(desk: Desk) -> None:
    mcp = handle(desk)
    desk.offer("nav.goto", "url", "why", url=TEXT, why=TEXT)(desk.goto)
    with pytest.raises(DriftError, match=r"nav\.goto"):
        await mcp.open()
    assert desk.story == []
    assert desk.peer.connections == 1
    assert mcp.client.state is State.CLOSED


@pytest.mark.req("H4")
async def test_drift_can_be_let_pass_with_a_warning_or_without(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "holdfast")
    for mode, warnings in (("warn", 1), ("off", 0)):
        caplog.clear()
        mcp = handle(desk, drift=mode)
        desk.offer(f"new.{mode}")(desk.health)
        async with mcp:
            assert (await mcp.nav.goto(url="there")).text == "there"
        assert len(caplog.records) == warnings


@pytest.mark.req("H4")
async def test_tools_that_change_while_connected_are_compared_again(desk: Desk) -> None:
    async with handle(desk) as mcp:
        await mcp.nav.goto(url="before")
        if desk.peer.versions == STATELESS:
            await desk.peer.expect("subscriptions/listen")
        desk.offer("new")(desk.health)
        desk.peer.notify(CHANGED)
        await mcp.client.ping()
        for _ in range(2):
            with pytest.raises(DriftError, match="new"):
                await mcp.nav.goto(url="after")
        desk.peer.catalog.tools.pop("new")
        assert (await mcp.nav.goto(url="as before")).text == "as before"
    assert "goto p4n-test after" not in desk.story


@pytest.mark.req("H4", "H6")
async def test_a_session_is_closed_although_the_tools_drifted(desk: Desk) -> None:
    async with handle(desk) as mcp:
        if desk.peer.versions == STATELESS:
            await desk.peer.expect("subscriptions/listen")
        desk.offer("new")(desk.health)
        desk.peer.notify(CHANGED)
        await mcp.client.ping()
        with pytest.raises(DriftError):
            await mcp.nav.goto(url="there")
    assert desk.story == ["open p4n-test", "close p4n-test"]


@pytest.mark.req("H4")
async def test_a_server_that_comes_back_with_other_tools_is_noticed(desk: Desk) -> None:
    async with handle(desk) as mcp:
        again = next_state(mcp, State.READY)
        desk.offer("new")(desk.health)
        desk.crash()
        await again
        with pytest.raises(DriftError, match="new"):
            await mcp.nav.goto(url="after")
    assert desk.story == ["open p4n-test"]


@pytest.mark.req("H4")
async def test_a_server_that_has_no_list_any_more_is_drift() -> None:
    desk = Desk()
    mcp = handle(desk)
    from holdfast.testing import RequestError

    def refuse(_: object) -> None:
        raise RequestError(-32601, "method not found")

    desk.peer.on("tools/list", refuse)
    with pytest.raises(DriftError, match="removed"):
        await mcp.open()
