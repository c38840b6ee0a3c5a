"""Counting the work before doing it: never too low, and itself bounded."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.schema import cost
from holdfast.schema.cost import Outline, TooMuch


def work(schema: Any, value: Any) -> int:
    return Outline(schema).work(value)


@pytest.mark.req("T5")
def test_a_schema_without_references_weighs_its_parts() -> None:
    outline = Outline({"properties": {"a": {"type": "string"}, "b": {"pattern": "x"}}})
    assert outline.weight == (3, 1)
    assert outline.patterns == {"x"}


@pytest.mark.req("T5")
def test_what_is_referred_to_twice_weighs_twice() -> None:
    schema = {"allOf": [{"$ref": "#/$defs/a"}] * 2, "$defs": {"a": {"pattern": "x"}}}
    assert Outline(schema).weight == (7, 2)


@pytest.mark.req("T5")
def test_a_circle_has_no_weight() -> None:
    assert Outline({"properties": {"a": {"$ref": "#"}}}).weight is None


@pytest.mark.req("T5")
def test_work_grows_with_the_value() -> None:
    schema = {"items": {"type": "string"}}
    assert work(schema, ["a"] * 100) < work(schema, ["a"] * 1000) < 5000


@pytest.mark.req("T5")
def test_work_counts_each_way_to_a_part_of_the_value() -> None:
    both = {"$defs": {"n": {"allOf": [{"properties": {"a": {"$ref": "#/$defs/n"}}}] * 2}}}
    schema = {"$ref": "#/$defs/n", **both}
    value: Any = {}
    for _ in range(10):
        value = {"a": value}
    assert work(schema, value) > 2**10


@pytest.mark.req("T5")
def test_two_names_for_a_branch_are_not_two_ways() -> None:
    schema = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    value: Any = {}
    for _ in range(50):
        value = {"left": value, "right": {}}
    assert work(schema, value) < 1000


@pytest.mark.req("T5")
def test_a_pattern_costs_by_the_character() -> None:
    assert work({"pattern": "x"}, "a" * 1000) > 1000 * cost.CHARACTER


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"patternProperties": {str(n): {} for n in range(3000)}}, {str(n): 1 for n in range(999)}),
        ({"items": {"allOf": [{}] * 3000}}, list(range(1000, 4000))),
        ({"pattern": "x"}, "a" * 10_000_000),
    ],
    ids=["patterns", "items", "text"],
)
def test_counting_stops_when_it_is_too_much(schema: Any, value: Any) -> None:
    began = time.monotonic()
    with pytest.raises(TooMuch):
        work(schema, value)
    assert time.monotonic() - began < 10


@pytest.mark.req("T5")
@given(st.integers(1, 12), st.integers(1, 3))
def test_work_is_never_less_than_a_plain_count(depth: int, ways: int) -> None:
    """Against a check that walks every way by itself."""
    schema = {"allOf": [{"properties": {"a": {"$ref": "#"}}} for _ in range(ways)]}
    value: Any = {}
    for _ in range(min(depth, 6)):
        value = {"a": value}

    def walk(inner: Any) -> int:
        below = sum(walk(inner["a"]) for _ in range(ways)) if "a" in inner else 0
        return 1 + ways + below

    assert work(schema, value) >= walk(value)


@pytest.mark.req("T5")
def test_a_reference_by_a_number_without_end_leads_nowhere() -> None:
    schema = {"anyOf": [{}], "properties": {"a": {"$ref": "#/anyOf/" + "1" * 5000}}}
    with pytest.raises(TooMuch, match="which is not in it"):
        work(schema, {"a": 1})
