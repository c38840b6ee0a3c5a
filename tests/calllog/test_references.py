"""References to earlier results."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.calllog.references import fill_in
from holdfast.errors import ValidationError
from holdfast.types.base import decode
from holdfast.types.tools import ToolResult


def result(text: str, **rest: Any) -> ToolResult:
    wire = {"content": [{"type": "text", "text": text}], **rest}
    return decode(msgspec.json.encode(wire), ToolResult)


ITEMS = result('{"items":[{"id":7,"odd key":"x"},{"id":8}],"title":"two"}')
BOTH = result("as text", structuredContent={"n": 1.5, "none": None})
RESULTS = [ITEMS, BOTH, result("plain")]


@pytest.mark.req("G4")
@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ("${1.result.items[0].id}", 7),
        ("${1.result.items[-1]}", {"id": 8}),
        ('${1.result.items[0]["odd key"]}', "x"),
        ("${1[0]}", None),
        ("${2}", {"n": 1.5, "none": None}),
        ("${2.result.n}", 1.5),
        ("${2.structured.none}", None),
        ("${2.text}", "as text"),
        ("${2.content[0].type}", "text"),
        ("${last}", "plain"),
        ("${last.text}", "plain"),
        ("id ${1.result.items[0].id} of ${1.result.title}", "id 7 of two"),
        ("${1.result.items[0].id}${last}", "7plain"),
        ("all: ${2}, ${2.structured.none}", 'all: {"n":1.5,"none":null}, null'),
        ("$${1.text} is ${last}", "${1.text} is plain"),
        ("$${", "${"),
        ("costs 5$ or $5, {x}", "costs 5$ or $5, {x}"),
    ],
)
def test_a_reference_becomes_what_it_refers_to(given: str, filled: Any) -> None:
    if given == "${1[0]}":
        with pytest.raises(ValidationError, match=r"result is \{.*which has no 0"):
            fill_in({"a": given}, RESULTS, 1)
        return
    assert fill_in({"a": [{"b": given}], "n": 1}, RESULTS, 1) == {"a": [{"b": filled}], "n": 1}


@pytest.mark.req("G4")
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("${4}", "there are 3 calls before this one"),
        ("${0}", "there are 3 calls before this one"),
        ("${x}", "is no reference: it begins with the number of a call, or last; write \\$\\$\\{"),
        ("${}", "is no reference"),
        ("${1x}", "is no reference"),
        ("${lastly}", "is no reference"),
        ("a ${1.text", r"a \$\{ without its \}"),
        ("${1.result..x}", "'\\.\\.x' is no step"),
        ("${1.result.items[a]}", "is no step"),
        ("${1.results}", "'results' is not one of result, text, structured, content"),
        ("${1.result.items[2]}", r"result\.items has 2 items, so there is no \[2\]"),
        ("${1.result.items[0].name}", r"result\.items\[0\] has no 'name'; its keys are: 'id'"),
        ("${3.result.x}", "result is \"plain\", which has no 'x' in it"),
        ("${1.structured}", "gave no structured result"),
    ],
)
def test_a_reference_to_nothing_is_a_clear_error(given: str, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as caught:
        fill_in({"a": given}, RESULTS, 12)
    assert str(caught.value).startswith("line 12: ")


def test_a_call_that_failed_has_no_result() -> None:
    with pytest.raises(ValidationError, match="call 1 failed"):
        fill_in({"a": "${1}"}, [None], 2)
    with pytest.raises(ValidationError, match="there are no calls"):
        fill_in({"a": "${last}"}, [], 1)


def test_what_is_no_tool_result_can_be_referred_to_whole() -> None:
    assert fill_in({"a": "${1.result.x}"}, [{"x": 1}], 2) == {"a": 1}
    with pytest.raises(ValidationError, match="only \\.result"):
        fill_in({"a": "${1.text}"}, [{"x": 1}], 2)


@given(st.text())
def test_text_without_references_is_left_alone(text: str) -> None:
    if "${" not in text:
        assert fill_in({"a": text}, RESULTS, 1) == {"a": text}
    escaped = text.replace("${", "$${")
    if "$$$" not in escaped:
        assert fill_in({"a": escaped}, RESULTS, 1) == {"a": text}
