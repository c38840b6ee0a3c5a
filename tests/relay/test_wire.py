"""What else hosts and servers send: raw lines on both sides of a relay."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from msgspec import Raw

import holdfast
from holdfast._core.eras.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    HANDSHAKE,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    SUBSCRIPTION,
)
from holdfast._core.eras.serving import HandshakeServing
from holdfast._core.serve.runner import LoopRunner
from holdfast._core.server.lifecycle import initialize
from holdfast._core.server.session import ServerSession
from holdfast.policies import ToolPolicy
from holdfast.relay.finding import Finder
from holdfast.relay.sharing import SharedRelay
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from tests.relay.rig import Pair, input_required

pytestmark = pytest.mark.req("Y1")

PAIRS = [
    (host, server) for host in ("handshake", "stateless") for server in ("handshake", "stateless")
]


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(*request.param)


class RawHost:
    """A host that sends what it likes, and keeps what it is sent."""

    def __init__(self, pair: Pair, session: ServerSession, written: asyncio.Queue[bytes]) -> None:
        self.pair = pair
        self.session = session
        self._written = written

    def meta(self) -> dict[str, Any]:
        if not self.pair.is_host_stateless:
            return {}
        return {
            PROTOCOL_VERSION: self.pair.host,
            CLIENT_CAPABILITIES: {"roots": {}, "elicitation": {"form": {}, "url": {}}},
            CLIENT_INFO: {"name": "raw", "version": "1"},
        }

    def send(self, message: Any) -> None:
        line = message if isinstance(message, bytes) else msgspec.json.encode(message)
        self.session.feed(line)

    def request(self, wire_id: Any, method: str, **params: Any) -> None:
        params["_meta"] = {**params.get("_meta", {}), **self.meta()}
        self.send({"jsonrpc": "2.0", "id": wire_id, "method": method, "params": params})

    def notify(self, method: str, **params: Any) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def line(self) -> bytes:
        return await self._written.get()

    async def read(self) -> Any:
        return msgspec.json.decode(await self.line())

    async def call(self, wire_id: Any = 1, **params: Any) -> Any:
        self.request(wire_id, "tools/call", name="x", **params)
        return await self.read()


@asynccontextmanager
async def raw_host(
    pair: Pair, peer: Peer, tools: ToolPolicy | None = None
) -> AsyncIterator[RawHost]:
    written: asyncio.Queue[bytes] = asyncio.Queue()
    async with holdfast.connect(peer, when_down="wait") as client:
        relay = SharedRelay(client, tools).join()
        host = RawHost(pair, ServerSession(relay.server, written.put_nowait, LoopRunner()), written)
        if not pair.is_host_stateless:
            capabilities = {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}
            info = {"name": "raw", "version": "1"}
            params = {"protocolVersion": pair.host, "capabilities": capabilities}
            message = {"method": "initialize", "params": {**params, "clientInfo": info}}
            host.send({"jsonrpc": "2.0", "id": "init", **message})
            assert (await host.read())["id"] == "init"
            host.notify("notifications/initialized")
        yield host
        host.session.close()
        await relay.leave()


def echo(request: ServerRequest) -> Any:
    return {"content": [], "echo": request.params.get("arguments")}


@pytest.mark.parametrize("wire_id", [0, -1, 1.5, 2**53, 10**30, "", "é-日本", "1"])
async def test_ids_of_every_kind_come_back(pair: Pair, wire_id: Any) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        answer = await host.call(wire_id)
    assert answer["id"] == wire_id
    assert type(answer["id"]) is type(wire_id)


async def test_many_calls_at_once_are_told_apart(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    ids: list[Any] = [*range(50), *(f"{number}" for number in range(50))]
    async with raw_host(pair, peer) as host:
        for wire_id in ids:
            host.request(wire_id, "tools/call", name="x", arguments={"id": wire_id})
        answers = [await host.read() for _ in ids]
    assert all(answer["result"]["echo"]["id"] == answer["id"] for answer in answers)
    assert {(type(answer["id"]), answer["id"]) for answer in answers} == {(type(i), i) for i in ids}


@pytest.mark.parametrize(
    "value",
    [
        "\x00\u2028\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "x" * 2_000_000,
        {"deep": {"er": [[[{"": None}]]]}},
        [1.5, 1e300, -0.0, 2**70, True, False, None],
    ],
    ids=["unicode", "huge", "nested", "numbers"],
)
async def test_payloads_pass_as_they_are(pair: Pair, value: Any) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        answer = await host.call(arguments={"value": value, "null": None})
    assert answer["result"]["echo"] == {"value": value, "null": None}


async def test_results_of_every_kind_pass(pair: Pair) -> None:
    result = {
        "content": [
            {"type": "audio", "data": "AA==", "mimeType": "audio/wav", "annotations": {"x": 1}},
            {"type": "resource_link", "uri": "x://a", "name": "a", "icons": [{"src": "data:,"}]},
            {"type": "resource", "resource": {"uri": "x://b", "blob": "AA==", "_meta": {"v/a": 1}}},
            {"type": "text", "text": "", "annotations": {"audience": ["user"], "priority": 0.5}},
        ],
        "structuredContent": {"a": [1, None]},
        "isError": True,
        "_meta": {"vendor/x": {"y": None}},
    }
    peer = pair.peer()
    peer.on("tools/call", result)
    async with raw_host(pair, peer) as host:
        passed = (await host.call())["result"]
    assert {key: passed[key] for key in result if key != "_meta"} == {
        key: value for key, value in result.items() if key != "_meta"
    }
    assert passed["_meta"]["vendor/x"] == {"y": None}


@pytest.mark.parametrize("meta", [None, 5, [1]])
async def test_a_result_whose_meta_is_none_is_of_the_hosts_era(pair: Pair, meta: Any) -> None:
    peer = pair.peer()
    peer.on("tools/call", lambda request: Raw(msgspec.json.encode({"content": [], "_meta": meta})))
    async with raw_host(pair, peer) as host:
        result = (await host.call())["result"]
    if pair.is_host_stateless and not pair.is_server_stateless:
        assert result["resultType"] == "complete"
    assert result["content"] == []


@pytest.mark.parametrize(
    ("code", "data"),
    [
        (-32042, {"elicitations": [{"mode": "url", "url": "https://x"}]}),
        (1, None),
        (-32700, [1, {"a": None}]),
    ],
)
async def test_errors_pass_with_their_data(pair: Pair, code: int, data: Any) -> None:
    def refuse(request: ServerRequest) -> Any:
        raise RequestError(code, "no: é", data)

    peer = pair.peer()
    peer.on("tools/call", refuse)
    async with raw_host(pair, peer) as host:
        error = (await host.call())["error"]
    expected = {"code": code, "message": "no: é", **({} if data is None else {"data": data})}
    assert error == expected


@pytest.mark.parametrize("token", [0, 1.5, "", "a", 10**20])
async def test_progress_has_the_token_of_the_host_and_unknown_fields(
    pair: Pair, token: Any
) -> None:
    def call(request: ServerRequest) -> Any:
        request.progress(0.5, total=1, message="é", later={"x": 1}, _meta={"vendor/x": 1})
        return {"content": []}

    peer = pair.peer()
    peer.on("tools/call", call)
    async with raw_host(pair, peer) as host:
        step = await host.call(_meta={"progressToken": token})
        assert step["method"] == "notifications/progress"
        assert step["params"] == {
            "progressToken": token,
            "progress": 0.5,
            "total": 1,
            "message": "é",
            "later": {"x": 1},
            "_meta": {"vendor/x": 1},
        }
        assert (await host.read())["result"]["content"] == []


async def test_cancellations_of_nothing_do_nothing(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        for wire_id in (99, "none", None, [1], {"a": 1}, 1.5, True):
            host.notify("notifications/cancelled", requestId=wire_id)
        host.notify("notifications/cancelled")
        assert (await host.call())["id"] == 1


async def test_a_cancelled_call_is_not_answered_and_its_id_is_free(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", SILENCE)
    async with raw_host(pair, peer) as host:
        host.request(1, "tools/call", name="x")
        await peer.expect("tools/call")
        host.notify("notifications/cancelled", requestId=1, reason="enough")
        await peer.expect("notifications/cancelled")
        peer.on("tools/call", echo)
        answer = await host.call(1)
        assert answer["result"]["content"] == []


async def test_cursors_pass_and_lists_keep_unknown_fields(pair: Pair) -> None:
    def page(request: ServerRequest) -> Any:
        cursor = request.params.get("cursor")
        following = {"nextCursor": "ü=/+"} if cursor is None else {}
        item: dict[str, Any] = {"uriTemplate": "x://{a}", "name": "a", "icons": [], "later": cursor}
        return {"resourceTemplates": [item], "later": 1, **following}

    peer = pair.peer(capabilities={"resources": {}})
    peer.on("resources/templates/list", page)
    async with raw_host(pair, peer) as host:
        host.request(1, "resources/templates/list")
        first = (await host.read())["result"]
        assert (first["nextCursor"], first["later"]) == ("ü=/+", 1)
        host.request(2, "resources/templates/list", cursor=first["nextCursor"])
        assert (await host.read())["result"]["resourceTemplates"][0]["later"] == "ü=/+"


async def test_meta_passes_on_every_method(pair: Pair) -> None:
    peer = pair.peer(capabilities={"tools": {}, "prompts": {}, "resources": {}, "completions": {}})
    methods: dict[str, dict[str, Any]] = {
        "tools/call": {"name": "x"},
        "prompts/get": {"name": "x"},
        "resources/read": {"uri": "x://a"},
        "completion/complete": {"ref": {"type": "ref/prompt", "name": "x"}},
        "tools/list": {},
        "vendor/any": {},
    }
    for method in methods:
        peer.on(method, lambda request: {"seen": request.params["_meta"].get("traceparent")})
    async with raw_host(pair, peer) as host:
        for number, (method, params) in enumerate(methods.items()):
            host.request(number, method, **params, _meta={"traceparent": "00-é"})
            assert (await host.read())["result"]["seen"] == "00-é", method


async def test_all_that_is_in_a_subscription_and_a_level_passes() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer(capabilities={"resources": {"subscribe": True}, "logging": {}})
    peer.on("resources/subscribe", {})
    peer.on("resources/unsubscribe", {})
    peer.on("logging/setLevel", {})
    methods = {
        "resources/subscribe": {"uri": "x://a"},
        "logging/setLevel": {"level": "error"},
        "resources/unsubscribe": {"uri": "x://a"},
    }
    async with raw_host(pair, peer) as host:
        for number, (method, params) in enumerate(methods.items()):
            host.request(number, method, **params, later=[1], _meta={"vendor/x": number})
            assert (await host.read())["result"] == {}
    received = [(request.method, request.params) for request in peer.received[-3:]]
    assert received == [
        (method, {**params, "later": [1], "_meta": {"vendor/x": number}})
        for number, (method, params) in enumerate(methods.items())
    ]


async def test_what_a_host_has_asked_for_is_asked_for_again_after_a_crash() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer(capabilities={"resources": {"subscribe": True}, "logging": {}})
    peer.on("resources/subscribe", {})
    peer.on("resources/unsubscribe", {})
    peer.on("logging/setLevel", {})
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        for number, uri in enumerate(("x://a", "x://b")):
            host.request(number, "resources/subscribe", uri=uri)
            await host.read()
        host.request(3, "resources/unsubscribe", uri="x://b")
        host.request(4, "logging/setLevel", level="error")
        await host.read()
        await host.read()
        before = len(peer.received)
        peer.hang_up()
        await host.call(5)
        renewed = [
            (request.method, request.params)
            for request in peer.received[before:]
            if request.method in ("resources/subscribe", "logging/setLevel")
        ]
    assert ("logging/setLevel", {"level": "error"}) in renewed
    assert [params for method, params in renewed if "subscribe" in method] == [{"uri": "x://a"}]


@pytest.mark.parametrize(
    ("argument", "seen"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ud83d \\ud83d \ud83d\ude00"', "\ufffd \\ud83d \U0001f600"),
    ],
)
async def test_half_a_character_of_the_host_passes_as_a_replacement(
    pair: Pair, argument: bytes, seen: str
) -> None:
    # Hosts in JavaScript cut texts between the halves of an emoji, and write what is left escaped.
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        params = {"name": "x", "arguments": {"text": Raw(argument)}, "_meta": host.meta()}
        host.send(
            b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%s}'
            % msgspec.json.encode(params)
        )
        answer = await host.read()
    assert (answer["id"], answer["result"]["echo"]) == (7, {"text": seen})


@pytest.mark.parametrize(
    "text",
    [b'"\xff"', b"NaN", b"[" * 5000 + b"]" * 5000, b"[" * 50_000],
    ids=["utf-8", "nan", "deep", "deep-and-open"],
)
async def test_a_request_that_cannot_be_read_is_refused_by_its_id(text: bytes) -> None:
    pair = Pair("handshake", "handshake")
    async with raw_host(pair, pair.peer()) as host:
        message = b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"_meta":%s}}' % text
        host.send(message)
        answer = await host.read()
    assert (answer["id"], answer["error"]["code"]) == ("a", -32700)


@pytest.mark.parametrize("tools", [None, ToolPolicy(deny=["y"])], ids=["all", "allowed"])
async def test_a_name_that_cannot_be_read_is_refused(tools: ToolPolicy | None) -> None:
    pair = Pair("handshake", "handshake")
    async with raw_host(pair, pair.peer(), tools) as host:
        host.send(b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":1e400}}')
        error = (await host.read())["error"]
    assert error["code"] == -32602
    assert "prompts/get: the parameters cannot be forwarded: " in error["message"]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"null", b'{"jsonrpc":"1.0","id":1,"method":"ping"}']
)
async def test_what_is_no_message_is_refused_and_the_rest_goes_on(pair: Pair, line: bytes) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        host.send(line)
        assert (await host.read())["error"]["code"] in (-32700, -32600)
        assert (await host.call(5))["id"] == 5


async def test_a_batch_of_its_revision_is_answered() -> None:
    pair = Pair("handshake", "handshake")
    pair.host = "2025-03-26"
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        call = {"jsonrpc": "2.0", "method": "tools/call"}
        batch = [{**call, "id": number, "params": {"name": "x"}} for number in range(3)]
        host.send([*batch, {"jsonrpc": "2.0", "method": "notifications/vendor"}])
        answers = [await host.read() for _ in range(3)]
        assert {answer["id"] for answer in answers} == {0, 1, 2}
        assert (await peer.expect("notifications/vendor")).id is None


async def test_questions_pass_raw_with_answers_and_refusals() -> None:
    pair = Pair("handshake", "handshake")
    question = {"mode": "url", "url": "https://x", "elicitationId": "1", "message": "é", "later": 1}
    outcomes: asyncio.Queue[Any] = asyncio.Queue()

    async def call(request: ServerRequest) -> Any:
        for _ in range(2):
            try:
                outcomes.put_nowait(await request.session.ask("elicitation/create", question))
            except RequestError as error:
                outcomes.put_nowait((error.code, error.message, error.data))
        return {"content": []}

    peer = pair.peer()
    peer.on("tools/call", call)
    async with raw_host(pair, peer) as host:
        asked = await host.call(_meta={"vendor/x": 1})
        assert asked["params"] == question
        answer = {"action": "accept", "later": [1]}
        host.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        assert await outcomes.get() == answer
        asked = await host.read()
        fault = {"code": -1, "message": "no", "data": {"why": [1]}}
        host.send({"jsonrpc": "2.0", "id": asked["id"], "error": fault})
        assert await outcomes.get() == (-1, "no", {"why": [1]})
        assert (await host.read())["result"]["content"] == []
        # An answer to nothing is dropped.
        host.send({"jsonrpc": "2.0", "id": "server-99", "result": {}})
        host.send({"jsonrpc": "2.0", "id": None, "error": {"code": 1, "message": ""}})
        assert (await host.call(9))["method"] == "elicitation/create"


async def test_a_call_ends_with_the_refusal_of_what_a_stateless_server_asks() -> None:
    """Its rounds have answers alone, so the server cannot be told that the host refuses."""
    pair = Pair("handshake", "stateless")
    peer = pair.peer()
    peer.on("tools/call", input_required("roots/list", {}))
    async with raw_host(pair, peer) as host:
        asked = await host.call()
        fault = {"code": -1, "message": "User rejected", "data": {"why": [1]}}
        host.send({"jsonrpc": "2.0", "id": asked["id"], "error": fault})
        assert await host.read() == {"jsonrpc": "2.0", "id": 1, "error": fault}


async def test_answers_are_not_sent_to_a_server_that_takes_none() -> None:
    """It took the place of the one that asked, and would run the call from the beginning."""
    pair = Pair("handshake", "stateless")
    peer = pair.peer()
    peer.on("tools/call", input_required("roots/list", {}))
    async with raw_host(pair, peer) as host:
        asked = await host.call()
        peer.versions = HANDSHAKE
        peer.hang_up()
        host.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
        answer = await host.read()
        while answer.get("id") != 1:
            answer = await host.read()
        assert answer["error"]["data"] == {"kind": "transport", "outcomeUnknown": True}
        assert "the server that asked is gone" in answer["error"]["message"]
        host.request(2, "ping")
        while (await host.read()).get("id") != 2:
            pass
    assert [request.method for request in peer.received].count("tools/call") == 1


async def test_a_question_whose_parameters_are_null_has_none() -> None:
    """A request may not say null, and hosts refuse one that does."""
    pair = Pair("handshake", "stateless")
    peer = pair.peer()
    question = {"method": "roots/list", "params": None}
    peer.on("tools/call", {"resultType": "input_required", "inputRequests": {"q": question}})
    async with raw_host(pair, peer) as host:
        assert (await host.call())["params"] == {}


@pytest.mark.parametrize("server", ["handshake", "stateless"])
async def test_a_level_that_nobody_knows_passes_to_whom_asked_for_messages(server: str) -> None:
    pair = Pair("stateless", server)
    peer = pair.peer(capabilities={"logging": {}})
    message = {"level": "trace", "data": 1}

    def call(request: ServerRequest) -> Any:
        request.notify("notifications/message", message)
        return {"content": []}

    peer.on("tools/call", call)
    async with raw_host(pair, peer) as host:
        assert (await host.call(1))["id"] == 1
        assert (await host.call(2, _meta={LOG_LEVEL: "error"}))["params"] == message
        assert (await host.read())["id"] == 2


async def test_pings_are_answered_on_both_sides() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    async with raw_host(pair, peer) as host:
        host.send({"jsonrpc": "2.0", "id": "p", "method": "ping"})
        assert await host.read() == {"jsonrpc": "2.0", "id": "p", "result": {}}
        assert await peer.ask("ping") == {}


async def test_roots_that_changed_are_told() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    async with raw_host(pair, peer) as host:
        host.notify("notifications/roots/list_changed", _meta={"vendor/x": 1})
        told = await peer.expect("notifications/roots/list_changed")
        assert told.params == {"_meta": {"vendor/x": 1}}


async def test_notifications_of_the_server_pass_raw(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        await host.call()
        params = {"x": [None, "é"], "_meta": {"vendor/x": 1}}
        peer.notify("notifications/vendor/thing", params)
        told = await host.read()
    assert (told["method"], told["params"]) == ("notifications/vendor/thing", params)
    assert "id" not in told


async def test_a_method_that_the_server_lacks_is_its_own_error(pair: Pair) -> None:
    async with raw_host(pair, pair.peer()) as host:
        host.request("a", "vendor/none", x=Raw(b"1"))
        answer = await host.read()
    assert (answer["id"], answer["error"]["code"]) == ("a", -32601)


async def test_a_method_of_the_other_era_changes_nothing() -> None:
    """A stateless host that probes with ``initialize`` is no handshake host from then on."""
    pair = Pair("stateless", "handshake")
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        await host.call()
        host.request("i", "initialize", protocolVersion="2025-11-25", capabilities={})
        assert (await host.read())["error"]["code"] == -32601
        peer.notify("notifications/vendor")
        assert (await host.read())["method"] == "notifications/vendor"


async def test_requests_of_the_server_that_nobody_knows_pass() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    async with raw_host(pair, peer) as host:
        asking = asyncio.ensure_future(peer.ask("vendor/ask", {"a": None, "_meta": {"v/x": 1}}))
        question = await host.read()
        assert question["method"] == "vendor/ask"
        assert question["params"] == {"a": None, "_meta": {"v/x": 1}}
        host.send({"jsonrpc": "2.0", "id": question["id"], "result": {"b": [1]}})
        assert await asking == {"b": [1]}


async def test_updates_of_parts_and_of_what_nobody_asked_for_pass(pair: Pair) -> None:
    """A server may tell of a part of the resource that is subscribed to, or of any."""
    peer = pair.peer(capabilities={"resources": {"subscribe": True}})
    peer.resource("x://a", "text")
    updated = "notifications/resources/updated"
    async with raw_host(pair, peer) as host:
        if pair.is_host_stateless:
            filters = {"resourceSubscriptions": ["x://a"]}
            host.request("stream", "subscriptions/listen", notifications=filters)
        else:
            host.request("stream", "resources/subscribe", uri="x://a")
        await host.read()
        peer.notify(updated, {"uri": "x://a/part", "later": 1})
        passed = (await host.read())["params"]
        assert (passed["uri"], passed["later"]) == ("x://a/part", 1)
        if pair.is_host_stateless:
            assert passed["_meta"][SUBSCRIPTION] == "stream"
        else:
            peer.notify(updated, {"uri": "y://other"})
            assert (await host.read())["params"] == {"uri": "y://other"}


async def test_an_error_without_words_has_none(pair: Pair) -> None:
    def refuse(request: ServerRequest) -> Any:
        raise RequestError(0, "")

    peer = pair.peer()
    peer.on("tools/call", refuse)
    async with raw_host(pair, peer) as host:
        assert (await host.call())["error"] == {"code": 0, "message": ""}


async def test_the_reason_of_a_cancellation_passes(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", SILENCE)
    async with raw_host(pair, peer) as host:
        for count, words in enumerate(("é, enough", "cancelled", 5), 1):
            host.request(1, "tools/call", name="x")
            await peer.expect("tools/call", count)
            host.notify("notifications/cancelled", requestId=1, reason=words)
            passed = await peer.expect("notifications/cancelled", count)
            assert passed.params["reason"] == (words if isinstance(words, str) else "cancelled")


async def test_a_question_is_withdrawn_when_its_server_dies() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    peer.on("tools/call", lambda request: request.session.ask("roots/list", {}))
    async with raw_host(pair, peer) as host:
        host.request(1, "tools/call", name="x")
        question = await host.read()
        assert question["method"] == "roots/list"
        peer.hang_up()
        messages = [await host.read(), await host.read()]
        (error,) = [message for message in messages if "error" in message]
        (withdrawn,) = [message for message in messages if "method" in message]
    assert error["error"]["data"]["outcomeUnknown"] is True
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/tools/list_changed", b'{"n":1e400,"m":-0}'),
        ("notifications/resources/updated", b'{"uri":"u:a","n":1e400,"_meta":{"m":-0}}'),
        ("notifications/message", b'{"level":"error","data":[1e400,-0]}'),
        ("vendor/told", b'{"n":[1e400,-0]}'),
    ],
)
async def test_notifications_pass_with_numbers_that_python_does_not_have(
    method: str, params: bytes
) -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    async with raw_host(pair, peer) as host:
        head = b'{"jsonrpc":"2.0","method":"%s","params":' % method.encode()
        peer.write(head + params + b"}\n")
        assert await host.line() == head + params + b"}\n"


@pytest.mark.parametrize("method", ["notifications/tools/list_changed", "vendor/told"])
async def test_a_notification_without_parameters_has_none(method: str) -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    async with raw_host(pair, peer) as host:
        line = b'{"jsonrpc":"2.0","method":"%s"}\n' % method.encode()
        peer.write(line)
        assert await host.line() == line


async def test_a_host_is_told_to_list_again_after_a_crash(pair: Pair) -> None:
    """Another program may be there now, with other tools: nobody else can tell the host."""
    peer = pair.peer(capabilities={"tools": {"listChanged": True}, "prompts": {}})
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        if pair.is_host_stateless:
            filters = {"toolsListChanged": True, "promptsListChanged": True}
            host.request("stream", "subscriptions/listen", notifications=filters)
            await host.read()
        await host.call(1)
        peer.hang_up()
        told = await host.call(2)
        assert told["method"] == "notifications/tools/list_changed"
        assert (await host.read())["id"] == 2


async def test_progress_passes_as_it_came_with_the_token_of_the_host(pair: Pair) -> None:
    peer = pair.peer()
    report = b'"progress":1e0,"total":-0,"message":"m","n":1e400,"_meta":{"k":1.50}'

    def call(request: ServerRequest) -> Any:
        token = msgspec.json.encode(request.meta["progressToken"])
        head = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":'
        peer.write(head + token + b"," + report + b"}}\n")
        return {"content": []}

    peer.on("tools/call", call)
    async with raw_host(pair, peer) as host:
        host.request(1, "tools/call", name="x", _meta={"progressToken": "mine"})
        line = await host.line()
    assert report in line
    assert msgspec.json.decode(line.replace(b"1e400", b"0"))["params"]["progressToken"] == "mine"


async def test_a_host_of_an_older_revision_gets_fields_that_it_may_not_know() -> None:
    pair = Pair("handshake", "stateless")
    pair.host = "2024-11-05"
    peer = pair.peer()

    def call(request: ServerRequest) -> Any:
        peer.progress(request, 1, message="half")
        return {"resultType": "complete", "content": [], "structuredContent": {"n": 1}}

    peer.on("tools/call", call)
    async with raw_host(pair, peer) as host:
        host.request(1, "tools/call", name="x", _meta={"progressToken": "mine"})
        assert (await host.read())["params"]["message"] == "half"
        assert (await host.read())["result"] == {"content": [], "structuredContent": {"n": 1}}


@pytest.mark.parametrize("tools", [None, ToolPolicy(allow=["x"])], ids=["all", "allowed"])
async def test_arguments_pass_with_numbers_that_python_does_not_have(
    pair: Pair, tools: ToolPolicy | None
) -> None:
    peer = pair.peer()
    peer.on("tools/call", lambda request: {"content": [], "echo": request.fields["arguments"]})
    async with raw_host(pair, peer, tools) as host:
        meta = msgspec.json.encode(host.meta())
        params = b'{"name":"x","arguments":{"n":1e400,"m":-0},"_meta":%s}' % meta
        host.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % params)
        assert b'"echo":{"n":1e400,"m":-0}' in await host.line()


async def test_arguments_of_a_tool_that_was_found_pass_as_they_came(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", lambda request: {"content": [], "echo": request.fields["arguments"]})
    async with raw_host(pair, peer) as host:
        Finder(host.session.server)
        meta, inner = msgspec.json.encode(host.meta()), b'{"n":1e400,"m":-0}'
        arguments = b'{"name":"x","arguments":%s}' % inner
        params = b'{"name":"call_tool","arguments":%s,"_meta":%s}' % (arguments, meta)
        host.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%s}' % params)
        assert b'"echo":' + inner in await host.line()


@pytest.mark.parametrize(
    ("answer", "code"),
    [({}, -32603), ({"error": {"code": 1.5}}, -32603), ({"error": {"code": -1}}, -1)],
)
async def test_an_answer_that_says_nothing_is_an_error_for_the_server(
    answer: dict[str, Any], code: int
) -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    async with raw_host(pair, peer) as host:
        asking = asyncio.ensure_future(peer.ask("roots/list"))
        question = await host.read()
        host.send({"jsonrpc": "2.0", "id": question["id"], **answer})
        with pytest.raises(RequestError) as refused:
            await asking
    assert refused.value.code == code
    assert "None" not in refused.value.message


async def test_the_reason_of_a_withdrawn_question_passes() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    async with raw_host(pair, peer) as host:
        asking = asyncio.ensure_future(peer.ask("roots/list"))
        question = await host.read()
        peer.notify("notifications/cancelled", {"requestId": "server-1", "reason": "too late"})
        withdrawn = await host.read()
        asking.cancel()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"] == {"requestId": question["id"], "reason": "too late"}


async def test_what_else_a_server_says_of_itself_passes(pair: Pair) -> None:
    def introduce(request: ServerRequest) -> Any:
        era = (
            {"supportedVersions": [pair.versions[0]]}
            if pair.is_server_stateless
            else {"protocolVersion": pair.versions[0], "serverInfo": {"name": "x", "version": "1"}}
        )
        return {"capabilities": {}, "later": [1], "_meta": {"vendor/x": None}, **era}

    peer = pair.peer()
    peer.on("server/discover" if pair.is_server_stateless else "initialize", introduce)
    async with holdfast.connect(peer) as client:
        relay = SharedRelay(client).join()
        written: asyncio.Queue[bytes] = asyncio.Queue()
        session = ServerSession(relay.server, written.put_nowait, LoopRunner())
        host = RawHost(pair, session, written)
        first: dict[str, Any] = {"protocolVersion": pair.host, "capabilities": {}}
        first["clientInfo"] = {"name": "raw", "version": "1"}
        method = "server/discover" if pair.is_host_stateless else "initialize"
        host.request(1, method, **({} if pair.is_host_stateless else first))
        result = (await host.read())["result"]
        session.close()
        await relay.leave()
    assert result["later"] == [1]
    assert result["_meta"]["vendor/x"] is None


async def test_the_meta_of_an_update_passes(pair: Pair) -> None:
    peer = pair.peer(capabilities={"resources": {"subscribe": True}})
    peer.resource("x://a", "text")
    async with raw_host(pair, peer) as host:
        if pair.is_host_stateless:
            filters = {"resourceSubscriptions": ["x://a"]}
            host.request("stream", "subscriptions/listen", notifications=filters)
        else:
            host.request("stream", "resources/subscribe", uri="x://a")
        await host.read()
        update = {"uri": "x://a", "_meta": {"vendor/x": 1}}
        peer.notify("notifications/resources/updated", update)
        assert (await host.read())["params"]["_meta"]["vendor/x"] == 1


async def test_notifications_of_the_host_that_nobody_knows_pass(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with raw_host(pair, peer) as host:
        await host.call()
        host.notify("notifications/vendor", a=[None, "é"], _meta={"vendor/x": 1})
        passed = await peer.expect("notifications/vendor")
    assert passed.params == {"a": [None, "é"], "_meta": {"vendor/x": 1}}


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32050, "message": "no", "data": None},
        {"code": -32050, "message": "no", "later": {"a": [None]}},
        {"code": 5, "message": "no", "data": None, "later": None, "": 0},
    ],
)
async def test_errors_pass_with_what_no_revision_knows(pair: Pair, error: Any) -> None:
    def refuse(request: ServerRequest) -> Any:
        answer = {"jsonrpc": "2.0", "id": request.id, "error": error}
        peer.write(msgspec.json.encode(answer) + b"\n")
        return SILENCE

    peer = pair.peer()
    peer.on("tools/call", refuse)
    async with raw_host(pair, peer) as host:
        assert (await host.call())["error"] == error


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"error": "oops"}, "the error is malformed: "),
        ({"error": [1]}, "the error is malformed: "),
        ({"result": 5}, "the result is not an object: 5"),
        ({"result": "text"}, "the result is not an object: "),
        ({"result": None}, "the result is not an object: null"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_that_says_what_came(
    pair: Pair, part: Any, words: str
) -> None:
    def answer(request: ServerRequest) -> Any:
        peer.write(msgspec.json.encode({"jsonrpc": "2.0", "id": request.id, **part}) + b"\n")
        return SILENCE

    peer = pair.peer()
    peer.on("tools/call", answer)
    async with raw_host(pair, peer) as host:
        error = (await host.call())["error"]
    assert words in error["message"]
    assert error["data"] == {"kind": "protocol", "outcomeUnknown": True}


@pytest.mark.filterwarnings("error")
async def test_a_call_that_is_cancelled_before_it_begins_leaves_nothing(pair: Pair) -> None:
    peer = pair.peer()
    peer.on("tools/call", echo)
    async with holdfast.connect(peer) as client:
        relay = SharedRelay(client, ToolPolicy(deny=["y"])).join()  # it cannot go straight
        session = ServerSession(relay.server, lambda line: None, LoopRunner())
        host = RawHost(pair, session, asyncio.Queue())
        session.era = HandshakeServing()
        host.request(1, "tools/call", name="x")
        host.notify("notifications/cancelled", requestId=1)
        host.request(2, "tools/call", name="x")
        session.close()
        await relay.leave()
        gc.collect()
    assert not any(request.method == "tools/call" for request in peer.received)


async def test_what_waited_for_a_handshake_that_failed_is_refused_with_its_reason() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    refusal = RequestError(-32602, "the licence has ended", {"days": 3})
    for method in ("initialize", "server/discover"):
        peer.on(method, lambda request: refusal)
    written: asyncio.Queue[bytes] = asyncio.Queue()
    async with holdfast.connect(peer) as client:
        relay = SharedRelay(client).join()
        host = RawHost(pair, ServerSession(relay.server, written.put_nowait, LoopRunner()), written)
        info = {"name": "raw", "version": "1"}
        params = {"protocolVersion": pair.host, "capabilities": {}, "clientInfo": info}
        host.send({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
        host.notify("notifications/initialized")
        host.request(1, "tools/list")
        host.request(2, "tools/call", name="x")
        answers = [await host.read() for _ in range(3)]
        assert [answer["id"] for answer in answers] == ["init", 1, 2]
        assert "the licence has ended" in answers[0]["error"]["message"]
        assert answers[0]["error"] == answers[1]["error"] == answers[2]["error"]
        host.session.close()
        await relay.leave()


async def test_what_a_server_says_to_a_wish_passes() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer(capabilities={"resources": {"subscribe": True}, "logging": {}})
    requests: list[str] = []

    def answer(request: ServerRequest) -> Any:
        requests.append(request.method)
        return {"number": len(requests), "_meta": {"com.example/a": 1}}

    wishes = {
        "logging/setLevel": {"level": "error"},
        "resources/subscribe": {"uri": "x://a"},
        "resources/unsubscribe": {"uri": "x://a"},
    }
    for method in wishes:
        peer.on(method, answer)
    async with raw_host(pair, peer) as host:
        for method, params in wishes.items():
            for wire_id in range(2):  # once more, too: what that means is the server's business
                host.request(wire_id, method, **params)
                result = (await host.read())["result"]
                assert result == {"number": len(requests), "_meta": {"com.example/a": 1}}
        assert requests == [method for method in wishes for _ in range(2)]


async def test_the_end_of_what_nobody_watches_is_the_server_s_to_refuse() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer(capabilities={"resources": {"subscribe": True}})

    def refuse(request: ServerRequest) -> Any:
        raise RequestError(-32602, "not subscribed")

    peer.on("resources/unsubscribe", refuse)
    async with raw_host(pair, peer) as host:
        host.request(1, "resources/unsubscribe", uri="x://a")
        assert (await host.read())["error"] == {"code": -32602, "message": "not subscribed"}


async def test_a_refused_repetition_leaves_the_subscription() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer(capabilities={"resources": {"subscribe": True}})
    answers: list[Any] = [{}, RequestError(-32602, "already")]
    peer.on("resources/subscribe", lambda request: answers.pop(0))
    async with raw_host(pair, peer) as host:
        for wire_id, kind in ((1, "result"), (2, "error")):
            host.request(wire_id, "resources/subscribe", uri="x://a")
            assert kind in await host.read()
        peer.notify("notifications/resources/updated", {"uri": "x://a"})
        assert (await host.read())["params"] == {"uri": "x://a"}


async def test_a_server_that_was_told_a_level_may_log_below_it() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer(capabilities={"logging": {}})
    async with raw_host(pair, peer) as host:
        host.request(1, "logging/setLevel", level="error")
        assert (await host.read())["result"] == {}
        message = {"level": "info", "data": "the disk is nearly full"}
        peer.notify("notifications/message", message)
        assert (await host.read())["params"] == message


@pytest.mark.parametrize("is_said", [True, False], ids=["initialized", "silent"])
async def test_what_a_server_tells_during_the_handshake_reaches_the_host(is_said: bool) -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer(capabilities={"logging": {}, "tools": {"listChanged": True}})
    written: asyncio.Queue[bytes] = asyncio.Queue()

    def start(request: ServerRequest) -> Any:
        request.session.notify("notifications/message", {"level": "info", "data": "starting"})
        request.session.notify("notifications/tools/list_changed")
        return initialize(request)

    peer.on("initialize", start)
    async with holdfast.connect(peer) as client:
        relay = SharedRelay(client).join()
        host = RawHost(pair, ServerSession(relay.server, written.put_nowait, LoopRunner()), written)
        info = {"name": "raw", "version": "1"}
        params = {"protocolVersion": pair.host, "capabilities": {}, "clientInfo": info}
        host.send({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
        assert (await host.read())["id"] == "init"
        if is_said:
            host.notify("notifications/initialized")
        else:
            host.request(1, "ping")
        assert (await host.read())["params"] == {"level": "info", "data": "starting"}
        assert (await host.read())["method"] == "notifications/tools/list_changed"
        host.session.close()
        await relay.leave()
