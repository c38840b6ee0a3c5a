"""Schemas, good and hostile: what does not fit is said, what is too much is not done."""

from __future__ import annotations

import dataclasses
import datetime
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from holdfast.schema import validate
from holdfast.schema.faults import SchemaFault, Unusable
from holdfast.schema.signature import resolve, sample
from holdfast.schema.validate import Checker, Checkers
from holdfast.schema.walk import MAX_NODES
from tests.rows import rows

BOUND = 10.0
"""Seconds: a guard against a hang, far above what any of these takes."""


@contextmanager
def bounded() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < BOUND


def compiled(schema: Any) -> Checker:
    return Checkers().get(Raw(json.encode(schema)))


def faults(schema: Any, value: Any, text: bytes | None = None) -> dict[str, str]:
    """The keyword of each fault by its place."""
    return {fault.path: fault.keyword for fault in compiled(schema).faults(value, text)}


def outcome(schema: Any, value: Any) -> tuple[SchemaFault, ...] | str:
    """The faults, or why there was no check."""
    try:
        return compiled(schema).faults(value)
    except Unusable as error:
        return str(error)


def unusable(schema: Any, value: Any = None) -> str:
    with pytest.raises(Unusable) as caught:
        compiled(schema).faults(value)
    return str(caught.value)


SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 3},
        "limit": {"type": "integer", "maximum": 10},
        "nested": {"type": "object", "properties": {"deep": {"type": "boolean"}}},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
    "additionalProperties": False,
}


@pytest.mark.req("T5")
def test_what_fits_has_no_faults() -> None:
    assert faults(SEARCH, {"query": "morning", "limit": 3, "tags": ["a"]}) == {}


@pytest.mark.req("T5")
def test_every_fault_is_told_with_its_path() -> None:
    value = {"query": "ab", "limit": 11, "nested": {"deep": 1}, "tags": ["a", 2]}
    assert faults(SEARCH, value) == {
        "/query": "minLength",
        "/limit": "maximum",
        "/nested/deep": "type",
        "/tags/1": "type",
    }


@pytest.mark.req("T5")
def test_a_fault_of_a_small_value_has_its_place_whatever_else_the_schema_has() -> None:
    schema = {
        "properties": {
            "amount": {"type": "integer", "maximum": 5000},
            "address": {"properties": {"zip": {"type": "string", "pattern": "^[0-9]{5}$"}}},
            "how": {
                "oneOf": [
                    {"type": "object", "properties": {"number": {"type": "string"}}},
                    {"type": "object", "properties": {"days": {"type": "integer"}}},
                ]
            },
            "items": {"type": "array", "items": {"required": ["sku"]}},
        }
    }
    value = {"amount": 99999, "currency": "EUR", "items": [{"count": 1}], "express": False}
    assert faults(schema, value) == {"/amount": "maximum", "/items/0": "required"}


@pytest.mark.req("T5")
def test_faults_beside_a_price_have_their_places() -> None:
    schema = {
        "required": ["to"],
        "properties": {
            "price": {"type": "number", "minimum": 0.5, "multipleOf": 0.01},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
            "to": {"oneOf": [{"required": ["street"]}, {"required": ["lat", "lon"]}]},
            "note": {"type": "string"},
        },
    }
    value = {"price": 0.1, "tags": [*"abcde", 1], "to": {"city": "Berlin"}, "note": 5}
    assert faults(schema, value) == {
        "/price": "minimum",
        "/tags": "maxItems",
        "/tags/5": "type",
        "/to": "oneOf",
        "/note": "type",
    }


