"""Schemas that hold at once become one, which refuses nothing that all of them take."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.schema.types import has_shape, is_plain, merge


@pytest.mark.parametrize(
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
    assert is_plain({"type": "object", "properties": {}})
    assert not is_plain({"anyOf": []})
