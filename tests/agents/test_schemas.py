"""Schemas taken apart: references, merging, roots; and bounds for hostile ones."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import jsonschema_rs
import pytest

from holdfast.agents.providers import for_provider
from holdfast.agents.schemas import (
    DEEPEST,
    MOST_NODES,
    Loss,
    Losses,
    accepts_null,
    inferred_types,
    keep_supported,
    object_root,
    restore,
    safe_keys,
)
from holdfast.types import Tool
from tests.rows import rows

TEXT = {"type": "string"}


def read(node: Any, plain: bool = False, **more: Any) -> tuple[Any, list[Loss]]:
    """A parameter's schema, and what was lost."""
    report = Losses()
    found = object_root({"properties": {"a": node}, **more}, report, plain=plain)
    return found["properties"]["a"], list(report)


def expand(node: Any, **more: Any) -> tuple[Any, list[Loss]]:
    return read(node, plain=True, **more)


def test_a_loss_says_where_and_what() -> None:
    assert str(Loss("/properties/a", "format", "is gone")) == "/properties/a: format: is gone"
    assert str(Loss("", "not", "is gone")) == "/: not: is gone"


def test_the_same_loss_is_told_once() -> None:
    report = Losses()
    report.add("", "a", "b")
    report.add("", "a", "b")
    assert len(report) == 1


def test_a_place_is_made_sound_once_however_it_is_referred_to() -> None:
    both = {"properties": {"a": {"$ref": "#/x"}, "b": {"$ref": "#/%78"}}}
    report = Losses()
    found = object_root({**both, "x": {"type": "file", "title": "X"}}, report, plain=True)
    assert found["properties"] == {"a": {"title": "X"}, "b": {"title": "X"}}
    (loss,) = report
    assert str(loss) == "/properties/a: type: is not what it should be; it is left out"


def test_references_are_replaced_by_what_they_lead_to() -> None:
    definitions = {"A": {"type": "array", "items": {"$ref": "#/$defs/B"}}, "B": TEXT}
    node = {"$ref": "#/$defs/A", "description": "mine"}
    array = {"type": "array", "items": TEXT, "description": "mine"}
    assert expand(node, **{"$defs": definitions}) == (array, [])
    assert read(node, False, **{"$defs": definitions}) == (node, [])


def test_a_schema_that_holds_itself_is_cut() -> None:
    tree = {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}}
    found, report = expand({"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": tree}})
    assert found["properties"]["child"] == {"type": "object"}
    assert [loss.keyword for loss in report] == ["$ref"]


def test_a_part_may_refer_to_what_its_owner_extends() -> None:
    """That is no schema that holds itself."""
    node = {"allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"of": {"$ref": "#/$defs/Base"}}}]}
    base = {"type": "object", "properties": {"id": TEXT}}
    found, report = expand(node, **{"$defs": {"Base": base}})
    assert (found, report) == ({"type": "object", "properties": {"id": TEXT, "of": base}}, [])


def test_a_reference_that_leads_nowhere_is_told() -> None:
    found, report = expand({"$ref": "https://x/y", "title": "A"})
    assert found == {"title": "A"}
    assert "leads nowhere" in report[0].text


def test_references_cannot_unfold_without_end() -> None:
    """Twelve lines that would make a schema of a billion parts."""
    definitions: dict[str, Any] = {"d0": TEXT}
    for i in range(1, 12):
        names = {str(j): {"$ref": f"#/$defs/d{i - 1}"} for j in range(8)}
        definitions[f"d{i}"] = {"type": "object", "properties": names}
    found, report = expand({"$ref": "#/$defs/d11"}, **{"$defs": definitions})
    assert any("too large" in loss.text for loss in report)
    assert str(found).count("properties") < MOST_NODES


@pytest.mark.parametrize("shape", ["gemini", "openai"])
def test_a_web_of_references_takes_no_longer_than_it_is_large(shape: Any) -> None:
    """Each of 30 objects refers to 30: thousands of places where a reference leads back."""
    every = {f"p{to}": {"$ref": f"#/$defs/d{to}"} for to in range(30)}
    web = {f"d{at}": {"type": "object", "properties": every} for at in range(30)}
    tool = Tool.make("t", input_schema={"$defs": web, "$ref": "#/$defs/d0"})
    began = time.process_time()
    assert for_provider(tool, shape, strict=shape == "openai").losses
    # 10,000 parts are converted in a fraction of a second; to compare all losses took 9.
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    "large",
    [
        {"type": "object", "required": [f"p{at}" for at in range(20_000)]},
        {"enum": [f"p{at}" for at in range(20_000)]},
        {f"x-{at}": 1 for at in range(20_000)},
        {"properties": {f"p{at}": True for at in range(20_000)}},
    ],
    ids=["required", "enum", "keywords", "properties"],
)
def test_one_large_place_is_not_copied_for_every_reference_to_it(large: dict[str, Any]) -> None:
    report = Losses()
    many = {f"q{at}": {"$ref": "#/$defs/Large"} for at in range(1000)}
    root = object_root({"properties": many, "$defs": {"Large": large}}, report, plain=True)
    assert any("too large" in loss.text for loss in report)
    assert sum(node != {} for node in root["properties"].values()) < 10


