"""Tools in the shapes of the providers: golden definitions, losses, and any schema at all."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given

from holdfast import Tool, ValidationError
from holdfast.agents.providers import PROVIDERS, Provider, for_provider
from holdfast.agents.toolset import Toolset
from tests.rows import rows
from tests.servers.garbage import schemas

SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "url": {"type": "string", "format": "uri", "description": "Where to"},
        "depth": {"type": "integer", "exclusiveMinimum": 0, "default": 1},
        "tags": {"type": "array", "items": {"$ref": "#/definitions/Tag"}},
        "mode": {"const": "fast"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["url"],
    "additionalProperties": False,
    "definitions": {"Tag": {"type": "string", "enum": ["a", "b"]}},
}
PARAMETERS = {key: value for key, value in SCHEMA.items() if key != "$schema"}
"""The dialect is not said: it is the newest, whatever the server's was."""
CRAWL = Tool.make("crawl", description="Reads pages.", input_schema=SCHEMA)


def losses(found: Any) -> list[str]:
    return [f"{loss.where} {loss.keyword}" for loss in found.losses]


@pytest.mark.req("F3")
def test_chat_completions_take_a_schema_as_it_is() -> None:
    found = for_provider(CRAWL, "openai", name="web__crawl")
    assert found.definition == {
        "type": "function",
        "function": {"name": "web__crawl", "description": "Reads pages.", "parameters": PARAMETERS},
    }
    assert found.losses == ()


@pytest.mark.req("F3")
def test_strict_mode_of_openai() -> None:
    found = for_provider(CRAWL, "openai", strict=True)
    assert found.definition["function"]["strict"] is True
    assert found.definition["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "Where to (format: uri)"},
            "depth": {
                "type": ["integer", "null"],
                "exclusiveMinimum": 0,
                "description": "default: 1",
            },
            "tags": {
                "type": ["array", "null"],
                "items": {"type": "string", "enum": ["a", "b"]},
            },
            "mode": {"type": ["string", "null"], "enum": ["fast", None]},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["url", "depth", "tags", "mode", "note"],
        "additionalProperties": False,
    }
    assert losses(found) == ["/properties/url format", "/properties/depth default"]


@pytest.mark.req("F3")
def test_responses_say_whether_they_are_strict() -> None:
    """Left out, the API takes it for yes."""
    found = for_provider(CRAWL, "openai-responses")
    assert found.definition == {
        "type": "function",
        "name": "crawl",
        "description": "Reads pages.",
        "parameters": PARAMETERS,
        "strict": False,
    }
    assert for_provider(CRAWL, "openai-responses", strict=True).definition["strict"] is True


@pytest.mark.req("F3")
def test_a_tool_that_cannot_be_strict_is_given_without_and_says_why() -> None:
    tool = Tool.make("t", input_schema={"properties": {"any": {"type": "object"}}})
    found = for_provider(tool, "openai", strict=True)
    assert found.definition["function"]["strict"] is False
    assert found.definition["function"]["parameters"]["properties"] == {"any": {"type": "object"}}
    assert [str(loss) for loss in found.losses] == [
        "/properties/any: additionalProperties: not in strict mode: an object of any keys"
    ]


@pytest.mark.req("F3")
def test_anthropic_takes_a_schema_as_it_is() -> None:
    found = for_provider(CRAWL, "anthropic", name="web__crawl")
    assert found.definition == {
        "name": "web__crawl",
        "description": "Reads pages.",
        "input_schema": PARAMETERS,
    }
    assert found.losses == ()


@pytest.mark.req("F3")
def test_gemini_takes_a_subset() -> None:
    found = for_provider(CRAWL, "gemini", name="web__crawl")
    assert found.definition == {
        "name": "web__crawl",
        "description": "Reads pages.",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "url": {"type": "STRING", "description": "Where to (format: uri)"},
                "depth": {"type": "INTEGER", "minimum": 1, "description": "default: 1"},
                "tags": {"type": "ARRAY", "items": {"type": "STRING", "enum": ["a", "b"]}},
                "mode": {"type": "STRING", "enum": ["fast"]},
                "note": {"type": "STRING", "nullable": True},
            },
            "required": ["url"],
        },
    }
    assert losses(found) == ["/properties/url format", "/properties/depth default"]


