"""The lines, byte for byte, and always one line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.calllog.results import before_line, call_head, compact, failure_line, success_line

GOTO = '{"name":"nav.goto","arguments":{"sessionName":"p4n-test","url":"https://park4night.com/en"}'
HEAD = call_head("nav.goto", {"sessionName": "p4n-test", "url": "https://park4night.com/en"})


@pytest.mark.req("G1")
def test_the_line_before_a_call() -> None:
    assert before_line(HEAD, 3).decode() == f'{GOTO},"_phase":"before","_seq":3}}'


@pytest.mark.req("G1")
def test_the_line_after_a_call_without_a_result() -> None:
    line = success_line(HEAD, None, 312, 3).decode()
    assert line == f'{GOTO},"_phase":"after","_ok":true,"_ms":312,"_seq":3}}'


@pytest.mark.req("G1")
def test_the_line_after_a_call_with_a_result() -> None:
    head = call_head("session.open", {"sessionName": "p4n-test"})
    line = success_line(head, compact({"opened": True}), 84, 1).decode()
    assert line == (
        '{"name":"session.open","arguments":{"sessionName":"p4n-test"},"_phase":"after",'
        '"_result":{"opened":true},"_ok":true,"_ms":84,"_seq":1}'
    )


@pytest.mark.req("G1")
def test_the_line_after_a_call_that_failed() -> None:
    line = failure_line(HEAD, "net::ERR_NAME_NOT_RESOLVED", 18, 3).decode()
    assert line == (
        f'{GOTO},"_phase":"after","_ok":false,"_ms":18,"_error":"net::ERR_NAME_NOT_RESOLVED","_seq":3}}'
    )


def test_other_alphabets_stay_readable() -> None:
    assert call_head("ü", {"où": "→"}).decode() == '{"name":"ü","arguments":{"où":"→"}'


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=4))
def test_a_line_is_one_line_for_every_reader(name: str, arguments: dict[str, Any]) -> None:
    line = before_line(call_head(name, arguments), 1).decode()
    assert len(line.splitlines()) == 1
    found = json.loads(line)
    assert (found["name"], found["arguments"]) == (name, arguments)
    assert list(found)[:2] == ["name", "arguments"]


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    assert call_head("a\ud800", {}).startswith(b'{"name":"a?"')
    assert b'"_error":"?"' in failure_line(HEAD, "\udfff", 1, 1)


@pytest.mark.parametrize("arguments", [{"a": object()}, {"a": "\ud800"}])
def test_arguments_that_are_not_json_do_not_fail(arguments: dict[str, Any]) -> None:
    assert call_head("t", arguments) == b'{"name":"t","arguments":{}'
