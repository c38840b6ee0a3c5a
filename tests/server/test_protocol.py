"""The server side as a client meets it in every revision, with the demo server as its script."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.demo.server import make_server
from tests.server.wire import ALL_CAPABILITIES, Client, Json, Wire, initialize

META = "io.modelcontextprotocol/"
SUBSCRIPTION = META + "subscriptionId"
STATELESS = "2026-07-28"
HANDSHAKE = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
TOOLS = [
    *("echo", "add", "word_count", "countdown", "picture", "sleep", "fail", "crash"),
    *("ask_name", "summarise", "roots", "note"),
]

Connect = Callable[..., Client]


def text_of(result: Json) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    text = block["text"]
    assert isinstance(text, str)
    return text


@pytest.fixture
def connect() -> Connect:
    def start(
        version: str, eras: str = "both", page_size: int | None = None, **options: Any
    ) -> Client:
        return Client(Wire(make_server(eras, page_size)), version, **options)

    return start


@pytest.fixture(params=[STATELESS, HANDSHAKE[0]])
def client(request: pytest.FixtureRequest, connect: Connect) -> Client:
    """A client of each era."""
    return connect(request.param)


@pytest.fixture
def modern(connect: Connect) -> Client:
    return connect(STATELESS)


@pytest.fixture
def legacy(connect: Connect) -> Client:
    return connect(HANDSHAKE[0])


# Versions


@pytest.mark.parametrize("version", HANDSHAKE)
def test_initialize_agrees_on_a_version_it_knows(connect: Connect, version: str) -> None:
    client = connect(version)
    assert client.greeting["protocolVersion"] == version
    assert client.greeting["serverInfo"]["name"] == "holdfast-demo"
    assert ("completions" in client.greeting["capabilities"]) == (version != "2024-11-05")
    assert client.result("ping") == {}


@pytest.mark.parametrize("version", ["1999-01-01", STATELESS])
def test_initialize_offers_its_latest_for_any_other_version(version: str) -> None:
    assert initialize(Wire(make_server()), version, {})["protocolVersion"] == HANDSHAKE[0]


def test_a_second_initialize_is_refused(legacy: Client) -> None:
    params = {"protocolVersion": HANDSHAKE[0], "capabilities": {}, "clientInfo": {}}
    assert legacy.error("initialize", params)["code"] == -32600


def test_initialize_names_the_parameter_it_lacks() -> None:
    wire = Wire(make_server())
    wire.send(id=1, method="initialize", params={"protocolVersion": HANDSHAKE[0]})
    error = wire.receive()["error"]
    assert error["code"] == -32602
    assert "capabilities" in error["message"]


def test_discover_tells_versions_and_capabilities(modern: Client) -> None:
    result = modern.result("server/discover")
    assert result["supportedVersions"] == [STATELESS, *HANDSHAKE]
    assert result["resultType"] == "complete"
    assert result["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert result["_meta"][META + "serverInfo"]["name"] == "holdfast-demo"
    assert result["ttlMs"] > 0
    assert result["cacheScope"] == "public"


def test_an_unknown_version_is_answered_with_those_supported(modern: Client) -> None:
    error = modern.error("tools/list", meta={META + "protocolVersion": "1999-01-01"})
    assert error["code"] == -32022
    assert error["data"] == {"supported": [STATELESS, *HANDSHAKE], "requested": "1999-01-01"}


def test_a_handshake_version_per_request_is_not_offered_again(modern: Client) -> None:
    error = modern.error("tools/list", meta={META + "protocolVersion": HANDSHAKE[0]})
    assert error["code"] == -32022
    assert error["data"] == {"supported": [STATELESS], "requested": HANDSHAKE[0]}


@pytest.mark.parametrize("field", ["protocolVersion", "clientCapabilities"])
def test_a_missing_meta_field_is_named(modern: Client, field: str) -> None:
    error = modern.error("tools/list", meta={META + field: None})
    assert error["code"] == -32602
    assert field in error["message"]


def test_a_request_of_no_era_is_invalid() -> None:
    wire = Wire(make_server())
    wire.send(id=1, method="tools/list")
    error = wire.receive()["error"]
    assert error["code"] == -32602
    assert "protocolVersion" in error["message"]


def test_both_eras_are_served_in_one_process(connect: Connect) -> None:
    modern = connect(STATELESS)
    modern.result("server/discover")
    legacy = Client(modern.wire, HANDSHAKE[0], {})
    assert "resultType" not in legacy.result("tools/list")
    assert modern.result("tools/list")["resultType"] == "complete"


def test_a_handshake_server_knows_no_discover() -> None:
    wire = Wire(make_server("handshake"))
    wire.send(id=1, method="server/discover", params={"_meta": {}})
    assert wire.receive()["error"]["code"] == -32601
    wire.send(id=2, method="tools/list")
    assert wire.receive()["error"]["code"] == -32600
    assert initialize(wire, HANDSHAKE[1], {})["protocolVersion"] == HANDSHAKE[1]


def test_a_stateless_server_refuses_initialize_and_names_its_versions(connect: Connect) -> None:
    modern = connect(STATELESS, "stateless")
    modern.wire.send(id="x", method="initialize", params={"protocolVersion": HANDSHAKE[0]})
    error = modern.wire.receive()["error"]
    assert error["code"] == -32022
    assert STATELESS in error["message"]
    assert error["data"] == {"supported": [STATELESS], "requested": HANDSHAKE[0]}
    assert modern.result("server/discover")["supportedVersions"] == [STATELESS]


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/subscribe"])
def test_methods_of_the_handshake_era_are_unknown_to_the_stateless_one(
    modern: Client, method: str
) -> None:
    assert modern.error(method)["code"] == -32601


# Bad input


@pytest.mark.parametrize(
    "line",
    [b"junk", b'{"jsonrpc":', b"\xff\xfe\xfd", b'{"x": NaN}', b"[" * 100_000],
)
def test_a_line_that_is_not_json_is_a_parse_error(client: Client, line: bytes) -> None:
    client.wire.write(line)
    answer = client.wire.receive()
    assert answer["error"]["code"] == -32700
    assert "id" not in answer
    client.result("tools/list")


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"1",
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":5}',
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(client: Client, line: bytes) -> None:
    client.wire.write(line)
    assert client.wire.receive()["error"]["code"] == -32600


def test_blank_lines_unknown_notifications_and_stray_answers_are_ignored(client: Client) -> None:
    client.wire.write(b"")
    client.wire.send(method="notifications/unheard-of")
    client.wire.send(method="notifications/cancelled", params={"requestId": [1]})
    client.wire.send(method="notifications/cancelled", params={"requestId": 999})
    client.wire.send(id="server-1", result={})
    client.result("tools/list")


def test_an_unknown_method_is_refused(client: Client) -> None:
    assert client.error("no/such")["code"] == -32601


def test_an_unknown_tool_is_refused_by_name(client: Client) -> None:
    error = client.error("tools/call", {"name": "nope", "arguments": {}})
    assert error["code"] == -32602
    assert "nope" in error["message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        ("echo", {}, "'text' is missing"),
        ("echo", {"text": 5}, "'text' must be of type string"),
        ("add", {"a": True, "b": 1}, "'a' must be of type number"),
        ("add", {"a": 1e308, "b": 1e308}, "too large"),
        ("countdown", {"steps": 0}, "'steps' must be at least 1"),
        ("picture", {"width": 100_000}, "'width' must be at most 512"),
        ("echo", {"text": "", "loud": True}, "unknown argument 'loud'"),
        ("note", {"name": "a\n", "text": ""}, "'name' must be like"),
    ],
)
def test_a_bad_argument_is_named(
    client: Client, tool: str, arguments: Json, complaint: str
) -> None:
    quieten(client)
    result = client.tool(tool, **arguments)
    assert result["isError"] is True
    assert complaint in text_of(result)


def quieten(client: Client) -> None:
    """No log messages between the answers."""
    if not client.is_stateless:
        client.result("logging/setLevel", {"level": "emergency"})


def test_a_batch_is_taken_apart_where_the_revision_has_batches(connect: Connect) -> None:
    client = connect("2025-03-26")
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in (1, 2)]
    client.wire.write(json.dumps(pings).encode())
    assert [client.wire.receive()["id"] for _ in pings] == [1, 2]


# Tools


def test_tools_are_listed_with_schemas_and_annotations(client: Client) -> None:
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    assert list(tools) == TOOLS
    assert tools["echo"]["inputSchema"]["required"] == ["text"]
    assert tools["add"]["outputSchema"]["required"] == ["sum"]
    assert tools["echo"]["annotations"]["readOnlyHint"] is True
    assert tools["crash"]["annotations"]["destructiveHint"] is True
    assert tools["crash"]["annotations"]["idempotentHint"] is False
    assert tools["note"]["annotations"]["readOnlyHint"] is False
    assert tools["note"]["annotations"]["idempotentHint"] is True


@pytest.mark.parametrize(
    ("version", "annotated", "structured"),
    [
        ("2024-11-05", False, False),
        ("2025-03-26", True, False),
        ("2025-06-18", True, True),
    ],
)
def test_older_revisions_are_spared_what_they_do_not_know(
    connect: Connect, version: str, annotated: bool, structured: bool
) -> None:
    client = connect(version)
    tools = {tool["name"]: tool for tool in client.result("tools/list")["tools"]}
    assert ("annotations" in tools["add"]) == annotated
    assert ("outputSchema" in tools["add"]) == structured
    result = client.tool("add", a=1, b=2)
    assert ("structuredContent" in result) == structured
    assert json.loads(text_of(result)) == {"sum": 3}


def test_echo_gives_any_text_back(client: Client) -> None:
    text = 'é 漢字 🪨 "\\\n\u2028'
    assert text_of(client.tool("echo", text=text)) == text


def test_half_of_a_character_is_read_as_one_that_is_unknown(client: Client) -> None:
    params = {"name": "echo", "arguments": {"text": "\ud83e"}, "_meta": client.meta()}
    client.wire.send(id="half", method="tools/call", params=params)
    answer = client.wire.receive()
    assert (answer["id"], text_of(answer["result"])) == ("half", "\ufffd")


def test_what_only_the_parameters_hide_is_a_parse_error_of_that_request(client: Client) -> None:
    params = {"name": "echo", "arguments": {"text": "HERE"}, "_meta": client.meta()}
    line = json.dumps({"jsonrpc": "2.0", "id": "odd", "method": "tools/call", "params": params})
    client.wire.write(line.encode().replace(b'"HERE"', b"1e999"))
    answer = client.wire.receive()
    assert (answer["id"], answer["error"]["code"]) == ("odd", -32700)
    assert text_of(client.tool("echo", text="on")) == "on"


def test_add_and_word_count_are_structured(client: Client) -> None:
    assert client.tool("add", a=1.5, b=2)["structuredContent"] == {"sum": 3.5}
    counted = client.tool("word_count", text="one two\nthree")["structuredContent"]
    assert counted == {"lines": 2, "words": 3, "characters": 13}


def test_a_picture_is_a_real_png(client: Client) -> None:
    (block,) = client.tool("picture", width=5, height=3)["content"]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert png_pixels(base64.b64decode(block["data"])) == (5, 3, 3 * (1 + 5 * 3))


def png_pixels(data: bytes) -> tuple[int, int, int]:
    """Width, height and bytes of pixels, with every checksum looked at."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", data, at + 8 + length)[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height = struct.unpack_from(">II", chunks[b"IHDR"])
    return width, height, len(zlib.decompress(chunks[b"IDAT"]))


def test_countdown_reports_each_step_before_it_answers(client: Client) -> None:
    request_id = client.start_tool("countdown", {"progressToken": "t"}, steps=3, seconds=0)
    steps = [client.wire.receive()["params"] for _ in range(3)]
    assert [(step["progressToken"], step["progress"], step["total"]) for step in steps] == [
        ("t", 1, 3),
        ("t", 2, 3),
        ("t", 3, 3),
    ]
    assert steps[0]["message"] == "2 to go"
    assert client.wire.receive()["id"] == request_id


def test_without_a_token_there_is_no_progress(client: Client) -> None:
    assert text_of(client.tool("countdown", steps=3)) == "counted down from 3"


def test_a_slow_tool_does_not_hold_up_the_others(client: Client) -> None:
    slow = client.start_tool("sleep", seconds=3600)
    assert text_of(client.tool("echo", text="meanwhile")) == "meanwhile"
    client.result("tools/list")
    client.cancel(slow)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("sleep", {"seconds": 3600}), ("countdown", {"steps": 9, "seconds": 3600})],
)
def test_a_cancelled_tool_stops_without_an_answer(
    client: Client, tool: str, arguments: Json
) -> None:
    cancelled = client.start_tool(tool, **arguments)
    client.cancel(cancelled)
    assert text_of(client.tool("echo", text="next")) == "next"
    assert client.wire.rest() == []


