"""Schemas in one form: references, ``allOf``, alternatives, and what has no such form."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.schema.normal import MOST_ALTERNATIVES, Document, Incomparable
from holdfast.schema.types import Flat
from holdfast.schema.walk import Budget, SchemaTooComplex


def flat(schema: Any, **root: Any) -> Flat:
    return Document({**root, "properties": {"it": schema}}, Budget(10_000)).flat(schema)


def alternatives(schema: Any) -> list[Flat]:
    document = Document(schema, Budget(10_000))
    return document.alternatives(document.flat(schema))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, {}),
        (False, {"not": {}}),
        ({"type": "string", "$comment": "c"}, {"type": "string", "$comment": "c"}),
        ({"$defs": {}, "$id": "a", "$schema": "b"}, {}),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, {"type": "string", "minLength": 1}),
        ({"allOf": [{"required": ["a"]}], "required": ["b"]}, {"required": ["b", "a"]}),
        ({"allOf": [{"type": "number"}], "type": "integer"}, {"type": "integer"}),
        ({"allOf": [{"minimum": 1}], "minimum": 2}, {"minimum": 2}),
    ],
)
def test_the_keywords_of_one_place(schema: Any, expected: Any) -> None:
    assert flat(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        7,
        {"minimum": "x"},
        {"exclusiveMinimum": True},
        {"allOf": []},
        {"allOf": [{"properties": {"a": {}}}], "additionalProperties": False},
        {"allOf": [{"if": {}}], "then": {}},
        {"allOf": [{"type": "object"}], "unevaluatedProperties": False},
        {"allOf": [{"type": "null"}], "type": "string"},
        {"allOf": [{"pattern": "a"}], "pattern": "b"},
        {"$ref": "#/missing"},
        {"$ref": "other.json#/a"},
    ],
)
def test_what_has_no_plain_form_is_incomparable(schema: Any) -> None:
    with pytest.raises(Incomparable):
        flat(schema)


def test_a_reference_gives_way_to_its_target_and_keeps_its_own_texts() -> None:
    root = {"$defs": {"a": {"type": "string", "title": "A", "description": "of a"}}}
    found = flat({"$ref": "#/$defs/a", "title": "B"}, **root)
    assert found == {"type": "string", "title": "B", "description": "of a"}


def test_beside_a_reference_old_dialects_read_nothing() -> None:
    root = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"a": {}}}
    with pytest.raises(Incomparable):
        flat({"$ref": "#/definitions/a", "minimum": 1}, **root)
    assert flat({"$ref": "#/definitions/a", "title": "A"}, **root) == {"title": "A"}


def test_a_circle_of_references_ends() -> None:
    root = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    with pytest.raises(SchemaTooComplex):
        flat({"$ref": "#/$defs/a"}, **root)


def test_alternatives_of_alternatives_are_one_list() -> None:
    schema = {"type": "string", "anyOf": [{"minLength": 1}, {"anyOf": [{"maxLength": 2}, False]}]}
    assert alternatives(schema) == [
        {"type": "string", "minLength": 1},
        {"type": "string", "maxLength": 2},
    ]


def test_nothing_fits_no_alternative() -> None:
    assert alternatives(False) == []


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"minimum": 1}, {"maximum": 2}]},
        {"anyOf": [{"oneOf": [{"minimum": 1}, {"maximum": 2}]}, {"minimum": 3}]},
        {"anyOf": [{"minimum": at} for at in range(MOST_ALTERNATIVES + 1)]},
    ],
)
def test_alternatives_that_exclude_each_other_or_are_many_are_incomparable(schema: Any) -> None:
    with pytest.raises(Incomparable):
        alternatives(schema)


def test_reading_a_schema_costs_steps() -> None:
    with pytest.raises(SchemaTooComplex):
        Document({}, Budget(10)).flat({f"k{at}": at for at in range(20)})
