"""The bounds of a check: never too low, and found within bounds themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.schema.cost import CAP, CHARACTER, MOST_VALUES, SchemaCost, measure
from holdfast.schema.walk import Budget, ExternalReference, SchemaTooComplex
from tests.rows import rows


def cost(schema: Any) -> SchemaCost:
    bound = SchemaCost(schema, Budget())
    bound.price_patterns(())
    return bound


def steps(schema: Any, value: Any) -> int:
    return sum(cost(schema).steps(measure(value)))


def chain(depth: int, key: str = "a") -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {key: value}
    return value


@pytest.mark.req("T5")
def test_a_schema_of_named_properties_has_one_bound_for_every_value() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"minLength": 1}}}
    assert cost(schema).once == 3


@pytest.mark.req("T5")
def test_a_pattern_costs_by_the_text() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"pattern": "x{900}"}}}
    assert cost(schema).once == CAP
    assert steps(schema, {"b": "a" * 1000}) > 1000 * CHARACTER
    assert cost(schema).rough_steps(b'"aaaa"', CAP) > 4 * CHARACTER


@pytest.mark.req("T5")
def test_a_short_pattern_costs_less_than_one_of_many_states() -> None:
    text = "a" * 1000
    assert 50 * steps({"pattern": "^/"}, text) < steps({"pattern": "(a{20}){20}"}, text)


@pytest.mark.req("T5")
def test_items_cost_by_their_number_and_not_by_the_size_of_the_schema() -> None:
    columns = {f"c{at}": {"type": "string"} for at in range(200)}
    schema = {"items": {"properties": columns}}
    assert cost(schema).once == CAP
    assert steps(schema, [{"c1": "x"}] * 100) < 100 * 3 * 10


@pytest.mark.req("T5")
@rows(
    "keyword",
    [
        "items", "additionalProperties", "propertyNames", "contains", "unevaluatedItems",
        "unevaluatedProperties",
    ],
)  # fmt: skip
def test_what_applies_to_each_value_inside_has_no_bound_for_every_value(keyword: str) -> None:
    bound = cost({keyword: {"multipleOf": 1e-300}})
    assert bound.once == CAP > bound.rough_steps(b"[1]", CAP) > 800


@pytest.mark.req("T5")
def test_what_is_referred_to_twice_in_place_counts_twice() -> None:
    part = {"enum": [str(at) for at in range(1000)]}
    twice = {"allOf": [{"$ref": "#/$defs/a"}] * 2, "$defs": {"a": part}}
    assert 2 * steps(part, "x") <= steps(twice, "x") + 2 < 3 * steps(part, "x")


@pytest.mark.req("T5")
@rows(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"additionalProperties": {"$ref": "#"}, "items": {"$ref": "#"}},
        {"anyOf": [{"items": {"$ref": "#"}}, {"additionalProperties": {"$ref": "#"}}]},
        {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
        {"propertyNames": {"$ref": "#"}},
    ],
    ids=["tree", "map", "any JSON", "two branches", "dialect", "names"],
)
def test_what_recurs_once_for_each_level_has_one_bound_at_every_depth(schema: Any) -> None:
    bound = cost(schema)
    assert bound.rough_steps(b"{}", CAP) < CAP
    per_value = [sum(bound.steps(measure(chain(depth)))) / (2 * depth) for depth in (40, 80, 160)]
    assert per_value[2] <= per_value[0] < 2000


@pytest.mark.req("T5")
def test_what_recurs_twice_is_bounded_for_shallow_values_only() -> None:
    both = {"$defs": {"n": {"allOf": [{"properties": {"a": {"$ref": "#/$defs/n"}}}] * 2}}}
    schema = {"$ref": "#/$defs/n", **both}
    assert cost(schema).rough_steps(b"{}", CAP) >= CAP
    assert steps(schema, chain(10)) > 2**10
    with pytest.raises(SchemaTooComplex):
        steps(schema, chain(100))


@pytest.mark.req("T5")
def test_what_is_unevaluated_costs_by_the_width_of_the_value() -> None:
    schema = {"anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}
    assert cost(schema).once == CAP
    assert cost(schema).rough_steps(b"{}", CAP) == CAP
    narrow, wide = {"a": 1}, dict.fromkeys("abcdefghij", 1)
    assert steps(schema, wide) > 5 * steps(schema, narrow)


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "unevaluatedProperties": False, "$defs": {"a": {}}},
        {
            "allOf": [{"properties": {"x": {"$ref": "#/$defs/a"}}}],
            "unevaluatedProperties": False,
            "$defs": {"a": {}},
        },
        {
            "anyOf": [{"anyOf": [{"type": "object"}], "unevaluatedProperties": False}],
            "unevaluatedProperties": False,
        },
        {
            "contains": {"contains": {}, "unevaluatedItems": False},
            "unevaluatedItems": False,
        },
    ],
    ids=["reference", "reference inside", "nested", "contains"],
)
def test_what_is_unevaluated_over_references_has_no_bound(schema: Any) -> None:
    with pytest.raises(SchemaTooComplex, match="unevaluated"):
        cost(schema)


@pytest.mark.req("T5")
def test_a_long_constant_costs_by_its_length() -> None:
    short, long = ["x", {"x": 1}], ["x" * 10_000, {"x" * 10_000: 1}]
    assert steps({"enum": long}, "x") > steps({"enum": short}, "x") + 70


@pytest.mark.req("T5")
@pytest.mark.parametrize("number", [1e300, 5e-324, 10**30], ids=str)
def test_numbers_of_many_digits_cost_more(number: float) -> None:
    schema = {"items": {"enum": [0.5, 1.5]}}
    assert steps(schema, [number]) > 10 * steps(schema, [1.5])
    bound, text = cost(schema), str(number).encode()
    assert bound.rough_steps(text, CAP) > 10 * bound.rough_steps(b"1" * len(text[:15]), CAP)


@pytest.mark.req("T5")
def test_what_must_differ_is_compared_in_each_array_around_it() -> None:
    flat = {"uniqueItems": True, "items": {}}
    nested = {"uniqueItems": True, "items": {"uniqueItems": True}}
    assert steps(nested, [[1, 2], [3, 4]]) > steps(flat, [1, 2, 3, 4])


@pytest.mark.req("T5")
def test_a_value_is_measured_level_by_level() -> None:
    size = measure({"ab": [1.5, True, None, "xyz"], "c": ()})
    assert (size.values, size.characters, size.depth, size.width) == (9, 6, 3, 4)
    assert (size.fractions, size.long) == (True, False)
    assert not measure(0.0).long
    with pytest.raises(ValueError, match="not JSON"):
        measure([object()])


@pytest.mark.req("T5")
def test_measuring_stops_when_it_takes_too_long_itself() -> None:
    with pytest.raises(SchemaTooComplex):
        measure([0] * (MOST_VALUES + 1))
    heavy = cost({"items": {"allOf": [{"minLength": 1}] * 500}})
    with pytest.raises(SchemaTooComplex):
        heavy.measure([0] * 1001, room=1_000_000)


@pytest.mark.req("T5")
@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"allOf": [{"not": {"$ref": "#"}}]}], ids=repr)
def test_a_reference_does_not_lead_back_in_place(schema: Any) -> None:
    with pytest.raises(SchemaTooComplex, match="itself"):
        cost(schema)


@pytest.mark.req("T5")
@rows("reference", ["#/$defs/9999999999", "#/x", "#x", "y", "http://[", ""])
def test_a_reference_leads_to_a_place_in_the_schema(reference: str) -> None:
    with pytest.raises(ExternalReference if reference else SchemaTooComplex):
        cost({"$ref": reference})


@given(st.integers(1, 8), st.integers(1, 3))
def test_a_bound_is_never_less_than_a_plain_count(depth: int, ways: int) -> None:
    levels: dict[str, Any] = {
        f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * ways} for at in range(depth)
    }
    levels[f"d{depth}"] = {"type": "string"}
    assert steps({"$defs": levels, "$ref": "#/$defs/d0"}, "x") >= min(ways**depth, 1_000_000)


@given(st.integers(1, 6), st.integers(1, 4), st.booleans())
def test_recursion_is_never_counted_less_often_than_it_applies(
    depth: int, ways: int, nested: bool
) -> None:
    inner: Any = {"properties": {"a": {"$ref": "#"}}}
    schema = {"anyOf": [{"allOf": [inner]} if nested else inner] * ways}
    assert steps(schema, chain(depth)) >= ways**depth