@pytest.mark.req("T5")
def test_faults_of_an_order_have_their_places_beside_patterns_and_alternatives() -> None:
    text = {"type": "string"}
    address = {"type": "object", "required": ["street", "city"]}
    customer = {"type": "object", "properties": {"name": {"minLength": 2}, "address": address}}
    item = {"properties": {"sku": {"pattern": r"^[A-Z]{3}-\d+$"}, "count": {"maximum": 99}}}
    ways = [{"properties": {"kind": {"const": kind}, "number": text}} for kind in ("card", "bank")]
    schema = {
        "properties": {
            "customer": customer,
            "items": {"type": "array", "items": item},
            "payment": {"oneOf": ways},
            "labels": {"type": "object", "additionalProperties": text},
        }
    }
    items = [{"sku": "ABC-1", "count": 100}, {"sku": "abc", "count": 1}, {"sku": "DEF-2"}]
    value = {
        "customer": {"name": "A", "address": {"city": "Paris"}},
        "items": items,
        "payment": {"kind": "card", "number": "4711"},
        "labels": {"colour": "red", "size": "XL"},
    }
    assert faults(schema, value) == {
        "/customer/name": "minLength",
        "/customer/address": "required",
        "/items/0/count": "maximum",
        "/items/1/sku": "pattern",
    }


@pytest.mark.req("T5")
def test_a_path_is_a_json_pointer() -> None:
    schema = {"properties": {"a/b": {"properties": {"c~d": {"type": "string"}}}}}
    assert faults(schema, {"a/b": {"c~d": 1}}) == {"/a~1b/c~0d": "type"}


@pytest.mark.req("T5")
def test_2020_12_is_the_default_dialect() -> None:
    tuple_of_two = {"prefixItems": [{"type": "string"}, {"type": "integer"}]}
    assert faults(tuple_of_two, ["a", "b"]) == {"/1": "type"}


@pytest.mark.req("T5")
@rows(
    ("dialect", "schema", "value"),
    [
        ("http://json-schema.org/draft-04/schema#", {"minimum": 5, "exclusiveMinimum": True}, 5),
        ("http://json-schema.org/draft-06/schema#", {"exclusiveMinimum": 5}, 5),
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "string"}]}, [1]),
        ("http://json-schema.org/draft-07/schema", {"if": True, "then": False}, 1),
        ("https://json-schema.org/draft/2019-09/schema", {"items": [{"type": "string"}]}, [1]),
        ("https://json-schema.org/draft/2020-12/schema", {"prefixItems": [False]}, [1]),
    ],
)
def test_other_dialects_are_understood_by_their_name(dialect: str, schema: Any, value: Any) -> None:
    assert faults({"$schema": dialect, **schema}, value)


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    "dialect", ["http://json-schema.org/draft-03/schema#", "https://example.com/mine"]
)
def test_an_unsupported_dialect_is_named(dialect: str) -> None:
    told = unusable({"$schema": dialect, "type": "object"})
    assert dialect in told
    assert "not supported" in told
    assert "2020-12" in told


@pytest.mark.req("T5")
@rows(
    "schema",
    [{"type": 5}, {"type": "text"}, {"properties": []}, {"required": "a"}, {"minLength": -1}],
    ids=repr,
)
def test_a_schema_that_is_none_is_unusable(schema: Any) -> None:
    assert "not a valid schema" in unusable(schema)


@pytest.mark.parametrize("value", [(1, 2), {"a": (1,)}])
def test_a_tuple_is_an_array(value: Any) -> None:
    assert faults({"properties": {"a": {"type": "array"}}}, value) == {}


@dataclasses.dataclass
class Point:
    x: int


def test_values_are_checked_as_they_are_sent() -> None:
    schema = {
        "properties": {
            "when": {"type": "string"},
            "point": {"type": "object", "properties": {"x": {"type": "integer"}}},
        }
    }
    assert faults(schema, {"when": datetime.date(2026, 1, 1), "point": Point(1)}) == {}
    assert faults(schema, {"when": "x", "point": Point("1")}) == {"/point/x": "type"}  # type: ignore[arg-type]


def test_what_cannot_be_sent_is_left_to_the_sender() -> None:
    assert faults(SEARCH, {"query": object()}) == {}


def test_format_is_not_enforced() -> None:
    for dialect in ("http://json-schema.org/draft-07/schema#", None):
        schema = {"format": "email"} | ({"$schema": dialect} if dialect else {})
        assert faults(schema, "nobody") == {}