def test_an_id_in_use_is_refused_and_free_again_after_a_cancellation(client: Client) -> None:
    taken = client.start_tool("sleep", seconds=3600)
    client.wire.count -= 1
    assert client.error("tools/list")["code"] == -32600
    client.cancel(taken)
    client.wire.count -= 1
    client.result("tools/list")


def test_many_calls_at_once_are_all_answered(client: Client) -> None:
    ids = [client.start_tool("echo", text=str(number)) for number in range(200)]
    answers = [client.wire.receive() for _ in ids]
    assert sorted(answer["id"] for answer in answers) == ids
    first = ids[0]
    for answer in answers:
        assert text_of(answer["result"]) == str(answer["id"] - first)


def test_fail_is_a_result_with_is_error(client: Client) -> None:
    quieten(client)
    result = client.tool("fail", message="no luck")
    assert result["isError"] is True
    assert text_of(result) == "no luck"


# Asking the client: the same tools, the two ways


ASKING = [
    ("ask_name", {}, "elicitation/create", {"action": "accept", "content": {"name": "Ada"}}),
    (
        "summarise",
        {"text": "long"},
        "sampling/createMessage",
        {"role": "assistant", "model": "m", "content": {"type": "text", "text": "short"}},
    ),
    ("roots", {}, "roots/list", {"roots": [{"uri": "file:///tmp", "name": "tmp"}]}),
]
ANSWERS = {
    "ask_name": "Hello, Ada!",
    "summarise": "short",
    "roots": '{"roots": [{"uri": "file:///tmp", "name": "tmp"}]}',
}


