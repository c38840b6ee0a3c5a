"""Results as the lines of a log show them, and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from holdfast._core.redact.redactor import Redactor
from holdfast.calllog.results import (
    Long,
    NotRecorded,
    parsed,
    short,
    show,
    whole_of,
    wire,
)
from holdfast.policies import Redaction
from holdfast.types.base import decode
from holdfast.types.tools import ToolResult
from tests.rows import rows

REDACTOR = Redactor(Redaction())
PLAIN = Redactor(Redaction(on=False))


def result(wire_result: dict[str, Any]) -> ToolResult:
    return decode(msgspec.json.encode(wire_result), ToolResult)


def text(*texts: str, **rest: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": one} for one in texts], **rest}


def no_sidecar(path: str) -> str:
    raise AssertionError(path)


@pytest.mark.req("G2")
@rows(
    ("given", "shown"),
    [
        (text("hello"), "hello"),
        (text(""), ""),
        (text('{"opened":true}'), {"opened": True}),
        (text('{\n  "opened": true\n}'), {"opened": True}),
        (text("[1, 2]"), [1, 2]),
        (text("5"), 5),
        (text("true"), True),
        (text("null"), None),
        (text('{"a":1}', structuredContent={"a": 1}), {"a": 1}),
        ({"content": []}, UNSET),
        ({"content": [], "resultType": "complete", "isError": False}, UNSET),
        # what could be taken for something else stays what it is
        (text('"5"'), '"5"'),
        (text("1e3"), "1e3"),
        (text("007"), "007"),
        (text("NaN"), "NaN"),
        (text("1e999"), "1e999"),
        (text('{"content":[1]}'), '{"content":[1]}'),
        (text("[text 5 chars]"), text("[text 5 chars]")),
        (text("[text 5 chars → /etc/passwd]"), text("[text 5 chars → /etc/passwd]")),
        (text('"\\ud800"'), '"\\ud800"'),
        # what is more than one text
        (text("a", "b"), text("a", "b")),
        (text("5", structuredContent={"result": 5}), text("5", structuredContent={"result": 5})),
        (text("x", _meta={"k": 1}), text("x", _meta={"k": 1})),
        (text("x", _meta={"io.modelcontextprotocol/serverInfo": {}}), "x"),
    ],
)
def test_a_small_result_is_shown_in_its_shortest_form(given: Any, shown: Any) -> None:
    found = show(result(given), REDACTOR, 200)
    assert found == (None if shown is UNSET else msgspec.json.encode(shown))
    assert show(ToolResult(**spoken(given)), REDACTOR, 200) == found, "one made here"


def spoken(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a result that no server sent."""
    found = result(given)
    return {name: getattr(found, name) for name in found.__struct_fields__}


def long(given: dict[str, Any], threshold: float = 200) -> Long:
    found = show(result(given), REDACTOR, threshold)
    assert isinstance(found, Long)
    return found


@pytest.mark.req("G2")
def test_a_long_text_is_summarised() -> None:
    found = long(text("x" * 3847))
    assert found.summary() == "[text 3847 chars]"
    named = found.summary(".mcp-log/4-browser.snapshot.txt")
    assert named == "[text 3847 chars → .mcp-log/4-browser.snapshot.txt]"


@pytest.mark.req("G2")
@pytest.mark.parametrize(("size", "is_long"), [(196, False), (197, False), (198, True)])
def test_the_threshold_counts_characters_of_json(size: int, is_long: bool) -> None:
    assert isinstance(show(result(text("ü" * size)), REDACTOR, 200), Long) is is_long


def test_other_long_results_say_what_they_are() -> None:
    image = {"content": [{"type": "image", "data": "A" * 400, "mimeType": "image/png"}]}
    assert long(image).summary().startswith("[image 4")
    several = text("a" * 200, "b" * 200)
    assert long(several).summary().startswith("[result 4")
    both = text(json.dumps({"a": "b" * 300}), structuredContent={"a": "b" * 300})
    assert long(both).summary().startswith("[result 6")


