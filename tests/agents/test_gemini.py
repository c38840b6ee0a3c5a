"""Gemini's subset: one type each, no references, nothing that it does not know."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from holdfast.agents.gemini import subset
from holdfast.agents.schemas import MOST_NODES, Losses, object_root
from tests.rows import rows
from tests.servers.garbage import schemas

TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"}
WORDS = {
    *("type", "format", "description", "nullable", "enum", "items", "minItems", "maxItems"),
    *("properties", "required", "minProperties", "maxProperties", "minimum", "maximum"),
    *("minLength", "maxLength", "pattern", "anyOf"),
}


def convert(node: Any) -> tuple[dict[str, Any], list[str]]:
    """A parameter's schema in the subset, and the words lost."""
    report = Losses()
    root = object_root({"type": "object", "properties": {"a": node}}, report, plain=True)
    found = subset(root, report)
    assert found is not None
    return found["properties"]["a"], [loss.keyword for loss in report]


ANY = {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}, {"type": "BOOLEAN"}]}
TEXT = {"type": "STRING"}


NUMBER = {"type": "NUMBER"}
WHOLE = {"type": "INTEGER"}
OBJECT = {"type": "OBJECT"}
WRITTEN = "(a JSON object, written as text)"
JSON_TEXT = {"type": "STRING", "description": WRITTEN}
A_MAP = {"type": "STRING", "description": f"A map. {WRITTEN}"}

CASES: list[tuple[Any, dict[str, Any], list[str]]] = [
    ({"type": ["string", "null"]}, {**TEXT, "nullable": True}, []),
    ({"type": ["string", "integer"]}, {"anyOf": [TEXT, WHOLE]}, []),
    ({"type": "string", "nullable": True}, {**TEXT, "nullable": True}, []),
    ({"type": "null"}, {**TEXT, "nullable": True}, ["type"]),
    ({}, ANY, ["type"]),
    (True, ANY, ["type"]),
    (False, ANY, ["schema", "type"]),
    # Enums are of strings, and of none that is empty.
    ({"enum": ["a", None]}, {**TEXT, "enum": ["a"], "nullable": True}, []),
    ({"enum": [1, 2]}, {**WHOLE, "description": "one of: [1, 2]"}, ["enum"]),
    ({"enum": ["", "a"]}, {**TEXT, "description": 'one of: ["", "a"]'}, ["enum"]),
    ({"const": True}, {"type": "BOOLEAN", "description": "one of: [true]"}, ["enum"]),
    # Words that only some types have.
    ({"type": "string", "format": "date-time"}, {**TEXT, "format": "date-time"}, []),
    ({"type": "integer", "format": "int64"}, {**WHOLE, "format": "int64"}, []),
    ({"type": "string", "minimum": 1}, {**TEXT, "description": "minimum: 1"}, ["minimum"]),
    ({"type": "string", "title": "T"}, {**TEXT, "description": "T"}, []),
    ({"type": "string", "properties": {"x": {}}, "required": ["x"]}, TEXT, []),
    ({"type": "string", "not": {"const": "x"}, "if": {}}, TEXT, ["not", "if"]),
    ({"type": "integer", "exclusiveMaximum": 5, "maximum": 9}, {**WHOLE, "maximum": 4}, []),
    (
        {"type": "number", "exclusiveMinimum": 0.5},
        {**NUMBER, "description": "exclusiveMinimum: 0.5"},
        ["exclusiveMinimum"],
    ),
    # Lists and objects.
    ({"type": "array"}, {"type": "ARRAY", "items": ANY}, ["type"]),
    (
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}]},
        {"type": "ARRAY", "items": {**TEXT, "nullable": True}},
        ["prefixItems"],
    ),
    ({"type": "object"}, JSON_TEXT, ["properties"]),
    ({"type": "object", "properties": {}}, JSON_TEXT, ["properties"]),
    ({"type": "object", "description": "A map."}, A_MAP, ["properties"]),
    ({"type": "object", "additionalProperties": {}}, JSON_TEXT, ["properties"]),
    (
        {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x", "y"]},
        {**OBJECT, "properties": {"x": TEXT}, "required": ["x"]},
        [],
    ),
    # Alternatives hold everything themselves: beside them stands nothing.
    (
        {"oneOf": [{"type": "string"}, {"type": "integer"}], "maximum": 3},
        {"anyOf": [{**TEXT, "description": "maximum: 3"}, {**WHOLE, "maximum": 3}]},
        ["oneOf", "maximum"],
    ),
    (
        {"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "a"}]},
        {"anyOf": [{**TEXT, "minLength": 1}, {**TEXT, "pattern": "a"}]},
        [],
    ),
    ({"allOf": [{"type": "string"}, {"maxLength": 3}]}, {**TEXT, "maxLength": 3}, []),
]


@pytest.mark.req("F3")
@rows(("node", "found", "lost"), CASES)
def test_a_schema_in_the_subset(node: Any, found: dict[str, Any], lost: list[str]) -> None:
    assert convert(node) == (found, lost)


def test_a_tree_is_told_to_its_first_branch() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}
    report = Losses()
    schema = {"properties": {"t": {"$ref": "#/$defs/Tree"}}, "$defs": {"Tree": tree}}
    found = subset(object_root(schema, report, plain=True), report)
    assert found is not None
    assert found["properties"]["t"]["properties"] == {"child": JSON_TEXT}
    assert [loss.keyword for loss in report] == ["$ref", "properties"]


def test_alternatives_inside_of_alternatives_do_not_multiply_without_end() -> None:
    """Nine levels of eight alternatives: 134 million schemas if each had its own properties."""
    node: dict[str, Any] = {"type": "string"}
    for _ in range(9):
        choices = [{"title": str(number)} for number in range(8)]
        node = {"type": "object", "properties": {"a": node}, "anyOf": choices}
    found, _ = convert(node)
    assert str(found).count("'type'") < 4 * MOST_NODES


@given(schemas)
def test_the_subset_is_kept_whatever_a_server_sends(schema: dict[str, Any]) -> None:
    found = subset(object_root(schema, Losses(), plain=True), Losses())
    if found is not None:
        _check(found)


def _check(node: dict[str, Any]) -> None:
    assert node.keys() <= WORDS
    if "anyOf" in node:
        assert len(node["anyOf"]) > 1
        assert not {"type", "items", "properties", "enum"} & node.keys()
        for one in node["anyOf"]:
            _check(one)
        return
    assert node["type"] in TYPES
    assert ("items" in node) == (node["type"] == "ARRAY")
    assert node["type"] == "OBJECT" or not {"properties", "required"} & node.keys()
    assert all(isinstance(value, str) and value for value in node.get("enum", ()))
    assert set(node.get("required", ())) <= node.get("properties", {}).keys()
    for one in (
        *node.get("properties", {}).values(),
        *([node["items"]] if "items" in node else []),
    ):
        _check(one)