def ask(client: Client, tool: str, arguments: Json, method: str, answer: Json) -> Json:
    """Calls a tool that asks back once, answers it, and returns the final result."""
    first = client.start_tool(tool, **arguments)
    question = client.wire.receive()
    if not client.is_stateless:
        assert question["method"] == method
        client.wire.send(id=question["id"], result=answer)
        final = client.wire.receive()
        assert final["id"] == first
        result = final["result"]
    else:
        asked = question["result"]
        assert asked["resultType"] == "input_required"
        ((key, request),) = asked["inputRequests"].items()
        assert request["method"] == method
        again = {"name": tool, "arguments": arguments, "requestState": asked["requestState"]}
        result = client.result("tools/call", {**again, "inputResponses": {key: answer}})
        assert result["resultType"] == "complete"
    assert isinstance(result, dict)
    return result


@pytest.mark.parametrize(("tool", "arguments", "method", "answer"), ASKING)
def test_a_tool_asks_the_client_and_uses_its_answer(
    client: Client, tool: str, arguments: Json, method: str, answer: Json
) -> None:
    assert text_of(ask(client, tool, arguments, method, answer)) == ANSWERS[tool]


@pytest.mark.parametrize(("action", "reply"), [("decline", "No name"), ("cancel", "put away")])
def test_a_user_may_decline_or_cancel(client: Client, action: str, reply: str) -> None:
    result = ask(client, "ask_name", {}, "elicitation/create", {"action": action})
    assert reply in text_of(result)
    assert "isError" not in result


