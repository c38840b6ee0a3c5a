"""Traces in the forms that other viewers open."""

from __future__ import annotations

import itertools
import json
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from holdfast.trace.format import Reading
from holdfast.view.exports import FORMS, Recording, to_chrome, to_har, to_otlp
from tests.view.hostile import hostile_trace
from tests.view.sample import TraceWriter, bad_day, text_result


def recording(text: str) -> Recording:
    reading = Reading("run.jsonl")
    return Recording(reading, reading.lines(text.encode().splitlines(keepends=True)))


@pytest.fixture(scope="module")
def day() -> Recording:
    return recording(bad_day(40))


def check(value: Any, shape: Any, where: str = "") -> None:
    """Check a value against a shape: types, lists of one shape, objects with required fields."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), where
        missing = set(shape) - set(value)
        assert not missing, f"{where}: {missing}"
        for name, inner in shape.items():
            check(value[name], inner, f"{where}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), where
        for number, item in enumerate(value):
            check(item, shape[0], f"{where}[{number}]")
    else:
        assert isinstance(value, shape), f"{where}: {value!r}"


NAMED: dict[str, Any] = {"name": str, "value": str}
NUMBER = (int, float)
# The required fields of HAR 1.2 (W3C web-performance draft "HTTP Archive format").
HAR = {
    "log": {
        "version": str,
        "creator": {"name": str, "version": str},
        "entries": [
            {
                "startedDateTime": str,
                "time": NUMBER,
                "request": {
                    "method": str, "url": str, "httpVersion": str, "cookies": [NAMED],
                    "headers": [NAMED], "queryString": [NAMED], "headersSize": int,
                    "bodySize": int, "postData": {"mimeType": str, "text": str},
                },
                "response": {
                    "status": int, "statusText": str, "httpVersion": str, "cookies": [NAMED],
                    "headers": [NAMED], "redirectURL": str, "headersSize": int, "bodySize": int,
                    "content": {"size": int, "mimeType": str, "text": str},
                },
                "cache": {},
                "timings": {"send": NUMBER, "wait": NUMBER, "receive": NUMBER},
            }
        ],
    }
}  # fmt: skip


@pytest.mark.req("W4")
def test_an_archive_has_the_fields_of_the_format(day: Recording) -> None:
    archive = json.loads(json.dumps(to_har(day)))
    check(archive, HAR)
    entries = archive["log"]["entries"]
    assert len(entries) == sum(row.kind == "request" for row in day.rows)
    for entry in entries:
        datetime.fromisoformat(entry["startedDateTime"])
        assert entry["time"] == sum(entry["timings"].values())
        json.loads(entry["request"]["postData"]["text"])
    (lost,) = [entry for entry in entries if entry["request"]["url"].endswith("fetch_page")]
    assert (lost["response"]["status"], lost["_outcome"]) == (0, "timeout")
    assert lost["request"]["url"].startswith("https://docs.example.org/mcp#tools/call/")


@pytest.fixture(scope="module")
def events() -> jsonschema_rs.Validator:
    path = Path(__file__).parent / "data" / "trace-event.schema.json"
    return jsonschema_rs.validator_for(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.req("W4")
def test_trace_events_fit_the_schema_of_the_format(
    day: Recording, events: jsonschema_rs.Validator
) -> None:
    for source in (day, recording(hostile_trace())):
        errors = events.iter_errors(json.loads(json.dumps(FORMS["chrome"](source))))
        assert not [f"{error.instance_path}: {error.message[:200]}" for error in errors][:5]


@pytest.mark.parametrize(("field", "value"), [("ph", "?"), ("pid", "git")])
def test_the_schema_refuses_what_is_no_trace_event(
    day: Recording, events: jsonschema_rs.Validator, field: str, value: str
) -> None:
    document = json.loads(json.dumps(FORMS["chrome"](day)))
    document["traceEvents"][0][field] = value
    assert not events.is_valid(document)


@pytest.mark.req("W4")
def test_spans_are_decoded_by_the_protocol_of_opentelemetry(day: Recording) -> None:
    service = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    ParseDict = import_module("google.protobuf.json_format").ParseDict  # noqa: N806

    document = json.loads(json.dumps(to_otlp(day)))
    message = ParseDict(document, service.ExportTraceServiceRequest())
    spans = message.resource_spans[0].scope_spans[0].spans
    assert len(spans) == sum(row.kind == "request" for row in day.rows)
    written = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    for span, source in zip(spans, written, strict=True):
        # The specification writes ids as hexadecimal digits, unlike other bytes in this form.
        assert len(bytes.fromhex(source["traceId"])) == 16
        assert len(bytes.fromhex(source["spanId"])) == 8
        assert span.end_time_unix_nano >= span.start_time_unix_nano > 10**18
    assert len({source["spanId"] for source in written}) == len(written)
    facts = [{a["key"]: a["value"] for a in source["attributes"]} for source in written]
    calls = [fact for fact in facts if "gen_ai.tool.name" in fact]
    assert {fact["mcp.method.name"]["stringValue"] for fact in calls} == {"tools/call"}
    assert {fact["error.type"]["stringValue"] for fact in facts if "error.type" in fact} == {
        *("tool", "rpc", "timeout", "unknown"),
    }


@pytest.mark.req("W4")
def test_trace_events_have_a_process_per_server_and_calls_that_do_not_overlap(
    day: Recording,
) -> None:
    events = json.loads(json.dumps(to_chrome(day)))["traceEvents"]
    common = {"ph": str, "pid": int, "tid": int, "name": str, "args": dict}
    check(events, [common])
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {"git", "browser", "docs"}
    threads: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            check(event, {"ts": NUMBER, "dur": NUMBER})
            span = (event["ts"], event["ts"] + event["dur"])
            threads.setdefault((event["pid"], event["tid"]), []).append(span)
    for spans in threads.values():
        spans.sort()
        assert all(a[1] <= b[0] + 1 for a, b in itertools.pairwise(spans))
    assert any(event["cat"] == "stderr" for event in events if event["ph"] == "i")


@pytest.mark.req("W4")
@pytest.mark.parametrize("form", FORMS)
def test_whatever_a_server_wrote_can_be_exported(form: str) -> None:
    text = json.dumps(FORMS[form](recording(hostile_trace())))
    assert json.loads(text)


@pytest.mark.req("W4")
@pytest.mark.parametrize("form", FORMS)
def test_a_trace_without_a_change_of_state_can_be_exported(form: str) -> None:
    trace = TraceWriter({"git": {}})
    trace.result(1.5, "git", trace.tool(1.0, "git", "log", {}), text_result("ok"))
    assert "log" in json.dumps(FORMS[form](recording(trace.text())))


@pytest.mark.req("W4")
@pytest.mark.parametrize("form", FORMS)
def test_a_trace_with_odd_times_and_numbers_can_be_exported(form: str) -> None:
    head = {"holdfast-trace": 1, "started": "9999-12-31T23:59:59Z", "servers": {"git": {}}}
    lines = [
        *('"t":1e300,"id":1,"method":"never"', '"t":-5,"id":2,"method":"before","bytes":-1'),
        *('"t":9e8,"id":3,"method":"later","body":1e999', '"t":1,"id":4,"method":"x","link":1e30'),
    ]
    rows = [f'{{"kind":"request","server":"git","dir":">",{line}}}' for line in lines]
    text = json.dumps(FORMS[form](recording("\n".join([json.dumps(head), *rows, ""]))))
    assert "before" in text
    assert "later" in text
    assert "never" not in text


@pytest.mark.req("W4")
@pytest.mark.parametrize("started", ["1970-01-01T00:00:00+14:00", "0001-01-01T00:00:00+01:00"])
@pytest.mark.parametrize("link", [2**63, -(10**30)])
def test_spans_of_odd_times_and_numbers_are_decoded(started: str, link: int) -> None:
    service = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    ParseDict = import_module("google.protobuf.json_format").ParseDict  # noqa: N806

    head = {"holdfast-trace": 1, "started": started}
    line = {"t": 1, "kind": "request", "dir": ">", "server": "git", "link": link, "id": link}
    text = f"{json.dumps(head)}\n{json.dumps(line)}\n"
    message = ParseDict(to_otlp(recording(text)), service.ExportTraceServiceRequest())
    (span,) = message.resource_spans[0].scope_spans[0].spans
    assert span.start_time_unix_nano == 10**9


def steps(count: int) -> int:
    """Return how many lines run while as many open calls, each of a server, are exported."""
    trace = TraceWriter({f"s{number}": {} for number in range(count)})
    for number in range(count):
        trace.tool(float(number), "s0", "ask", {})
        trace.tool(float(number), f"s{number}", "ask", {})
    source, taken = recording(trace.text()), 0

    def note(*_: object) -> Any:
        nonlocal taken
        taken += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        to_chrome(source)
    finally:
        sys.settrace(before)
    return taken


@pytest.mark.req("W4")
def test_calls_that_never_end_and_many_servers_cost_no_more_than_others() -> None:
    assert steps(400) < 6 * steps(100)


@pytest.mark.req("W4")
@pytest.mark.parametrize("form", FORMS)
def test_an_empty_trace_can_be_exported(form: str) -> None:
    assert FORMS[form](recording('{"holdfast-trace": 1, "started": "whenever"}\n'))
