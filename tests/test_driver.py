"""The driver: opened and closed from anywhere, each caller with its own outcome."""

from __future__ import annotations

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

import holdfast
from holdfast import Backoff, Timeouts
from holdfast._core.boundary import Delivered, Traits
from holdfast._core.transports.memory import Memory
from holdfast.calls import State
from holdfast.policies import Policy
from holdfast.testing import SILENCE, Peer, ServerRequest
from holdfast.types import ToolAnnotations

QUICK = Backoff(first=0.01, max=0.02)
SLOW = Backoff(first=60, max=60)


def silent_peer() -> Peer:
    peer = Peer()
    peer.tool("quick")(lambda: "done")
    peer.tool("stuck")(lambda: SILENCE)
    return peer


async def reaches(client: holdfast.Client, state: State) -> None:
    driver = client._requester.driver
    while client.state is not state:
        await driver.change()


async def outcome(call: Any) -> str:
    try:
        await call
    except holdfast.HoldfastError as error:
        return error.kind
    return "ok"


@pytest.mark.req("L4")
async def test_nothing_starts_before_the_first_use() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer) as client:
        assert client.state is State.NEW
        await asyncio.sleep(0)
        assert peer.connections == 0
        await client.call_tool("quick")
        await client.call_tool("quick")
        assert peer.connections == 1


@pytest.mark.req("L4", "R2")
async def test_calls_made_while_connecting_share_one_connection() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer) as client:
        results = await asyncio.gather(*(client.call_tool("quick") for _ in range(50)))
        assert all(result.text == "done" for result in results)
        assert peer.connections == 1


@pytest.mark.req("L7")
async def test_closing_ends_every_call_at_once() -> None:
    peer = silent_peer()
    client = holdfast.connect(peer)
    calls = [asyncio.create_task(outcome(client.call_tool("stuck"))) for _ in range(20)]
    await peer.expect("tools/call", 20)
    assert await client.close() is True
    assert await asyncio.gather(*calls) == ["shutdown"] * 20
    assert client.state is State.CLOSED


@pytest.mark.req("L7")
async def test_later_closers_are_told_and_nobody_hangs() -> None:
    peer = silent_peer()
    client = holdfast.connect(peer)
    await client.open()
    closed = await asyncio.gather(*(client.close() for _ in range(10)))
    assert sorted(closed) == [False] * 9 + [True]
    assert await client.close() is False


@pytest.mark.req("L7", "L12")
async def test_a_client_may_be_opened_and_closed_in_different_tasks() -> None:
    first, second = holdfast.connect(silent_peer()), holdfast.connect(silent_peer())
    await asyncio.create_task(client_open(first))
    await asyncio.create_task(client_open(second))
    await asyncio.create_task(first.close())
    assert (await second.call_tool("quick")).text == "done"
    await asyncio.create_task(second.close())


async def client_open(client: holdfast.Client) -> None:
    await client.open()


@pytest.mark.req("L7")
async def test_closing_before_the_first_use_is_fine() -> None:
    peer = silent_peer()
    client = holdfast.connect(peer)
    assert await client.close() is True
    with pytest.raises(holdfast.errors.ShutdownError, match="closed"):
        await client.call_tool("quick")
    assert peer.connections == 0


@pytest.mark.req("L7")
async def test_closing_while_connecting_ends_the_wait() -> None:
    peer = Peer()
    peer.on("server/discover", SILENCE)
    client = holdfast.connect(peer, timeouts=Timeouts(probe=60))
    call = asyncio.create_task(outcome(client.list_tools()))
    ready = asyncio.create_task(outcome(client.wait_ready(60)))
    await peer.expect("server/discover")
    await client.close()
    assert await call == "shutdown"
    assert await ready == "shutdown"


@pytest.mark.req("L7")
async def test_a_cancelled_closer_leaves_the_closing_going() -> None:
    peer = silent_peer()
    client = holdfast.connect(peer)
    await client.open()
    closer = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    closer.cancel()
    await asyncio.gather(closer, return_exceptions=True)
    assert await client.close() is False
    assert client.state is State.CLOSED