def test_an_answer_without_a_name_is_an_error(client: Client) -> None:
    quieten(client)
    result = ask(client, "ask_name", {}, "elicitation/create", {"action": "accept"})
    assert result["isError"] is True


def test_sampled_content_may_be_a_list(client: Client) -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    answer = {"role": "assistant", "model": "m", "content": blocks}
    result = ask(client, "summarise", {"text": "x"}, "sampling/createMessage", answer)
    assert text_of(result) == "one\ntwo"


@pytest.mark.parametrize(
    ("tool", "needed"),
    [("ask_name", {"elicitation": {"form": {}}}), ("summarise", {"sampling": {}})],
)
def test_stateless_a_capability_that_is_not_declared_is_asked_for(
    connect: Connect, tool: str, needed: Json
) -> None:
    client = connect(STATELESS, capabilities={"elicitation": {"url": {}}})
    arguments = {"text": "x"} if tool == "summarise" else {}
    error = client.error("tools/call", {"name": tool, "arguments": arguments})
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": needed}


@pytest.mark.parametrize("version", [HANDSHAKE[0], "2025-03-26"])
def test_handshake_a_capability_that_cannot_be_used_is_a_tool_error(
    connect: Connect, version: str
) -> None:
    offered = {} if version == HANDSHAKE[0] else ALL_CAPABILITIES
    client = connect(version, capabilities=offered)
    quieten(client)
    result = client.tool("ask_name")
    assert result["isError"] is True
    assert "elicitation/create" in text_of(result)


