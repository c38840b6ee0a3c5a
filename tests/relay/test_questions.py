"""Calls that are parked: a stateless host, and a server that asks while a call is open."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import Raw

import holdfast
from holdfast._core.boundary import Call
from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, PROTOCOL_VERSION
from holdfast._core.serve.runner import LoopRunner
from holdfast._core.server.session import ServerSession
from holdfast.errors import RpcError
from holdfast.relay import questions
from holdfast.relay.sharing import SharedRelay
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.relay.rig import CAPABILITIES, FORM, Pair

pytestmark = pytest.mark.req("X2")

PAIR = Pair("stateless", "handshake")
DECLARED: dict[str, Any] = {"identity": holdfast.policies.Identity(capabilities=CAPABILITIES)}
ANSWER = {"action": "accept", "content": {"n": 1}}


class Asking:
    """A server whose tool asks as often as its argument says, and counts its runs."""

    def __init__(self) -> None:
        self.peer = PAIR.peer()
        self.runs = 0
        self.answers: list[Any] = []
        self.peer.on("tools/call", self.call)

    async def call(self, request: ServerRequest) -> Any:
        self.runs += 1
        for _ in range(request.params["arguments"]["times"]):
            self.answers.append(await request.session.ask("elicitation/create", FORM))
        return {"content": [], "answers": len(self.answers)}


async def send(host: holdfast.Client, times: int = 1, **fields: Any) -> Any:
    """Send the call as it is, without the host's own rounds."""
    params = {"name": "ask", "arguments": {"times": times}, **fields}
    return msgspec.json.decode(await host._requester.forward(Call("tools/call", params)))


def answered(result: Any) -> dict[str, Any]:
    """Return the fields that repeat a request with an answer to each question."""
    assert result["resultType"] == "input_required"
    answers = dict.fromkeys(result["inputRequests"], ANSWER)
    return {"requestState": result["requestState"], "inputResponses": answers}


async def test_a_parked_call_is_taken_up_and_not_run_again() -> None:
    asking = Asking()
    async with PAIR.connect(asking.peer, **DECLARED) as host:
        first = await send(host, 2)
        (question,) = first["inputRequests"].values()
        assert question == {"method": "elicitation/create", "params": FORM}
        second = await send(host, 2, **answered(first))
        assert second["requestState"] != first["requestState"]
        final = await send(host, 2, **answered(second))
    assert (final["resultType"], final["answers"]) == ("complete", 2)
    assert (asking.runs, asking.answers) == (1, [ANSWER, ANSWER])


@pytest.mark.parametrize(
    "fields",
    [
        {"requestState": f"{questions.STATE}guessed"},
        {"requestState": f"{questions.STATE}guessed", "inputResponses": {}},
        {"requestState": "of another server", "inputResponses": {}},
        {"inputResponses": {"question-1": ANSWER}},
    ],
)
async def test_a_state_that_is_not_known_runs_nothing(fields: dict[str, Any]) -> None:
    asking = Asking()
    async with PAIR.connect(asking.peer, **DECLARED) as host:
        await host.open()
        with pytest.raises(RpcError, match="requestState is") as caught:
            await send(host, **fields)
    assert caught.value.code == -32602
    assert asking.runs == 0


async def test_a_state_serves_once_and_its_own_call() -> None:
    asking = Asking()
    async with PAIR.connect(asking.peer, **DECLARED) as host:
        repeat = answered(await send(host))
        with pytest.raises(RpcError, match="of no call that waits"):
            await send(host, **repeat, name="other")
        with pytest.raises(RpcError, match="must be an object"):
            await send(host, **{**repeat, "inputResponses": [1]})
        assert (await send(host, **repeat))["answers"] == 1
        with pytest.raises(RpcError, match="taken up already"):
            await send(host, **repeat)
    assert asking.runs == 1


async def test_a_question_that_the_host_leaves_out_is_asked_again() -> None:
    asking = Asking()
    async with PAIR.connect(asking.peer, **DECLARED) as host:
        first = await send(host)
        second = await send(host, requestState=first["requestState"], inputResponses={"x": ANSWER})
        assert second["inputRequests"] == first["inputRequests"]
        assert (await send(host, **answered(second)))["answers"] == 1


async def test_a_cancelled_repetition_ends_the_call_at_the_server() -> None:
    peer = PAIR.peer()

    async def call(request: ServerRequest) -> Any:
        await request.session.ask("elicitation/create", FORM)
        await asyncio.Event().wait()

    peer.on("tools/call", call)
    async with PAIR.connect(peer, **DECLARED) as host:
        repeat = answered(await send(host))
        repeated = asyncio.ensure_future(send(host, **repeat))
        await asyncio.sleep(0)
        repeated.cancel()
        await peer.expect("notifications/cancelled")


async def test_a_call_that_is_asked_and_cancelled_at_once_ends_at_the_server() -> None:
    """The cancellation comes before the task that follows the asked call has had a turn."""
    peer, lines = PAIR.peer(), list[bytes]()
    peer.on("tools/call", lambda request: SILENCE)
    async with holdfast.connect(peer) as client:
        relay = SharedRelay(client).join()
        session = ServerSession(relay.server, lines.append, LoopRunner())
        meta = {PROTOCOL_VERSION: PAIR.host, CLIENT_CAPABILITIES: CAPABILITIES}
        await client.open()
        call = {"name": "ask", "_meta": meta}
        session.feed(_request(7, "tools/call", call))
        await peer.expect("tools/call")
        question = relay.ask("elicitation/create", Raw(msgspec.json.encode(FORM)))
        question.send(None)  # as far as it goes without a turn of the loop
        session.feed(_request(None, "notifications/cancelled", {"requestId": 7, "reason": "no"}))
        cancelled = await peer.expect("notifications/cancelled")
        assert cancelled.params["reason"] == "no"
        assert relay.open_calls == 0
        question.close()
        session.close()
    assert lines == []


