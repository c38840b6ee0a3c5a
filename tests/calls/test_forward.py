"""The seam of a relay: requests forwarded and questions answered, raw, in both eras."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import Raw

import holdfast
from holdfast import Client
from holdfast._core.boundary import Call
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.errors import RpcError
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from holdfast.types import Progress
from tests.skipping import ends_within

eras = pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE], ids=["stateless", "handshake"])

pytestmark = pytest.mark.req("X2")

FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


async def forward(client: Client, name: str = "add", **fields: Any) -> Raw:
    """Forward the call of a tool; fields of the parameters may be raw."""
    call = Call("tools/call", {"name": name, **fields}, about=name)
    return await client._requester.forward(call)


def make_peer(versions: tuple[str, ...]) -> Peer:
    peer = Peer(versions=versions)

    @peer.tool()
    def add(a: int) -> str:
        return str(a)

    return peer


@eras
async def test_parameters_and_results_pass_as_they_are(versions: tuple[str, ...]) -> None:
    peer = make_peer(versions)
    result = (
        b'{"content":[],"n":1.50,"structuredContent":{"x":1.0000000000000000001},"extra":"\\u00e9"}'
    )

    def call(incoming: ServerRequest) -> Any:
        peer.write(b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (int(str(incoming.id)), result))
        return SILENCE

    peer.on("tools/call", call)
    fields: dict[str, Any] = {
        "arguments": Raw(b'{"a":"no number","b":1.50}'),
        "x-unknown": Raw(b"[1]"),
    }
    async with holdfast.connect(peer) as client:
        assert bytes(await forward(client, **fields)) == result
    (received,) = [request for request in peer.received if request.method == "tools/call"]
    sent = {key: value for key, value in received.params.items() if key != "_meta"}
    assert sent == {"name": "add", "arguments": {"a": "no number", "b": 1.5}, "x-unknown": [1]}
    assert not [request for request in peer.received if request.method == "tools/list"]


@eras
async def test_progress_passes(versions: tuple[str, ...]) -> None:
    peer = make_peer(versions)

    def call(incoming: ServerRequest) -> Any:
        incoming.progress(1, total=2, message="half")
        return {"content": []}

    peer.on("tools/call", call)
    steps: list[Progress] = []
    async with holdfast.connect(peer) as client:
        wish = Call("tools/call", {"name": "add"}, progress=True)
        await client._requester.forward(wish, on_progress=steps.append)
    assert [(step.progress, step.total, step.message) for step in steps] == [(1, 2, "half")]


@eras
async def test_a_cancelled_call_is_cancelled_at_the_server(versions: tuple[str, ...]) -> None:
    peer = make_peer(versions)
    peer.on("tools/call", SILENCE)
    async with holdfast.connect(peer) as client:
        forwarded = asyncio.ensure_future(forward(client))
        await peer.expect("tools/call")
        forwarded.cancel()
        with pytest.raises(asyncio.CancelledError):
            await forwarded
        await peer.expect("notifications/cancelled")


@eras
@pytest.mark.parametrize("options", [{"idle": 2}, {"total": 2}])
async def test_a_forwarded_call_has_its_own_time(versions: tuple[str, ...], options: Any) -> None:
    peer = make_peer(versions)
    peer.on("tools/call", SILENCE)
    async with holdfast.connect(peer) as client:
        await client.open()
        with ends_within(3), pytest.raises(holdfast.RequestTimeout) as caught:
            call = Call("tools/call", {"name": "add"}, about="add", **options)
            await client._requester.forward(call)
        assert caught.value.outcome_unknown
        assert "tools/call 'add'" in str(caught.value)


@eras
async def test_an_error_of_the_server_passes_with_its_code_and_data(
    versions: tuple[str, ...],
) -> None:
    peer = make_peer(versions)

    def refuse(incoming: ServerRequest) -> Any:
        raise RequestError(-32042, "no", {"a": 1})

    peer.on("any/thing", refuse)
    async with holdfast.connect(peer) as client:
        with pytest.raises(RpcError) as caught:
            await client._requester.forward(Call("any/thing"))
    assert (caught.value.code, caught.value.data) == (-32042, {"a": 1})
    assert caught.value.server_message == "no"


# What the server asks


def asking(versions: tuple[str, ...]) -> Peer:
    peer = make_peer(versions)

    async def call(incoming: ServerRequest) -> Any:
        if versions == HANDSHAKE:
            answer = await incoming.ask("elicitation/create", FORM)
        elif "inputResponses" in incoming.params:
            answer = incoming.params["inputResponses"]["q"]
        else:
            requests = {"q": {"method": "elicitation/create", "params": FORM}}
            return {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}
        return {"content": [], "structuredContent": answer}

    peer.on("tools/call", call)
    return peer


@eras
@pytest.mark.parametrize("verb", ["call_tool", "forward"])
async def test_one_raw_function_answers_all_that_a_server_asks(
    versions: tuple[str, ...], verb: str
) -> None:
    questions: list[tuple[str, Any]] = []

    async def answer(method: str, params: Raw) -> Raw:
        questions.append((method, msgspec.json.decode(params)["message"]))
        return Raw(b'{"action":"accept","content":{"n":1},"_meta":{"kept":1},"x":2}')

    client = holdfast.connect(asking(versions))
    client._attach_answerer(answer, {"elicitation.form"})
    async with client:
        if verb == "forward":
            result = await forward(client)
            content = msgspec.json.decode(result)["structuredContent"]
        else:
            content = (await client.call_tool("add", {"a": 1})).structured
    assert questions == [("elicitation/create", "Who?")]
    assert content == {"action": "accept", "content": {"n": 1}, "_meta": {"kept": 1}, "x": 2}


async def test_without_a_raw_function_the_questions_are_the_result() -> None:
    async with holdfast.connect(asking(STATELESS)) as client:
        result = await forward(client)
        assert msgspec.json.decode(result)["resultType"] == "input_required"
        answers: dict[str, Any] = {
            "inputResponses": {"q": {"action": "decline"}},
            "requestState": "s",
        }
        final = msgspec.json.decode(await forward(client, **answers))
    assert final["structuredContent"] == {"action": "decline"}


@pytest.mark.parametrize("method", ["sampling/createMessage", "roots/list", "other/question"])
async def test_every_request_of_a_server_reaches_the_raw_function(method: str) -> None:
    peer = make_peer(HANDSHAKE)

    async def answer(asked_method: str, params: Raw) -> Raw:
        if asked_method == "other/question":
            raise RpcError("not here", code=-32050)
        return raw({"method": asked_method})

    client = holdfast.connect(peer)
    client._attach_answerer(answer, {"sampling", "roots"})
    async with client:
        await client.open()
        if method == "other/question":
            with pytest.raises(RequestError, match="not here") as caught:
                await peer.ask(method, {})
            assert caught.value.code == -32050
        else:
            assert await peer.ask(method, {}) == {"method": method}


async def test_a_question_that_the_server_withdraws_is_cancelled() -> None:
    peer = make_peer(HANDSHAKE)
    started, ended = asyncio.Event(), asyncio.Event()

    async def answer(method: str, params: Raw) -> Raw:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    client = holdfast.connect(peer)
    client._attach_answerer(answer, {"roots"})
    async with client:
        await client.open()
        peer.write(b'{"jsonrpc":"2.0","id":77,"method":"roots/list"}\n')
        await started.wait()
        peer.notify("notifications/cancelled", {"requestId": 77})
        await ended.wait()


@eras
async def test_a_forwarded_call_is_logged_as_any_other(versions: tuple[str, ...]) -> None:
    peer = make_peer(versions)
    peer.on("tools/call", {"content": [{"type": "text", "text": "the password is hunter2-x"}]})
    lines: list[str] = []
    async with holdfast.connect(peer, log=lines.append) as client:
        arguments = {"a": 1, "password": "hunter2-x"}
        await forward(client, arguments=raw(arguments))
        peer.on("tools/call", {"content": [], "isError": True})
        await forward(client)
        peer.on("tools/call", {"content": 7})
        await forward(client, arguments=Raw(b"1e999"))
    before, after, _, failed, _, odd = map(msgspec.json.decode, lines)
    assert before["arguments"] == {"a": 1, "password": before["arguments"]["password"]}
    assert "hunter2" not in "".join(lines)
    assert (after["_ok"], failed["_ok"], odd["_ok"]) == (True, False, False)