def test_handshake_a_refusal_of_the_client_is_a_tool_error(legacy: Client) -> None:
    quieten(legacy)
    legacy.start_tool("roots")
    question = legacy.wire.receive()
    legacy.wire.send(id=question["id"], error={"code": -1, "message": "user said no"})
    result = legacy.wire.receive()["result"]
    assert result["isError"] is True
    assert "user said no" in text_of(result)


def test_handshake_cancelling_a_call_withdraws_its_question(legacy: Client) -> None:
    asking = legacy.start_tool("ask_name")
    question = legacy.wire.receive()
    legacy.cancel(asking)
    withdrawn = legacy.wire.receive()
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"] == {"requestId": question["id"]}
    legacy.wire.send(id=question["id"], result={"action": "cancel"})
    assert text_of(legacy.tool("echo", text="next")) == "next"


def test_stateless_a_foreign_request_state_is_refused(modern: Client) -> None:
    answers = {"summary": {"content": {"type": "text", "text": "short"}}}
    asked = modern.tool("summarise", text="one")
    other = {"name": "summarise", "arguments": {"text": "two"}, "inputResponses": answers}
    for state in ({"requestState": asked["requestState"]}, {}):
        error = modern.error("tools/call", {**other, **state})
        assert error["code"] == -32602
        assert "requestState" in error["message"]
    same = {"name": "summarise", "arguments": {"text": "one"}, "inputResponses": answers}
    for forged in ("{", "[]", "[" * 100_000):
        state = {"requestState": asked["requestState"] + forged}
        assert modern.error("tools/call", {**same, **state})["code"] == -32602


def test_stateless_a_missing_answer_is_asked_for_again(modern: Client) -> None:
    asked = modern.tool("roots")
    again = {"name": "roots", "arguments": {}, "requestState": asked["requestState"]}
    repeated = modern.result("tools/call", {**again, "inputResponses": {"other": {}}})
    assert repeated["inputRequests"] == asked["inputRequests"]


def test_stateless_a_request_state_outlives_the_process(connect: Connect) -> None:
    asked = connect(STATELESS).tool("ask_name")
    answer = {"name": {"action": "accept", "content": {"name": "Bo"}}}
    retry = {"name": "ask_name", "arguments": {}, "requestState": asked["requestState"]}
    result = connect(STATELESS).result("tools/call", {**retry, "inputResponses": answer})
    assert text_of(result) == "Hello, Bo!"


# Resources


def test_resources_are_listed_and_read(client: Client) -> None:
    listed = client.result("resources/list")["resources"]
    for resource in listed:
        (contents,) = client.result("resources/read", {"uri": resource["uri"]})["contents"]
        assert contents["uri"] == resource["uri"]
        assert contents["mimeType"] == resource["mimeType"]
        assert ("blob" in contents) == (resource["mimeType"] == "image/png")
    blobs = client.result("resources/read", {"uri": "demo://picture"})["contents"]
    assert png_pixels(base64.b64decode(blobs[0]["blob"]))[:2] == (64, 64)


