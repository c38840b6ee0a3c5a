"""Logs read back: pairs, runs, pasted lines, bad lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from holdfast.calllog.entries import Entry, RecordedLog, read_log
from holdfast.calllog.results import NotRecorded
from holdfast.errors import ValidationError
from tests.rows import rows


def before(seq: int, name: str = "t", **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments, "_phase": "before", "_seq": seq})


def after(seq: int, result: Any = "ok", name: str = "t", **arguments: Any) -> str:
    fields = {"_phase": "after", "_result": result, "_ok": True, "_ms": 1, "_seq": seq}
    return json.dumps({"name": name, "arguments": arguments, **fields})


@pytest.mark.req("G3")
def test_the_lines_of_a_call_are_one_entry() -> None:
    (entry,) = read_log([before(3, a=1), after(3, {"x": 1}, a=1)])
    assert entry == Entry(
        name="t", arguments={"a": 1}, line=1, seq=3, recorded=True, ok=True, result={"x": 1}, ms=1
    )


def test_a_failure_and_an_empty_result() -> None:
    lines = [
        '{"name":"t","arguments":{},"_phase":"after","_ok":false,"_ms":2,"_error":"no","_seq":1}',
        '{"name":"t","arguments":{},"_phase":"after","_ok":true,"_ms":2,"_seq":2}',
    ]
    failed, empty = read_log(lines)
    assert (failed.ok, failed.error, failed.has_request) == (False, "no", False)
    assert (empty.ok, empty.result) == (True, UNSET)


def test_parallel_calls_are_paired_by_their_numbers() -> None:
    log = read_log([before(1), before(2), after(2, "two"), after(1, "one")])
    assert [entry.result for entry in log] == ["one", "two"]


def test_a_second_run_begins_its_numbers_again() -> None:
    crashed = [before(1), after(1, "first"), before(2, a=1)]
    log = read_log([*crashed, before(1), after(1, "second"), before(2, a=1), after(2, "end", a=1)])
    assert [(entry.result, entry.ok) for entry in log] == [
        ("first", True),
        (UNSET, None),
        ("second", True),
        ("end", True),
    ]


def test_two_programs_that_write_at_once_are_told_apart_by_their_calls() -> None:
    log = read_log([before(1, "a"), before(1, "b"), after(1, "A", "a"), after(1, "B", "b")])
    assert [(entry.name, entry.result) for entry in log] == [("a", "A"), ("b", "B")]


@pytest.mark.req("G1")
def test_a_pasted_call_is_a_call() -> None:
    log = read_log(
        '{"name":"a","arguments":{"x":1}}\n\n{"name":"b"}\n{"name":"c","arguments":null}'
    )
    assert [(entry.name, entry.arguments, entry.recorded) for entry in log] == [
        ("a", {"x": 1}, False),
        ("b", {}, False),
        ("c", {}, False),
    ]
    assert [entry.line for entry in log] == [1, 3, 4]


def test_lines_may_be_bytes_or_mappings() -> None:
    log = read_log([b'{"name":"a"}', {"name": "b", "arguments": {}}])
    assert [entry.name for entry in log] == ["a", "b"]
    assert read_log(log) is log
    assert [entry.name for entry in log[:1]] == ["a"]
    assert repr(log) == "<RecordedLog the log: 2 calls>"


@rows(
    ("line", "why"),
    [
        ("nonsense", "not JSON"),
        ("[1]", "Expected `object`, got `array`"),
        ("{}", "Object missing required field `name`"),
        ('{"name":1}', "Expected `str`, got `int` - at `$.name`"),
        ('{"name":"a","arguments":[]}', "Expected `object | null`, got `array` - at `$.arguments`"),
        ('{"name":"a","argument":{}}', "unknown field 'argument'"),
        ('{"name":"a","_phase":"during"}', "Invalid enum value 'during' - at `$._phase`"),
        ('{"name":"a","_seq":"1"}', "Expected `int | null`, got `str` - at `$._seq`"),
        ('{"name":"a","_phase":"after"}', '"_ok" must be'),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_named(line: str, why: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read_log([before(1), line, before(2)])
    assert f"line 2: {why}" in str(caught.value)


def test_many_bad_lines_are_not_all_named() -> None:
    with pytest.raises(ValidationError, match="and 15 more"):
        read_log(["x"] * 25)


def test_a_line_that_breaks_off_in_a_log_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text(before(1) + "\n" + before(2)[:20])
    log = read_log(path)
    assert [one.line for one in log] == [1]
    path.write_text('{"name":"a"}\n{"name":"b","argu')
    with pytest.raises(ValidationError, match="line 2"):
        read_log(path)
    # Written on after a crash.
    path.write_text(before(2)[:20] + "\n" + before(1) + "\n")
    log = read_log(path)
    assert [one.line for one in log] == [2]
    path.write_text("what is this\n" + before(1) + "\n")
    with pytest.raises(ValidationError, match="line 1"):
        read_log(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"none\.jsonl cannot be read: No such file"):
        read_log(tmp_path / "none.jsonl")
    (tmp_path / "latin").write_bytes(b'{"name":"\xff"}')
    with pytest.raises(ValidationError, match="not UTF-8"):
        read_log(tmp_path / "latin")


def test_a_mark_at_the_start_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b'\xef\xbb\xbf{"name":"a"}\r\n{"name":"b"}\r\n')
    assert [entry.name for entry in read_log(path)] == ["a", "b"]


def test_sidecars_are_looked_for_beside_the_log(tmp_path: Path) -> None:
    (tmp_path / "logs" / ".mcp-log").mkdir(parents=True)
    (tmp_path / "logs" / ".mcp-log" / "1-t.txt").write_text("the whole")
    path = tmp_path / "logs" / "a"
    path.write_text(after(1, "[text 9 chars → .mcp-log/1-t.txt]") + "\n")
    log = read_log(path)
    assert log.result(log[0]) == {"content": [{"type": "text", "text": "the whole"}]}
    assert log.value(log[0]) == "the whole"


def test_sidecars_elsewhere_must_be_pointed_at(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "1-t.txt").write_text("the whole")
    (tmp_path / "logs").mkdir()
    path = tmp_path / "logs" / "a"
    path.write_text(after(1, f"[text 9 chars → {tmp_path}/kept/1-t.txt]") + "\n")
    log = read_log(path)
    with pytest.raises(NotRecorded, match="outside"):
        log.value(log[0])
    log = read_log(path, sidecars=tmp_path / "kept")
    assert log.value(log[0]) == "the whole"


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3), st.sampled_from("ab"))))
def test_every_line_finds_its_place(script: list[tuple[bool, int, str]]) -> None:
    lines = [after(seq, None, name) if end else before(seq, name) for end, seq, name in script]
    log = read_log(lines)
    asked = sum(not end for end, _, _ in script)
    assert sum(entry.has_request for entry in log) == asked
    assert sum(entry.ok is not None for entry in log) == len(script) - asked
    assert isinstance(log, RecordedLog)
