"""Schemas in one form: references, ``allOf``, alternatives, and what is no schema."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.schema.budget import Budget, TooMuch
from holdfast.schema.normal import MOST_ALTERNATIVES, ODD, Document, merge
from holdfast.schema.types import Flat


def document(root: Any) -> Document:
    return Document(root, Budget(10_000))


def flat(schema: Any, **root: Any) -> Flat:
    return document({**root, "it": schema}).flat(schema)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, {}),
        (False, {"not": {}}),
        (7, {ODD: 7}),
        ({"type": "string", "$comment": "c"}, {"type": "string", "$comment": "c"}),
        ({"minimum": "x"}, {"minimum (malformed)": "x"}),
        ({"exclusiveMinimum": True}, {"exclusiveMinimum (malformed)": True}),
        ({"$defs": {}, "$id": "a", "$schema": "b"}, {}),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, {"type": "string", "minLength": 1}),
        ({"allOf": [{"required": ["a"]}], "required": ["b"]}, {"required": ["a", "b"]}),
        ({"allOf": [{"type": "number"}], "type": "integer"}, {"type": ["integer"]}),
        ({"allOf": [{"minimum": 1}], "minimum": 2}, {"minimum": 2, "allOf": [{"minimum": 1}]}),
        (
            {"allOf": [{"properties": {"a": {}}}], "additionalProperties": False},
            {"additionalProperties": False, "allOf": [{"properties": {"a": {}}}]},
        ),
        ({"allOf": []}, {"allOf (malformed)": []}),
    ],
)
def test_the_keywords_of_one_place(schema: Any, expected: Any) -> None:
    assert flat(schema) == expected


def test_a_reference_gives_way_to_its_target_and_keeps_its_own_words() -> None:
    root = {"$defs": {"a": {"type": "string", "title": "A", "description": "of a"}}}
    found = flat({"$ref": "#/$defs/a", "title": "B"}, **root)
    assert found == {"type": "string", "title": "B", "description": "of a"}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", True),
        ("#/list/1", True),
        ("#/list/2", False),
        ("#/list/x", False),
        ("#/a~1b/c%20d", True),
        ("#anchor", False),
        ("other.json#/a", False),
        ("#/missing", False),
    ],
)
def test_a_reference_is_followed_within_the_document(reference: str, found: bool) -> None:
    root = {"list": [1, 2], "a/b": {"c d": {}}}
    assert (document(root).find(reference) is not None) is found


def test_no_reference_is_followed_where_parts_have_names_of_their_own() -> None:
    assert document({"$defs": {"a": {"$id": "x"}}}).find("#/$defs/a") is None


def test_a_circle_of_references_ends() -> None:
    root = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}
    assert set(document(root).flat(root["$defs"]["a"])) <= {"allOf", "$ref"}


def test_alternatives_of_alternatives_are_one_list() -> None:
    schema = {"type": "string", "anyOf": [{"minLength": 1}, {"anyOf": [{"maxLength": 2}, False]}]}
    found, exclusion = document(schema).alternatives(document(schema).flat(schema))
    assert found == [{"type": "string", "minLength": 1}, {"type": "string", "maxLength": 2}]
    assert exclusion == "none"


@pytest.mark.parametrize(
    ("schema", "exclusion"),
    [
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, "all"),
        ({"anyOf": [{"oneOf": [{"minimum": 1}, {"maximum": 2}]}, {"minimum": 3}]}, "some"),
        ({"oneOf": [{"anyOf": [{"minimum": 1}, {"maximum": 2}]}, {"minimum": 3}]}, "some"),
        ({"type": ["string", "null"]}, "none"),
    ],
)
def test_alternatives_may_exclude_each_other(schema: Any, exclusion: str) -> None:
    assert document(schema).alternatives(document(schema).flat(schema))[1] == exclusion


def test_nothing_fits_no_alternative() -> None:
    assert document(False).alternatives(document(False).flat(False)) == ([], "none")


def test_too_many_alternatives_stay_together() -> None:
    schema = {"anyOf": [{"minimum": at} for at in range(MOST_ALTERNATIVES + 1)]}
    assert document(schema).alternatives(document(schema).flat(schema))[0] == [schema]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"if": {}}, {"then": {}}),
        ({"items": {}}, {"prefixItems": [{}]}),
        ({"unevaluatedProperties": False}, {"type": "object"}),
        ({"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"minimum": 2}}}),
        ({"type": "string"}, {"type": "null"}),
        ({"pattern": "a"}, {"pattern": "b"}),
    ],
)
def test_what_cannot_be_said_in_one_is_not_merged(one: Flat, other: Flat) -> None:
    assert merge(one, other, Budget(100)) is None


def test_reading_a_schema_costs_effort() -> None:
    with pytest.raises(TooMuch):
        Document({}, Budget(10)).flat({f"k{at}": at for at in range(20)})
