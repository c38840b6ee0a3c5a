"""Schemas of simple types: what fits the type fits the schema; the rest is the validator's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from holdfast.schema.faults import SchemaFault
from holdfast.schema.simple import MOST_VALUE_BYTES, Check, SimpleCheck, simple_type
from holdfast.schema.validate import Checkers
from tests.rows import rows

NAMES = st.sampled_from(["a", "b", "a-b", "class", ""])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
TYPES = ["string", "integer", "number", "boolean", "null"]


def _object(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    optional = {"required": st.lists(NAMES, unique=True), "additionalProperties": st.booleans()}
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={"properties": st.dictionaries(NAMES, inner, max_size=4), **optional},
    )


SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), max_size=3)},
        optional={"description": st.text(max_size=2) | st.just(7), "default": SCALARS},
    )
    | st.fixed_dictionaries(
        {"type": st.just("string"), "enum": st.lists(st.text(max_size=1))},
        optional={"minLength": st.integers(-1, 1)},
    )
    | st.fixed_dictionaries({"type": st.just("string"), "maxLength": st.integers(-1, 3)})
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers() | st.floats(), "maximum": st.integers() | st.booleans()},
    )
    | st.just({}),
    lambda inner: (
        _object(inner)
        | st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner})
        | st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=3)})
    ),
    max_leaves=6,
)


class Refusing:
    """Stands for the validator."""

    def faults(self, value: Any, text: bytes | Raw | None = None) -> tuple[SchemaFault, ...]:
        return (SchemaFault("", "left to the validator"),)


def fits_the_type(schema: Any, value: Any, text: bytes | None = None) -> bool:
    """Whether the value was found to fit without the validator."""
    plain = simple_type(Raw(json.encode(schema)))
    return plain is not None and not SimpleCheck(plain, Refusing).faults(value, text)


@pytest.mark.req("T5")
@given(SCHEMAS, VALUES)
def test_what_fits_the_type_fits_the_schema(schema: Any, value: Any) -> None:
    if fits_the_type(schema, value, b"short"):
        assert Checkers().get(Raw(json.encode(schema))).faults(value) == ()


@rows(
    ("schema", "value"),
    [
        ({"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"a": "x", "more": 1}),
        ({"properties": {"a": {"type": "integer", "default": 3}}}, {}),
        ({"properties": {"a": {"type": ["string", "null"]}}}, {"a": None}),
        ({"properties": {"a": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}, {"a": 1}),
        ({"properties": {"a": {"type": "string", "enum": ["x", "y"]}}}, {"a": "y"}),
        ({"properties": {"a": {"type": "integer", "minimum": 1, "maximum": 9}}}, {"a": 9}),
        ({"properties": {"a": {"type": "number", "minimum": 1}}}, {"a": 1.5}),
        ({"properties": {"a": {"type": "string", "minLength": 1}}}, {"a": "é"}),
        ({"properties": {"a-b": {"type": "object"}}, "additionalProperties": False}, {"a-b": {}}),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, {"any": "thing"}),
    ],
)
def test_the_schemas_of_most_tools_are_simple(schema: dict[str, Any], value: Any) -> None:
    assert fits_the_type({"type": "object", **schema}, value)


@rows(
    ("kind", "value"),
    [
        ("number", float("nan")),
        ("number", float("inf")),
        ("number", True),
        ("integer", 1.5),
        ("integer", True),
        ("string", b"x"),
        ("string", None),
        ("null", 0),
        ("object", []),
    ],
)
def test_what_does_not_fit_is_left_to_the_validator(kind: str, value: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": kind}}, "required": ["a"]}
    assert not fits_the_type(schema, {"a": value})
    assert not fits_the_type(schema, {})
    assert not fits_the_type({**schema, "additionalProperties": False}, {"a": 1, "b": 1})


@rows(
    ("part", "value"),
    [
        ({"type": "integer", "minimum": 1}, 0),
        ({"type": "number", "maximum": 1}, 1.5),
        ({"type": "number", "maximum": 1}, 2),
        ({"type": "number", "minimum": 1}, float("inf")),
        ({"type": "string", "minLength": 2}, "é"),
        ({"type": "string", "maxLength": 1}, "ab"),
    ],
)
def test_what_is_out_of_bounds_is_left_to_the_validator(part: Any, value: Any) -> None:
    assert not fits_the_type({"type": "object", "properties": {"a": part}}, {"a": value})


@rows(
    "schema",
    [
        {"type": "object", "$schema": "https://example.com/other"},
        {"type": "object", "description": 7},
        {"type": "object", "minProperties": 1},
        {"type": "object", "required": ["a"]},
        {"type": "object", "required": "a", "properties": {"a": {}}},
        {"type": "string", "enum": "abc"},
        {"type": "string", "enum": ["a", "a"]},
        {"type": "string", "enum": ["a", "ab"], "minLength": 2},
        {"type": "string", "enum": ["a"], "maxLength": -1},
        {"type": ["string", "string"]},
        {"type": "thing"},
        {"type": []},
        {"anyOf": {"type": "string"}},
        {"$ref": "#"},
        True,
        7,
    ],
)
def test_other_schemas_are_left_to_the_validator(schema: Any) -> None:
    assert simple_type(Raw(json.encode(schema))) is None


def test_a_deep_or_long_schema_is_left_to_the_validator() -> None:
    deep: Any = {"type": "string"}
    for _ in range(20):
        deep = {"type": "array", "items": deep}
    wide = {"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(1000)}}
    assert simple_type(Raw(json.encode(deep))) is None
    assert simple_type(Raw(json.encode(wide))) is None


def test_the_time_of_a_check_is_bounded() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {}}}}
    assert fits_the_type(schema, {"a": [1]}, b"short")
    assert not fits_the_type(schema, {"a": [1]}), "of unknown length"
    assert not fits_the_type(schema, {"a": [1]}, b"x" * (MOST_VALUE_BYTES + 1))


def test_a_fault_is_explained_by_the_validator() -> None:
    schema = Raw(b'{"type":"object","properties":{"a":{"type":"integer"}}}')
    plain = simple_type(schema)
    assert plain is not None
    check: Check = SimpleCheck(plain, lambda: Checkers().get(schema))
    assert [fault.path for fault in check.faults({"a": "x"})] == ["/a"]
    assert check.faults({"a": 1.0}) == (), "an integer, though no int"
