"""Pairs: which answer belongs to which request, and how each request ended."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import ValidationError
from holdfast.trace.format import Line, Reading, rotated
from holdfast.view.feed import Feed
from holdfast.view.index import OUTCOMES, Index, Row
from holdfast.view.page import Strings, build_page, header
from tests.view.sample import TraceWriter, bad_day, text_result


def read(text: str) -> tuple[Reading, list[Row]]:
    reading, index = Reading("run.jsonl"), Index()
    for line in reading.lines(text.encode().splitlines(keepends=True)):
        index.add(line)
    index.close()
    return reading, index.rows


def request(rows: list[Row], name: str) -> Row:
    (row,) = [row for row in rows if row.kind == "request" and row.name == name]
    return row


@pytest.mark.req("W2")
def test_what_a_header_says_of_a_server_cannot_rename_it() -> None:
    odd = {"git": {"name": {"x": 1}, "target": ["a"], "more": "x" * 1000}}
    reading, rows = read(json.dumps({"holdfast-trace": 1, "servers": odd}) + "\n")
    facts = header(reading, Index(), Strings(), {})
    assert facts["servers"] == [{"name": "git", "target": ["a"]}]
    feed = Feed("x", lambda: 0.0)
    feed.know("git", odd["git"])
    assert feed.known_servers() == facts["servers"]
    assert rows == []


@pytest.mark.req("W2")
def test_a_header_that_is_too_long_is_none() -> None:
    with pytest.raises(ValidationError, match="not a header"):
        read(json.dumps({"holdfast-trace": 1, "started": "x" * 2_000_000}) + "\n")


@pytest.mark.req("W2")
def test_a_page_has_room_for_so_many_rows_and_counts_the_others() -> None:
    reading = Reading("x")
    rows = bad_day(0).encode().splitlines(keepends=True)
    build_page(reading, reading.lines(rows), most_rows=10)
    assert reading.left_out == len(rows) - 1 - 10


@pytest.fixture
def trace() -> TraceWriter:
    return TraceWriter({"git": {"transport": "stdio"}})


@pytest.mark.req("W2")
@pytest.mark.parametrize("is_told", [False, True])
def test_a_stream_of_notifications_that_is_lost_has_not_run(
    trace: TraceWriter, is_told: bool
) -> None:
    wire_id = trace.request(1.0, "git", "subscriptions/listen", {})
    trace.tool(1.1, "git", "pay", {})
    if is_told:
        trace.put(2.0, "git", "outcome", of=wire_id, outcome="unknown", why="it may have run")
    trace.state(2.0, "git", ("ready", "backoff"), why="lost")
    _, rows = read(trace.text())
    stream = request(rows, "subscriptions/listen")
    assert (stream.outcome, stream.note, stream.end) == (
        "ok",
        "the stream ended with its connection",
        2.0,
    )
    assert request(rows, "pay").outcome == "unknown"


@pytest.mark.req("W2")
def test_an_answer_ends_its_request(trace: TraceWriter) -> None:
    trace.result(1.5, "git", trace.tool(1.0, "git", "log", {}), text_result("ok"))
    trace.result(2.5, "git", trace.tool(2.0, "git", "fail", {}), text_result("no", is_error=True))
    trace.error(3.5, "git", trace.tool(3.0, "git", "wrong", {}), -32602, "no")
    _, rows = read(trace.text())
    outcomes = {row.name: (row.outcome, row.end) for row in rows if row.kind == "request"}
    assert outcomes == {"log": ("ok", 1.5), "fail": ("tool", 2.5), "wrong": ("rpc", 3.5)}
    assert rows[request(rows, "log").answer].name == "log"


@pytest.mark.req("W2")
def test_a_probe_that_an_older_server_refuses_is_no_trouble(trace: TraceWriter) -> None:
    trace.error(1.5, "git", trace.request(1.0, "git", "server/discover", {}), -32601, "unknown")
    _, rows = read(trace.text())
    assert request(rows, "server/discover").outcome == "rpc"
    trace.request(2.0, "git", "initialize", {})
    _, rows = read(trace.text())
    assert request(rows, "server/discover").outcome == "ok"
    assert "older revisions" in request(rows, "server/discover").note


@pytest.mark.req("W2")
def test_an_answer_after_a_timeout_is_late_and_changes_nothing(trace: TraceWriter) -> None:
    slow = trace.tool(1.0, "git", "slow", {})
    trace.put(2.0, "git", "outcome", of=slow, outcome="timeout", why="no answer within 1 s")
    trace.result(3.0, "git", slow, text_result("at last"))
    _, rows = read(trace.text())
    row = request(rows, "slow")
    assert (row.outcome, row.end, row.answer, row.note) == (
        *("timeout", 2.0, -1, "no answer within 1 s"),
    )
    assert rows[row.late].outcome == "late"


@pytest.mark.req("W2")
def test_a_cancellation_that_was_a_timeout_is_a_timeout(trace: TraceWriter) -> None:
    slow = trace.tool(1.0, "git", "slow", {})
    trace.notify(2.0, "git", "notifications/cancelled", {"requestId": slow}, of=slow, dir=">")
    trace.put(2.1, "git", "outcome", of=slow, outcome="timeout", why="no answer")
    _, rows = read(trace.text())
    assert (request(rows, "slow").outcome, request(rows, "slow").end) == ("timeout", 2.0)


@pytest.mark.req("W2")
def test_what_was_under_way_when_the_link_was_lost_may_have_run(trace: TraceWriter) -> None:
    trace.result(1.5, "git", trace.tool(1.0, "git", "before", {}), text_result("ok"))
    trace.tool(2.0, "git", "during", {})
    trace.state(3.0, "git", ("ready", "backoff"), why="the server exited with code 1")
    trace.tool(4.0, "git", "after", {}, link=2)
    _, rows = read(trace.text())
    outcomes = {row.name: row.outcome for row in rows if row.kind == "request"}
    assert outcomes == {"before": "ok", "during": "unknown", "after": "pending"}
    assert request(rows, "during").note == "the server exited with code 1"


@pytest.mark.req("W2")
def test_the_same_id_on_another_link_or_in_the_other_direction_is_another_request(
    trace: TraceWriter,
) -> None:
    for link, direction, name in [(1, ">", "ours"), (1, "<", "theirs"), (2, ">", "later")]:
        body = {"id": 7, "method": "tools/call", "params": {"name": name}}
        fields: dict[str, Any] = {"id": 7, "method": "tools/call", "body": body, "link": link}
        trace.put(link, "git", "request", direction, **fields)
    trace.result(5, "git", 7, {}, dir=">", link=1)
    trace.result(6, "git", 7, {}, link=2)
    _, rows = read(trace.text())
    outcomes = {row.name: row.outcome for row in rows if row.kind == "request"}
    assert outcomes == {"ours": "pending", "theirs": "ok", "later": "ok"}


@pytest.mark.req("W2")
def test_progress_belongs_to_its_request(trace: TraceWriter) -> None:
    running = trace.tool(1.0, "git", "clone", {})
    trace.notify(1.5, "git", "notifications/progress", {"progress": 1}, of=running)
    trace.result(2.0, "git", running, {})
    _, rows = read(trace.text())
    (note,) = [row for row in rows if row.kind == "notification"]
    assert rows[note.of].name == "clone"


@pytest.mark.req("W1")
def test_a_trace_whose_writer_was_killed_is_read_to_its_last_whole_line(
    trace: TraceWriter,
) -> None:
    trace.tool(1.0, "git", "first", {})
    trace.tool(2.0, "git", "second", {})
    for cut in range(1, 40):
        reading, rows = read(trace.text()[:-cut])
        assert reading.is_cut
        assert [row.name for row in rows] == ["first"]
    assert not read(trace.text())[0].is_cut


@pytest.mark.req("W1")
def test_a_line_that_is_no_json_is_counted_and_the_rest_is_read(trace: TraceWriter) -> None:
    trace.tool(1.0, "git", "first", {})
    text = trace.text() + "not json\n[]\n" + '{"t": 2, "kind": "stderr", "text": "x"}\n\n'
    reading, rows = read(text)
    assert [row.kind for row in rows] == ["request", "stderr"]
    assert reading.skipped == 2
    assert reading.unreadable[0][0] == 3


@pytest.mark.req("W1")
def test_what_is_dropped_is_counted() -> None:
    index = Index()
    index.add(Line(1.0, "dropped", count=12))
    index.add(Line(2.0, "dropped", count=3))
    index.add(Line(3.0, "dropped", count=-7))
    assert index.dropped == 15


@pytest.mark.req("W2")
@pytest.mark.parametrize("text", ["", "hello\n", "{}\n", '{"name": "echo"}\n'])
def test_a_file_that_is_no_trace_is_refused(text: str) -> None:
    with pytest.raises(ValidationError, match="not a trace"):
        read(text)


@pytest.mark.req("W2")
def test_a_trace_of_a_later_version_is_refused() -> None:
    with pytest.raises(ValidationError, match="version 2, of a later Holdfast"):
        read('{"holdfast-trace": 2}\n')


@pytest.mark.req("W1")
def test_rotated_files_are_found_the_oldest_first(tmp_path: Any) -> None:
    names = ["run[1].jsonl", "run[1].jsonl.1", "run[1].jsonl.2", "run[1].jsonl.10"]
    header = '{"holdfast-trace": 1, "started": "2026-07-29T10:14:03Z"}\n'
    for name in [*names, "run[1].jsonl.bak", "run1.jsonl.3"]:
        (tmp_path / name).write_text(header)
    # What another run has left is no part of this one, nor is what lies behind it.
    (tmp_path / "run[1].jsonl.11").write_text(header.replace("10:14", "09:00"))
    (tmp_path / "run[1].jsonl.12").write_text(header)
    files = rotated(tmp_path / "run[1].jsonl")
    assert [file.name for file in files] == [names[3], names[2], names[1], names[0]]


@pytest.mark.req("W2")
@pytest.mark.parametrize("word", ["", "pending", "odd"])
def test_an_outcome_without_a_known_word_counts_as_failed(word: str) -> None:
    index = Index()
    index.add(Line(1.0, "request", "git", 1, ">", method="tools/call", id=1))
    index.add(Line(2.0, "outcome", "git", 1, ">", of=1, outcome=word))
    assert index.rows[0].outcome == "failed"
    assert index.rows[0].end == 2.0


LINES = st.builds(
    Line,
    t=st.floats(0, 100),
    kind=st.sampled_from(["request", "result", "error", "notification", "outcome", "state"]),
    server=st.sampled_from(["a", "b"]),
    link=st.integers(1, 2),
    dir=st.sampled_from([">", "<"]),
    method=st.sampled_from(["tools/call", "notifications/cancelled", "notifications/progress"]),
    id=st.integers(1, 3) | st.none(),
    of=st.integers(1, 3) | st.none(),
    to_state=st.sampled_from(["", "ready", "backoff", "closed"]),
    outcome=st.sampled_from(["", "timeout", "cancelled", "unknown", "pending", "odd"]),
)


@pytest.mark.req("W2")
@given(st.lists(LINES, max_size=40))
def test_whatever_the_lines_say_every_request_has_one_outcome_and_times_go_forward(
    lines: list[Line],
) -> None:
    index = Index()
    seen: dict[int, str] = {}
    for line in lines:
        for number in index.add(line):
            row = index.rows[number]
            if row.kind == "request" and seen.get(number, "pending") != "pending":
                # Only a more exact cause may replace a cancellation or a lost link.
                assert row.outcome == seen[number] or seen[number] in ("cancelled", "unknown",
                    "timeout", "failed")  # fmt: skip
            seen[number] = row.outcome
    index.close()
    times = [row.t for row in index.rows]
    assert times == sorted(times)
    for number, row in enumerate(index.rows):
        if row.kind == "request":
            assert row.outcome in OUTCOMES[1:]
            assert row.end >= row.t
        if row.of >= 0:
            assert index.rows[row.of].kind == "request"
        if row.answer >= 0:
            assert index.rows[row.answer].of == number


def test_the_bad_day_has_every_outcome() -> None:
    _, rows = read(bad_day(10))
    outcomes = {row.outcome for row in rows if row.kind == "request"}
    assert outcomes == {"ok", "tool", "rpc", "timeout", "cancelled", "unknown"}
    assert json.loads(bad_day(10).splitlines()[0])["holdfast-trace"] == 1
