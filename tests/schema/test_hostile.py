"""Hostile schemas and values, as `tests.schema.hostile` generates them, hold nothing up.

The bound is 50 ms of one core, which `make hostile` prints the slowest cases against: none takes
more than 30. What has no bound takes seconds, so a test that allows for a slow, busy machine finds
it as well: time is measured against a loop, and four times the bound is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from holdfast.schema.cost import BUDGET, UNITS
from holdfast.schema.validate import Checker
from holdfast.schema.walk import LIMITS
from tests.schema import hostile
from tests.schema.hostile import Case
from tools.hostile import cost

ALLOWED = 4.0
"""In units of 50 ms."""


def is_slow(case: Case) -> bool:
    """Return True if a case takes longer than is allowed, every time that it is measured."""
    return all(cost(case) > ALLOWED for _ in range(5))


@pytest.mark.req("T5", "T6")
@pytest.mark.parametrize("family", hostile.FAMILIES, ids=lambda family: family.__name__)
def test_no_schema_and_value_hold_the_interpreter(family: Callable[[], Iterator[Case]]) -> None:
    assert [case.name for case in family() if is_slow(case)] == []


@pytest.mark.req("T5", "T6")
def test_no_random_schema_and_value_hold_the_interpreter() -> None:
    assert [case.name for case in hostile.random_cases(1, 150) if is_slow(case)] == []


@pytest.mark.req("T5")
def test_the_bounds_are_those_of_one_budget() -> None:
    assert (LIMITS.depth, LIMITS.nodes, LIMITS.work) == (100, 4_000, 5_000)
    assert (UNITS, BUDGET) == (5_000, 1_000_000)


ORDINARY: list[tuple[Any, Any]] = [
    (
        {
            "type": "object",
            "properties": {
                "path": {"type": "string", "pattern": "^/"},
                "text": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        {"path": "/a", "text": "x" * 200_000, "tags": [f"t{at}" for at in range(50)]},
    ),
    (
        {
            "type": "object",
            "properties": {
                "rows": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {f"c{at}": {"type": "string"} for at in range(8)},
                        "required": ["c0"],
                    },
                }
            },
        },
        {"rows": [{f"c{at}": "text" for at in range(8)} for _ in range(1000)]},
    ),
    (
        {
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    },
                }
            },
            "$ref": "#/$defs/node",
        },
        {"name": "a", "children": [{"name": "b", "children": []}] * 300},
    ),
    (
        {
            "allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}],
            "unevaluatedProperties": False,
        },
        {"a": "x", "b": 1},
    ),
]


@pytest.mark.req("T5", "T6")
@pytest.mark.parametrize(("schema", "value"), ORDINARY, ids=["file", "table", "tree", "allOf"])
def test_ordinary_schemas_and_values_are_checked(schema: Any, value: Any) -> None:
    checker = Checker(schema, fills=True)
    assert checker.faults(value) == ()
    assert checker.faults(value, msgspec.json.encode(value)) == ()
    assert checker.faults({**value, next(iter(value)): 1.5} if isinstance(value, dict) else value)