@pytest.mark.req("R6")
async def test_cancelling_the_awaiting_task_tells_the_server_once() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer) as client:
        task = asyncio.create_task(client.call_tool("stuck"))
        sent = await peer.expect("tools/call")
        other = asyncio.create_task(client.call_tool("stuck"))
        await peer.expect("tools/call", 2)
        for _ in range(10):
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        told = await peer.expect("notifications/cancelled")
        assert told.params["requestId"] == sent.id
        await client.ping()
        assert [one.method for one in peer.received].count("notifications/cancelled") == 1
        assert not other.done()
        other.cancel()


@pytest.mark.req("R6")
async def test_a_running_call_can_be_cancelled_by_its_owner() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer) as client:
        call = client.start_tool("stuck")
        await peer.expect("tools/call")
        assert call.cancel() is True
        assert call.cancel() is False
        with pytest.raises(holdfast.errors.CancelledCallError):
            await call
        assert call.done
        await peer.expect("notifications/cancelled")
        quick = client.start_tool("quick")
        assert (await quick).text == "done"
        assert quick.cancel() is False


@pytest.mark.req("R6")
async def test_an_outcome_that_meets_a_cancellation_is_not_left_unread() -> None:
    peer = silent_peer()
    client = holdfast.connect(peer)
    task = asyncio.create_task(client.call_tool("stuck"))
    await peer.expect("tools/call")
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await closing
    gc.collect()


@pytest.mark.req("R6", "R11")
@pytest.mark.parametrize("ending", ['"result":{"content":[]}', '"error":{"code":-1,"message":""}'])
@pytest.mark.parametrize("answered_first", [True, False])
async def test_a_call_that_is_cancelled_as_its_answer_comes_has_run(
    ending: str, answered_first: bool
) -> None:
    peer = silent_peer()
    async with holdfast.connect(peer) as client:
        call = client.start_tool("stuck")
        sent = await peer.expect("tools/call")
        driver = client._requester.driver
        text = f'{{"jsonrpc":"2.0","id":{sent.id},{ending}}}\n'
        answer = Delivered(driver.engine.link.generation, text.encode())
        if answered_first:
            driver.report(answer)
        assert call.cancel()
        driver.report(answer)
        with pytest.raises(
            holdfast.errors.CancelledCallError, match="answer had just come"
        ) as caught:
            await call
        assert caught.value.outcome_unknown


@pytest.mark.req("R6", "R11")
@pytest.mark.parametrize("cancelled_first", [True, False])
async def test_a_call_that_is_cancelled_as_the_client_closes_may_have_run(
    cancelled_first: bool,
) -> None:
    peer = silent_peer()
    client = holdfast.connect(peer)
    call = client.start_tool("stuck")
    await peer.expect("tools/call")
    closing = asyncio.create_task(client.close())
    if cancelled_first:
        await asyncio.sleep(0)
        assert call.cancel()
    else:
        for _ in range(2):
            await asyncio.sleep(0)
        assert client.state is State.CLOSING
        assert call.cancel()
    with pytest.raises(holdfast.errors.CancelledCallError, match="the client was closed") as caught:
        await call
    assert caught.value.outcome_unknown
    await closing


@pytest.mark.req("R2")
@pytest.mark.parametrize("how", ["answered", "timed out", "cancelled"])
async def test_a_call_that_has_ended_keeps_no_client_in_memory(how: str) -> None:
    client = holdfast.connect(silent_peer())
    call = client.start_tool("stuck" if how != "answered" else "quick", timeout=0.01)
    if how == "cancelled":
        await client.open()
        call.cancel()
    await outcome(call)
    await client.close()
    gone = weakref.ref(client._requester.driver)
    del client, call
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert gone() is None


@pytest.mark.req("R2", "R3", "R4")
async def test_a_timeout_ends_the_call_and_tells_the_server() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer) as client:
        with pytest.raises(TimeoutError) as caught:
            await client.call_tool("stuck", timeout=0.05)
        assert isinstance(caught.value, holdfast.RequestTimeout)
        assert caught.value.outcome_unknown
        assert "tools/call 'stuck'" in str(caught.value)
        told = await peer.expect("notifications/cancelled")
        assert told.params["reason"] == "timeout"
        assert (await client.call_tool("quick")).text == "done"


