"""A handle from its opening to its end, against a server in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

import holdfast
from holdfast import (
    Client,
    ProtocolError,
    RequestTimeout,
    StateError,
    Timeouts,
    Tool,
    ToolError,
    TransportError,
    ValidationError,
)
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.calls import State
from holdfast.errors import ShutdownError
from holdfast.handles import Handle, ParameterSession, SyncHandle
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.handles.rig import AT_ONCE, OPTIONS, SESSION, Desk, handle, next_state, schema

ERAS = [pytest.param(STATELESS, id="stateless"), pytest.param(HANDSHAKE, id="handshake")]


@pytest.fixture(params=ERAS)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(versions=request.param)


def calls(desk: Desk) -> list[dict[str, Any]]:
    """The tool calls that the server got, session and all."""
    found = [one.params for one in desk.peer.received if one.method == "tools/call"]
    return [{"name": one["name"], "arguments": one["arguments"]} for one in found]


# Opening


@pytest.mark.req("H4", "H5")
async def test_opening_compares_the_tools_and_opens_the_session_on_one_connection(
    desk: Desk,
) -> None:
    async with handle(desk) as mcp:
        assert desk.peer.connections == 1
        methods = [one.method for one in desk.peer.received]
        assert methods.index("tools/list") < methods.index("tools/call")
        assert methods.count("tools/list") == 1
        assert desk.story == ["open p4n-test"]
        await mcp.nav.goto(url="there")
    assert desk.peer.connections == 1
    assert desk.story == ["open p4n-test", "goto p4n-test there", "close p4n-test"]


@pytest.mark.req("H5")
async def test_the_first_call_opens_what_is_not_open_yet(desk: Desk) -> None:
    mcp = handle(desk)
    assert desk.peer.connections == 0
    assert (await mcp.nav.goto(url="there")).text == "there"
    assert await mcp.close()
    assert desk.story == ["open p4n-test", "goto p4n-test there", "close p4n-test"]


async def test_many_first_calls_open_once(desk: Desk) -> None:
    mcp = handle(desk)
    pages = [str(number) for number in range(10)]
    work = [mcp.nav.goto(url=page, parallel=page > "5") for page in pages]
    await asyncio.gather(mcp.open(), *work, mcp.open())
    await mcp.close()
    assert desk.story.count("open p4n-test") == 1
    assert desk.story[0] == "open p4n-test"
    assert desk.peer.connections == 1


@pytest.mark.req("H5")
async def test_arguments_for_opening_go_to_the_open_tool(desk: Desk) -> None:
    async with handle(desk, open_arguments={"url": " at the start"}):
        assert desk.story == ["open p4n-test at the start"]


@pytest.mark.req("H6")
async def test_a_session_that_cannot_be_opened_closes_the_client_and_is_told(desk: Desk) -> None:
    mcp = handle(desk, "refused")
    with pytest.raises(ToolError, match=r"session 'refused': session.open: .*cannot be opened"):
        async with mcp:
            pytest.fail("opened")
    assert mcp.client.state is State.CLOSED
    with pytest.raises(StateError, match=r"nav.goto: the handle is closed, since it could not be"):
        await mcp.nav.goto(url="there")
    assert not await mcp.close()
    assert desk.story == ["open refused"]


async def test_every_call_that_waits_for_a_failed_opening_fails(desk: Desk) -> None:
    mcp = handle(desk, "refused")
    work = [mcp.nav.goto(url="there", parallel=number > 2) for number in range(5)]
    results = await asyncio.gather(*work, return_exceptions=True)
    assert [type(one) for one in results] == [ToolError, StateError, StateError, *[ToolError] * 2]
    assert desk.story == ["open refused"]


async def test_a_server_that_does_not_start_closes_the_handle() -> None:
    mcp = Handle("/no/such/command", adapter=SESSION, session="a")
    with pytest.raises(TransportError):
        await mcp.open()
    assert mcp.closed
    assert mcp.client.state is State.CLOSED


async def test_a_plain_handle_starts_when_it_is_opened_and_lists_with_the_first_call() -> None:
    desk = Desk()
    async with Handle(desk.peer, **OPTIONS) as mcp:
        assert mcp.client.is_connected
        assert "tools/list" not in [one.method for one in desk.peer.received]
        assert (await mcp.call("health")).text == "well"
    broken = Handle("/no/such/command")
    with pytest.raises(TransportError):
        await broken.open()
    assert broken.closed


@pytest.mark.req("H6")
async def test_an_opening_that_is_cancelled_leaves_nothing_behind(desk: Desk) -> None:
    desk.peer.on("tools/call", lambda _: SILENCE)
    mcp = handle(desk)
    entering = asyncio.create_task(mcp.__aenter__())
    await desk.peer.expect("tools/call")
    entering.cancel()
    # The session may have been opened: the server is asked to close it, and does.
    await desk.peer.expect("tools/call", 2)
    desk.peer.respond(desk.peer.received[-1], {"content": [], "resultType": "complete"})
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert mcp.client.state is State.CLOSED
    assert [one["name"] for one in calls(desk)] == ["session.open", "session.close"]


async def test_a_first_call_that_is_cancelled_leaves_the_opening_to_the_others(
    desk: Desk,
) -> None:
    mcp = handle(desk)
    first = asyncio.create_task(mcp.nav.goto(url="first"))
    second = asyncio.create_task(mcp.nav.goto(url="second"))
    await desk.peer.expect("tools/list")
    first.cancel()
    assert (await second).text == "second"
    await mcp.close()
    assert desk.story == ["open p4n-test", "goto p4n-test second", "close p4n-test"]


async def test_closing_while_it_opens_refuses_those_who_wait() -> None:
    desk = Desk()
    desk.peer.on("tools/list", lambda _: SILENCE)
    mcp = handle(desk)
    waiting = [
        asyncio.create_task(mcp.open()),
        asyncio.create_task(mcp.nav.goto(url="there")),
        asyncio.create_task(mcp.nav.goto(url="there")),
        asyncio.create_task(mcp.nav.goto(url="there", parallel=True)),
    ]
    await desk.peer.expect("tools/list")
    assert await mcp.close()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in results] == [StateError] * 4
    assert calls(desk) == []


# Sessions


@pytest.mark.req("H5")
async def test_only_tools_that_have_the_parameter_are_told_the_session(desk: Desk) -> None:
    async with handle(desk) as mcp:
        await mcp.nav.goto(url="there")
        await mcp._root.health()
    assert calls(desk)[1:3] == [
        {"name": "nav.goto", "arguments": {"sessionName": "p4n-test", "url": "there"}},
        {"name": "health", "arguments": {}},
    ]


@pytest.mark.req("H5", "G4")
async def test_calls_by_name_are_told_the_session_and_the_caller_s_own_wins(desk: Desk) -> None:
    async with handle(desk) as mcp:
        await mcp.call("nav.goto", {"url": "there"})
        await mcp.call_tool("nav.goto", {"url": "there", "sessionName": "mine"})
    assert desk.story[1:3] == ["goto p4n-test there", "goto mine there"]


@pytest.mark.req("H5")
async def test_without_a_session_none_is_opened_and_none_is_told(desk: Desk) -> None:
    async with handle(desk, None) as mcp:
        assert mcp.session is None
        await mcp.nav.goto(url="there")
    assert desk.story == ["goto none there"]


@pytest.mark.req("H5")
async def test_another_way_to_keep_sessions_can_be_given(desk: Desk) -> None:
    class Tagged:
        """Marks the page, and needs no tool to begin or to end."""

        async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
            desk.story.append(f"begin {session}")

        async def close(self, client: Client, session: str) -> None:
            desk.story.append(f"end {session}")

        def inject_session(self, arguments: Mapping[str, Any], session: str) -> dict[str, Any]:
            return {**arguments, "url": f"{arguments['url']}?{session}"}

        def has_session(self, tool: Tool) -> bool:
            return tool.name.startswith("nav.")

    async with handle(desk, "s", adapter=Tagged()) as mcp:
        await mcp.nav.goto(url="there")
        await mcp._root.health()
    assert desk.story == ["begin s", "goto none there?s", "health {}", "end s"]


@pytest.mark.req("H5")
async def test_tools_are_known_as_the_server_has_them_now() -> None:
    desk = Desk()
    async with handle(desk, drift="off") as mcp:
        desk.offer("health", sessionName={"type": "string"})(desk.health)
        desk.peer.notify("notifications/tools/list_changed")
        await mcp.client.ping()
        await mcp._root.health()
    assert "health {'sessionName': 'p4n-test'}" in desk.story


# Over reconnects


@pytest.mark.req("H5")
async def test_a_session_lost_with_its_connection_is_opened_again(desk: Desk) -> None:
    async with handle(desk) as mcp:
        await mcp.nav.goto(url="before")
        again = next_state(mcp, State.READY)
        desk.crash()
        await again
        await mcp.nav.goto(url="after")
    assert desk.peer.connections == 2
    assert desk.story == [
        "open p4n-test",
        "goto p4n-test before",
        "open p4n-test",
        "goto p4n-test after",
        "close p4n-test",
    ]


@pytest.mark.req("H5")
async def test_many_calls_after_a_crash_open_the_session_once(desk: Desk) -> None:
    async with handle(desk, when_down="wait") as mcp:
        down = next_state(mcp, State.BACKOFF)
        desk.crash()
        await down
        work = [mcp.nav.goto(url=str(number), parallel=number > 2) for number in range(6)]
        await asyncio.gather(*work)
    assert desk.story.count("open p4n-test") == 2
    assert desk.sessions == []


@pytest.mark.req("H5")
async def test_a_session_that_outlives_its_connection_is_left_open(desk: Desk) -> None:
    async with handle(desk, adapter=ParameterSession(reopen=False)) as mcp:
        again = next_state(mcp, State.READY)
        desk.peer.hang_up()
        await again
        await mcp.nav.goto(url="after")
    assert desk.story == ["open p4n-test", "goto p4n-test after", "close p4n-test"]


async def test_a_session_that_cannot_be_opened_again_fails_the_call_and_not_the_handle(
    desk: Desk,
) -> None:
    async with handle(desk) as mcp:
        again = next_state(mcp, State.READY)
        desk.peer.hang_up()  # Without its sessions ending: the name is taken.
        await again
        with pytest.raises(ToolError, match=r"cannot be opened"):
            await mcp.nav.goto(url="after")
        desk.sessions.clear()
        assert (await mcp.nav.goto(url="after")).text == "after"


async def test_while_the_server_is_down_a_call_fails_as_a_client_s_does() -> None:
    desk = Desk()
    slow = holdfast.Backoff(first=3600, max=3600)
    async with handle(desk, backoff=slow) as mcp:
        down = next_state(mcp, State.BACKOFF)
        desk.crash()
        await down
        with pytest.raises(StateError) as caught:
            await mcp.nav.goto(url="there")
        assert caught.value.retry_in is not None
    # There was nothing left to close the session of.
    assert desk.story == ["open p4n-test"]


# Calls


@pytest.mark.req("H6")
async def test_calls_are_serialised_unless_they_step_out(desk: Desk) -> None:
    async with handle(desk) as mcp:
        gate = desk.gate("slow")
        slow = asyncio.create_task(mcp.nav.goto(url="slow"))
        await desk.reached(2)
        queued = asyncio.create_task(mcp.nav.goto(url="queued"))
        assert (await mcp.nav.goto(url="aside", parallel=True)).text == "aside"
        assert desk.story[1:] == ["goto p4n-test slow", "goto p4n-test aside"]
        gate.set_result("done")
        assert (await slow).text == "done"
        assert (await queued).text == "queued"


@pytest.mark.req("H6")
async def test_a_tool_that_fails_raises_and_the_next_call_goes_on(desk: Desk) -> None:
    async with handle(desk) as mcp:
        bad, good = mcp.nav.goto(url="bad"), mcp.nav.goto(url="good")
        failure, result = await asyncio.gather(bad, good, return_exceptions=True)
        assert isinstance(failure, ToolError)
        assert isinstance(result, holdfast.ToolResult)
        assert result.text == "good"
        assert (await mcp.call_tool("nav.goto", {"url": "bad"})).is_error


@pytest.mark.req("H6")
async def test_a_call_that_times_out_does_not_hold_up_the_next(desk: Desk) -> None:
    async with handle(desk) as mcp:
        desk.gate("slow")
        slow = asyncio.create_task(mcp.nav.goto(url="slow", timeout=0.01))
        next_one = asyncio.create_task(mcp.nav.goto(url="next"))
        with pytest.raises(RequestTimeout):
            await slow
        assert (await next_one).text == "next"


@pytest.mark.req("H6")
async def test_a_call_cancelled_in_the_queue_is_never_sent(desk: Desk) -> None:
    async with handle(desk) as mcp:
        gate = desk.gate("slow")
        slow = asyncio.create_task(mcp.nav.goto(url="slow"))
        await desk.reached(2)
        queued = asyncio.create_task(mcp.nav.goto(url="queued"))
        await asyncio.sleep(0)
        queued.cancel()
        gate.set_result("done")
        await slow
        await mcp.nav.goto(url="last")
    assert "goto p4n-test queued" not in desk.story


@pytest.mark.req("H3")
async def test_a_tool_with_an_output_schema_gives_what_it_promises(desk: Desk) -> None:
    async with handle(desk) as mcp:
        assert await mcp.browser.run_test() == {"passed": 1}


async def test_a_promised_result_that_is_not_there_is_told() -> None:
    desk = Desk()
    text = {"content": [{"type": "text", "text": "fine"}]}
    desk.peer.tool("browser.run_test", input_schema=schema(), output_schema={"type": "object"})(
        lambda: text
    )
    async with handle(desk) as mcp:
        with pytest.raises(ProtocolError, match=r"'browser.run_test': its output schema promises"):
            await mcp.browser.run_test()


async def test_progress_and_deadlines_go_through(desk: Desk) -> None:
    heard: list[float] = []

    def answer(incoming: Any) -> Any:
        desk.peer.progress(incoming, 0.5)
        return {"content": []}

    async with Handle(desk.peer, **OPTIONS) as mcp:
        desk.peer.on("tools/call", answer)
        await mcp.call("health", on_progress=lambda progress: heard.append(progress.progress))
    assert heard == [0.5]


# The end


@pytest.mark.req("H6")
async def test_closing_closes_the_session_then_the_client_once(desk: Desk) -> None:
    mcp = await handle(desk).open()
    assert [*await asyncio.gather(mcp.close(), mcp.close(), mcp.close())] == [True, False, False]
    assert await asyncio.create_task(mcp.close()) is False
    assert desk.story == ["open p4n-test", "close p4n-test"]
    assert mcp.client.state is State.CLOSED


@pytest.mark.req("H6")
async def test_calls_after_the_end_are_refused(desk: Desk) -> None:
    async with handle(desk) as mcp:
        pass
    for call in (mcp.nav.goto(url="late"), mcp.call_tool("health", parallel=True), mcp.open()):
        with pytest.raises(StateError, match=r"^szkrabok: .*: the handle is closed"):
            await call
    assert len(calls(desk)) == 2


@pytest.mark.req("H6")
async def test_a_handle_never_opened_can_be_closed() -> None:
    desk = Desk()
    mcp = handle(desk)
    assert await mcp.close()
    assert desk.peer.connections == 0
    assert mcp.client.state is State.CLOSED


@pytest.mark.req("H6")
async def test_the_client_is_closed_even_if_the_session_is_not(desk: Desk) -> None:
    mcp = await handle(desk, "crashed").open()
    with pytest.raises(ToolError, match=r"session 'crashed': session.close: .*the browser is gone"):
        await mcp.close()
    assert mcp.client.state is State.CLOSED
    assert not await mcp.close()


@pytest.mark.req("H6")
async def test_what_went_wrong_inside_is_not_hidden_by_how_it_ended(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "holdfast"), pytest.raises(KeyError, match=r"mine"):
        async with handle(desk, "crashed"):
            raise KeyError("mine")
    assert "the browser is gone" in caplog.text
    with pytest.raises(ToolError, match=r"the browser is gone"):
        async with handle(Desk(), "crashed"):
            pass


@pytest.mark.req("H6")
async def test_closing_waits_for_the_call_under_way_and_refuses_the_queue(desk: Desk) -> None:
    mcp = await handle(desk).open()
    gate = desk.gate("slow")
    slow = asyncio.create_task(mcp.nav.goto(url="slow"))
    await desk.reached(2)
    queued = asyncio.create_task(mcp.nav.goto(url="queued"))
    await asyncio.sleep(0)
    closing = asyncio.create_task(mcp.close(wait=60))
    with pytest.raises(StateError, match=r"nav.goto: the handle is closed; nothing was sent"):
        await queued
    assert desk.story[-1] == "goto p4n-test slow"
    gate.set_result("done")
    assert (await slow).text == "done"
    assert await closing
    assert desk.story[-1] == "close p4n-test"


@pytest.mark.req("H6")
async def test_a_call_that_does_not_end_is_ended_with_the_client(desk: Desk) -> None:
    mcp = await handle(desk).open()
    desk.gate("slow")
    slow = asyncio.create_task(mcp.nav.goto(url="slow"))
    await desk.reached(2)
    assert await mcp.close(wait=0)
    with pytest.raises(ShutdownError):
        await slow
    assert desk.story[-1] == "close p4n-test"


async def test_a_close_that_is_cancelled_closes_all_the_same(desk: Desk) -> None:
    mcp = await handle(desk).open()
    closing = asyncio.create_task(mcp.close())
    await asyncio.sleep(0)
    closing.cancel()
    assert await mcp.close() is False
    assert mcp.client.state is State.CLOSED
    assert desk.story == ["open p4n-test", "close p4n-test"]


async def test_a_server_that_does_not_close_the_session_in_time_is_left() -> None:
    desk = Desk()
    mcp = await handle(desk, timeouts=Timeouts(request=20, tools=0.05)).open()
    desk.peer.on("tools/call", lambda _: SILENCE)
    with pytest.raises(RequestTimeout):
        await mcp.close()
    assert mcp.client.state is State.CLOSED


# The rest


async def test_a_handle_can_be_put_on_a_client_that_is_there() -> None:
    desk = Desk()
    client = holdfast.connect(desk.peer, backoff=AT_ONCE)
    await client.list_tools()
    async with Handle(client, session="s", adapter=SESSION) as mcp:
        await mcp.call("nav.goto", {"url": "there"})
    assert client.state is State.CLOSED
    assert desk.story == ["open s", "goto s there", "close s"]
    with pytest.raises(ValidationError, match=r"log, name: not for a client that exists already"):
        Handle(client, log=print, name="other")


@pytest.mark.req("H5")
@pytest.mark.parametrize("kind", [Handle, SyncHandle])
@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"session": "s"}, "session='s': there is no adapter"),
        ({"adapter": SESSION, "open_arguments": {}}, "open_arguments=…: there is no session"),
        ({"drift": "no"}, "drift='no': must be 'raise' or 'breaking' or 'warn' or 'off'"),
    ],
)
def test_settings_that_would_do_nothing_are_refused(
    kind: type[Handle], settings: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValidationError, match=complaint):
        kind(Peer(), **settings)


async def test_a_server_without_a_list_is_used_as_far_as_it_goes() -> None:
    peer = Peer("bare")
    peer.tool("session.open")(lambda **_: "opened")
    peer.tool("session.close")(lambda **_: "closed")
    peer.tool("nav.goto")(lambda **arguments: str(arguments))
    peer.on("tools/list", _no_list)
    async with Handle(peer, session="s", adapter=SESSION, **OPTIONS) as mcp:
        assert (await mcp.call("nav.goto", {"url": "there"})).text == "{'url': 'there'}"


def _no_list(_: Any) -> Any:
    raise RequestError(-32601, "method not found")


@pytest.mark.parametrize("versions", ERAS)
async def test_a_server_whose_list_changes_whenever_it_is_read_is_called_all_the_same(
    versions: tuple[str, ...],
) -> None:
    desk = Desk(versions=versions)

    def restless(incoming: ServerRequest) -> Any:
        desk.peer.notify("notifications/tools/list_changed")
        return desk.peer.catalog.list_tools(incoming)

    desk.peer.on("tools/list", restless)
    async with handle(desk) as mcp:
        assert (await mcp.nav.goto(url="there")).text == "there"


async def test_a_session_that_is_lost_whenever_it_is_opened_is_given_up() -> None:
    desk = Desk()
    client = holdfast.connect(desk.peer, **OPTIONS)

    class Slippery(ParameterSession):
        async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
            again = next_state(mcp, State.READY)
            desk.peer.hang_up()
            await again

    mcp = Handle(client, session="s", adapter=Slippery())
    with pytest.raises(StateError, match="session 's' is lost each time it is opened"):
        await mcp.call("nav.goto", {"url": "there"})
    await mcp.close()


async def test_a_handle_shows_its_state() -> None:
    desk = Desk()
    mcp = handle(desk)
    assert repr(mcp) == "<Tools szkrabok new <Session 'p4n-test' absent>>"
    await mcp.open()
    assert repr(mcp) == "<Tools szkrabok open <Session 'p4n-test' open>>"
    await mcp.close()
    assert repr(mcp) == "<Tools szkrabok closed <Session 'p4n-test' absent>>"
