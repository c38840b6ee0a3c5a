"""One client's connection to the server side."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import msgspec
import pytest
from msgspec import Raw

import holdfast
from holdfast._core.eras.revisions import (
    CLIENT_CAPABILITIES,
    HANDSHAKE,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    STATELESS,
)
from holdfast._core.serve.runner import LoopRunner
from holdfast._core.server import session as session_module
from holdfast._core.server.message import raw_fields
from holdfast._core.server.request import SILENCE, ServerRequest
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.wire.codes import RequestError
from holdfast._core.wire.jsonrpc import encode
from holdfast.testing import Peer
from tests.server.wire import Client, Wire


def make_server(**handlers: Any) -> Server:
    methods = {name.replace("__", "/"): handler for name, handler in handlers.items()}
    return Server("test", methods)


@pytest.fixture(params=[STATELESS[0], HANDSHAKE[0]])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_result_that_is_not_json_is_an_internal_error(version: str) -> None:
    client = Client(Wire(make_server(tools__list=lambda _: {"x": object()})), version)
    error = client.error("tools/list")
    assert error["code"] == -32603
    assert "not JSON" in error["message"]


@pytest.mark.parametrize("waits", [False, True])
def test_a_handler_that_fails_is_an_internal_error(version: str, waits: bool) -> None:
    async def slow(request: ServerRequest) -> None:
        await request.sleep(0)
        raise KeyError("lost")

    def quick(request: ServerRequest) -> None:
        raise KeyError("lost")

    client = Client(Wire(make_server(tools__list=slow if waits else quick)), version)
    error = client.error("tools/list")
    assert error == {"code": -32603, "message": "internal error: KeyError('lost')"}


def test_what_a_request_says_of_its_client_holds_for_that_request() -> None:
    """The `_meta` that comes again is not read again; another one is."""
    seen: list[tuple[Any, ...]] = []

    def note(request: ServerRequest) -> dict[str, Any]:
        seen.append((request.stateless, request.era.capabilities, request.era.log_level))
        return {"tools": []}

    lines = list[bytes]()
    session = ServerSession(make_server(tools__list=note), lines.append, LoopRunner())
    stateless = {PROTOCOL_VERSION: STATELESS[0], CLIENT_CAPABILITIES: {}}
    verbose = {**stateless, LOG_LEVEL: "debug"}
    able = {**stateless, CLIENT_CAPABILITIES: {"roots": {}}}
    for number, meta in enumerate((stateless, stateless, verbose, stateless, able, able)):
        request = {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
        session.feed(encode({**request, "params": {"_meta": meta}}))
    plain: tuple[Any, ...] = (True, {}, None)
    can: tuple[Any, ...] = (True, {"roots": {}}, None)
    assert seen == [plain, plain, (True, {}, "debug"), plain, can, can]
    session.feed(encode({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {}}))
    assert len(seen) == 6
    assert b"error" in lines[-1]


def test_a_handler_refuses_with_code_and_data(version: str) -> None:
    def refuse(request: ServerRequest) -> None:
        raise RequestError(-32050, "no", {"why": request.params["cursor"]})

    client = Client(Wire(make_server(tools__list=refuse)), version)
    error = client.error("tools/list", {"cursor": "c"})
    assert error == {"code": -32050, "message": "no", "data": {"why": "c"}}


def test_handlers_that_wait_take_turns(version: str) -> None:
    steps: list[str] = []

    async def walk(request: ServerRequest) -> dict[str, Any]:
        for number in range(3):
            steps.append(f"{request.id}.{number}")
            await request.sleep(0)
        return {}

    client = Client(Wire(make_server(tools__call=walk)), version)
    ids = [client.start("tools/call"), client.start("tools/call")]
    assert [client.wire.receive()["id"] for _ in ids] == ids
    assert steps == ["1.0", "2.0", "1.1", "2.1", "1.2", "2.2"]


@pytest.mark.parametrize("code", [-7, "odd", None])
def test_a_question_refused_raises_what_the_client_said(code: Any) -> None:
    seen: list[RequestError] = []

    async def ask(request: ServerRequest) -> dict[str, Any]:
        try:
            await request.session.ask("roots/list")
        except RequestError as error:
            seen.append(error)
        return {}

    client = Client(Wire(make_server(tools__call=ask)), HANDSHAKE[0])
    client.start("tools/call")
    question = client.wire.receive()
    client.wire.send(id=question["id"], error={"code": code, "message": "no", "data": [1]})
    assert client.wire.receive()["result"] == {}
    (error,) = seen
    expected = code if isinstance(code, int) else -32603
    assert (error.code, error.message, error.data) == (expected, "no", [1])


def test_closing_cancels_what_runs_and_withdraws_its_questions() -> None:
    ended: list[str] = []

    async def ask(request: ServerRequest) -> dict[str, Any]:
        try:
            await request.ask("roots/list", {})
        finally:
            ended.append("ask")
        return {}

    client = Client(Wire(make_server(tools__call=ask)), HANDSHAKE[0])
    client.start("tools/call")
    question = client.wire.receive()
    client.wire.session.close()
    (withdrawn,) = client.wire.rest()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"] == {"requestId": question["id"]}
    assert ended == ["ask"]


@pytest.mark.req("Y1")
def test_closing_ends_the_questions_that_belong_to_no_request() -> None:
    """A relay asks for its upstream too, in a task of its own: that must not wait for ever."""
    wire = Wire(make_server())
    refusals: list[str] = []

    async def ask() -> None:
        try:
            await wire.session.ask("roots/list")
        except RequestError as error:
            refusals.append(error.message)

    works = [ask(), ask()]
    waits = [work.send(None) for work in works]
    for work, wait in zip(works, waits, strict=True):
        wait.handler = work
    waits[1].set_exception(RequestError(-32000, "given up in the same moment"))
    wire.session.close()
    questions = wire.rest()
    assert sorted(refusals) == ["given up in the same moment", "the client is gone"]
    assert [question["method"] for question in questions] == ["roots/list"] * 2


def test_change_notifications_go_to_those_who_asked(version: str) -> None:
    server = make_server()
    server.capabilities = lambda: {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True},
    }
    client = Client(Wire(server), version)
    session = client.wire.session
    if client.is_stateless:
        wanted = {"toolsListChanged": True, "promptsListChanged": True}
        uris = {"resourceSubscriptions": ["x://a"]}
        client.start("subscriptions/listen", {"notifications": {**wanted, **uris}})
        agreed = client.wire.receive()["params"]["notifications"]
        assert agreed == {"toolsListChanged": True, **uris}
    else:
        client.result("resources/subscribe", {"uri": "x://a"})
    session.announce("notifications/tools/list_changed")
    for uri in ("x://a", "x://b"):
        session.announce("notifications/resources/updated", {"uri": uri})
    heard = [(one["method"], one.get("params", {}).get("uri")) for one in client.wire.rest()]
    assert heard == [
        ("notifications/tools/list_changed", None),
        ("notifications/resources/updated", "x://a"),
    ]


def test_an_override_is_called_in_any_era_and_before_initialize() -> None:
    server = make_server()
    server.overrides["anything"] = lambda request: {"stateless": request.stateless}
    server.overrides["nothing"] = lambda request: SILENCE
    wire = Wire(server)
    wire.send(id="a", method="nothing")
    wire.send(id="b", method="anything")
    assert wire.receive() == {"jsonrpc": "2.0", "id": "b", "result": {"stateless": False}}
    assert Client(wire, STATELESS[0]).result("anything")["stateless"] is True


def test_every_request_and_notification_is_heard(version: str) -> None:
    server, heard = make_server(), list[str]()
    server.heard = lambda request: heard.append(request.method)
    client = Client(Wire(server), version)
    client.error("no/such")
    client.wire.send(method="notifications/odd")
    assert heard[-2:] == ["no/such", "notifications/odd"]


def test_what_is_wrong_with_params_is_told_to_a_request_and_not_to_a_notification() -> None:
    wire = Wire(make_server())
    wire.send(method="ping", params=[1])
    wire.send(id=1, method="ping", params=[1])
    (answer,) = wire.rest()
    assert answer["error"] == {"code": -32602, "message": "params must be an object"}


@pytest.mark.req("Y1")
def test_params_that_are_null_count_as_none() -> None:
    wire = Wire(make_server())
    wire.send(id=1, method="ping", params=None)
    assert wire.receive()["result"] == {}


@pytest.mark.parametrize("params", [{}, {"uri": 5}])
def test_a_uri_must_be_a_string(params: dict[str, Any]) -> None:
    client = Client(Wire(make_server()), HANDSHAKE[0])
    assert client.error("resources/subscribe", params)["message"] == "uri must be a string"


@pytest.mark.parametrize(("version", "told"), [(HANDSHAKE[0], True), (HANDSHAKE[-1], False)])
def test_progress_has_a_message_where_the_revision_has_it(version: str, told: bool) -> None:
    def report(request: ServerRequest) -> dict[str, Any]:
        request.progress(1, total=2, message="half")
        return {}

    client = Client(Wire(make_server(tools__call=report)), version)
    client.start("tools/call", meta={"progressToken": "t"})
    params = client.wire.receive()["params"]
    assert params.pop("message", None) == ("half" if told else None)
    assert params == {"progressToken": "t", "progress": 1, "total": 2}


def test_an_answer_that_is_no_object_is_refused(version: str) -> None:
    async def ask(request: ServerRequest) -> dict[str, Any]:
        return await request.ask("roots/list", {}, "roots")

    client = Client(Wire(make_server(tools__call=ask)), version)
    client.start("tools/call")
    question = client.wire.receive()
    if client.is_stateless:
        state = question["result"]["requestState"]
        answers = {"inputResponses": {"roots": 5}, "requestState": state}
        error = client.error("tools/call", answers)
    else:
        client.wire.send(id=question["id"], result=5)
        error = client.wire.receive()["error"]
    assert error["code"] == -32602
    assert "must be an object" in error["message"]


def test_an_answer_that_is_none_ends_the_question() -> None:
    async def ask(request: ServerRequest) -> dict[str, Any]:
        return await request.ask("roots/list", {}, "roots")

    client = Client(Wire(make_server(tools__call=ask)), HANDSHAKE[0])
    client.start("tools/call")
    client.wire.send(id=client.wire.receive()["id"])
    result = client.wire.receive()["result"]
    assert result["isError"]
    assert "neither a result nor an error" in result["content"][0]["text"]


def test_a_handler_of_a_notification_is_never_answered(version: str) -> None:
    heard: list[Any] = []

    def fail(request: ServerRequest) -> None:
        heard.append(request.params)
        raise RequestError(-32600, "no")

    client = Client(Wire(make_server(notifications__odd=fail, notifications__even=dict)), version)
    client.wire.send(method="notifications/odd", params={"x": 1})
    client.wire.send(method="notifications/even")
    assert client.wire.rest() == []
    assert heard == [{"x": 1}]


@pytest.mark.parametrize("ending", ["raise", "return", "wait"])
def test_a_cancelled_request_is_not_answered_whatever_its_handler_does(
    version: str, ending: str
) -> None:
    async def stubborn(request: ServerRequest) -> dict[str, Any]:
        try:
            await request.sleep(3600)
        except BaseException:
            if ending == "wait":
                await request.sleep(3600)
            elif ending == "raise":
                raise ValueError("late") from None
        return {}

    client = Client(Wire(make_server(tools__call=stubborn)), version)
    client.cancel(client.start("tools/call"))
    assert client.wire.rest() == []


def test_state_shows_in_repr() -> None:
    seen: list[str] = []

    def look(request: ServerRequest) -> dict[str, Any]:
        seen.append(f"{request!r} {request.era!r}")
        return {}

    wire = Wire(make_server(tools__list=look))
    for one in (STATELESS[0], HANDSHAKE[1]):
        Client(wire, one).result("tools/list")
    assert seen == [
        f"<ServerRequest tools/list id=1> <StatelessServing {STATELESS[0]}>",
        f"<ServerRequest tools/list id=2> <HandshakeServing {HANDSHAKE[1]}>",
    ]


@pytest.mark.parametrize("verbatim", [False, True])
def test_fields_of_later_revisions_are_left_out_unless_the_server_is_verbatim(
    verbatim: bool,
) -> None:
    result = {"content": [], "structuredContent": {}, "resultType": "complete"}
    server = make_server(tools__call=lambda _: result, tools__list=lambda _: [])
    server.verbatim = verbatim
    client = Client(Wire(server), HANDSHAKE[-1])
    assert client.result("tools/call") == (result if verbatim else {"content": []})
    assert client.request("tools/list")["result"] == []


@pytest.mark.req("P4", "D3")
async def test_a_handler_may_ask_one_question_after_another(version: str) -> None:
    """In the stateless era each answer comes with its own round, and the handler begins anew."""

    async def ask(request: ServerRequest) -> dict[str, Any]:
        texts = []
        for key in ("first", "second", "third"):
            question = {"message": key, "requestedSchema": {"type": "object", "properties": {}}}
            found = await request.ask("elicitation/create", question, key)
            texts.append(found["content"]["said"])
        return {"content": [{"type": "text", "text": " ".join(texts)}]}

    peer = Peer("asks", versions=[version])
    peer.tool("ask", task=True)(lambda: "unused")
    peer.catalog.tools["ask"] = peer.catalog.tools["ask"]._replace(
        run=lambda request, arguments: ask(request)
    )
    asked: list[str] = []

    def elicit(request: Any) -> dict[str, Any]:
        asked.append(request.message)
        return {"action": "accept", "content": {"said": request.message.upper()}}

    async with holdfast.connect(peer, handlers=holdfast.Handlers(elicitation=elicit)) as client:
        assert (await client.call_tool("ask")).text == "FIRST SECOND THIRD"
        assert (await client.call_tool("ask", task=True)).text == "FIRST SECOND THIRD"
    assert asked == ["first", "second", "third"] * 2
    if version in HANDSHAKE:
        return
    async with holdfast.connect(peer, handlers=holdfast.Handlers(elicitation="return")) as client:
        result = await client.call_tool("ask")
        for key in ("first", "second", "third"):
            answer = {"action": "accept", "content": {"said": key}}
            result = await client.resume(result.pending, {key: answer})
        assert (result.text, result.pending) == ("first second third", None)


def test_parameters_that_cannot_be_read_have_no_fields() -> None:
    assert raw_fields(Raw(b'{"a":1}')) == {"a": Raw(b"1")}
    assert raw_fields(Raw(b"[1]")) == {}


def test_a_request_knows_its_connection(version: str) -> None:
    numbers: list[int] = []

    def note(request: ServerRequest) -> dict[str, Any]:
        numbers.append(request.connection)
        return {"tools": []}

    wire = Wire(make_server(tools__list=note))
    wire.session.number = 7
    Client(wire, version).result("tools/list")
    assert numbers == [7]


def slow_start(fails: bool = False) -> Wire:
    """Return a client whose ``initialize`` is being handled."""
    server = make_server(tools__list=lambda _: {"tools": []})
    greet = server.handlers["initialize"]

    async def initialize(request: ServerRequest) -> Any:
        await request.sleep(0)
        if fails:
            raise RequestError(-32000, "not today")
        return greet(request)

    server.overrides["initialize"] = initialize
    wire = Wire(server)
    info = {"name": "hasty", "version": "1"}
    hello = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": info}
    wire.send(id=1, method="initialize", params=hello)
    return wire


@pytest.mark.req("Y1")
def test_requests_before_the_answer_to_initialize_wait_for_it() -> None:
    wire = slow_start()
    wire.send(method="notifications/initialized")
    wire.send(id=2, method="tools/list")
    wire.send(id=3, method="ping")
    wire.send(id=4, method="tools/list", params={"cursor": "x"})
    wire.send(method="notifications/cancelled", params={"requestId": 4})
    answers = wire.rest()
    assert [answer["id"] for answer in answers] == [3, 1, 2, 4]
    assert all("result" in answer for answer in answers)


@pytest.mark.req("Y1")
def test_what_waited_for_a_session_that_is_refused_is_refused() -> None:
    wire = slow_start(fails=True)
    wire.send(method="notifications/initialized")
    wire.send(id=2, method="tools/list")
    first, second = wire.rest()
    assert (first["id"], first["error"]["code"]) == (1, -32000)
    assert (second["id"], second["error"]) == (2, first["error"])


@pytest.mark.req("Y1")
@pytest.mark.parametrize(
    ("count", "size"), [(session_module.MOST_EARLY, 1), (2, session_module.MOST_EARLY_BYTES // 2)]
)
def test_what_waits_is_bounded(count: int, size: int) -> None:
    wire = slow_start()
    for number in range(count + 1):
        wire.send(id=f"r{number}", method="tools/list", params={"cursor": "x" * size})
    answers = wire.rest()
    refused = [answer["id"] for answer in answers if "error" in answer]
    assert refused
    assert len(answers) == count + 2
    assert answers[0]["id"] == refused[0]  # at once


@pytest.mark.req("Y1")
def test_a_result_passes_as_it_came_once() -> None:
    requests: list[ServerRequest] = []
    server = make_server()

    def keep(request: ServerRequest) -> Any:
        requests.append(request)
        return SILENCE

    server.overrides["later"] = keep
    wire = Wire(server)
    wire.send(id=7, method="later")
    (request,) = requests
    assert wire.session.is_busy
    for number in (1, 2):
        wire.session.pass_result(request, Raw(b'{"n": %d}' % number))
    assert not wire.session.is_busy
    assert wire.rest() == [{"jsonrpc": "2.0", "id": 7, "result": {"n": 1}}]


def test_a_large_meta_is_read_each_time() -> None:
    client = Client(Wire(make_server(tools__list=lambda request: request.meta)), STATELESS[0])
    for letter in "ab":
        meta = {"example.com/note": letter * 5000}
        assert client.result("tools/list", meta=meta)["example.com/note"] == letter * 5000


def test_a_token_that_alone_differs_is_read() -> None:
    """Clients number their requests: what comes again is not decoded again."""
    wire = Wire(make_server(tools__list=lambda request: {"seen": request.meta}))
    claim: dict[str, Any] = {PROTOCOL_VERSION: STATELESS[0], CLIENT_CAPABILITIES: {}}
    metas: list[dict[str, Any]] = [
        {"n": 1, "progressToken": 7},
        {"n": 1, "progressToken": 8},
        {"n": 1, "progressToken": "9"},
        {"n": 1, "progressToken": 2**60},
        {"n": 1, "progressToken": -1},
        {"n": 1, "progressToken": 1.5},
        {"n": {"x": 1, "progressToken": 7}},
        {"n": 1, "progressToken": 10},
        {"n": 1, "progressToken": 11},
        {"n": 2, "progressToken": 11},
        {"n": 2},
        {"n": {"x": 1, "progressToken": 7}, "progressToken": 12},
        {"n": {"x": 1, "progressToken": 8}, "progressToken": 12},
    ]
    for meta in metas:
        params = {"_meta": {**claim, **meta}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
        wire.write(encode(message))
        assert wire.receive()["result"]["seen"] == {**claim, **meta}


@pytest.mark.req("Y1")
async def test_a_request_that_is_cancelled_before_its_handler_begins_leaves_nothing() -> None:
    begun: list[str] = []

    async def handler(request: ServerRequest) -> None:
        begun.append(request.method)

    server, lines = make_server(), list[bytes]()
    server.overrides["later"] = handler
    session = ServerSession(server, lines.append, LoopRunner())
    session.feed(encode({"jsonrpc": "2.0", "id": 7, "method": "later"}))
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 7}}
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that nobody awaits
        session.feed(encode({"jsonrpc": "2.0", **cancelled}))
        await asyncio.sleep(0)
    assert (begun, lines, session.is_busy) == ([], [], False)


@pytest.mark.req("Y1")
async def test_a_handler_may_return_a_future() -> None:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[dict[str, int]] = loop.create_future()
    written: asyncio.Future[bytes] = loop.create_future()
    server = make_server()
    server.overrides["later"] = lambda request: answer
    session = ServerSession(server, written.set_result, LoopRunner())
    session.feed(encode({"jsonrpc": "2.0", "id": 7, "method": "later"}))
    answer.set_result({"n": 1})
    assert msgspec.json.decode(await written)["result"] == {"n": 1}
