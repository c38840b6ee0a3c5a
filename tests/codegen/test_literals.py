"""Nothing that a server says gets out of the string that it is put in."""

from __future__ import annotations

import ast
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.text import has_unseen, one_line
from holdfast.codegen.names import (
    MOST_CHARACTERS,
    description,
    docstring,
    literal,
    note,
    paragraphs,
)
from tests.codegen.material import ATTACKS, BREAKS, hostile
from tests.rows import rows

anything = st.text(st.characters()) | hostile()
"""Halves of characters included."""


def invisible(source: str) -> list[str]:
    return [char for char in source if char != "\n" and has_unseen(char)]


@pytest.mark.req("H1")
@given(anything)
def test_a_literal_is_the_text(text: str) -> None:
    made = literal(text)
    assert ast.literal_eval(made) == text
    assert not invisible(made)
    assert "\n" not in made


@rows(
    ("text", "made"),
    [
        ("a", '"a"'),
        ("it's", '"it\'s"'),
        ('{"a":1}', "'{\"a\":1}'"),
        ('it\'s "so"', "'it\\'s \"so\"'"),
        ("\\d\n\t\x1b\u202e", '"\\\\d\\n\\t\\x1b\\u202e"'),
        ("größe 名", '"größe 名"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_literals_read_as_a_formatter_would_write_them(text: str, made: str) -> None:
    assert literal(text) == made


@pytest.mark.req("H1")
@given(anything, st.sampled_from(["", "    ", "        "]))
def test_a_docstring_is_one_string_whatever_is_in_it(text: str, indent: str) -> None:
    lines = docstring(paragraphs(text, 60), indent)
    source = "\n".join(["if 1:" if indent else "", *lines])
    assert not invisible(source)
    if lines:
        module = ast.parse("\n".join(line[len(indent) :] for line in lines))
        (statement,) = module.body
        assert isinstance(statement, ast.Expr)
        assert isinstance(statement.value, ast.Constant)
        assert isinstance(statement.value.value, str)


@rows("attack, place", product(ATTACKS, ["{}", "a {} b", "{}\nmore", "more\n{}", "{}{}"]))
def test_known_attacks_stay_inside(attack: str, place: str) -> None:
    lines = docstring(paragraphs(place.replace("{}", attack), 60), "")
    assert all(isinstance(node, ast.Expr) for node in ast.parse("\n".join(lines)).body)
    assert len(ast.parse("\n".join(lines)).body) == 1


@rows("end", BREAKS)
def test_every_kind_of_line_break_is_one(end: str) -> None:
    assert paragraphs(f"one{end}two", 60) == ["one", "two"]
    assert one_line(f"one{end}two") == "one two"


def test_what_cannot_be_seen_is_shown() -> None:
    assert paragraphs("a\u202eb\x00c\ud800d\xa0e\tf", 60) == ["a\\u202eb\\x00c\\ud800d e   f"]


def test_indentation_it_came_in_is_taken_off() -> None:
    text = "\n    One.\n\n\n\n      deep\n    flat\n    "
    assert paragraphs(text, 60) == ["One.", "", "  deep", "flat"]


def test_long_lines_are_wrapped_and_deep_ones_stay_deep() -> None:
    assert paragraphs("aaa bbb ccc", 7) == ["aaa bbb", "ccc"]
    assert paragraphs("-\n- x\n  aaa bbb ccc", 9) == ["-", "- x", "  aaa bbb", "  ccc"]


def test_a_line_too_deep_to_wrap_comes_out() -> None:
    deep = "-\n-\n" + " " * 50 + "aaa bbb ccc"
    assert paragraphs(deep, 9) == ["-", "-", "aaa bbb", "ccc"]


def test_quotes_at_the_ends_do_not_touch_the_docstring_s_own() -> None:
    assert docstring(['"a"'], "") == ['"""\\"a\\""""']
    assert docstring(['"a"', 'b"'], "") == ['"""\\"a"', 'b"', '"""']


def test_a_description_without_end_is_cut() -> None:
    lines = paragraphs("word " * MOST_CHARACTERS, 80)
    assert sum(map(len, lines)) <= MOST_CHARACTERS
    assert lines[-1].endswith("…")


def test_nothing_to_say_is_no_docstring() -> None:
    assert docstring(paragraphs(" \n\n ", 60), "") == []


@pytest.mark.req("H1")
@rows(
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
    assert note({"default": "\ud800"}) == 'Default: "\\ud800".'


def test_only_text_is_a_description() -> None:
    assert description({"description": ["x"]}) == ""
    assert description([]) == ""
