"""Traces in the forms that other viewers open."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from importlib import import_module
from typing import Any

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
def test_an_empty_trace_can_be_exported(form: str) -> None:
    assert FORMS[form](recording('{"holdfast-trace": 1, "started": "whenever"}\n'))