# Real servers

REGISTRIES = sorted((Path(__file__).resolve().parents[1] / "codegen" / "data").glob("*.json"))


@pytest.mark.req("T5", "T6")
@pytest.mark.parametrize("path", REGISTRIES, ids=lambda path: path.stem)
def test_every_schema_of_a_real_server_is_checked(path: Path) -> None:
    """With values of ordinary size, and with texts of half a megabyte, nothing is left out."""
    for tool in json.decode(path.read_bytes())["tools"]:
        for schema in (tool["inputSchema"], tool.get("outputSchema")):
            if schema is None:
                continue
            checker = Checker(schema, fills=True)
            assert checker.skipped == ()
            value = sample(resolve(schema, schema), schema)
            assert isinstance(checker.faults(value), tuple)
            large = dict.fromkeys(value, "x" * 500000) if isinstance(value, dict) else value
            assert isinstance(checker.faults(large), tuple)
            assert isinstance(checker.faults({"rows": [value] * 100}), tuple)


# Nothing is fetched


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.setblocking(False)
        yield server


@pytest.mark.req("T5")
@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
@pytest.mark.parametrize("place", ["", "/a", "#/x", "/a#b"])
def test_no_reference_is_ever_fetched(listener: socket.socket, keyword: str, place: str) -> None:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}{place}"
    for schema in (
        {keyword: url},
        {"properties": {"a": {keyword: url}}},
        {"$id": url + "/base", "$ref": "other.json"},
        {"$defs": {"never used": {"$ref": url}}},
    ):
        outcome(schema, {"a": 1})
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    "reference",
    ["http://127.0.0.1:9/x", "https://example.com/y#/z", "file:///etc/passwd", "x.json"],
)
def test_a_reference_to_elsewhere_makes_a_schema_unusable(reference: str) -> None:
    told = unusable({"properties": {"a": {"$ref": reference}}}, {"a": 1})
    assert reference in told
    assert "fetched" in told


@rows(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}},
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}},
        {"$ref": "other", "$defs": {"a": {"$id": "other", "type": "string"}}},
        {"$id": "http://x/y", "$ref": "z", "$defs": {"a": {"$id": "z", "type": "string"}}},
        {"$ref": "a", "$defs": {"a": {"$id": "a", "$ref": "#/$defs/b", "$defs": {"b": False}}}},
        {"$dynamicRef": "#n", "$defs": {"a": {"$dynamicAnchor": "n", "type": "string"}}},
        {"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {"type": "string"}}},
        {"allOf": [{"type": "string"}, {"$ref": "#/allOf/0"}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a"}
        | {"definitions": {"a": {"type": "string"}}},
    ],
    ids=repr,
)
def test_references_inside_a_schema_are_followed(schema: Any) -> None:
    assert faults(schema, 1)


def test_a_reference_to_the_dialect_itself_works() -> None:
    schema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert faults(schema, {"type": "string"}) == {}
    assert faults(schema, {"type": 5})


# Hostile schemas


def doubling(keyword: str, levels: int) -> dict[str, Any]:
    """Every step refers to the next one twice."""
    steps = {
        f"a{n}": {keyword: [{"$ref": f"#/$defs/a{n + 1}"}, {"$ref": f"#/$defs/a{n + 1}"}]}
        for n in range(levels)
    }
    return {"$ref": "#/$defs/a0", "$defs": {**steps, f"a{levels}": {"type": "string"}}}


@pytest.mark.req("T5")
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("levels", [12, 18, 40, 100])
@pytest.mark.parametrize("value", ["fits", 1])
def test_references_that_double_cost_no_time(keyword: str, levels: int, value: Any) -> None:
    with bounded():
        found = outcome(doubling(keyword, levels), value)
    assert isinstance(found, tuple) or (levels >= 18 and "too long" in found)


def tree(depth: int, operator: str) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"op": operator, "left": value, "right": 1}
    return value


EXPRESSION = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"op": {"const": name}, "left": {"$ref": "#"}, "right": {"$ref": "#"}},
            "required": ["op", "left"],
        }
        for name in ("add", "sub", "mul", "div")
    ]
    + [{"type": "integer"}]
}