def test_secrets_are_blacked_out_wherever_they_stand() -> None:
    hidden = [
        text('{"password":"hunter2"}'),
        text('{"content":[],"password":"hunter2"}'),
        text('{"password":"hunter2"}', "another"),
        {
            "content": [
                {"type": "resource", "resource": {"uri": "a:b", "text": '{"otp":"hunter2"}'}}
            ]
        },
        text("Bearer hunter2hunter2"),
        {"content": [], "structuredContent": {"token": "hunter2"}},
    ]
    for one in hidden:
        assert "hunter2" not in str(show(result(one), REDACTOR, 200))
        assert "hunter2" in str(show(result(one), PLAIN, 200))
        assert "hunter2" not in long(one, 0).redacted(REDACTOR)


def test_content_that_is_no_object_is_left_alone() -> None:
    odd = {"content": [5, {"type": "odd"}]}
    assert Long("result", 9, odd).redacted(REDACTOR) == json.dumps(odd, separators=(",", ":"))


def test_a_text_without_secrets_is_not_written_otherwise() -> None:
    spaced = '{ "a":  1 }'
    assert Long("text", 11, spaced).redacted(REDACTOR) == spaced
    assert Long("text", 13, '{ "otp":  1 }').redacted(REDACTOR) == '{"otp":"[redacted]"}'


@pytest.mark.parametrize("nested", ["[" * 100_000 + "]" * 100_000, "[" * 100_000])
def test_a_text_that_is_nested_too_deeply_is_a_text(nested: str) -> None:
    assert parsed(nested) == nested


# And back


ITEMS = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, st.text(max_size=20)),
    st.just({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
    st.just({"type": "text", "text": '{"a": 1}', "annotations": {"priority": 1}}),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "content", "text"]), inner, max_size=3)
    ),
    max_leaves=5,
)
RESULTS = st.one_of(
    st.builds(lambda items: {"content": items}, st.lists(ITEMS, max_size=3)),
    st.builds(lambda value: text(json.dumps(value)), VALUES),
    st.builds(
        lambda value: text(json.dumps(value), structuredContent=value),
        st.dictionaries(st.sampled_from(["a", "content"]), VALUES),
    ),
    st.builds(
        lambda items, value: {"content": items, "structuredContent": value},
        st.lists(ITEMS, max_size=2),
        VALUES,
    ),
)


@pytest.mark.req("G5")
@given(RESULTS)
def test_what_is_served_from_a_log_is_logged_the_same_again(given: dict[str, Any]) -> None:
    shown = short(whole_of(result(given)))
    served = wire(shown, no_sidecar)
    again = short(whole_of(result(served)))
    assert msgspec.json.encode(again if again is not UNSET else []) == msgspec.json.encode(
        shown if shown is not UNSET else []
    )
    # What a caller reads is the same as well; JSON texts may have lost their spaces.
    assert [parsed(one) for one in [result(served).text]] == [parsed(result(given).text)]
    if "structuredContent" in given:
        assert result(served).structured == given["structuredContent"]


def test_a_result_that_was_not_kept_says_how_to_keep_it() -> None:
    with pytest.raises(NotRecorded, match=r"text, 9 characters.*sidecars=True"):
        wire("[text 9 chars]", no_sidecar)


def test_a_sidecar_holds_a_text_or_a_whole_result() -> None:
    assert wire("[text 9 chars → a.txt]", lambda path: path) == text("a.txt")
    whole = text("a", "b")
    assert wire("[result 9 chars → a.json]", lambda _: json.dumps(whole)) == whole
    with pytest.raises(NotRecorded, match=r"a\.txt is empty"):
        wire("[text 9 chars → a.txt]", lambda _: "")
    with pytest.raises(NotRecorded, match="not JSON"):
        wire("[result 9 chars → a.json]", lambda _: "{")
    with pytest.raises(NotRecorded, match="no tool result"):
        wire("[result 9 chars → a.json]", lambda _: "[]")