@pytest.mark.req("R3")
async def test_progress_keeps_a_call_alive_under_the_total_cap() -> None:
    peer = Peer()

    async def call(incoming: ServerRequest) -> Any:
        for number in range(1000):
            peer.progress(incoming, number)
            await asyncio.sleep(0.02)
        return SILENCE

    peer.on("tools/call", call)
    async with holdfast.connect(peer) as client:
        with pytest.raises(TimeoutError, match="in all"):
            await client.call_tool("x", timeout=0.3, total_timeout=0.6, on_progress=lambda _: None)


@pytest.mark.req("R3")
async def test_each_kind_of_method_has_its_timeout() -> None:
    peer = Peer()
    peer.on("tools/call", SILENCE)
    peer.on("resources/read", SILENCE)
    times = Timeouts(request=60, tools=0.03, resources=0.02)
    async with holdfast.connect(peer, timeouts=times) as client:
        with pytest.raises(TimeoutError, match="30 ms"):
            await client.call_tool("x")
        with pytest.raises(TimeoutError, match="20 ms"):
            await client.read_resource("x")


@pytest.mark.req("L5", "R11")
async def test_a_lost_server_comes_back_by_itself() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer, backoff=QUICK) as client:
        call = asyncio.create_task(client.call_tool("stuck"))
        await peer.expect("tools/call")
        peer.hang_up("the cable was pulled")
        with pytest.raises(holdfast.TransportError, match="cable") as caught:
            await call
        assert caught.value.outcome_unknown
        await client.wait_ready(10)
        assert (await client.call_tool("quick")).text == "done"
        assert peer.connections == 2


@pytest.mark.req("L11")
async def test_calls_in_backoff_fail_fast_and_say_when() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer, backoff=SLOW) as client:
        await client.open()
        peer.hang_up("gone")
        await reaches(client, State.BACKOFF)
        with pytest.raises(holdfast.StateError, match="next attempt in") as caught:
            await client.call_tool("quick")
        assert caught.value.retry_in is not None
        assert 40 < caught.value.retry_in < 80
        assert "gone" in str(caught.value)


@pytest.mark.req("L11")
async def test_a_call_may_wait_for_the_server_within_its_deadline() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer, backoff=QUICK, when_down="wait") as client:
        await client.open()
        peer.hang_up()
        await reaches(client, State.BACKOFF)
        assert (await client.call_tool("quick")).text == "done"
    async with holdfast.connect(peer, backoff=SLOW, when_down="wait") as client:
        await client.list_tools()
        peer.hang_up()
        await reaches(client, State.BACKOFF)
        with pytest.raises(TimeoutError, match="nothing was sent"):
            await client.call_tool("quick", timeout=0.05)


@pytest.mark.req("R11")
@pytest.mark.parametrize("replay", ["never", "safe"])
async def test_a_read_is_repeated_only_when_asked_to(replay: Any) -> None:
    peer = Peer()
    peer.resource("mem://x", "text")

    def read(incoming: ServerRequest) -> Any:
        if incoming.connection == 1:
            peer.hang_up()
            return SILENCE
        return {"contents": [{"uri": "mem://x", "text": "text"}]}

    peer.on("resources/read", read)
    async with holdfast.connect(peer, backoff=QUICK, replay=replay) as client:
        if replay == "safe":
            assert (await client.read_resource("mem://x")).text == "text"
        else:
            with pytest.raises(holdfast.TransportError):
                await client.read_resource("mem://x")


@pytest.mark.req("R11")
async def test_a_tool_that_may_write_never_runs_twice() -> None:
    peer = Peer()
    ran: list[str] = []

    def call(incoming: ServerRequest) -> Any:
        ran.append(incoming.params["name"])
        if incoming.connection == 1:
            if len(ran) == 2:
                peer.hang_up()
            return SILENCE
        return {"content": []}

    hints = ToolAnnotations(idempotent_hint=True)
    peer.tool("set", annotations=hints)(lambda: "")
    peer.tool("append")(lambda: "")
    peer.on("tools/call", call)
    async with holdfast.connect(peer, backoff=QUICK, replay="safe") as client:
        await client.list_tools()
        results = await asyncio.gather(
            outcome(client.call_tool("append")), outcome(client.call_tool("set"))
        )
    assert list(results) == ["transport", "ok"]
    assert ran.count("append") == 1
    assert ran.count("set") == 2


