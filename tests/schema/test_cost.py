"""Counting the work before doing it: never too low, and itself bounded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.schema.cost import CAP, CHARACTER, Outline
from holdfast.schema.walk import Budget, SchemaTooComplex


def outline(schema: Any) -> Outline:
    return Outline(schema, Budget())


def work(schema: Any, value: Any) -> int:
    return sum(outline(schema).work(value, Budget())[:2])


@pytest.mark.req("T5")
def test_a_schema_of_named_properties_has_one_bound_for_every_value() -> None:
    schema = {"properties": {"a": {"type": "string"}, "b": {"minLength": 1}}}
    assert outline(schema).once == 3


@pytest.mark.req("T5")
def test_a_pattern_costs_by_the_text() -> None:
    found = outline({"properties": {"a": {"type": "string"}, "b": {"pattern": "x"}}})
    assert found.once == CAP
    assert 2 * CHARACTER < found.each < 3 * CHARACTER


@pytest.mark.req("T5")
def test_items_cost_by_their_number_and_not_by_the_size_of_the_schema() -> None:
    columns = {f"c{at}": {"type": "string"} for at in range(200)}
    found = outline({"items": {"properties": columns}})
    assert found.once == CAP
    assert found.each < 10


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    "keyword",
    [
        "items", "additionalProperties", "propertyNames", "contains", "unevaluatedItems",
        "unevaluatedProperties",
    ],
)  # fmt: skip
def test_what_applies_to_each_value_inside_has_no_bound_for_every_value(keyword: str) -> None:
    found = outline({keyword: {"multipleOf": 1e-300}})
    assert found.once == CAP > found.each


@pytest.mark.req("T5")
def test_what_is_referred_to_twice_in_place_counts_twice() -> None:
    schema = {"allOf": [{"$ref": "#/$defs/a"}] * 2, "$defs": {"a": {"pattern": "x"}}}
    assert 4 * CHARACTER < outline(schema).each < 5 * CHARACTER


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#"}}},
        {"anyOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        {"$ref": "https://json-schema.org/draft/2020-12/schema"},
    ],
    ids=["recursive", "unevaluated", "dialect"],
)
def test_some_schemas_have_no_bound_without_the_value(schema: Any) -> None:
    found = outline(schema)
    assert (found.once, found.each) == (CAP, CAP)
    assert found.work({"a": {}}, Budget()).steps > 0


@pytest.mark.req("T5")
def test_work_grows_with_the_value() -> None:
    schema = {"items": {"type": "string"}}
    assert work(schema, ["a"] * 100) < work(schema, ["a"] * 1000) < 5000


@pytest.mark.req("T5")
def test_work_counts_each_way_to_a_part_of_the_value() -> None:
    both = {"$defs": {"n": {"allOf": [{"properties": {"a": {"$ref": "#/$defs/n"}}}] * 2}}}
    value: Any = {}
    for _ in range(10):
        value = {"a": value}
    assert work({"$ref": "#/$defs/n", **both}, value) > 2**10


@pytest.mark.req("T5")
def test_two_names_for_a_branch_are_not_two_ways() -> None:
    schema = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    value: Any = {}
    for _ in range(50):
        value = {"left": value, "right": {}}
    assert work(schema, value) < 1000


@pytest.mark.req("T5")
def test_nested_unevaluated_doubles_with_each_level() -> None:
    schema: Any = {"type": "object"}
    for _ in range(6):
        schema = {"anyOf": [schema], "unevaluatedProperties": False}
    assert work(schema, {"a": 1}) > 2**6


@pytest.mark.req("T5")
def test_a_pattern_costs_by_the_character() -> None:
    assert work({"pattern": "x"}, "a" * 1000) > 1000 * CHARACTER


@pytest.mark.req("T5")
def test_a_long_constant_costs_by_its_length() -> None:
    short, long = ["x", {"x": 1}], ["x" * 10_000, {"x" * 10_000: 1}]
    assert work({"enum": long}, "x") > 5 * work({"enum": short}, "x")


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"patternProperties": {str(n): {} for n in range(900)}}, {str(n): 1 for n in range(999)}),
        ({"items": {"allOf": [{}] * 900}}, list(range(1000, 4000))),
    ],
    ids=["patterns", "items"],
)
def test_counting_stops_when_it_takes_too_long_itself(schema: Any, value: Any) -> None:
    budget = Budget()
    with pytest.raises(SchemaTooComplex):
        outline(schema).work(value, budget)
    assert budget.left < 0


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#"}, {"allOf": [{"not": {"$ref": "#"}}]}, {"$ref": "#/$defs/9999999999"}, []],
    ids=repr,
)
def test_a_reference_leads_to_another_place_in_the_schema_or_it_is_refused(schema: Any) -> None:
    if isinstance(schema, dict):
        with pytest.raises(SchemaTooComplex):
            outline(schema)
    else:
        assert outline(schema).once < CAP


@given(st.integers(1, 8), st.integers(1, 3))
def test_work_is_never_less_than_a_plain_count(depth: int, ways: int) -> None:
    levels: dict[str, Any] = {
        f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * ways} for at in range(depth)
    }
    levels[f"d{depth}"] = {"type": "string"}
    assert work({"$defs": levels, "$ref": "#/$defs/d0"}, "x") >= min(ways**depth, 1_000_000)