@pytest.mark.parametrize("shape", ["gemini", "openai"])
def test_a_long_chain_of_references_is_cut(shape: Any) -> None:
    chain = {f"p{at}": {"$ref": f"#/properties/p{at + 1}"} for at in range(500)}
    tool = Tool.make("t", input_schema={"type": "object", "properties": {**chain, "p500": TEXT}})
    assert any(
        "too deep" in loss.text
        for loss in for_provider(tool, shape, strict=shape == "openai").losses
    )


@pytest.mark.parametrize("plain", [False, True])
def test_a_deep_schema_is_cut(plain: bool) -> None:
    schema: dict[str, Any] = TEXT
    for _ in range(5 * DEEPEST):
        schema = {"type": "array", "items": schema}
    found, report = read(schema, plain)
    assert str(found).count("items") == DEEPEST - 1
    assert "too deep" in report[0].text


def test_demands_that_cannot_be_joined_are_reported() -> None:
    found, report = expand({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})
    assert (found, [loss.keyword for loss in report]) == ({"pattern": "a"}, ["pattern"])
    found, report = expand({"allOf": [TEXT, {"type": "array"}]})
    assert (found, [loss.keyword for loss in report]) == ({}, ["type"])


def test_all_of_becomes_part_of_its_node() -> None:
    node = {"description": "d", "allOf": [TEXT, {"allOf": [{"minLength": 2}]}, True]}
    assert expand(node) == ({"description": "d", "type": "string", "minLength": 2}, [])
    assert read(node) == (node, [])


def test_a_property_of_two_parts_has_the_demands_of_both() -> None:
    parts = [{"properties": {"b": {"allOf": [one]}}} for one in (TEXT, {"maxLength": 3})]
    found, _ = expand({"allOf": parts})
    assert found == {"properties": {"b": {"type": "string", "maxLength": 3}}}


@rows(
    ("node", "kinds"),
    [
        ({"type": ["string", "null"]}, ["string", "null"]),
        ({"enum": ["a", 1, None]}, ["string", "integer", "null"]),
        ({"properties": {}}, ["object"]),
        ({"items": {}}, ["array"]),
        ({"pattern": "a"}, ["string"]),
        ({"minimum": 1}, ["number"]),
        ({}, []),
    ],
)
def test_a_type_is_read_from_what_is_said(node: dict[str, Any], kinds: list[str]) -> None:
    assert inferred_types(node) == kinds


@rows(
    ("node", "accepted"),
    [
        ({"type": ["string", "null"]}, True),
        ({"anyOf": [TEXT, {"type": "null"}]}, True),
        ({"enum": ["a", None]}, True),
        ({"description": "anything"}, True),
        (True, True),
        (TEXT, False),
        ({"anyOf": [TEXT]}, False),
        ({"enum": ["a"]}, False),
        (False, False),
    ],
)
def test_whether_a_null_is_a_good_value(node: Any, accepted: bool) -> None:
    assert accepts_null(node) is accepted