def _request(request_id: int | None, method: str, params: dict[str, Any]) -> bytes:
    number = {} if request_id is None else {"id": request_id}
    message = {"jsonrpc": "2.0", **number, "method": method, "params": params}
    return msgspec.json.encode(message) + b"\n"


async def test_a_parked_call_ends_with_its_total_time() -> None:
    asking = Asking()
    short = {"timeouts": holdfast.Timeouts(total=0.05)}
    async with PAIR.connect(asking.peer, upstream=short, **DECLARED) as host:
        first = await send(host)
        await asking.peer.expect("notifications/cancelled")
        with pytest.raises(RpcError) as caught:
            await send(host, **answered(first))
    assert caught.value.data == {"kind": "timeout", "outcomeUnknown": True}
    assert asking.runs == 1


async def test_at_most_so_many_calls_are_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "MOST_PARKED", 2)
    asking = Asking()
    async with PAIR.connect(asking.peer, **DECLARED) as host:
        first, second = await send(host), await send(host)
        with pytest.raises(RpcError, match="wait for the client's answers already"):
            await send(host)
        assert (await send(host, **answered(first)))["answers"] == 1
        third = await send(host)
        for parked in (second, third):
            assert (await send(host, **answered(parked)))["resultType"] == "complete"


async def test_a_call_that_ended_while_parked_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "MOST_PARKED", 1)
    asking = Asking()
    waiting = {"when_down": "wait"}
    async with PAIR.connect(asking.peer, upstream=waiting, **DECLARED) as host:
        await send(host)
        asking.peer.hang_up()
        await host.request("tools/list")
        second = await send(host)
        assert (await send(host, **answered(second)))["answers"] == 1


async def test_a_question_outside_of_any_call_is_refused() -> None:
    peer = Peer(versions=PAIR.versions)
    async with PAIR.connect(peer, **DECLARED) as host:
        await host.request("tools/list")
        with pytest.raises(RequestError, match="no call is open"):
            await peer.ask("roots/list", {})


async def test_calls_that_ask_at_the_same_time_each_get_an_answer() -> None:
    asking = Asking()
    handlers = holdfast.Handlers(elicitation=lambda question: {"n": 1})
    async with PAIR.connect(asking.peer, handlers=handlers) as host:
        options: dict[str, Any] = {"name": "ask", "arguments": {"times": 3}}
        await asyncio.gather(*(host.call_tool(**options) for _ in range(5)))
    assert (asking.runs, len(asking.answers)) == (5, 15)


async def test_a_question_that_is_withdrawn_is_not_asked_again() -> None:
    peer = PAIR.peer()
    withdrawn = asyncio.Event()

    async def call(request: ServerRequest) -> Any:
        question = asyncio.ensure_future(request.session.ask("elicitation/create", FORM))
        await withdrawn.wait()
        question.cancel()
        return {"content": []}

    peer.on("tools/call", call)
    async with PAIR.connect(peer, **DECLARED) as host:
        repeat = answered(await send(host))
        withdrawn.set()
        assert (await send(host, **repeat))["resultType"] == "complete"


async def test_a_question_ends_with_the_last_call_that_could_carry_it() -> None:
    """A server that does not withdraw its question is told, and not left to wait for ever."""
    peer = PAIR.peer()
    peer.on("tools/call", SILENCE)
    short = {"timeouts": holdfast.Timeouts(total=0.05)}
    async with PAIR.connect(peer, upstream=short, **DECLARED) as host:
        call = asyncio.ensure_future(send(host))
        await peer.expect("tools/call")
        question = asyncio.ensure_future(peer.ask("roots/list", {}))
        assert (await call)["resultType"] == "input_required"
        with pytest.raises(RequestError, match="no call is open"):
            await question


@pytest.mark.parametrize("server", ["handshake", "stateless"])
async def test_the_first_request_of_a_stateless_host_may_be_a_call(server: str) -> None:
    """Its log level and its state are the server's business, although nothing is known of it."""
    peer = Pair("stateless", server).peer()
    peer.on("tools/call", {"content": []})
    written: asyncio.Queue[bytes] = asyncio.Queue()
    async with holdfast.connect(peer) as client:
        session = ServerSession(SharedRelay(client).join().server, written.put_nowait, LoopRunner())
        level = {"io.modelcontextprotocol/logLevel": "debug"}
        meta = {PROTOCOL_VERSION: "2026-07-28", CLIENT_CAPABILITIES: {}, **level}
        params = {"name": "x", "_meta": meta}
        if server == "stateless":
            params["requestState"] = "the server's own"
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        session.feed(msgspec.json.encode(message))
        assert msgspec.json.decode(await written.get())["result"]["content"] == []
        session.close()
    if server == "handshake":
        assert (await peer.expect("logging/setLevel")).params["level"] == "debug"
    else:
        sent = (await peer.expect("tools/call")).params
        assert sent["requestState"] == "the server's own"
        assert sent["_meta"]["io.modelcontextprotocol/logLevel"] == "debug"