@pytest.mark.parametrize("shape", ["openai", "openai-responses", "anthropic"])
def test_alternatives_at_the_top_become_one_object(shape: Provider) -> None:
    """OpenAI and Anthropic refuse a whole request for one tool that has them."""
    schema = {
        "type": "object",
        "oneOf": [
            {"properties": {"path": {"type": "string"}}, "required": ["path"]},
            {"properties": {"text": {"type": "string"}}, "required": ["text"]},
        ],
    }
    found = for_provider(Tool.make("t", input_schema=schema), shape)
    text = json.dumps(found.definition)
    assert '"properties": {"path": {"type": "string"}, "text": {"type": "string"}}' in text
    assert "oneOf" not in text
    assert losses(found) == [" oneOf"]


def test_openai_is_told_what_an_array_is_of() -> None:
    schema = {"properties": {"a": {"type": ["array", "null"]}, "b": {"items": {"type": "array"}}}}
    found = for_provider(Tool.make("t", input_schema=schema), "openai")
    assert found.definition["function"]["parameters"]["properties"] == {
        "a": {"type": ["array", "null"], "items": {}},
        "b": {"items": {"type": "array", "items": {}}},
    }


@pytest.mark.parametrize(
    ("shape", "place", "name"),
    [
        ("anthropic", "input_schema", "filter_id_"),
        ("gemini", "parameters", "filter_id_"),
    ],
)
def test_parameters_of_odd_names_are_renamed(shape: Provider, place: str, name: str) -> None:
    schema = {"properties": {"filter[id]": {"type": "string"}}, "required": ["filter[id]"]}
    found = for_provider(Tool.make("t", input_schema=schema), shape)
    assert list(found.definition[place]["properties"]) == found.definition[place]["required"]
    assert found.keys == {name: "filter[id]"}
    assert losses(found) == ["/properties/filter[id] filter[id]"]


def test_gemini_gets_no_parameters_where_there_are_none() -> None:
    assert for_provider(Tool.make("now"), "gemini").definition == {
        "name": "now",
        "description": "now",
    }


def test_a_title_stands_in_for_a_description() -> None:
    tool = Tool.make("t", title="Does it")
    assert for_provider(tool, "anthropic").definition["description"] == "Does it"
    assert "description" not in for_provider(Tool.make("t"), "anthropic").definition


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValidationError, match="shape 'gpt': must be one of openai, "):
        Toolset("gpt", [])  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="shape 'gemini' has no strict mode here"):
        Toolset("gemini", [], strict=True)


@given(schemas)
def test_no_schema_of_a_server_breaks_a_shape(schema: dict[str, Any]) -> None:
    tool = Tool.make("t", input_schema=schema)
    for shape in PROVIDERS:
        strict = shape.startswith("openai")
        found = for_provider(tool, shape, strict=strict)  # type: ignore[arg-type]
        json.dumps(found.definition, allow_nan=False)


ODD: tuple[dict[str, Any], ...] = (
    {"type": "file"},
    {"type": ["null", "x"]},
    {"anyOf": 5},
    {"oneOf": 5},
    {"allOf": [5]},
    {"enum": 5},
    {"type": "string", "format": {}},
    {"type": "string", "pattern": []},
    {"type": "integer", "minimum": "x", "exclusiveMinimum": 3},
    {"type": "object", "properties": 5},
    {"type": "object", "properties": {"b": 5}, "required": 5},
    {"type": "array", "items": 5},
)
REFERENCES = (
    {"properties": {"a": {"$ref": "#/x"}}},
    {"$ref": "#/x"},
    {"allOf": [{"$ref": "#/x"}]},
    {"anyOf": [{"$ref": "#/x"}, {"properties": {"b": {"type": "string"}}}]},
)


@pytest.mark.req("F3")
@rows("schema, odd", product(REFERENCES, ODD))
def test_what_a_reference_leads_to_breaks_no_shape(schema: dict[str, Any], odd: Any) -> None:
    """It may lead to a place where nobody looks for a schema; the other tools must not suffer."""
    tool = Tool.make("t", input_schema={**schema, "x": odd})
    for shape in PROVIDERS:
        found = for_provider(tool, shape, strict=shape.startswith("openai"))  # type: ignore[arg-type]
        json.dumps(found.definition, allow_nan=False)