def test_an_object_that_came_as_text_loses_the_nulls_for_what_was_left_out() -> None:
    inner = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    schema = {"properties": {"o": {"anyOf": [inner, {"type": "null"}]}, "t": TEXT}}
    assert restore({"o": '{"a": "x", "b": null}', "t": None}, schema) == {"o": {"a": "x"}}
    assert restore({"o": "{", "t": "{}"}, schema) == {"o": "{", "t": "{}"}


@pytest.mark.parametrize(
    ("node", "described"),
    [
        (
            {"description": "A URL", "format": "uri", "default": 5},
            "A URL (format: uri; default: 5)",
        ),
        ({"enum": ["a"]}, 'one of: ["a"]'),
    ],
)
def test_what_cannot_be_said_is_described(node: Any, described: str) -> None:
    def fits(key: str, value: Any) -> bool:
        return key == "description"

    report = Losses()
    found = keep_supported({**node, "not": {}, "$id": "x"}, "", report, fits)
    assert found == {"description": described}
    assert [loss.text for loss in report][-1] == "the provider does not take it; it is left out"
    long = keep_supported({"examples": ["x" * 999]}, "", report, fits)
    assert len(long["description"]) < 250


@rows(
    ("schema", "flat", "lost"),
    [
        ({}, {"type": "object", "properties": {}}, []),
        ({"properties": None}, {"type": "object", "properties": {}}, ["properties"]),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"properties": {"a": TEXT}}}},
            {
                "type": "object",
                "properties": {"a": TEXT},
                "$defs": {"A": {"properties": {"a": TEXT}}},
            },
            [],
        ),
        (
            {
                "oneOf": [
                    {"properties": {"a": TEXT, "k": {"const": 1}}, "required": ["k", "a"]},
                    {"properties": {"b": TEXT, "k": {"const": 2}}, "required": ["k"]},
                    {"properties": {"k": {"const": 3}}, "required": ["k"]},
                ]
            },
            {
                "type": "object",
                "properties": {
                    "a": TEXT,
                    "k": {"anyOf": [{"const": 1}, {"const": 2}, {"const": 3}]},
                    "b": TEXT,
                },
                "required": ["k"],
            },
            ["oneOf"],
        ),
        (
            {"allOf": [{"properties": {"a": TEXT}, "required": ["a"]}], "not": {}, "enum": [1]},
            {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
            ["enum", "not"],
        ),
    ],
)
def test_arguments_become_one_object(
    schema: dict[str, Any], flat: dict[str, Any], lost: list[str]
) -> None:
    report = Losses()
    assert object_root(schema, report) == flat
    assert [loss.keyword for loss in report] == lost


def test_a_root_that_refers_to_itself_ends() -> None:
    assert object_root({"$ref": "#"}, Losses()) == {"type": "object", "properties": {}}


def test_parameters_are_renamed_and_called_back() -> None:
    properties = {"a b": TEXT, "a_b": TEXT, "x" * 70: TEXT, "ok": TEXT}
    schema, keys = safe_keys(
        {"properties": properties, "required": ["a b", "ok"]}, "[a-z_]{1,64}", report := Losses()
    )
    renamed = dict(zip(properties, schema["properties"], strict=True))
    assert renamed["a b"].startswith("a_b_")
    assert renamed["a_b"] == "a_b"
    assert renamed["x" * 70] == "x" * 64
    assert schema["required"] == [renamed["a b"], "ok"]
    assert {name: keys.get(safe, safe) for name, safe in renamed.items()} == {
        name: name for name in properties
    }
    assert len(report) == 2


