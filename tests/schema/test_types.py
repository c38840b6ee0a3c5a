"""Kinds of values, and JSON values that are the same."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.schema.types import (
    flatten,
    has_shape,
    json_key,
    merge,
    same,
    type_names,
    type_of,
    types,
    values,
    wordy,
)
from holdfast.schema.walk import Budget, SchemaTooComplex, resolve
from tests.rows import rows


@rows(
    ("one", "other", "alike"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        (1, True, False),
        (1, 1.0, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": None}, {}, False),
        ("a", ["a"], False),
    ],
)
def test_values_are_the_same_if_they_are_written_the_same(
    one: Any, other: Any, alike: bool
) -> None:
    assert same(one, other) is alike


def test_values_of_any_depth_can_be_compared() -> None:
    one: Any = 1
    other: Any = 1
    for _ in range(20_000):
        one, other = [one], [other]
    assert same(one, other)
    while isinstance(one, list):
        one, other = one.pop(), other.pop()


def test_comparing_costs_effort() -> None:
    with pytest.raises(SchemaTooComplex):
        same([[at] for at in range(100)], [[at] for at in range(100)], Budget(50))


@pytest.mark.parametrize(
    ("flat", "expected"),
    [
        ({"type": "number"}, {"integer", "fraction"}),
        ({"type": ["null", "integer"]}, {"null", "integer"}),
    ],
)
def test_a_number_is_an_integer_or_a_fraction(flat: Any, expected: set[str]) -> None:
    assert types(flat) == expected
    assert len(types({})) == 7


def test_types_are_named_as_in_json_schema() -> None:
    assert type_names({"integer", "fraction", "null"}) == ["null", "number"]
    assert type_names({"integer"}) == ["integer"]


@rows(
    ("value", "kind"),
    [(None, "null"), (True, "boolean"), (1, "integer"), (1.0, "integer"), (1.5, "fraction")],
)
def test_the_kind_of_a_value(value: Any, kind: str) -> None:
    assert type_of(value) == kind


@rows(
    ("flat", "listed"),
    [
        ({}, None),
        ({"const": None}, [None]),
        ({"enum": [1, "a"], "type": "string"}, ["a"]),
        ({"enum": [1, 2], "const": 2}, [2]),
        ({"enum": []}, []),
    ],
)
def test_the_values_that_fit(flat: Any, listed: Any) -> None:
    assert values(flat) == listed


def test_equal_values_have_one_key() -> None:
    assert json_key(1) == json_key(1.0) != json_key(True)
    assert json_key({"a": 1, "b": 2}) == json_key({"b": 2, "a": 1}) != json_key("a")


@pytest.mark.parametrize(
    ("key", "only_tells"),
    [("description", True), ("x-order", True), ("x-mcp-header", False), ("type", False)],
)
def test_some_keywords_only_tell(key: str, only_tells: bool) -> None:
    assert wordy(key) is only_tells


@rows(
    ("schemas", "whole"),
    [
        ([{"type": "string"}, {"description": "x"}], {"type": "string", "description": "x"}),
        ([{"required": ["a", "b"]}, {"required": ["b", "c"]}], {"required": ["a", "b", "c"]}),
        (
            [{"properties": {"a": {}}}, {"properties": {"b": {"type": "null"}}}],
            {"properties": {"a": {}, "b": {"type": "null"}}},
        ),
        (
            [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"minLength": 1}}}],
            {"properties": {"a": {"allOf": [{"type": "string"}, {"minLength": 1}]}}},
        ),
        ([{"type": ["string", "null"]}, {"type": "string"}], {"type": "string"}),
        ([{"type": "number"}, {"type": "integer"}], {"type": "integer"}),
        ([{"type": "string"}, {"type": "null"}], {}),
        ([{"enum": [1, 2, 3]}, {"enum": [3, 2]}], {"enum": [2, 3]}),
        ([{"enum": [1]}, {"enum": [2]}], {}),
        ([{"items": {"type": "string"}}, {"items": {"type": "null"}}], {}),
        ([{"anyOf": [{}]}, {"anyOf": [{"type": "null"}]}], {}),
        ([{"minimum": 1}, {"minimum": 2}], {"minimum": 2}),
        ([{"description": "mine"}, {"description": "theirs"}], {"description": "mine"}),
        ([], {}),
    ],
)
def test_schemas_are_joined_word_by_word(
    schemas: list[dict[str, Any]], whole: dict[str, Any]
) -> None:
    assert merge(schemas).schema == whole


def test_which_words_decide_a_type() -> None:
    assert has_shape({"type": "string"})
    assert not has_shape({"required": ["a"], "description": "x"})
    assert not has_shape({"$ref": "#"}, besides="$ref")
    assert not has_shape(True)


def test_references_and_all_of_are_merged_into_one_schema() -> None:
    root: Any = {
        "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {}}}, True],
        "$ref": "#",
        "description": "own",
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}], "type": "object", "description": "a"}},
    }
    found = flatten(root, lambda _, reference: resolve(root, reference), Budget()).schema
    assert found.pop("$defs")
    assert found == {"description": "own", "type": "object", "properties": {"b": {}}}


def test_merging_many_parts_has_a_bound() -> None:
    root: Any = {"allOf": [{"minLength": at} for at in range(100)]}
    with pytest.raises(SchemaTooComplex):
        flatten(root, lambda *_: None, Budget(50))