@pytest.mark.req("T5")
@pytest.mark.parametrize("depth", [1, 4, 8, 60, 200, 400])
@pytest.mark.parametrize("operator", ["div", "unknown"])
def test_alternatives_inside_alternatives_cost_no_time(depth: int, operator: str) -> None:
    with bounded():
        found = outcome(EXPRESSION, tree(depth, operator))
    if depth <= 4:
        assert isinstance(found, tuple)
        assert bool(found) is (operator == "unknown")


@pytest.mark.req("T5")
@rows(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"not": {"$ref": "#"}},
        {"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}},
    ],
    ids=repr,
)
def test_references_in_a_circle_end(schema: Any) -> None:
    with bounded():
        outcome(schema, {"a": {"a": {"a": [1]}}})


def test_a_type_that_contains_itself_is_checked_at_any_depth() -> None:
    any_json = {
        "anyOf": [
            {"type": ["string", "number"]},
            {"type": "array", "items": {"$ref": "#"}},
            {"type": "object", "additionalProperties": {"$ref": "#"}},
        ]
    }
    value: Any = "x"
    for _ in range(60):
        value = [value, {"a": 1}]
    assert faults(any_json, value) == {}
    assert faults(any_json, [{"a": [None]}])


def nested(depth: int) -> bytes:
    return b'{"properties":{"a":' * depth + b"{}" + b"}}" * depth


@pytest.mark.req("T5")
@pytest.mark.parametrize("depth", [200, 2000, 100_000])
def test_a_schema_that_is_too_deep_is_unusable(depth: int) -> None:
    with bounded(), pytest.raises(Unusable):
        Checkers().get(Raw(nested(depth)))


@pytest.mark.req("T5")
def test_a_schema_that_is_too_large_is_unusable() -> None:
    with bounded():
        many: dict[str, Any] = {f"p{n}": {} for n in range(MAX_NODES)}
        assert "parts" in unusable({"properties": many})
        assert "bytes" in unusable({"description": "x" * validate.MAX_BYTES})


def test_an_instance_that_is_too_deep_is_not_checked() -> None:
    value: Any = 1
    for _ in range(3000):
        value = [value]
    with bounded():
        outcome({"items": {"$ref": "#"}}, value)


@pytest.mark.req("T5")
@rows(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 100_000 + "b"),
        ("^(a|aa)+$", "a" * 100_000 + "b"),
        ("(x+x+)+y", "x" * 100_000),
        ("(.*)*=$", "a" * 100_000),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
        ("(?:a|b)*a(?:a|b){1000}c", "ab" * 500_000),
        ("a.{900}c$", "a" * 500_000),
    ],
)
def test_a_catastrophic_pattern_costs_no_time(pattern: str, text: str) -> None:
    with bounded():
        compiled({"pattern": pattern}).faults(text)
        compiled({"patternProperties": {pattern: False}}).faults({text: 1})


@pytest.mark.req("T5")
@rows("pattern", ["^(?!foo)a", r"(a)\1", "^(?=(a+)+$)b", "(", "a{1,100000}"])
def test_a_pattern_that_is_not_linear_is_left_to_the_server(pattern: str) -> None:
    schema = {
        "properties": {"a": {"pattern": pattern}, "b": {"type": "string", "pattern": "^b+$"}},
    }
    with bounded():
        assert faults(schema, {"a": "zzz" * 10_000, "b": "x"}) == {"/b": "pattern"}