@pytest.mark.req("L10")
async def test_wait_ready_outlasts_failed_attempts() -> None:
    peer = silent_peer()
    failures = iter([True, True])

    def discover(incoming: ServerRequest) -> Any:
        if next(failures, False):
            peer.hang_up("not yet")
            return SILENCE
        return {"supportedVersions": ["2026-07-28"], "capabilities": {}}

    peer.on("server/discover", discover)
    peer.on("initialize", SILENCE)
    times = Timeouts(handshake=0.2)
    async with holdfast.connect(peer, backoff=QUICK, timeouts=times) as client:
        await client.wait_ready(10)
        assert client.is_connected


@pytest.mark.req("L10", "L6")
async def test_wait_ready_says_what_it_waited_for() -> None:
    peer = Peer()
    peer.on("server/discover", SILENCE)
    peer.on("initialize", SILENCE)
    async with holdfast.connect(peer, timeouts=Timeouts(handshake=0.05), backoff=SLOW) as client:
        with pytest.raises(TimeoutError, match="did not answer the handshake within"):
            await client.wait_ready(0.5)


@pytest.mark.req("L6", "E4")
async def test_a_handshake_timeout_reaches_the_callers_and_leads_to_backoff() -> None:
    peer = Peer()
    peer.on("server/discover", SILENCE)
    peer.on("initialize", SILENCE)
    times = Timeouts(handshake=0.1, probe=0.02)
    async with holdfast.connect(peer, timeouts=times, backoff=SLOW) as client:
        with pytest.raises(
            holdfast.errors.HandshakeTimeout, match="server/discover and initialize"
        ):
            await client.list_tools()
        assert client.state is State.BACKOFF
    async with holdfast.connect(peer, timeouts=times, backoff=SLOW) as client:
        with pytest.raises(
            holdfast.errors.HandshakeTimeout, match="server/discover and initialize"
        ):
            await client.open()


@pytest.mark.req("R2", "R12")
async def test_a_listener_that_fails_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    def boom() -> None:
        raise RuntimeError("boom")

    client = holdfast.connect(silent_peer())
    client._unsolicited._subscriptions = SimpleNamespace(restore=boom, close=int)  # type: ignore[assignment]
    async with client:
        assert (await client.call_tool("quick", timeout=5)).text == "done"
    assert "boom" in caplog.text


@pytest.mark.req("L12")
def test_a_client_stays_with_its_loop() -> None:
    client = holdfast.connect(silent_peer())

    async def first() -> None:
        await client.open()

    async def second() -> None:
        with pytest.raises(holdfast.StateError, match="another event loop"):
            await client.call_tool("quick")

    asyncio.run(first())
    asyncio.run(second())


@pytest.mark.req("L12")
def test_a_client_without_a_loop_of_asyncio_says_so() -> None:
    client = holdfast.connect(silent_peer())
    for use in (client.open(), client.close()):
        with pytest.raises(holdfast.StateError, match="trio is not supported"):
            use.send(None)


@pytest.mark.req("L8")
def test_a_loop_that_ends_without_a_close_ends_the_client() -> None:
    client = holdfast.connect(silent_peer())

    async def forget_to_close() -> None:
        await client.open()

    asyncio.run(forget_to_close())
    assert client.state in (State.CLOSING, State.CLOSED)


@pytest.mark.req("L7", "L8")
def test_a_task_that_the_end_of_the_loop_cancels_can_still_call_and_close() -> None:
    client = holdfast.connect(silent_peer())
    said: list[object] = []

    async def work() -> None:
        async with client:
            try:
                await client.call_tool("stuck")
            finally:
                said.append((await client.call_tool("quick")).is_error)

    async def main() -> None:
        task = asyncio.create_task(work())
        await client.wait_ready(20)
        await asyncio.sleep(0)
        assert not task.done()

    asyncio.run(main())
    assert said == [False]
    assert client.state is State.CLOSED


