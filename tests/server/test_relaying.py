"""The server side as a relay uses it: one handler for every method, and nothing decoded for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, VERSIONS
from holdfast._core.server import lifecycle
from holdfast._core.server.request import InputRequired, ServerRequest
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.wire.codes import RequestError
from tests.rows import rows
from tests.server.turns import Turns
from tests.server.wire import Client, Wire

ODD = b'{"huge": 1e999, "big": 12345678901234567890123, "same": 1, "same": 2}'
"""What decoding would change or refuse."""


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def relay(default: Any, **options: Any) -> Server:
    return Server("relay", options.pop("handlers", {}), default=default, **options)


def start_raw(client: Client, method: str, field: bytes) -> None:
    """Send a request whose parameters have one more field, as these bytes."""
    message = {"jsonrpc": "2.0", "id": "raw", "method": method}
    params = {"_meta": client.meta(), "x": "HERE"}
    line = json.dumps({**message, "params": params}).encode()
    client.wire.write(line.replace(b'"HERE"', field))


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "vendor/own", "tools/list"])
def test_the_default_handler_gets_the_parameters_as_they_came(version: str, method: str) -> None:
    taken: list[bytes] = []

    def forward(request: ServerRequest) -> Raw:
        if request.id is not None:
            taken.append(bytes(request.params_raw))
        return Raw(b'{"resultType":"complete","came":' + ODD + b"}")

    wire = Wire(relay(forward))
    written: list[bytes] = []
    client = Client(wire, version)
    wire.session.write = written.append
    start_raw(client, method, ODD)
    assert ODD in taken[0]
    assert written == [
        b'{"jsonrpc":"2.0","id":"raw","result":{"resultType":"complete","came":' + ODD + b"}}\n"
    ]


@pytest.mark.req("Y1")
def test_raw_fields_of_a_result_pass_as_they_came(version: str) -> None:
    def forward(request: ServerRequest) -> Any:
        return {'a"b': [1], "came": Raw(ODD), "last": None}

    wire, written = Wire(relay(forward)), list[bytes]()
    client = Client(wire, version)
    wire.session.write = written.append
    client.start("vendor/own")
    (line,) = written
    assert b'"came":' + ODD in line
    result = json.loads(line.replace(ODD, b'"odd"'))["result"]
    fields = {'a"b': [1], "came": "odd", "last": None}
    assert {key: result[key] for key in fields} == fields


@pytest.mark.req("Y1")
def test_a_request_can_be_passed_on_with_other_parameters(version: str) -> None:
    def rename(request: ServerRequest) -> Any:
        if request.id is None:
            return {}
        name = request.params["name"]
        other = request.with_params(Raw(b'{"name":"plain"}'))
        same = (other.id, other.method, other.meta) == (request.id, request.method, request.meta)
        return {"came": request.params["name"] == name, "goes": other.params, "same": same}

    result = Client(Wire(relay(rename)), version).result("tools/call", {"name": "git__plain"})
    assert (result["came"], result["goes"], result["same"]) == (True, {"name": "plain"}, True)


def test_the_default_handler_gets_notifications_but_no_cancellation(version: str) -> None:
    methods: list[str] = []
    client = Client(Wire(relay(lambda request: methods.append(request.method))), version)
    client.wire.send(method="notifications/vendor")
    client.wire.send(method="notifications/roots/list_changed", params={})
    client.cancel(99)
    methods = [method for method in methods if method != "notifications/initialized"]
    assert methods == ["notifications/vendor", "notifications/roots/list_changed"]
    assert client.wire.rest() == []


def test_methods_of_the_other_era_are_not_relayed(version: str) -> None:
    client = Client(Wire(relay(lambda request: {})), version)
    method = "ping" if client.is_stateless else "server/discover"
    assert client.error(method)["code"] == -32601


def test_errors_pass_with_their_code_and_raw_data(version: str) -> None:
    def refuse(request: ServerRequest) -> None:
        raise RequestError(-32050, "no", Raw(b'{"n":1e3}'))

    client = Client(Wire(relay(refuse)), version)
    assert client.error("tools/call") == {"code": -32050, "message": "no", "data": {"n": 1000}}


def test_progress_and_notifications_of_a_request_go_where_it_came_from(version: str) -> None:
    def forward(request: ServerRequest) -> Raw:
        if request.id is None:
            return Raw(b"{}")
        request.progress(1, total=2)
        request.notify("notifications/message", Raw(b'{"level":"error","data":1e2}'))
        return Raw(b"{}")

    client = Client(Wire(relay(forward)), version)
    client.start("tools/call", meta={"progressToken": "t"})
    progress, message, answer = client.wire.rest()
    assert progress["params"] == {"progressToken": "t", "progress": 1, "total": 2}
    assert message["params"] == {"level": "error", "data": 100}
    assert answer["result"] == {}


def test_a_cancelled_request_ends_its_handler(version: str) -> None:
    ended: list[object] = []

    async def forward(request: ServerRequest) -> None:
        try:
            await request.sleep(3600)
        finally:
            if request.id is not None:
                ended.append(request.id)

    client = Client(Wire(relay(forward)), version)
    request_id = client.start("tools/call")
    client.wire.rest()
    client.cancel(request_id)
    assert ended == [request_id]
    assert client.wire.rest() == []


@pytest.mark.parametrize("version", HANDSHAKE)
@pytest.mark.parametrize(
    "method", ["sampling/createMessage", "elicitation/create", "roots/list", "vendor/ask"]
)
def test_questions_and_their_answers_pass_raw(version: str, method: str) -> None:
    answers: list[bytes] = []

    async def forward(request: ServerRequest) -> Raw:
        if request.id is None:
            return Raw(b"{}")
        answer = await request.session.ask_raw(method, Raw(ODD), request.write)
        answers.append(bytes(answer))
        return answer

    wire, written = Wire(relay(forward)), list[bytes]()
    client = Client(wire, version)
    wire.session.write = written.append
    client.start("tools/call")
    wire.turns.run()
    assert ODD in written[0]
    assert f'"method":"{method}"'.encode() in written[0]
    wire.write(b'{"jsonrpc":"2.0","id":"server-1","result":' + ODD + b"}")
    wire.turns.run()
    assert answers == [ODD]
    assert ODD in written[1]


@pytest.mark.parametrize("error", ['"odd"', "{", '{"code":"x"}'])
def test_an_error_that_is_none_is_an_internal_error(error: str) -> None:
    session = ServerSession(relay(None), lambda line: None, turns := Turns())
    refusals: list[RequestError] = []

    async def ask() -> None:
        try:
            await session.ask("roots/list")
        except RequestError as refusal:
            refusals.append(refusal)

    work = ask()
    work.send(None).handler = work
    session.feed(f'{{"jsonrpc":"2.0","id":"server-1","error":{error}}}'.encode())
    turns.run()
    if error == "{":
        assert refusals == []
        work.close()
    else:
        assert [refusal.code for refusal in refusals] == [-32603]


@pytest.mark.parametrize("version", STATELESS)
def test_a_parked_question_is_answered_by_the_repeated_request(version: str) -> None:
    """A relay keeps the call open under a state of its own, and never runs it twice."""
    runs: list[str] = []

    def forward(request: ServerRequest) -> Raw:
        state = request.params.get("requestState")
        if state is None:
            runs.append("call")
            questions = {
                "name": {"method": "elicitation/create", "params": {"message": "?"}},
                "roots": {"method": "roots/list", "params": {}},
            }
            raise InputRequired(questions, "parked-1")
        answers = request.params["inputResponses"]
        return Raw(json.dumps({"state": state, "answers": answers}).encode())

    client = Client(Wire(relay(forward)), version)
    asked = client.result("tools/call", {"name": "t"})
    assert asked["resultType"] == "input_required"
    assert asked["requestState"] == "parked-1"
    answers = {"name": {"action": "accept"}, "roots": {"roots": []}}
    again = {"name": "t", "requestState": "parked-1", "inputResponses": answers}
    assert client.result("tools/call", again) == {"state": "parked-1", "answers": answers}
    assert runs == ["call"]


def test_a_handler_may_stand_before_a_method_of_the_lifecycle(version: str) -> None:
    """The relay hears of log levels and subscriptions, and the session still keeps them."""
    seen: list[str] = []

    def before(handler: Any) -> Any:
        def handle(request: ServerRequest) -> Any:
            seen.append(request.method)
            return handler(request)

        return handle

    methods = ("logging/setLevel", "resources/subscribe", "subscriptions/listen")
    handlers = {method: before(lifecycle.LIFECYCLE[method]) for method in methods}
    capabilities = lambda: {"resources": {"subscribe": True}}  # noqa: E731
    server = relay(lambda request: {}, handlers=handlers, capabilities=capabilities)
    client = Client(Wire(server), version)
    if client.is_stateless:
        uris = {"resourceSubscriptions": ["x://a"]}
        client.start("subscriptions/listen", {"notifications": uris})
        client.wire.rest()
        assert seen == ["subscriptions/listen"]
    else:
        client.result("logging/setLevel", {"level": "debug"})
        client.result("resources/subscribe", {"uri": "x://a"})
        assert client.wire.session.era is not None
        assert client.wire.session.era.log_level == "debug"
        assert seen == ["logging/setLevel", "resources/subscribe"]
    server.announce("notifications/resources/updated", {"uri": "x://a"})
    (update,) = client.wire.rest()
    assert update["params"]["uri"] == "x://a"


@pytest.mark.parametrize("version", HANDSHAKE)
def test_the_introduction_may_be_the_real_servers_own(version: str) -> None:
    """It comes raw from upstream, once that is connected; the session begins with it."""
    own = {"protocolVersion": version, "capabilities": {"vendor": {}}, "serverInfo": {"name": "x"}}

    async def initialize(request: ServerRequest) -> Raw:
        await request.sleep(0)
        return Raw(json.dumps(own).encode())

    client = Client(Wire(relay(lambda request: {}, handlers={"initialize": initialize})), version)
    assert client.greeting == own
    assert client.wire.session.era is not None
    assert client.wire.session.era.version == version
    assert client.result("tools/list") == {}


def test_an_introduction_that_is_no_object_begins_no_session() -> None:
    wire = Wire(relay(None, handlers={"initialize": lambda request: Raw(b"5")}))
    wire.send(id=1, method="initialize", params={})
    assert wire.receive()["result"] == 5
    assert wire.session.era is None


def test_the_end_of_a_session_is_told_once() -> None:
    server, ended = relay(None), list[ServerSession]()
    server.left = ended.append
    wire = Wire(server)
    assert repr(wire.session) == "<ServerSession #1 None 0 running>"
    wire.session.close()
    assert ended == [wire.session]
    assert not server.sessions


@rows(
    ("frame", "codes"),
    [
        (b"[]", [-32600]),
        (b"[1, {}]", [-32600, -32600]),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}, [], 5]', [None, -32600, -32600]),
        (b'[{"jsonrpc":', [-32700]),
        (b'"text"', [-32600]),
        (b'"text" junk', [-32700]),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":1e999}}', [None]),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', [-32700]),
    ],
)
def test_each_part_of_a_batch_is_answered_for_itself(frame: bytes, codes: list[int]) -> None:
    client = Client(Wire(relay(None)), "2025-03-26")
    client.wire.write(frame)
    assert [answer.get("error", {}).get("code") for answer in client.wire.rest()] == codes
