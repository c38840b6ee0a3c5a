"""Headers that repeat what is in the body: the specification's tables, row by row."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from holdfast._core.eras.headers import (
    BadParamHeader,
    encode_value,
    header_paths,
    mismatch,
    param_headers,
    standard,
)
from tests.rows import rows

V = "2026-07-28"


def decode(value: str) -> str:
    """What a server reads."""
    found = re.fullmatch(r"=\?base64\?(.*)\?=", value)
    return base64.b64decode(found[1]).decode() if found else value


# Standard headers


@pytest.mark.req("X2")
@rows(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "get_weather", "arguments": {}}, "get_weather"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("resources/read", {"uri": "file:///a.json"}, "file:///a.json"),
        ("tools/list", None, None),
        ("tools/list", {"cursor": "x", "name": "no"}, None),
        ("resources/subscribe", {"uri": "file:///a"}, None),
        ("completion/complete", {"ref": {"name": "x"}}, None),
        ("tools/call", {"name": "wérkzeug"}, "=?base64?d8Opcmt6ZXVn?="),
        ("tools/call", {"name": " padded "}, "=?base64?IHBhZGRlZCA=?="),
        ("tools/call", {"name": Raw(b'"w\\u00e9rkzeug"')}, "=?base64?d8Opcmt6ZXVn?="),
        ("tools/call", {}, None),
        ("tools/call", None, None),
        ("tools/call", {"name": 5}, None),
    ],
)
def test_method_and_name_are_repeated(method: str, params: Any, name: str | None) -> None:
    expected = {"MCP-Protocol-Version": V, "Mcp-Method": method}
    if name is not None:
        expected["Mcp-Name"] = name
    assert standard(V, method, params) == expected


# Values


@pytest.mark.req("X2")
@rows(
    ("value", "encoded"),
    [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ],
)
def test_the_specifications_examples(value: str, encoded: str) -> None:
    assert encode_value(value) == encoded


@pytest.mark.req("X2")
@rows("value", ["", "a b", "a\tb", "~!", "=?base64?open", "=?BASE64?x?=", "a?="])
def test_what_plain_text_can_carry_stays_plain(value: str) -> None:
    assert encode_value(value) == value


@pytest.mark.req("X2")
@rows("value", ["\ta", "a\t", "a\r\nEvil: 1", "\0", "\x7f", "\x80", "é"])
def test_what_plain_text_cannot_carry_is_encoded(value: str) -> None:
    assert encode_value(value).startswith("=?base64?")
    assert decode(encode_value(value)) == value


@pytest.mark.req("X2", "V1")
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_value_comes_back_and_is_safe_in_a_header(value: str) -> None:
    encoded = encode_value(value)
    assert decode(encoded) == value
    assert re.fullmatch(r"[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?|", encoded)


# Mirrored arguments


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def marked(header: Any, kind: Any = "string", **more: Any) -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": header, **more}


@pytest.mark.req("X2")
def test_annotated_properties_are_found_at_any_depth() -> None:
    found = header_paths(
        schema(
            region=marked("Region"),
            query={"type": "string"},
            inner=schema(deep=schema(count=marked("Count", "integer"))),
        )
    )
    assert found == {"Region": ("region",), "Count": ("inner", "deep", "count")}


@pytest.mark.req("X2")
@rows("plain", [None, True, [], "x", {}, schema(), schema(a=True)])
def test_a_schema_without_annotations_has_no_mirrors(plain: Any) -> None:
    assert header_paths(plain) == {}


@pytest.mark.req("X2")
def test_a_property_may_bear_the_annotations_name() -> None:
    assert header_paths(schema(**{"x-mcp-header": {"type": "string"}})) == {}
    assert header_paths(schema(**{"x-mcp-header": marked("Own")})) == {"Own": ("x-mcp-header",)}


@pytest.mark.req("X2")
def test_an_annotation_in_an_example_is_only_an_example() -> None:
    for key in ("default", "const", "enum", "examples"):
        assert header_paths(schema(a={"type": "object", key: [marked("X")]})) == {}


@pytest.mark.req("X2")
@rows("header", ["", "a b", "a:b", "a\r\nb", "ü", "a\0", "(a)", 5, None, ["a"]])
def test_a_header_must_be_a_token(header: Any) -> None:
    with pytest.raises(BadParamHeader, match="not a header name"):
        header_paths(schema(a=marked(header)))


@pytest.mark.req("X2")
def test_headers_must_differ_in_more_than_case() -> None:
    with pytest.raises(BadParamHeader, match="twice"):
        header_paths(schema(a=marked("Region"), b=schema(c=marked("region"))))


@pytest.mark.req("X2")
@rows("kind", ["number", "object", "array", "null", None, ["string", "null"], ["string"], {}])
def test_only_a_primitive_can_be_mirrored(kind: Any) -> None:
    with pytest.raises(BadParamHeader, match="no primitive"):
        header_paths(schema(a=marked("X", kind)))


@pytest.mark.req("X2")
@rows(
    "part",
    [
        {"type": "array", "items": marked("X")},
        {"prefixItems": [marked("X")]},
        {"oneOf": [marked("X")]},
        {"anyOf": [schema(b=marked("X"))]},
        {"allOf": [schema(b=marked("X"))]},
        {"not": marked("X")},
        {"if": marked("X")},
        {"then": schema(b=marked("X"))},
        {"else": schema(b=marked("X"))},
        {"additionalProperties": marked("X")},
        {"patternProperties": {"^a": marked("X")}},
        {"$defs": {"b": marked("X")}},
        {"definitions": {"b": schema(c=marked("X"))}},
        {"dependentSchemas": {"b": schema(c=marked("X"))}},
    ],
)
def test_only_what_properties_lead_to_can_be_mirrored(part: dict[str, Any]) -> None:
    with pytest.raises(BadParamHeader):
        header_paths(schema(a=part))
    with pytest.raises(BadParamHeader):
        header_paths({"type": "object", **part})


@pytest.mark.req("X2")
def test_the_whole_of_the_arguments_cannot_be_mirrored() -> None:
    with pytest.raises(BadParamHeader, match="not on a plain property"):
        header_paths(marked("X"))


@pytest.mark.req("X2")
def test_only_so_many_parameters_can_be_mirrored() -> None:
    assert len(header_paths(schema(**{f"a{n}": marked(f"H{n}") for n in range(100)}))) == 100
    with pytest.raises(BadParamHeader, match="more than 100 parameters"):
        header_paths(schema(**{f"a{n}": marked(f"H{n}") for n in range(101)}))


@pytest.mark.req("X2")
def test_a_schema_that_is_a_well_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"properties": {"a": deep}}
    with pytest.raises(BadParamHeader, match="more than 50000 parts"):
        header_paths(deep)
    while deep:  # taken apart by hand: its own end would recurse as deeply
        deep = deep["properties"].pop("a")


@pytest.mark.req("X2")
@rows(
    ("value", "header"),
    [
        ("eu", "eu"),
        ("", ""),
        ("ü", "=?base64?w7w=?="),
        (42, "42"),
        (-7, "-7"),
        (0, "0"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_values_are_written_as_the_table_says(value: Any, header: str) -> None:
    assert param_headers({"X": ("a", "b")}, {"a": {"b": value}}) == {"Mcp-Param-X": header}


@pytest.mark.req("X2")
@rows("arguments", [{}, {"a": None}, {"a": {"b": None}}, {"a": {}}, {"a": 5}])
def test_what_is_absent_or_null_has_no_header(arguments: dict[str, Any]) -> None:
    assert param_headers({"X": ("a", "b")}, arguments) == {}


@pytest.mark.req("X2")
def test_parts_without_annotations_do_not_hide_the_annotated_ones() -> None:
    schema = {
        "type": "object",
        "$defs": {"point": {"type": "array", "items": {"type": "number"}}},
        "anyOf": [{"required": ["region"]}, {"required": ["place"]}],
        "properties": {
            "place": {"$ref": "#/$defs/point"},
            "region": {"type": "string", "x-mcp-header": "Region"},
        },
    }
    assert header_paths(schema) == {"Region": ("region",)}


@pytest.mark.req("X2")
def test_an_annotation_in_a_definition_is_refused_after_parts_that_have_none() -> None:
    schema = {
        "properties": {"plain": {"type": "string"}},
        "$defs": {
            "fine": {"type": "string"},
            "bad": {"type": "string", "x-mcp-header": "Region"},
        },
    }
    with pytest.raises(BadParamHeader, match="not on a plain property"):
        header_paths(schema)


@pytest.mark.req("X2")
@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        ("say", None),
        ("=?base64?c2F5?=", None),
        ("=?base64?c2F4?=", "Mcp-Name"),
        ("=?base64?c2F?=", "Mcp-Name"),
        ("=?base64?/w==?=", "Mcp-Name"),
        (None, "Mcp-Name"),
    ],
)
def test_a_name_is_compared_as_it_is_decoded(sent: str | None, wrong: str | None) -> None:
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
    named = headers if sent is None else {**headers, "Mcp-Name": sent}
    assert mismatch(named, "2026-07-28", "tools/call", {"name": "say"}) == wrong