@pytest.mark.req("T5")
@pytest.mark.parametrize("pattern", ["^(?!x)a", "^a"])
@pytest.mark.parametrize(
    "around",
    [
        lambda part: {"not": part},
        lambda part: {"not": {"anyOf": [part, {"maxLength": 1}]}},
        lambda part: {"oneOf": [part, {"pattern": "^b"}], "allOf": [{"minLength": 1}]},
        lambda part: {"if": part, "then": {"maxLength": 1}, "else": {"minLength": 1}},
        lambda part: {"not": {"$ref": "#/$defs/part"}},
        lambda part: {"not": {"$ref": "#/properties/a/oneOf/0"}, "oneOf": [part, {}, False]},
    ],
)
def test_what_fits_is_not_refused_for_a_pattern_that_is_left_out(pattern: str, around: Any) -> None:
    part = {"pattern": pattern}
    schema = {"properties": {"a": around(part)}, "$defs": {"part": part}}
    for text in ("bbb", "b" * 2_000_000):
        with suppress(Unusable):
            assert faults(schema, {"a": text}) == {}


def test_a_property_of_such_a_pattern_is_not_an_unknown_one() -> None:
    schema = {"allOf": [{"patternProperties": {"^(?!x)": {}}}], "unevaluatedProperties": False}
    assert faults(schema, {"y": 1}) == {}
    schema = {"patternProperties": {"^(?!x)": {}}, "additionalProperties": False}
    assert faults(schema, {"y": 1}) == {}


@pytest.mark.req("T5")
@pytest.mark.parametrize("shape", [r"(\w{{1,{n}}}){{1,9}}{n}", r"(\p{{L}}{{1,{n}}}){{1,9}}{n}"])
def test_thousands_of_patterns_cost_no_time(shape: str) -> None:
    patterns = {f"p{n}": {"pattern": shape.format(n=n % 40 + 1) + str(n)} for n in range(1200)}
    with bounded():
        outcome({"properties": patterns}, {"p1": "x"})


@pytest.mark.req("T5", "T6")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {"patternProperties": {f"^a{n}.*x": {"type": "string"} for n in range(1200)}},
            {f"a{n}": 1 for n in range(20_000)},
        ),
        ({"items": {"enum": [str(n) for n in range(3500)]}}, ["no"] * 200_000),
        ({"items": {"required": [str(n) for n in range(3500)]}}, [{"a": 1}] * 50_000),
        ({"items": {"allOf": [{"minimum": n} for n in range(1200)]}}, [10_000] * 100_000),
        ({"items": {"type": "string"}}, list(range(300_000))),
        ({"uniqueItems": True}, [{"a": n} for n in range(50_000)]),
    ],
    ids=["patterns", "enum", "required", "allOf", "items", "unique"],
)
def test_a_hostile_schema_with_a_hostile_result_costs_no_time(schema: Any, value: Any) -> None:
    text = json.encode(value)
    with bounded(), suppress(Unusable):
        compiled(schema).faults(value, text)


@pytest.mark.req("T5", "T6")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": {"not": {"enum": [n + 0.5 for n in range(50)]}}}, [5e-324] * 2000),
        ({"items": {"enum": [[5e-324, n] for n in range(50)]}}, [[5e-324, 49]] * 500),
        ({"items": {"uniqueItems": True}}, [[5e-324 * n for n in range(14)]] * 100),
    ],
    ids=["enum", "enum of lists", "unique"],
)
def test_numbers_that_are_compared_as_fractions_are_counted_as_such(
    schema: Any, value: Any
) -> None:
    """Each of these comparisons takes 20 to 40 µs."""
    checker = compiled(schema)
    assert checker.faults(value[:1]) == ()
    with pytest.raises(Unusable):
        checker.faults(value)


@pytest.mark.req("T5", "T6")
def test_a_check_may_take_what_compiling_the_schema_has_left() -> None:
    value, small = [1.5] * 900, {"items": {"multipleOf": 0.5}}
    large = {**small, "$defs": {f"d{n}": {} for n in range(1000)}}
    assert compiled(small).faults(value) == ()
    assert compiled(large).faults(value[:9]) == ()
    with pytest.raises(Unusable, match="too long to check"):
        compiled(large).faults(value)


@pytest.mark.req("T5", "T6")
def test_ordinary_fractions_are_checked() -> None:
    schema = {"items": {"minimum": 0.5, "maximum": 1000.5, "multipleOf": 0.5}}
    assert compiled(schema).faults([n + 0.5 for n in range(200)]) == ()
    assert faults({"items": {"enum": [0.5, 1.5]}}, [0.5, 1.5, 2.5]) == {"/2": "enum"}