@rows(
    ("schema", "kept", "lost"),
    [
        ({"type": "strnig"}, {}, ["type"]),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}, []),
        ({"required": True}, {}, ["required"]),
        ({"enum": []}, {}, ["enum"]),
        ({"minimum": "1", "maximum": 2.5}, {"maximum": 2.5}, ["minimum"]),
        ({"minLength": -1, "maxLength": 3}, {"maxLength": 3}, ["minLength"]),
        ({"properties": {"a": 5}}, {"properties": {"a": {}}}, ["schema"]),
        ({"properties": {"a": True}}, {"properties": {"a": True}}, []),
        ({"items": 5}, {}, ["items"]),
        ({"minLength": 1.5, "pattern": "("}, {}, ["minLength", "pattern"]),
        ({"items": [{}, 5]}, {"prefixItems": [{}, {}]}, ["schema"]),
        ({"minimum": 3, "exclusiveMinimum": True}, {"exclusiveMinimum": 3}, []),
        ({"required": ["a", "a"]}, {"required": ["a"]}, []),
        ({"pattern": r"\p{L}+"}, {"pattern": r"\p{L}+"}, []),
        ({"anyOf": {}}, {}, ["anyOf"]),
        ({"x-vendor": 5, "default": []}, {"x-vendor": 5, "default": []}, []),
    ],
)
def test_what_is_malformed_is_left_out(schema: Any, kept: Any, lost: list[str]) -> None:
    found, report = read(schema)
    assert found == kept
    assert [loss.keyword for loss in report] == lost


def test_an_integer_of_any_length_is_a_number() -> None:
    """A float cannot hold it, which must not end the conversion."""
    schema = {"type": "integer", "maximum": 10**400}
    assert read(schema) == (schema, [])


def merging_calls(parts: list[Any], **options: Any) -> int:
    """How many functions run to read the arguments of a tool whose ``allOf`` has these parts."""
    calls = 0

    def note(*_: Any) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(note)
    try:
        object_root({"type": "object", "allOf": parts}, Losses(), **options)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.req("F3", "M2")
@pytest.mark.parametrize(
    "part",
    [
        lambda number: {"properties": {f"p{number}": TEXT}, "required": [f"p{number}"]},
        lambda number: {"properties": {"same": {"type": "string", "minLength": number}}},
        lambda number: {"enum": [number, "x"]},
        lambda number: {f"x-{number}": number},
        lambda number: {"type": ["string", "object"], "minProperties": number},
        lambda number: {"anyOf": [{"minLength": number}]},
    ],
    ids=["properties", "same property", "choices", "unknown words", "bounds", "alternatives"],
)
@pytest.mark.parametrize("plain", [False, True])
def test_many_parts_take_a_time_that_grows_with_their_number(part: Any, plain: bool) -> None:
    few, many = ([part(number) for number in range(count)] for count in (500, 2000))
    assert merging_calls(many, plain=plain) < 6 * merging_calls(few, plain=plain)


def test_parts_of_one_property_are_joined_at_once() -> None:
    parts = [{"properties": {"a": {"minLength": number}}} for number in range(300)]
    root = object_root({"allOf": parts}, Losses(), plain=True)
    assert root["properties"] == {"a": {"minLength": 299}}


DOUBLING = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/d0"}},
    "$defs": {
        **{
            f"d{at}": {
                "type": "object",
                "properties": {name: {"$ref": f"#/$defs/d{at + 1}"} for name in ("left", "right")},
            }
            for at in range(40)
        },
        "d40": {"type": "string"},
    },
}


def size(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(size, inside))


@pytest.mark.req("F3", "Y5")
@pytest.mark.parametrize(
    "schema",
    [
        DOUBLING,
        {"properties": {"a": {"$ref": "#/nowhere"}, "b": {"$ref": "https://example.org/x"}}},
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"$dynamicRef": "#n"}}, "$defs": {"n": {"$dynamicAnchor": "n"}}},
        {"properties": {"a": {"allOf": [{"type": "string"}, {"type": "integer"}]}}},
        {"$defs": {"n": {"$id": "n", "type": "string"}}, "properties": {"a": {"$ref": "n"}}},
    ],
    ids=["doubling", "dangling", "recursive", "dynamic", "conflict", "address"],
)
def test_an_expanded_schema_is_bounded_valid_and_has_no_references(schema: Any) -> None:
    root = object_root(schema, Losses(), expand=True)
    assert size(root) < 6 * MOST_NODES
    assert "$ref" not in json.dumps(root)
    jsonschema_rs.validator_for(root, offline=True)


def test_an_expanded_schema_says_what_its_references_say() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/t", "title": "A"}}, "$defs": {"t": TEXT}}
    root = object_root(schema, Losses(), expand=True)
    assert root == {"type": "object", "properties": {"a": {**TEXT, "title": "A"}}}