def test_cache_hints_belong_to_the_stateless_era(client: Client) -> None:
    lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
    results = [client.result(method) for method in lists]
    results.append(client.result("resources/read", {"uri": "demo://about"}))
    for result in results:
        present = {"ttlMs", "cacheScope", "resultType", "_meta"} & set(result)
        assert len(present) == (4 if client.is_stateless else 0)


def test_a_missing_resource_is_an_error_with_its_uri(client: Client) -> None:
    error = client.error("resources/read", {"uri": "demo://note/none"})
    assert error["code"] == (-32602 if client.is_stateless else -32002)
    assert error["data"] == {"uri": "demo://note/none"}


def test_a_note_becomes_a_resource(client: Client) -> None:
    client.start_tool("note", name="a", text="first")
    if not client.is_stateless:
        new = client.wire.receive()
        assert new["method"] == "notifications/resources/list_changed"
    assert text_of(client.wire.receive()["result"]) == "wrote demo://note/a"
    assert text_of(client.tool("note", name="a", text="second")) == "changed demo://note/a"
    (contents,) = client.result("resources/read", {"uri": "demo://note/a"})["contents"]
    assert contents["text"] == "second"
    uris = [resource["uri"] for resource in client.result("resources/list")["resources"]]
    assert uris[-1] == "demo://note/a"
    (template,) = client.result("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "demo://note/{name}"


def test_handshake_subscribers_hear_of_updates_until_they_unsubscribe(legacy: Client) -> None:
    uri = {"uri": "demo://note/a"}
    assert legacy.result("resources/subscribe", uri) == {}
    first = legacy.start_tool("note", name="a", text="1")
    messages = [legacy.wire.receive() for _ in range(3)]
    assert [message.get("method", message.get("id")) for message in messages] == [
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        first,
    ]
    assert messages[1]["params"] == uri
    assert legacy.result("resources/unsubscribe", uri) == {}
    legacy.tool("note", name="a", text="2")
    assert legacy.error("resources/subscribe", {"uri": "demo://none"})["code"] == -32002


def test_stateless_streams_are_acknowledged_and_marked(modern: Client) -> None:
    wanted = {
        "toolsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["demo://note/a", "file:///elsewhere"],
    }
    stream = modern.start("subscriptions/listen", {"notifications": wanted})
    acknowledged = modern.wire.receive()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {
        "_meta": {SUBSCRIPTION: stream},
        "notifications": {
            "resourcesListChanged": True,
            "resourceSubscriptions": ["demo://note/a"],
        },
    }
    modern.start_tool("note", name="a", text="1")
    messages = [modern.wire.receive() for _ in range(2)]
    assert [message["method"] for message in messages] == [
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]
    assert all(message["params"]["_meta"] == {SUBSCRIPTION: stream} for message in messages)
    modern.wire.receive()
    modern.cancel(stream)
    modern.tool("note", name="a", text="2")


def test_stateless_streams_get_what_they_asked_for_and_no_more(modern: Client) -> None:
    lists = modern.start("subscriptions/listen", {"notifications": {"resourcesListChanged": True}})
    modern.wire.receive()
    nothing = modern.start("subscriptions/listen", {"notifications": {}})
    assert modern.wire.receive()["params"]["_meta"] == {SUBSCRIPTION: nothing}
    modern.start_tool("note", name="a", text="1")
    assert modern.wire.receive()["params"]["_meta"] == {SUBSCRIPTION: lists}
    modern.wire.receive()
    modern.tool("note", name="a", text="2")


def test_stateless_streams_end_with_an_answer_when_the_server_ends(modern: Client) -> None:
    stream = modern.start("subscriptions/listen", {"notifications": {}})
    modern.wire.receive()
    modern.wire.session.close()
    (answer,) = modern.wire.rest()
    assert answer["id"] == stream
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["_meta"][SUBSCRIPTION] == stream


def test_stateless_a_malformed_filter_is_named(modern: Client) -> None:
    error = modern.error("subscriptions/listen")
    assert (error["code"], "notifications" in error["message"]) == (-32602, True)
    uris = {"notifications": {"resourceSubscriptions": "demo://note/a"}}
    error = modern.error("subscriptions/listen", uris)
    assert (error["code"], "resourceSubscriptions" in error["message"]) == (-32602, True)


# Prompts and completion


def test_a_prompt_is_filled_in(client: Client) -> None:
    names = [prompt["name"] for prompt in client.result("prompts/list")["prompts"]]
    assert names == ["greeting", "tour"]
    arguments = {"name": "Ada", "style": "pirate"}
    result = client.result("prompts/get", {"name": "greeting", "arguments": arguments})
    (message,) = result["messages"]
    assert message["content"]["text"] == "Greet Ada the way a pirate would."
    assert client.result("prompts/get", {"name": "tour"})["messages"]


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"name": "nope"}, "nope"),
        ({"name": "greeting"}, "'name'"),
        ({"name": "greeting", "arguments": {"name": "Ada", "style": "rude"}}, "'style'"),
        ({"name": "greeting", "arguments": 5}, "arguments"),
    ],
)
def test_a_bad_prompt_request_is_named(client: Client, params: Json, complaint: str) -> None:
    error = client.error("prompts/get", params)
    assert error["code"] == -32602
    assert complaint in error["message"]


