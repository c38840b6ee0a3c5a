"""Hostile schemas and values, as `tests.schema.hostile` generates them, hold nothing up.

Work is counted, which gives the same on every machine: the functions that Holdfast calls, and how
often the validator compiles a schema or applies it to a value. `make hostile` measures time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from cProfile import Profile
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from holdfast.schema.faults import Unusable
from holdfast.schema.validate import Checker
from holdfast.schema.walk import IGNORED, MAX_DEPTH, MAX_NODES, MAX_WORK, STEPS, rewrite
from tests.schema import hostile
from tests.schema.hostile import Case
from tests.thorough import is_taken

CALLS = 250_000
"""Calls of functions that take about 25 ms."""
COMPILED = 2_000
"""Schemas compiled, which takes about 10 ms."""
VISITS = 200_000
"""Schemas applied to values, which takes about 10 ms."""


class Counter:
    """Counts what the validator does, by a keyword that it meets in every schema."""

    def __init__(self, schema: Any) -> None:
        self.compiled = self.visits = 0
        counter = self

        class Counted:
            def __init__(self, *_: Any) -> None:
                counter.compiled += 1

            def validate(self, _: Any) -> None:
                counter.visits += 1
                if counter.visits > 2 * VISITS:
                    raise ValueError("nothing fits any more, so that it comes to an end")

        self._validator = jsonschema_rs.validator_for(
            marked(schema),
            pattern_options=jsonschema_rs.RegexOptions(),
            keywords=dict.fromkeys(("x-counted", *IGNORED), Counted),
            validate_formats=False,
            offline=True,
        )

    def check(self, value: Any) -> None:
        self._validator.is_valid(value)


def marked(schema: Any) -> Any:
    """Return a schema with the keyword in all schemas inside it."""
    if not isinstance(schema, dict):
        return schema
    return {"x-counted": True, **rewrite(schema, lambda part: marked(part.schema))}


def calls(case: Case) -> tuple[int, bool]:
    """Return how many functions are called, and whether the value was checked."""
    text, profile, checked = case.text, Profile(), True
    profile.enable()
    try:
        Checker(case.schema, fills=True).faults(case.value, text)
    except Unusable:
        checked = False
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats()), checked


def work(case: Case) -> tuple[int, int, int]:
    """Return functions called, schemas compiled, and schemas applied to values."""
    called, checked = calls(case)
    if not checked:
        return called, 0, 0
    try:
        counter = Counter(case.schema)
    except ValueError:  # it has patterns that Holdfast leaves out
        return called, 0, 0
    counter.check(case.value)
    return called, counter.compiled, counter.visits


def too_much(cases: Iterator[Case]) -> list[tuple[str, tuple[int, int, int]]]:
    found = [(case.name, work(case)) for case in cases if is_taken(3, case.name)]
    return [row for row in found if any(map(int.__gt__, row[1], (CALLS, COMPILED, VISITS)))]


@pytest.mark.req("T5", "T6")
@pytest.mark.thorough
@pytest.mark.parametrize("family", hostile.FAMILIES, ids=lambda family: family.__name__)
def test_no_schema_and_value_hold_the_interpreter(family: Callable[[], Iterator[Case]]) -> None:
    assert too_much(family()) == []


@pytest.mark.req("T5", "T6")
@pytest.mark.thorough
def test_no_random_schema_and_value_hold_the_interpreter() -> None:
    assert too_much(hostile.random_cases(1, 150)) == []


@pytest.mark.req("T5")
def test_the_bounds_are_those_of_one_budget() -> None:
    assert (MAX_DEPTH, MAX_NODES, MAX_WORK) == (100, 4_000, 5_000)
    assert STEPS == 250


@pytest.mark.req("T5")
def test_the_count_finds_what_has_no_bound() -> None:
    nested = hostile.written(
        hostile.WRAPS["anyOf"], {"unevaluatedProperties": False}, {"type": "object"}, 20
    )
    counter = Counter(nested)
    counter.check({"a": 1, "b": 2})
    assert counter.visits > VISITS
    assert work(Case("nested", nested, {"a": 1, "b": 2}))[1:] == (0, 0)


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
