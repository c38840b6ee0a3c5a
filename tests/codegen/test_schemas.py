"""Schemas come down to types."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given

from holdfast.codegen.emit import Typist
from holdfast.codegen.names import ClassNames
from holdfast.codegen.schemas import ANY, DEEPEST, MOST_PARTS, Kind, SchemaReader
from tests.codegen.material import schemas
from tests.rows import rows


def typed(schema: Any, document: Any = None) -> str:
    reader = SchemaReader(schema if document is None else document, ClassNames(), ("x",))
    return text(reader.kind(schema, ("x",)))


def text(kind: Kind) -> str:
    return Typist(ClassNames()).inline(kind)


def records(schema: Any) -> dict[str, list[str]]:
    """Each record with its fields, a question mark after those that may be missing."""
    reader = SchemaReader(schema, ClassNames(), ("x",))
    reader.kind(schema, ("x",))
    return {
        record.name: [
            f"{field.wire}{'' if field.required else '?'}: {text(field.kind)}"
            for field in record.fields
        ]
        for record in reader.records
    }


def parameters(schema: Any) -> tuple[list[str], str | None]:
    reader = SchemaReader(schema, ClassNames(), ("x",))
    fields, extra = reader.arguments()
    shown = [f"{one.wire}{'' if one.required else '?'}: {text(one.kind)}" for one in fields]
    return shown, None if extra is None else text(extra)


STRING, NULL = {"type": "string"}, {"type": "null"}


@pytest.mark.req("H3")
@rows(
    ("schema", "kind"),
    [
        (STRING, "str"),
        ({"type": "string", "enum": ["a", "b"]}, 'Literal["a", "b"]'),
        ({"type": "boolean"}, "bool"),
        ({"type": "number"}, "float"),
        ({"type": "integer"}, "int"),
        (NULL, "None"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "array", "items": STRING}, "list[str]"),
        ({"type": "array"}, "list[Any]"),
        ({}, "Any"),
        (True, "Any"),
        (False, "Any"),
        (None, "Any"),
        ({"type": "unheard of"}, "Any"),
        ({"description": "says nothing"}, "Any"),
        # choices
        ({"const": "a"}, 'Literal["a"]'),
        ({"const": None}, "None"),
        ({"const": 1.5}, "float"),
        ({"const": {"a": 1}}, "Any"),
        ({"enum": [1, True, "x", None]}, 'Literal[1, True, "x"] | None'),
        ({"enum": [0.5, 1]}, "float | int"),
        ({"enum": []}, "Any"),
        ({"enum": [{}, 1]}, "Any"),
        ({"enum": ["\ud800", "a"]}, "str"),
        ({"enum": [10**30]}, "int"),
        ({"enum": [str(number) for number in range(501)]}, "str"),
        ({"const": "long " * 20}, "str"),
        # arrays
        ({"items": STRING}, "list[str]"),
        ({"type": "array", "prefixItems": [STRING, NULL]}, "tuple[str, None]"),
        ({"type": "array", "prefixItems": [STRING], "items": False}, "tuple[str]"),
        ({"type": "array", "prefixItems": [STRING], "items": NULL}, "list[str | None]"),
        ({"type": "array", "items": [STRING, {"type": "integer"}]}, "tuple[str, int]"),
        ({"type": "array", "items": [STRING], "additionalItems": NULL}, "list[str | None]"),
        ({"type": "array", "prefixItems": []}, "list[Any]"),
        # objects
        ({"additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object", "additionalProperties": False}, "dict[str, Any]"),
        ({"type": "object", "properties": {"a": STRING}}, "X"),
        ({"properties": {"a": STRING}}, "X"),
        ({"type": "object", "properties": {"": STRING}}, "dict[str, Any]"),
        ({"type": "object", "properties": [1], "required": 7}, "dict[str, Any]"),
        # unions
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": ["null", "integer", "integer"]}, "int | None"),
        ({"type": []}, "Any"),
        ({"type": [1, {}]}, "Any"),
        ({"anyOf": [STRING, NULL]}, "str | None"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, 'Literal["a", "b"]'),
        ({"anyOf": [STRING, True]}, "Any"),
        ({"anyOf": []}, "Any"),
        ({"type": "string", "nullable": True}, "str | None"),
        ({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "x"}]}, "str"),
        ({"type": ["string", "null"], "anyOf": [STRING, NULL]}, "str | None"),
        # sums
        ({"allOf": [STRING, {"minLength": 1}]}, "str"),
        ({"allOf": [STRING, NULL]}, "Any"),
        ({"allOf": []}, "Any"),
        ({"allOf": [{"properties": {"a": STRING}}, {"properties": {"b": NULL}}]}, "X"),
    ],
)
def test_every_schema_has_a_type(schema: Any, kind: str) -> None:
    assert typed(schema) == kind


@pytest.mark.req("H3")
def test_required_keys_come_first_in_their_order_and_the_rest_by_name() -> None:
    schema = {
        "type": "object",
        "properties": {"z": STRING, "a": NULL, "m": STRING, "b": {"type": "integer"}},
        "required": ["m", "a", "undeclared", "m"],
    }
    assert records(schema) == {"X": ["m: str", "a: None", "undeclared: Any", "b?: int", "z?: str"]}


@pytest.mark.req("H3")
def test_objects_in_objects_are_named_by_their_way() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema = {"properties": {"one": inner, "many": {"type": "array", "items": inner}}}
    assert records(schema) == {
        "XManyItem": ["n?: int"],
        "XOne": ["n?: int"],
        "X": ["many?: list[XManyItem]", "one?: XOne"],
    }


@pytest.mark.req("H3")
def test_alternatives_that_are_objects_are_told_apart() -> None:
    schema = {"anyOf": [{"properties": {"a": STRING}}, {"properties": {"b": STRING}}]}
    assert typed(schema) == "XOption1 | XOption2"


@pytest.mark.req("H3")
def test_what_is_said_of_all_alternatives_is_said_of_each() -> None:
    schema = {
        "type": "object",
        "properties": {"kind": STRING},
        "required": ["kind"],
        "oneOf": [{"properties": {"a": STRING}}, {"properties": {"b": STRING}}],
    }
    assert records(schema) == {
        "XOption1": ["kind: str", "a?: str"],
        "XOption2": ["kind: str", "b?: str"],
    }


@pytest.mark.req("H3")
def test_a_definition_is_one_type_wherever_it_is_used() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/Point"}, "b": {"$ref": "#/$defs/Point"}},
        "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}},
    }
    assert records(schema) == {"XPoint": ["x?: float"], "X": ["a?: XPoint", "b?: XPoint"]}


@pytest.mark.req("H3")
def test_a_type_may_contain_itself() -> None:
    node = {"properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL]}}}
    schema = {"$ref": "#/$defs/Node", "$defs": {"Node": node}}
    assert records(schema) == {"XNode": ["next?: XNode | None"]}


@pytest.mark.req("H3")
def test_a_type_may_contain_the_whole_schema() -> None:
    schema = {"type": "object", "properties": {"children": {"items": {"$ref": "#"}}}}
    assert records(schema)["XArguments"] == ["children?: list[XArguments]"]


@pytest.mark.req("H3")
@rows(
    ("schema", "kind"),
    [
        ({"$ref": "#/$defs/a", "$defs": {"a": STRING}}, "str"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": NULL}}, "None"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "Any"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "list[Any]"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}, "Any"),
        ({"$ref": "#/$defs/a", "description": "x", "$defs": {"a": STRING}}, "str"),
        ({"$ref": "#/$defs/a", "type": "string", "$defs": {"a": {"minLength": 1}}}, "str"),
        ({"$ref": "#/nowhere"}, "Any"),
        ({"$ref": "https://example.org/x.json"}, "Any"),
        ({"$ref": 7}, "Any"),
    ],
)
def test_references_are_followed_inside_the_document_only(schema: Any, kind: str) -> None:
    assert typed(schema) == kind


@pytest.mark.req("H3")
@rows(
    ("schema", "found", "extra"),
    [
        ({"type": "object"}, [], None),
        ({"type": "object", "properties": {}}, [], None),
        (True, [], None),
        (
            {"properties": {"b": STRING, "a": STRING}, "required": ["b"]},
            ["b: str", "a?: str"],
            None,
        ),
        ({"type": "object", "additionalProperties": True}, [], "Any"),
        ({"type": "object", "additionalProperties": STRING}, [], "str"),
        ({"type": "object", "additionalProperties": False}, [], None),
        ({"properties": {"a": STRING}, "additionalProperties": {}}, ["a?: str"], "Any"),
        ({"type": "object", "minProperties": 1}, [], "Any"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": STRING}}}}, ["a?: str"], None),
        (
            {
                "allOf": [
                    {"properties": {"a": STRING}, "required": ["a"]},
                    {"properties": {"b": NULL}},
                ]
            },
            ["a: str", "b?: None"],
            None,
        ),
        (
            {
                "properties": {"a": STRING, "b": NULL},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            ["a?: str", "b?: None"],
            None,
        ),
        (
            {
                "oneOf": [
                    {"properties": {"a": STRING, "c": STRING}, "required": ["a"]},
                    {"properties": {"b": NULL, "c": NULL}},
                ]
            },
            ["a?: str", "c?: str | None", "b?: None"],
            None,
        ),
    ],
)
def test_a_tool_s_parameters_are_found(schema: Any, found: list[str], extra: str | None) -> None:
    assert parameters(schema) == (found, extra)


# Schemas without end


def test_what_is_too_deep_is_any() -> None:
    schema: Any = STRING
    for _ in range(DEEPEST * 3):
        schema = {"type": "array", "items": schema}
    reader = SchemaReader(schema, ClassNames(), ("x",))
    assert "Any" in text(reader.kind(schema, ("x",)))
    assert reader.cut


def test_what_is_too_large_is_any() -> None:
    """Each definition refers to the next one twice: a few lines that stand for millions."""
    definitions = {
        f"d{number}": {"anyOf": [{"allOf": [{"$ref": f"#/$defs/d{number + 1}"}]}] * 2}
        for number in range(60)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": definitions}
    reader = SchemaReader(schema, ClassNames(), ("x",))
    assert reader.kind(schema, ("x",)) == ANY
    assert reader.cut


def test_sums_that_lead_back_to_themselves_end() -> None:
    part = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "properties": {"b": STRING}}
    schema = {**part, "$defs": {"a": part}}
    reader = SchemaReader(schema, ClassNames(), ("x",))
    assert [field.wire for field in reader.arguments()[0]] == ["b"]
    assert not reader.cut


def test_many_alternatives_of_many_keys_end_too() -> None:
    """Two lists of 2,000 make a table of four million."""
    many = {"type": "object", "properties": {f"k{number}": STRING for number in range(2000)}}
    options = [{"properties": {f"o{number}": STRING}} for number in range(2000)]
    schema = {"properties": {"a": {**many, "anyOf": options}}, "anyOf": [many] * 2000}
    reader = SchemaReader(schema, ClassNames(), ("x",))
    fields, extra = reader.arguments()
    assert reader.cut
    assert [field.wire for field in fields] == ["a"]
    assert extra == ANY
    assert sum(len(record.fields) for record in reader.records) <= MOST_PARTS


def test_many_keys_are_kept() -> None:
    schema = {"properties": {f"k{number}": STRING for number in range(2000)}}
    reader = SchemaReader(schema, ClassNames(), ("x",))
    assert reader.kind(schema, ("x",)) == Kind("X")
    assert len(reader.records[0].fields) == 2000
    assert not reader.cut


def test_many_required_keys_are_looked_up_once() -> None:
    schema = {"properties": {}, "required": [f"k{number}" for number in range(30_000)]}
    began = time.process_time()
    fields, _ = SchemaReader(schema, ClassNames(), ("x",)).arguments()
    # A list that is searched for each of them takes ten seconds and more.
    assert time.process_time() - began < 4
    assert len(fields) == 30_000


@given(schemas())
def test_no_schema_is_too_odd(schema: Any) -> None:
    reader = SchemaReader(schema, ClassNames(), ("x",))
    reader.kind(schema, ("x",))
    reader.arguments()
