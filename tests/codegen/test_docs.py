"""What a type does not show is told in words."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.codegen.literals import description, note


@pytest.mark.req("H1")
@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"description": "Where to go"}, "Where to go."),
        ({"description": "Why?"}, "Why?"),
        ({"default": "load"}, 'Default: "load".'),
        ({"default": None, "description": " x "}, "x. Default: null."),
        ({"default": {"b": 1, "a": 2}}, 'Default: {"a":2,"b":1}.'),
        ({"minimum": 0, "maximum": 9.5}, "At least 0, at most 9.5."),
        ({"minLength": 1, "pattern": "^a$"}, "Pattern ^a$, at least 1 characters."),
        ({"format": "uri", "deprecated": True}, "Format uri. Deprecated."),
        ({"uniqueItems": True, "minItems": 2}, "At least 2 items, no item twice."),
        (
            {"anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}]},
            "At most 9 characters.",
        ),
        ({"description": "- a\n- b", "default": 1}, "- a\n- b.\nDefault: 1."),
        ({"description": 1, "minimum": True, "format": []}, ""),
        ({"pattern": "a\nb\u202e"}, "Pattern a b\\u202e."),
        (True, ""),
        (None, ""),
    ],
)
def test_a_note_says_what_is_known(schema: Any, text: str) -> None:
    assert note(schema) == text


def test_a_long_default_is_cut() -> None:
    assert len(note({"default": "x" * 5000})) < 150


def test_a_default_that_is_no_json_is_shown_all_the_same() -> None:
    assert note({"default": "\ud800"}) == "Default: '\\ud800'."


def test_only_text_is_a_description() -> None:
    assert description({"description": ["x"]}) == ""
    assert description([]) == ""