def complete(client: Client, ref: Json, name: str, value: str) -> Any:
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    return client.result("completion/complete", params)["completion"]


def test_completion_knows_styles_and_notes(client: Client) -> None:
    prompt = {"type": "ref/prompt", "name": "greeting"}
    assert complete(client, prompt, "style", "p") == {
        "values": ["pirate", "poem"],
        "total": 2,
        "hasMore": False,
    }
    assert complete(client, prompt, "name", "A")["values"] == []
    for name in ("beta", "alpha", "alps"):
        client.start_tool("note", name=name, text="")
        while "id" not in client.wire.receive():
            pass
    template = {"type": "ref/resource", "uri": "demo://note/{name}"}
    assert complete(client, template, "name", "al")["values"] == ["alpha", "alps"]


def test_completion_of_nothing_known_is_refused(client: Client) -> None:
    params = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "y", "value": ""}}
    assert client.error("completion/complete", params)["code"] == -32602
    assert client.error("completion/complete", {})["code"] == -32602


# Logging


def test_handshake_messages_follow_the_level_that_was_set(legacy: Client) -> None:
    legacy.result("logging/setLevel", {"level": "debug"})
    legacy.start_tool("countdown", steps=1)
    messages = [legacy.wire.receive() for _ in range(2)]
    assert [message["params"]["level"] for message in messages] == ["debug", "info"]
    assert "result" in legacy.wire.receive()
    legacy.result("logging/setLevel", {"level": "warning"})
    legacy.tool("countdown", steps=1)
    assert legacy.error("logging/setLevel", {"level": "loud"})["code"] == -32602


def test_stateless_messages_are_for_requests_that_ask_for_them(modern: Client) -> None:
    modern.start_tool("countdown", {META + "logLevel": "info"}, steps=1)
    message = modern.wire.receive()
    assert (message["method"], message["params"]["level"]) == ("notifications/message", "info")
    assert "result" in modern.wire.receive()
    modern.tool("fail")
    assert modern.error("tools/list", meta={META + "logLevel": "loud"})["code"] == -32602


# Pages


@pytest.mark.parametrize("version", [STATELESS, HANDSHAKE[0]])
def test_every_list_comes_in_pages(connect: Connect, version: str) -> None:
    client = connect(version, page_size=1)
    sizes = {"tools": len(TOOLS), "resources": 4, "prompts": 2, "resources/templates": 1}
    for kind, size in sizes.items():
        pages = list(pages_of(client, f"{kind}/list"))
        assert [len(items) for items in pages] == [1] * size
        assert len({json.dumps(items) for items in pages}) == size


def pages_of(client: Client, method: str) -> Iterator[list[Json]]:
    params: Json = {}
    while True:
        result = client.result(method, params)
        (items,) = (value for value in result.values() if isinstance(value, list))
        yield items
        if "nextCursor" not in result:
            return
        params = {"cursor": result["nextCursor"]}


@pytest.mark.parametrize("cursor", ["", "from-0", "from-99", "from-x", 5])
def test_an_unknown_cursor_is_refused(client: Client, cursor: Any) -> None:
    error = client.error("tools/list", {"cursor": cursor})
    assert error["code"] == -32602
    assert "cursor" in error["message"]
