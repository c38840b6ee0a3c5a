"""``k=v`` and its relatives: read by the schema, refused with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import ValidationError
from holdfast.cli.arguments import describe, parse, whole
from tests.rows import rows

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "options": {
            "type": "object",
            "properties": {"headless": {"type": "boolean"}, "view": {"$ref": "#/$defs/view"}},
        },
        "a.b": {"type": "integer"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "mode": {"enum": ["fast", "slow"]},
        "any": {},
        "there": {"$ref": "#/$defs/whole"},
    },
    "required": ["text", "count"],
    "$defs": {
        "whole": {"type": "integer"},
        "view": {"type": "object", "properties": {"width": {"type": "integer"}}},
    },
}


def no_file(name: str) -> str:
    raise AssertionError(f"read {name}")


def read(*words: str) -> dict[str, Any]:
    return parse(words, SCHEMA, no_file)


@pytest.mark.req("F3")
@rows(
    ("word", "value"),
    [
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("count=5", 5),
        ("count=-5", -5),
        ("ratio=5", 5),
        ("ratio=0.5", 0.5),
        ("ratio=1e3", 1000.0),
        ("deep=true", True),
        ("deep=No", False),
        ('tags=["a", "b"]', ["a", "b"]),
        ("tags=a", ["a"]),
        ("numbers=5", [5]),
        ('options={"headless": true}', {"headless": True}),
        ("a.b=5", 5),
        ("maybe=null", None),
        ("maybe=x", "x"),
        ("maybe=", ""),
        ("either=null", None),
        ("either=", None),
        ("either=5", 5),
        ("mode=fast", "fast"),
        ("any=5", "5"),
        ("there=5", 5),
        ("unknown=5", "5"),
        ("text:=5", 5),
        ('any:={"a": [1, null]}', {"a": [1, None]}),
        ("text=@@home", "@home"),
    ],
)
def test_a_word_is_read_as_the_schema_would_have_it(word: str, value: Any) -> None:
    (found,) = read(word).values()
    assert found == value
    assert type(found) is type(value)


def test_a_dot_reaches_into_an_object() -> None:
    found = read("options.headless=true", "options.view.width=80")
    assert found == {"options": {"headless": True, "view": {"width": 80}}}


def test_the_same_name_again_makes_a_list() -> None:
    assert read("tags=a", "tags=b", 'tags=["c"]') == {"tags": ["a", "b", "c"]}


def test_a_file_gives_the_text() -> None:
    files = {"notes.txt": "a\nb", "n.json": "[1, 2]", "-": "typed"}
    words = ["text=@notes.txt", "numbers=@n.json", "any:=@n.json", "maybe=@-"]
    found = parse(words, SCHEMA, files.__getitem__)
    assert found == {"text": "a\nb", "numbers": [1, 2], "any": [1, 2], "maybe": "typed"}


def test_a_dash_is_an_object_on_standard_input() -> None:
    found = parse(["-", "count=2"], SCHEMA, {"-": '{"text": "x", "count": 1}'}.__getitem__)
    assert found == {"text": "x", "count": 2}


@pytest.mark.req("E2")
@rows(
    ("word", "complaint"),
    [
        ("text", "'text' is no argument: write name=value"),
        ("=5", "is no argument"),
        ("count=x", "count='x': must be a whole number"),
        ("count=1.5", "must be a whole number"),
        ("ratio=nan", "must be a number"),
        ("deep=maybe", "must be true or false"),
        ("options=x", "must be a JSON object"),
        ("text:=x", "text: not JSON"),
    ],
)
def test_a_word_that_cannot_be_read_is_refused_with_a_reason(word: str, complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        read(word)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(ValidationError, match="text is given twice"):
        read("text=a", "text=b")


@pytest.mark.parametrize("text", ["[1]", "5", "null", '"x"'])
def test_all_arguments_at_once_must_be_an_object(text: str) -> None:
    with pytest.raises(ValidationError, match="must be a JSON object"):
        whole(text, "--json")


@rows(
    ("schema", "words"),
    [
        ({"type": "string"}, "string"),
        ({"enum": ["a", 1]}, "a|1"),
        ({"enum": ["Zürich", 'a "b"', "c\nd"]}, r"Zürich|a \"b\"|c\nd"),
        ({"const": 5}, "5"),
        ({"oneOf": [{"const": "ö", "title": "Ö\nS"}]}, "ö (Ö S)"),
        ({"type": "array", "items": {"type": "integer"}}, "array of integer"),
        ({"type": "array"}, "array"),
        ({"type": ["null", "string"]}, "null or string"),
        ({}, "any"),
        (True, "any"),
    ],
)
def test_a_schema_in_a_word(schema: Any, words: str) -> None:
    assert describe(schema) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_can_be_given_with_a_colon(value: Any) -> None:
    assert read(f"any:={json.dumps(value)}") == {"any": value}


@given(st.text())
def test_any_text_can_be_given_as_a_string(text: str) -> None:
    written = f"@{text}" if text.startswith("@") else text
    assert read(f"text={written}") == {"text": text}


SCHEMAS = st.recursive(
    st.sampled_from([True, {}, {"type": "string"}, {"type": ["integer", "null"]}, {"const": 1}])
    | st.fixed_dictionaries({"type": JSON, "enum": JSON})
    | JSON,
    lambda inner: st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=3), "items": inner}),
    max_leaves=5,
)
