"""A required parameter with a default is filled in by the server, so callers may leave it out."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.schema.validate import Checker
from tests.rows import rows


def fits(schema: Any, value: Any) -> bool:
    return not Checker(schema, fills=True).faults(value)


_DEFS: Any = {"size": {"type": "integer", "default": 3}}
SCREENSHOT: Any = {
    "type": "object",
    "properties": {
        "type": {"enum": ["png", "jpeg"], "default": "png"},
        "name": {"type": "string"},
        "size": {"$ref": "#/$defs/size"},
    },
    "required": ["type", "name", "size"],
    "$defs": _DEFS,
}


@pytest.mark.req("T5")
def test_a_required_parameter_with_a_default_may_be_left_out() -> None:
    assert fits(SCREENSHOT, {"name": "a"})
    assert not fits(SCREENSHOT, {})
    assert not fits(SCREENSHOT, {"name": "a", "type": "gif"})


@pytest.mark.req("T5")
@rows(
    "schema",
    [
        {"allOf": [SCREENSHOT | {"$defs": {}, "required": ["type"]}]},
        {"anyOf": [{"properties": {"a": {"default": 1}}, "required": ["a"]}]},
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"properties": {"a": {"default": 1}}, "required": ["a"]}},
        },
        {"properties": {"a": {"allOf": [{}, {"default": 1}]}}, "required": ["a"]},
        {"properties": {"a": {"anyOf": [{"default": 1}, {}]}}, "required": ["a"]},
        {"allOf": [{"properties": {"a": {"default": 1}}}], "required": ["a"]},
        {
            "allOf": [{"$ref": "#/$defs/a"}],
            "required": ["a"],
            "$defs": {"a": {"properties": {"a": {"default": 1}}}},
        },
        {"properties": {"a": {"default": 1}}, "allOf": [{"required": ["a"]}]},
        {"properties": {"a": {"default": 1}}, "if": {}, "then": {"required": ["a"]}},
        {"oneOf": [{"properties": {"a": {"default": 1}}, "required": ["a"]}, {"required": ["b"]}]},
        {"properties": {"a": {"oneOf": [{"default": 1}, {}]}}, "required": ["a"]},
        {
            "properties": {"a": {"$ref": "#size"}},
            "required": ["a"],
            "$defs": {"size": {"$anchor": "size", "default": 3}},
        },
        {
            "$id": "http://x/y",
            "properties": {"a": {"$ref": "size"}},
            "required": ["a"],
            "$defs": {"size": {"$id": "size", "default": 3}},
        },
        {"properties": {"a": {"default": 1}}, "dependentSchemas": {"b": {"required": ["a"]}}},
        {"properties": {"a": {"default": 1}}, "dependentRequired": {"b": ["a"]}},
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"default": 1}},
            "dependencies": {"b": ["a"]},
        },
    ],
    ids=[
        "allOf",
        "anyOf",
        "$ref",
        "in allOf",
        "in anyOf",
        "beside",
        "beside, by $ref",
        "around",
        "around then",
        "oneOf",
        "in oneOf",
        "$anchor",
        "$id",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
    ],
)
def test_it_may_be_left_out_wherever_it_is_required(schema: Any) -> None:
    value = {"b": 1} if any(word.startswith("depend") for word in schema) else {}
    assert fits({**schema, "$defs": {**_DEFS, **schema.get("$defs", {})}}, value)


@pytest.mark.req("T5")
def test_nested_objects_are_filled_in_too() -> None:
    schema = {"properties": {"o": {"properties": {"a": {"default": 1}}, "required": ["a"]}}}
    assert fits(schema, {"o": {}})


@pytest.mark.req("T5")
def test_a_value_that_fitted_one_of_several_schemas_fits_still() -> None:
    first = {"properties": {"x": {"default": 1}}, "required": ["x"]}
    assert fits({"oneOf": [first, {"required": ["y"]}]}, {"y": 1})
    assert fits({"not": first}, {"y": 1})


@pytest.mark.req("T6")
def test_a_result_must_have_what_is_required() -> None:
    assert Checker(SCREENSHOT).faults({"name": "a"})