@pytest.mark.req("R1")
async def test_ids_rise_over_reconnects() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer, backoff=QUICK) as client:
        for _ in range(3):
            await client.wait_ready(10)
            await client.call_tool("quick")
            peer.hang_up()
            await reaches(client, State.BACKOFF)
    ids: list[Any] = [request.id for request in peer.received if request.id is not None]
    assert ids == sorted(set(ids))


@pytest.mark.req("L8")
async def test_the_shutdown_request_is_sent_only_where_it_is_asked_for() -> None:
    peer = silent_peer()
    async with holdfast.connect(peer) as client:
        await client.open()
    assert "shutdown" not in [one.method for one in peer.received]


class Polite(Memory):
    """A way to a server that is asked to shut down before the link closes."""

    @property
    def traits(self) -> Traits:
        return Traits(shutdown_request=True, grace=60.0)


@pytest.mark.req("L7")
@pytest.mark.parametrize("outcome_of_it", ["an answer", "an end", "a cancelled close"])
async def test_no_call_runs_after_the_close_that_asks_the_server_to_shut_down(
    outcome_of_it: str,
) -> None:
    peer = silent_peer()
    asked_to_stop, may_stop = asyncio.Event(), asyncio.Event()

    async def shut_down(incoming: ServerRequest) -> Any:
        asked_to_stop.set()
        await may_stop.wait()
        if outcome_of_it == "an end":
            peer.hang_up("bye")
            return SILENCE
        return {}

    peer.on("shutdown", shut_down)
    client = holdfast.Client(Polite(peer), Policy(), holdfast.Handlers())
    await client.call_tool("quick")
    closing = asyncio.create_task(client.close())
    await asked_to_stop.wait()
    assert client.state == "closing"
    assert not client.is_connected
    for verb in (client.call_tool("quick"), client.list_tools(), client.ping(), client.open()):
        with pytest.raises(holdfast.errors.ShutdownError, match="closing"):
            await verb
    if outcome_of_it == "a cancelled close":
        closing.cancel()
        await asyncio.wait([closing])
        assert client.state == "closing"
    may_stop.set()
    await asyncio.wait([closing])
    assert await client.close() is False
    assert client.state == "closed"
    assert [message.method for message in peer.received].count("tools/call") == 1


async def answer_to_a_stuck_call(
    peer: Peer, client: holdfast.Client, seen: list[str]
) -> tuple[asyncio.Task[None], Delivered]:
    """Begin a call that the peer does not answer; return it, and an answer."""

    async def call() -> None:
        await client.call_tool("stuck")
        seen.append("resumed")

    task = asyncio.create_task(call())
    sent = await peer.expect("tools/call")
    assert isinstance(sent.id, int)
    text = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}\n' % sent.id
    return task, Delivered(client._requester.driver.engine.link.generation, text)


async def test_the_only_answer_of_a_read_resumes_its_caller_at_once() -> None:
    peer, seen = silent_peer(), list[str]()
    async with holdfast.connect(peer) as client:
        task, answer = await answer_to_a_stuck_call(peer, client, seen)

        def read() -> None:
            client._requester.driver.report(answer)
            seen.append("read")

        asyncio.get_running_loop().call_soon(read)
        await task
    assert seen == ["resumed", "read"]


async def test_an_answer_inside_of_a_task_resumes_its_caller_in_the_next_turn() -> None:
    peer, seen = silent_peer(), list[str]()
    async with holdfast.connect(peer) as client:
        task, answer = await answer_to_a_stuck_call(peer, client, seen)
        client._requester.driver.report(answer)
        seen.append("read")
        await task
    assert seen == ["read", "resumed"]


@pytest.mark.req("P6")
async def test_a_handler_hears_what_came_before_an_answer_before_its_caller() -> None:
    peer, seen = silent_peer(), list[str]()
    handlers = holdfast.Handlers(notification=lambda note: seen.append(note.method))
    async with holdfast.connect(peer, handlers=handlers) as client:
        task, answer = await answer_to_a_stuck_call(peer, client, seen)
        note = b'{"jsonrpc":"2.0","method":"notifications/x"}\n'

        def read() -> None:
            client._requester.driver.report(Delivered(answer.generation, note))
            client._requester.driver.report(answer)

        asyncio.get_running_loop().call_soon(read)
        await task
    assert seen == ["notifications/x", "resumed"]