@pytest.mark.req("T5", "T6")
@pytest.mark.parametrize(
    "keyword", [{"contentMediaType": "application/json"}, {"contentEncoding": "base64"}], ids=str
)
@pytest.mark.parametrize("draft", ["draft-07", "draft-06"])
def test_what_a_text_holds_is_not_decoded(keyword: dict[str, str], draft: str) -> None:
    schema = {"$schema": f"http://json-schema.org/{draft}/schema#", "items": {**keyword}}
    assert faults(schema, ["{?"]) == {}
    assert faults({**schema, "items": {**keyword, "minLength": 3}}, ["{?"]) == {"/0": "minLength"}


@pytest.mark.req("T5")
def test_a_constant_that_looks_like_a_schema_is_left_as_it_is() -> None:
    look_ahead = {"pattern": "(?=a)b"}
    schema = {"properties": {"const": look_ahead, "filter": {"const": look_ahead}}}
    assert faults(schema, {"const": "x", "filter": look_ahead}) == {}
    assert faults(schema, {"filter": {}}) == {"/filter": "const"}


@pytest.mark.req("T5")
def test_patterns_that_are_hidden_in_a_constant_hold_nothing_up() -> None:
    schema = {"const": {"a": {"pattern": "[ab]*a[ab]{40}"}}, "allOf": [{"$ref": "#/const/a"}]}
    with pytest.raises(Unusable):
        compiled(schema).faults("a" * 100_000)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=12,
)
_KEYWORDS = """
type properties items allOf anyOf oneOf not $ref $defs enum const pattern required if then else
patternProperties additionalProperties minimum maxLength $schema $id $anchor dependencies
prefixItems contains $dynamicRef propertyNames unevaluatedProperties
"""
KEYWORDS = st.sampled_from(_KEYWORDS.split())
SCHEMAS = st.recursive(
    st.booleans() | st.dictionaries(KEYWORDS, JSON, max_size=3),
    lambda inner: st.dictionaries(
        KEYWORDS,
        inner
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
        | st.sampled_from(["#", "#/properties/a", "object", "string", "^a*$", "http://x/y"]),
        max_size=4,
    ),
    max_leaves=12,
)


@pytest.mark.req("T5")
@given(SCHEMAS, JSON)
def test_whatever_the_schema_a_check_gives_faults_or_says_why_not(schema: Any, value: Any) -> None:
    found = outcome(schema, value)
    assert isinstance(found, tuple) or found


@pytest.mark.req("T5")
def test_a_schema_is_compiled_once_and_kept() -> None:
    checkers = Checkers()
    text = json.encode(SEARCH)
    assert checkers.get(Raw(text)) is checkers.get(Raw(bytes(text)))


@pytest.mark.req("T5")
@pytest.mark.parametrize("size", [0, validate.MAX_BYTES - 100, 4 * validate.MAX_BYTES])
def test_compiled_schemas_are_kept_up_to_a_bound_in_bytes(size: int) -> None:
    """A server may give its tools another schema with every list, for as long as a service runs."""
    checkers = Checkers()
    for number in range(5000 if size == 0 else 40):
        with suppress(Unusable):
            checkers.get(Raw(b'{"minimum": %d, "title": "%b"}' % (number, b"x" * size)))
    assert sum(len(text) for text, _ in checkers._by_text) <= validate.CACHED_BYTES
    assert len(checkers._by_text) <= validate.CACHED_BYTES // validate.ENTRY_BYTES
    last = Raw(b'{"minimum": -1}')
    assert checkers.get(last) is checkers.get(last), "the newest is kept"


def test_the_validator_is_loaded_with_the_first_schema() -> None:
    code = (
        "import sys; import holdfast.schema.validate as v; print('jsonschema_rs' in sys.modules); "
        "v.Checkers().get(v.Raw(b'{}')); print('jsonschema_rs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
