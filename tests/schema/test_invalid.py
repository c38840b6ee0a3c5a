"""Tools whose schema is not quite valid can be used all the same: their server has to check."""

from __future__ import annotations

import ast
from itertools import product
from typing import Any, get_args

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw, json

import holdfast
from holdfast import Timeouts, Tool, ToolResult
from holdfast.agents.listing import ModelTool
from holdfast.agents.providers import Provider
from holdfast.agents.toolset import Toolset
from holdfast.codegen import generate
from holdfast.lock.changes import compare
from holdfast.lock.fingerprint import definition, registry_hash
from holdfast.schema.signature import example, fields, signature
from holdfast.testing import Peer
from tests.rows import rows

PROPERTIES: list[Any] = [
    {"type": "any"},
    {"type": "text", "description": "a word of another dialect"},
    {"type": ["string", None]},
    {"type": None},
    {"type": []},
    {"type": {"const": "string"}},
    {"type": "string", "required": True},
    {"type": "object", "required": "name"},
    {"type": "object", "required": [1, None]},
    {"type": "object", "properties": []},
    {"type": "object", "properties": {"inner": {"type": "any"}}},
    {"type": "object", "properties": {"inner": 5}},
    {"type": "object", "additionalProperties": "false"},
    {"type": "array", "items": 5},
    {"type": "array", "items": []},
    {"type": "array", "items": {"type": "any"}},
    {"type": "array", "items": [{"type": "any"}, None]},
    {"prefixItems": {}},
    {"enum": {}},
    {"enum": "a"},
    {"anyOf": []},
    {"anyOf": {"type": "string"}},
    {"anyOf": [{"type": "string"}, None, 7]},
    {"oneOf": "string"},
    {"allOf": [{"type": "any"}, {"$ref": "#/nowhere"}]},
    {"not": 5},
    {"if": [], "then": 3},
    {"minimum": "3", "maximum": None},
    {"minimum": 0, "exclusiveMinimum": True},
    {"minLength": -1},
    {"minLength": 1.5},
    {"maxItems": "many"},
    {"multipleOf": 0},
    {"multipleOf": "2"},
    {"pattern": "("},
    {"pattern": 5},
    {"patternProperties": {"(": {"type": "any"}}},
    {"patternProperties": [1]},
    {"propertyNames": 5},
    {"dependentRequired": {"a": "b"}},
    {"dependencies": {"a": 5}},
    {"uniqueItems": "yes"},
    {"$ref": "#/definitions/Missing"},
    {"$ref": "https://example.org/other.json"},
    {"$ref": 5},
    {"$ref": "#/properties/value"},
    {"$dynamicRef": "#nowhere"},
    {"$id": 5},
    {"$id": "http://["},
    {"$schema": "https://example.org/mine"},
    {"$defs": []},
    {"title": 5, "description": ["a"], "default": {"a": 1}, "examples": "x", "deprecated": "no"},
    {"format": 7},
    {"const": 1, "type": "any"},
    "string",
    None,
    [],
    7,
]
"""Schemas of one property, as servers write them."""
NOTHING = {"type": "object", "properties": {"value": {"enum": []}}}
"""Valid: no value fits."""
WHOLE: list[Any] = [
    NOTHING,
    *({"type": "object", "properties": {"value": part}} for part in PROPERTIES),
    {"type": "any"},
    {"type": "string"},
    {"type": None, "properties": {"value": {"type": "string"}}},
    {"properties": []},
    {"type": "object", "required": True},
    {"type": "object", "required": ["value", "value"]},
    {"type": "object", "additionalProperties": "false"},
    {"$schema": "https://example.org/mine", "type": "object"},
    {"$schema": 5, "type": "object"},
    {"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"value": {}}},
    {"$ref": "#/nowhere"},
    {"$ref": "#"},
    {"allOf": [{"$ref": "#/$defs/Missing"}], "$defs": {}},
    {"anyOf": 5},
    [],
    None,
    "object",
    7,
    True,
]


async def never(*arguments: Any, **options: Any) -> ToolResult:
    raise AssertionError("nothing is called here")


def made(schema: Any, output: Any = UNSET) -> Tool:
    return Tool(name="odd", input_schema_json=Raw(json.encode(schema)), output_schema_json=output)


def is_valid(schema: Any) -> bool:
    """Whether a provider's own reader of schemas can read it."""
    jsonschema_rs.validator_for(schema, offline=True, pattern_options=jsonschema_rs.RegexOptions())
    return True


@pytest.mark.req("T5", "T8")
@pytest.mark.parametrize("schema", [schema for schema in WHOLE if schema != NOTHING], ids=repr)
async def test_such_a_tool_is_called_and_its_server_checks(
    schema: Any, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer()
    peer.capabilities = {"tools": {}}
    odd = {"name": "odd", "inputSchema": schema, "outputSchema": schema}
    peer.on("tools/list", {"tools": [odd, {"name": "plain", "inputSchema": {"type": "object"}}]})
    answer = {"content": [{"type": "text", "text": "ran"}], "structuredContent": {"value": "x"}}
    peer.on("tools/call", answer)
    async with holdfast.connect(peer, timeouts=Timeouts(request=5)) as client:
        await client.list_tools()
        for _ in range(3):
            assert (await client.call_tool("odd", {"value": "x"})).text == "ran"
    about = [text for text in caplog.messages if "the arguments are not checked" in text]
    assert len(about) <= 1, "a warning once"
    assert len([text for text in caplog.messages if "the result is not checked" in text]) <= 1


@pytest.mark.req("T5")
async def test_what_is_wrong_with_the_schema_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer()

    @peer.tool(input_schema={"type": "object", "properties": {"value": {"type": "any"}}})
    def odd(value: str) -> str:
        return value

    async with holdfast.connect(peer, timeouts=Timeouts(request=5)) as client:
        for word in ("a", "b"):
            assert (await client.call_tool("odd", {"value": word})).text == word
    (warning,) = caplog.messages
    assert "'odd'" in warning
    assert "the server has to" in warning
    assert '"any"' in warning


@pytest.mark.req("F3")
@rows("schema, provider, strict", product(WHOLE, get_args(Provider), [False, True]))
def test_a_toolset_takes_them_as_any_value(schema: Any, provider: Provider, strict: bool) -> None:
    strict = strict and provider.startswith("openai")
    tools = [ModelTool("s", made(schema), "odd", never)]
    (entry,) = Toolset(provider, tools, strict=strict).definitions
    function = entry.get("function", entry)
    parameters = function.get("parameters", function.get("input_schema"))
    if provider != "gemini":
        assert is_valid(parameters)
    elif parameters is not None:
        json.encode(parameters)


@pytest.mark.req("H3")
@rows("schema", WHOLE, ids=repr)
def test_codegen_takes_them_as_any_value(schema: Any) -> None:
    tool = made(schema, Raw(json.encode(schema)))
    ast.parse(generate([tool, Tool.make("plain")]).source)


@pytest.mark.parametrize("part", [{"type": "any"}, {"$ref": "#/$defs/Missing"}, 5], ids=repr)
def test_a_parameter_of_unknown_type_is_any(part: Any) -> None:
    source = generate([made({"type": "object", "properties": {"value": part}})]).source
    assert "value: Any" in source


@pytest.mark.req("H8")
@rows("schema", WHOLE, ids=repr)
def test_a_lock_takes_them_as_they_are(schema: Any) -> None:
    tool = made(schema, Raw(json.encode(schema)))
    locked = definition(tool)
    assert locked["inputSchema"] == schema
    assert registry_hash([tool])
    other = definition(made({"type": "object", "properties": {"value": {"type": "string"}}}))
    for before, after in ((locked, other), (other, locked)):
        assert compare({"odd": before}, {"odd": after})


@rows("schema", WHOLE, ids=repr)
def test_they_can_be_shown(schema: Any) -> None:
    tool = made(schema)
    assert repr(tool)
    assert signature("odd", schema)
    example(tool.input_schema)
    list(fields(tool.input_schema, tool.input_schema))


KEYWORDS = """
type properties items allOf anyOf oneOf not $ref $defs enum const pattern required if then else
patternProperties additionalProperties minimum maxLength $schema $id $anchor dependencies
prefixItems contains default title description format
"""
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["string", "any", "#/x", "("]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS.split()), inner, max_size=4)
    ),
    max_leaves=10,
)


@pytest.mark.req("T5", "F3")
@given(JUNK)
def test_no_schema_whatever_breaks_a_list(schema: Any) -> None:
    tool = made(schema, Raw(json.encode(schema)))
    for provider in get_args(Provider):
        Toolset(provider, [ModelTool("s", tool, "odd", never)]).definitions  # noqa: B018
    Toolset("openai", [ModelTool("s", tool, "odd", never)], strict=True)
    ast.parse(generate([tool]).source)
    assert compare({"odd": definition(tool)}, {"odd": definition(made({}))}) is not None
    signature("odd", schema)
    example(tool.input_schema)
