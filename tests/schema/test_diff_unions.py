"""Which alternative became which. How their changes are told is in test_schemas.py."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.schema.diff_unions import disjoint, match, summary
from holdfast.schema.types import same


def variant(tag: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"kind": {"const": tag}, **more}, "required": ["kind"]}


def test_what_is_alike_belongs_together_in_any_order() -> None:
    old, new = [{"type": "string"}, {"type": "null"}], [{"type": "null"}, {"type": "string"}]
    pairs, lost, gained = match(old, new, same)
    assert [(one["type"], other["type"]) for one, other in pairs] == [
        ("string", "string"),
        ("null", "null"),
    ]
    assert (lost, gained) == ([], [])


def test_a_constant_tells_objects_apart() -> None:
    old = [variant("a"), variant("b")]
    new = [variant("b", more={}), variant("c"), variant("a", more={})]
    pairs, lost, gained = match(old, new, same)
    assert pairs == [(old[0], new[2]), (old[1], new[0])]
    assert (lost, gained) == ([], [new[1]])


def test_so_does_a_title() -> None:
    old = [{"type": "object", "title": name, "minProperties": 1} for name in "ab"]
    new = [{"type": "object", "title": name, "minProperties": 2} for name in "ba"]
    pairs, _, _ = match(old, new, same)
    assert pairs == [(old[0], new[1]), (old[1], new[0])]


def test_what_cannot_be_told_apart_is_left_over() -> None:
    old = [{"type": "string", "minLength": at} for at in (1, 2)]
    new = [{"type": "string", "minLength": at} for at in (3, 4)]
    assert match(old, new, same) == ([], old, new)


@pytest.mark.parametrize(
    ("branches", "apart"),
    [
        ([{"type": "string"}, {"type": "null"}], True),
        ([{"type": "integer"}, {"type": "number"}], False),
        ([{"enum": ["a"]}, {"enum": ["b"]}], True),
        ([{"enum": ["a"]}, {"enum": ["b", "a"]}], False),
        ([{"enum": ["a"]}, {"type": "null"}], True),
        ([variant("a"), variant("b")], True),
        ([variant("a"), variant("a")], False),
        ([{"properties": {"kind": {"const": "a"}}, "type": "object"}, variant("b")], False),
        ([{}, {"type": "null"}], False),
    ],
)
def test_alternatives_without_a_common_value(branches: list[Any], apart: bool) -> None:
    assert disjoint(branches) is apart


@pytest.mark.parametrize(
    ("flat", "words"),
    [
        ({"type": "string"}, "string"),
        ({"enum": ["a", 1]}, '"a" and 1'),
        ({"enum": []}, "nothing"),
        ({"type": "object", "title": "User\x07"}, 'object "User\\x07"'),
        (variant("a"), 'object with kind "a"'),
        ({}, "anything else"),
    ],
)
def test_an_alternative_in_a_few_words(flat: Any, words: str) -> None:
    assert summary(flat) == words
