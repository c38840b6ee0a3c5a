"""Two versions of a schema: each change reported, and classed by what it means for callers."""

from __future__ import annotations

import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.schema.diff import MOST_ALTERNATIVES, TOO_MUCH, compare
from holdfast.schema.report import (
    ARGUMENT_IMPACTS,
    MOST,
    RESULT_IMPACTS,
    SchemaDiff,
    where,
    worst,
)
from holdfast.schema.walk import Budget
from tests.rows import rows
from tests.thorough import THOROUGH

PLENTY = 20_000


def report(before: Any, after: Any, *, returns: bool = False) -> SchemaDiff:
    return compare(before, after, Budget(PLENTY), returns=returns)


def told(before: Any, after: Any, *, returns: bool = False) -> list[str]:
    """What is said, as ``impact place: text``."""
    table = RESULT_IMPACTS if returns else ARGUMENT_IMPACTS
    return [
        f"{table[one.effect]} {where(one.place, 'whole')}: {one.text}"
        for one in report(before, after, returns=returns).changes
    ]


def one(**parameter: Any) -> dict[str, Any]:
    """A tool's arguments with a single parameter ``x``."""
    return {"type": "object", "properties": {"x": parameter}}


def needs(*names: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(names)}


STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NULL: dict[str, Any] = {"type": "null"}

PARAMETERS = [
    # parameters come and go
    (needs(), needs(x=STRING), "safe x: new optional parameter"),
    (needs(), needs("x", x=STRING), "breaking x: new required parameter"),
    (needs(), needs("x"), "breaking x: new required parameter"),
    (needs(x=STRING), needs(), "breaking x: removed"),
    (needs("x", x=STRING), needs(), "breaking x: removed"),
    (needs(x=STRING), needs("x", x=STRING), "breaking x: now required"),
    (needs("x", x=STRING), needs(x=STRING), "safe x: no longer required"),
    (needs(), needs("x", x={"default": 1}), "safe x: new optional parameter"),
    (needs(x=STRING), needs("x", x={**STRING, "default": ""}), 'wording x: new default: ""'),
    (needs("x", x=STRING), needs("x", x={**STRING, "default": ""}), "safe x: no longer required"),
    ({**needs(), "additionalProperties": STRING}, needs(x=INTEGER), "safe x: new optional"),
    (
        {**needs(), "additionalProperties": STRING},
        needs(x=INTEGER),
        "breaking x: changed from string",
    ),
    # other names
    (needs(), {**needs(), "additionalProperties": False}, "breaking whole: other names are no"),
    ({**needs(), "additionalProperties": False}, needs(), "safe whole: other names are now"),
    (
        {**needs(), "additionalProperties": STRING},
        {**needs(), "additionalProperties": INTEGER},
        "breaking *: changed from string to integer",
    ),
    # what stands for a parameter that is left out
    (one(default=1), one(default=2), "breaking x: left out, it now means 2, not 1"),
    (one(default=False), one(default=0), "breaking x: left out, it now means 0, not false"),
    (one(default=1), one(), "breaking x: left out, it no longer means 1"),
    (one(), one(default=1), "wording x: new default: 1"),
    (
        needs("x", x={"default": 1}),
        needs("x", x={"default": 2}),
        "breaking x: left out, it now means 2, not 1",
    ),
]

VALUES = [
    # types
    (one(type="string"), one(type="integer"), "breaking x: changed from string to integer"),
    (one(type="string"), one(), "safe x: changed from string to any type"),
    (one(), one(type="string"), "breaking x: changed from any type to string"),
    (one(type=["string", "null"]), one(type="string"), "breaking x: changed from null or string"),
    (one(type="string"), one(type=["string", "null"]), "safe x: changed from string to null or"),
    (one(type="integer"), one(type="number"), "safe x: changed from integer to number"),
    (one(type="number"), one(type="integer"), "breaking x: changed from number to integer"),
    # choices
    (one(enum=["a", "b"]), one(enum=["a"]), 'breaking x: no longer allows "b"'),
    (one(enum=["a"]), one(enum=["a", "b"]), 'safe x: now allows "b"'),
    (one(const="a"), one(const="b"), 'breaking x: no longer allows "a"'),
    (one(const="a"), one(enum=["a", "b"]), 'safe x: now allows "b"'),
    (one(enum=["a"]), one(type="string"), 'safe x: changed from "a" to string'),
    (one(enum=["a", 1]), one(type="string"), 'breaking x: changed from "a" and 1 to string'),
    (one(enum=["a"]), one(), 'safe x: changed from "a" to any type'),
    (one(type="string"), one(enum=["a", "b"]), 'breaking x: changed from string to "a" and "b"'),
    (one(enum=[1]), one(enum=[True]), "breaking x: no longer allows 1"),
    (one(enum=[True, None]), one(type="boolean"), "breaking x: changed from true and null to"),
    (one(enum=list("abcdefg")), one(enum=["a"]), '"b", "c", "d", "e", "f" and 1 more'),
    # bounds
    (one(minimum=1), one(minimum=5), "breaking x: now at least 5, was 1"),
    (one(minimum=5), one(minimum=1), "safe x: now at least 1, was 5"),
    (one(), one(minimum=1), "breaking x: now at least 1"),
    (one(maximum=1), one(), "safe x: no longer at most 1"),
    (one(maximum=5), one(maximum=1.5), "breaking x: now at most 1.5, was 5"),
    (one(minimum=1), one(exclusiveMinimum=1), "breaking x: now more than 1"),
    (one(exclusiveMaximum=1), one(maximum=1), "breaking x: now at most 1"),
    (one(maxLength=9), one(maxLength=5), "breaking x: now at most 5 characters, was 9"),
    (one(minLength=1), one(), "safe x: no longer at least 1 characters"),
    (one(maxItems=9), one(maxItems=10), "safe x: now at most 10 items, was 9"),
    (one(), one(minProperties=2), "breaking x: now at least 2 properties"),
    (one(multipleOf=2), one(multipleOf=4), "breaking x: now a multiple of 4, was 2"),
    (one(multipleOf=4), one(multipleOf=2), "breaking x: now a multiple of 2, was 4"),
    (one(multipleOf=4), one(), "safe x: no longer a multiple of 4"),
    (one(), one(multipleOf=0.1), "breaking x: now a multiple of 0.1"),
    # forms
    (one(), one(pattern="^a"), 'breaking x: now has to match the pattern "^a"'),
    (one(pattern="^a"), one(), 'safe x: no longer has to match the pattern "^a"'),
    (one(pattern="^a"), one(pattern="^b"), 'match the pattern "^b", was "^a"'),
    (one(), one(format="uri"), 'breaking x: now has to have the format "uri"'),
    (one(), one(uniqueItems=True), "breaking x: now has to have items that"),
    (one(uniqueItems=True), one(), "safe x: no longer has to have items"),
]

INSIDE = [
    (one(items=STRING), one(items=INTEGER), "breaking x[]: changed from string to integer"),
    (one(), one(items=STRING), "breaking x[]: changed from any type"),
    (one(prefixItems=[STRING]), one(prefixItems=[INTEGER]), "cannot be compared: prefixItems"),
    (one(), one(items=[STRING]), "breaking x: cannot be compared: tuples"),
    (one(**needs(y=STRING)), one(**needs("y", y=STRING)), "breaking x.y: now required"),
    (one(), one(items=False), "breaking x[]: changed from any type to nothing"),
]

ALTERNATIVES = [
    (one(type="string"), one(anyOf=[STRING, NULL]), "safe x: now allows null"),
    (one(anyOf=[STRING, NULL]), one(type="string"), "breaking x: no longer allows null"),
    (one(anyOf=[STRING, NULL]), one(type=["null", "string"]), "wording whole: written differently"),
    (one(anyOf=[STRING, NULL]), one(anyOf=[NULL, STRING]), "wording whole: written differently"),
    (
        one(anyOf=[{"type": "string", "maxLength": 9}, NULL]),
        one(anyOf=[{"type": "string", "maxLength": 5}, NULL]),
        "breaking x: now at most 5 characters, was 9",
    ),
    (
        one(anyOf=[{"const": "a"}, {"const": "b"}]),
        one(enum=["b", "a"]),
        "wording whole: written differently",
    ),
    (one(anyOf=[{"const": "a"}, {"const": "b"}]), one(const="b"), 'no longer allows "a"'),
    (one(), one(anyOf=[STRING, NULL]), "breaking x: changed from any type to string and"),
    (one(anyOf=[STRING, NULL]), one(anyOf=[STRING, NULL, INTEGER]), "safe x: now allows integer"),
    (one(anyOf=[INTEGER, NULL]), one(anyOf=[{"type": "number"}, NULL]), "safe x: changed from int"),
    (one(anyOf=[{"enum": ["a"]}, NULL]), one(anyOf=[STRING, NULL]), 'safe x: changed from "a" to'),
    (one(anyOf=[STRING, NULL]), one(), "safe x: now allows any type"),
    (
        one(anyOf=[needs(a=STRING), needs(b=STRING)]),
        one(anyOf=[needs(b=STRING), needs(c=STRING)]),
        "breaking x: no longer allows object of a",
    ),
    (
        {**one(anyOf=[needs(a={"$ref": "#/$defs/d"}), needs(b=STRING)]), "$defs": {"d": STRING}},
        {**one(anyOf=[needs(a={"$ref": "#/$defs/d"}), needs(b=STRING)]), "$defs": {"d": NULL}},
        "breaking x: no longer allows object of a",
    ),
    (
        one(oneOf=[needs("k", k={"const": "a"}), needs("k", k={"const": "b"})]),
        one(oneOf=[needs("k", k={"const": "a"})]),
        "breaking x: cannot be compared: its alternatives exclude each other",
    ),
    (
        one(oneOf=[needs("k", k={"const": "a"}), needs("k", k={"const": "b"})]),
        one(
            oneOf=[
                needs("k", "y", k={"const": "b"}, y=STRING),
                needs("k", k={"const": "a"}),
            ]
        ),
        "breaking x: cannot be compared: its alternatives exclude each other",
    ),
    (
        one(oneOf=[{**STRING, "title": "a"}, {"minLength": 3}]),
        one(oneOf=[{**STRING, "title": "b"}, {"minLength": 3}]),
        'wording x: title changed: "a" → "b"',
    ),
    (
        one(oneOf=[{"const": "a", "title": "A"}]),
        one(oneOf=[{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]),
        'safe x: now allows "b"',
    ),
    (
        one(oneOf=[STRING, NULL]),
        one(oneOf=[STRING, NULL, {"minLength": 3}]),
        "breaking x: cannot be compared: its alternatives exclude each other",
    ),
]

REFERENCES = [
    (
        {**one(**{"$ref": "#/$defs/a"}), "$defs": {"a": STRING}},
        {**one(**{"$ref": "#/$defs/a"}), "$defs": {"a": INTEGER}},
        "breaking x: changed from string to integer",
    ),
    (
        one(type="string"),
        {**one(**{"$ref": "#/$defs/a"}), "$defs": {"a": STRING}},
        "wording whole: written differently",
    ),
    (
        one(type="string"),
        {**one(allOf=[{"$ref": "#/definitions/a%20b~1c"}]), "definitions": {"a b/c": STRING}},
        "wording whole: written differently",
    ),
    (
        {**one(type="string"), "$defs": {"unused": STRING}},
        {**one(type="string"), "$defs": {"unused": INTEGER}},
        "wording whole: written differently",
    ),
    (
        {"properties": {"next": {"$ref": "#"}, "value": STRING}},
        {"properties": {"next": {"$ref": "#"}, "value": INTEGER}},
        "breaking value: changed from string to integer",
    ),
    (
        one(**{"$ref": "#/$defs/a"}),
        {**one(**{"$ref": "#/$defs/a"}), "$defs": {"a": STRING}},
        'breaking x: cannot be compared: it refers to "#/$defs/a"',
    ),
    (
        {**one(**{"$ref": "#a"}), "$defs": {"a": {"$anchor": "a", "type": "string"}}},
        {**one(**{"$ref": "#a"}), "$defs": {"a": {"$anchor": "a", "type": "integer"}}},
        "breaking x: changed from string to integer",
    ),
    (
        one(**{"$ref": "https://a.example/b.json"}, title="A"),
        one(**{"$ref": "https://a.example/b.json"}, title="B"),
        'wording x: title changed: "A" → "B"',
    ),
]

OTHERWISE = [
    (one(**{"not": STRING}), one(**{"not": INTEGER}), "breaking x: cannot be compared: not"),
    (one(), one(**{"not": STRING}), "breaking x: cannot be compared: not"),
    (one(**{"if": STRING}), one(), "breaking x: cannot be compared: if"),
    (one(patternProperties={"^a": STRING}), one(), "breaking x: cannot be compared: patternProp"),
    (one(surprise=1), one(surprise=2), "breaking x: cannot be compared: surprise"),
    (
        one(minimum="one"),
        one(minimum="two"),
        "breaking x: cannot be compared: minimum is",
    ),
    (one(), one(minimum="two"), "breaking x: cannot be compared: minimum is"),
    ("not a schema", 7, "breaking whole: "),
    (needs(), None, "breaking whole: "),
    (
        one(dependentRequired={"a": ["b"]}),
        one(dependentRequired={"a": ["c"]}),
        "breaking x: cannot be compared: dependentRequired",
    ),
    (
        {"$schema": "http://json-schema.org/draft-07/schema#", **needs()},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **needs()},
        "wording whole: written differently",
    ),
    (
        needs(),
        {"$schema": "http://json-schema.org/draft-04/schema#", **needs()},
        "breaking whole: cannot be compared: $schema",
    ),
]

WORDS = [
    (one(description="a cat"), one(description="a dog"), 'wording x: description changed: "a cat"'),
    (one(), one(description="a dog"), 'wording x: new description: "a dog"'),
    (one(title="T"), one(), 'wording x: title removed, was "T"'),
    (one(examples=[1]), one(examples=[2]), "wording x: examples changed: [1] → [2]"),
    (one(**{"$comment": "a"}), one(**{"$comment": "b"}), "wording x: $comment changed"),
    (one(**{"x-order": 1}), one(**{"x-order": 2}), "wording x: x-order changed"),
    (one(), one(**{"x-mcp-header": "Key"}), "breaking x: cannot be compared: x-mcp-header"),
    (
        one(anyOf=[STRING, {**NULL, "title": "a"}]),
        one(anyOf=[STRING, {**NULL, "title": "b"}]),
        "x: t",
    ),
]

CASES = [*PARAMETERS, *VALUES, *INSIDE, *ALTERNATIVES, *REFERENCES, *OTHERWISE, *WORDS]


@pytest.mark.req("H8", "H4")
@rows(("before", "after", "expected"), CASES)
def test_a_change_of_arguments_is_told_and_classed(before: Any, after: Any, expected: str) -> None:
    assert any(expected in line for line in told(before, after)), told(before, after)


@pytest.mark.req("H8")
@rows(
    ("before", "after", "expected"),
    [
        (needs(), needs(x=STRING), "safe x: new optional field"),
        (needs(), needs("x", x=STRING), "safe x: new required field"),
        (needs("x", x=STRING), needs(), "breaking x: removed"),
        (needs(x=STRING), needs(), "breaking x: removed"),
        (needs("x", x=STRING), needs(x=STRING), "breaking x: no longer required"),
        (needs(x=STRING), needs("x", x=STRING), "safe x: now required"),
        (one(enum=["a"]), one(enum=["a", "b"]), 'breaking x: now allows "b"'),
        (one(enum=["a", "b"]), one(enum=["a"]), 'safe x: no longer allows "b"'),
        (one(type="string"), one(anyOf=[STRING, NULL]), "breaking x: now allows null"),
        (one(maximum=5), one(maximum=9), "breaking x: now at most 9, was 5"),
        (one(maximum=9), one(maximum=5), "safe x: now at most 5, was 9"),
        (one(type="string"), one(enum=["a"]), 'safe x: changed from string to "a"'),
        ({**needs(), "additionalProperties": False}, needs(), "safe whole: other names"),
        (one(default=1), one(default=2), "wording x: default changed: 1 → 2"),
        (one(description="a"), one(description="b"), "wording x: description changed"),
    ],
)
def test_results_are_judged_the_other_way_round(before: Any, after: Any, expected: str) -> None:
    lines = told(before, after, returns=True)
    assert any(expected in line for line in lines), lines


@pytest.mark.req("H8")
@rows(
    ("before", "after"),
    [
        (one(type=["string"]), one(type="string")),
        (one(), one(additionalProperties=True)),
        (one(items={}), one(items=True)),
        (one(const="a"), one(enum=["a"])),
        (one(enum=[1]), one(enum=[1.0])),
        (one(type="string", minLength=1), one(allOf=[STRING, {"minLength": 1}])),
        (one(anyOf=[STRING]), one(type="string")),
        (one(oneOf=[STRING, NULL]), one(anyOf=[STRING, NULL])),
        (one(anyOf=[STRING, {"anyOf": [NULL, INTEGER]}]), one(type=["integer", "null", "string"])),
        (needs("a", "b", a={}, b={}), needs("b", "a", b={}, a={})),
    ],
)
def test_the_same_said_otherwise_is_only_wording(before: Any, after: Any) -> None:
    for one_way, other_way in ((before, after), (after, before)):
        for returns in (False, True):
            (line,) = told(one_way, other_way, returns=returns)
            assert line == "wording whole: written differently, to the same effect"


@pytest.mark.req("H8")
def test_a_definition_used_twice_is_told_at_both_places() -> None:
    def users(user: dict[str, Any]) -> dict[str, Any]:
        both = {"$ref": "#/$defs/user"}
        return {"properties": {"a": both, "b": both}, "$defs": {"user": user}}

    assert told(users(needs(n=STRING)), users(needs("n", n=STRING))) == [
        "breaking a.n: now required",
        "breaking b.n: now required",
    ]


@pytest.mark.req("H8")
def test_odd_names_do_not_pass_for_places() -> None:
    lines = told({}, {"properties": {"[]": {}, "*": {}, "a b": {}, "\x1b[2J": {}}})
    assert lines == [
        'safe "\\x1b[2J": new optional parameter',
        'safe "*": new optional parameter',
        'safe "[]": new optional parameter',
        'safe "a b": new optional parameter',
    ]


def test_a_definition_has_its_texts_told_once_and_those_of_a_new_one_too() -> None:
    both = {"$ref": "#/$defs/user"}
    before: dict[str, Any] = {"properties": {"a": both, "b": both}}
    lines = told(
        {**before, "$defs": {"user": {"title": "A"}}},
        {**before, "$defs": {"user": {"title": "B"}, "new": {"items": {"description": "C"}}}},
    )
    assert lines == [
        'wording $defs.new[]: new description: "C"',
        'wording $defs.user: title changed: "A" → "B"',
    ]


def test_what_is_not_told_still_counts() -> None:
    found = SchemaDiff()
    for _ in range(MOST):
        found.add("told", "wording")
    found.add("not told", "narrower")
    assert len(found.changes) == MOST
    assert found.effects == {"wording", "narrower"}


@pytest.mark.parametrize(
    ("place", "text"),
    [((), "arguments"), (("a", "b"), "a.b"), (("a", "[]", "[0]", "*"), "a[][0].*")],
)
def test_a_place_reads_like_code(place: tuple[str, ...], text: str) -> None:
    assert where(place, "arguments") == text
    assert where(("a",), "result", "result") == "result.a"


def test_the_worst_of_several() -> None:
    assert worst(["wording", "breaking", "safe"]) == "breaking"
    assert worst(["wording", "safe"]) == "safe"
    assert worst([]) is None


# Schemas that have no plain form


@pytest.mark.req("H8")
@rows(
    "parameter",
    [
        7,
        {"exclusiveMinimum": True},
        {"allOf": []},
        {"allOf": [{"properties": {"a": {}}}], "additionalProperties": False},
        {"allOf": [{"if": {}}], "then": {}},
        {"allOf": [{"type": "object"}], "unevaluatedProperties": False},
        {"allOf": [{"type": "null"}], "type": "string"},
        {"allOf": [{"pattern": "a"}], "pattern": "b"},
        {"$ref": "#/missing"},
        {"$ref": "other.json#/a"},
        {"$ref": "#/$defs/a", "minimum": 1},
        {"$ref": "#/properties/x/examples/0", "examples": [{}]},
        {"oneOf": [{"minimum": 1}, {"maximum": 2}]},
        {"anyOf": [{"oneOf": [{"minimum": 1}, {"maximum": 2}]}, {"minimum": 3}]},
        {"anyOf": [{"minimum": at} for at in range(MOST_ALTERNATIVES + 1)]},
    ],
)
def test_what_has_no_plain_form_is_breaking(parameter: Any) -> None:
    def schema(**more: Any) -> Any:
        return {"properties": {"x": parameter}, "$defs": {"a": {}}, **more}

    if isinstance(parameter, dict):
        longer = {"properties": {"x": {**parameter, "maxItems": 5}}, "$defs": {"a": {}}}
        assert any(line.startswith("breaking x: cannot") for line in told(schema(), longer))
    assert told(schema(), {"$defs": {"a": {}}, "properties": {"x": {"items": {}}}})


@pytest.mark.req("H8")
def test_an_example_that_a_reference_leads_to_is_no_mere_text() -> None:
    def schema(example: Any) -> Any:
        return {**one(**{"$ref": "#/examples/0"}), "examples": [example]}

    assert "breaking x: cannot be compared: it refers to" in told(schema(STRING), schema(NULL))[0]


# Hostile schemas


def nested(depth: int, end: Any) -> Any:
    schema = end
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def doubling(keyword: str, steps: int, end: Any) -> dict[str, Any]:
    """Every definition refers to the next one twice."""
    defs: dict[str, Any] = {
        f"d{at}": {keyword: [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(steps)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{steps}": end}}


def branching(steps: int, end: Any) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"d{at}": {"properties": {side: {"$ref": f"#/$defs/d{at + 1}"} for side in "lr"}}
        for at in range(steps)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{steps}": end}}


HOSTILE = {
    "deep": (nested(200, STRING), nested(200, INTEGER)),
    "very deep": (nested(5_000, STRING), nested(5_000, INTEGER)),
    "allOf doubling": (doubling("allOf", 60, STRING), doubling("allOf", 60, INTEGER)),
    "anyOf doubling": (doubling("anyOf", 60, STRING), doubling("anyOf", 60, INTEGER)),
    "oneOf doubling": (doubling("oneOf", 60, STRING), doubling("oneOf", 60, INTEGER)),
    "properties doubling": (branching(30, STRING), branching(30, INTEGER)),
    "references in a circle": (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    ),
    "circles of another length": (
        {"properties": {"a": {"properties": {"a": {"$ref": "#"}, "b": STRING}}, "b": STRING}},
        {"properties": {"a": {"$ref": "#"}, "b": INTEGER}},
    ),
    "wide": (
        {"properties": {f"p{at}": STRING for at in range(50_000)}},
        {"properties": {f"p{at}": INTEGER for at in range(50_000)}},
    ),
    "many alternatives": (
        {"anyOf": [needs(f"p{at}") for at in range(500)]},
        {"anyOf": [needs(f"q{at}") for at in range(500)]},
    ),
    "some alternatives": (
        {"anyOf": [needs(f"p{at}", **{f"p{at}": STRING}) for at in range(40)]},
        {"anyOf": [needs(f"q{at}", **{f"q{at}": STRING}) for at in range(40)]},
    ),
    "large choice": ({"enum": list(range(100_000))}, {"enum": list(range(1, 100_001))}),
    "huge numbers": (one(multipleOf=10**400), one(multipleOf=1.5)),
    "long texts": ({"description": "a" * 2_000_000 + "b"}, {"description": "a" * 2_000_000 + "c"}),
}


ONLY_WORDING = ("long texts",)


@pytest.mark.req("H8")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_costs_little_and_is_never_called_safe(name: str) -> None:
    before, after = HOSTILE[name]
    started = time.process_time()
    found = report(before, after)
    assert time.process_time() - started < 10, "a guard against hanging, not a measurement"
    assert sum(len(one.text) for one in found.changes) < 60_000
    impact = worst(ARGUMENT_IMPACTS[effect] for effect in found.effects)
    assert impact == ("wording" if name in ONLY_WORDING else "breaking")


@pytest.mark.req("H8")
def test_what_takes_too_long_is_said_to() -> None:
    found = compare(*HOSTILE["wide"], Budget(100))
    assert [(one.text, one.effect) for one in found.changes] == [(TOO_MUCH, "different")]


# Any JSON at all

KEYWORDS = st.sampled_from(
    [
        *("type", "enum", "const", "properties", "required", "items", "prefixItems", "not", "if"),
        *("additionalProperties", "anyOf", "oneOf", "allOf", "$ref", "$defs", "minimum", "title"),
        *("exclusiveMaximum", "maxLength", "pattern", "multipleOf", "description", "default", "a"),
        *("patternProperties", "$id", "$schema"),
    ]
)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["string", "object", "integer", "#", "#/$defs/a", "#/properties/a", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.req("H8")
@pytest.mark.thorough
@settings(max_examples=300 if THOROUGH else 100)
@given(before=JSON, after=JSON, returns=st.booleans())
def test_nothing_raises_and_a_difference_is_never_silent(
    before: Any, after: Any, returns: bool
) -> None:
    found = report(before, after, returns=returns)
    assert bool(found.effects) == bool(found.changes)
    if not found.effects:
        assert report(after, before).effects == frozenset()


@pytest.mark.req("H8")
@given(schema=JSON)
def test_a_schema_does_not_differ_from_itself(schema: Any) -> None:
    assert report(schema, shuffled(schema)).changes == []


def shuffled(value: Any) -> Any:
    """The same with its keys the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(part) for part in value] if isinstance(value, list) else value


# A validator as the judge

SMALL = st.sampled_from([None, True, 0, 1, 2, 1.5, "", "a", "ab"])
VALUE = st.recursive(
    SMALL,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=4,
)
TYPE = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SCHEMA = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPE | st.lists(TYPE, min_size=1, max_size=3, unique=True),
            "enum": st.lists(SMALL, min_size=1, max_size=3),
            "const": SMALL,
            "minimum": st.integers(0, 2),
            "exclusiveMaximum": st.integers(0, 3),
            "maxLength": st.integers(0, 2),
            "minItems": st.integers(0, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        },
    )
    | st.just({"$ref": "#/$defs/d"})
    | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPE,
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
        },
    ),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    schema = draw(SCHEMA)
    return {**(schema if isinstance(schema, dict) else {}), "$defs": {"d": draw(SCHEMA)}}


@st.composite
def relatives(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two schemas that share much: one is the other with a part exchanged."""
    before = draw(documents())
    other = draw(documents())
    keys = draw(st.sets(st.sampled_from(sorted({*before, *other}))))
    after = {**{key: value for key, value in before.items() if key not in keys}}
    return before, {**after, **{key: other[key] for key in keys if key in other}}


def accepts(schema: Any, value: Any) -> bool | None:
    """None if the schema is one that the validator does not take, such as an endless one."""
    try:
        return bool(jsonschema_rs.Draft202012Validator(schema).is_valid(value))
    except (ValueError, jsonschema_rs.ValidationError):
        return None


@pytest.mark.req("H8")
@pytest.mark.thorough
@settings(max_examples=120 if THOROUGH else 100)
@given(pair=relatives(), values=st.lists(VALUE, min_size=6, max_size=6))
def test_what_is_called_safe_is_safe(pair: tuple[Any, Any], values: list[Any]) -> None:
    before, after = pair
    effects = report(before, after).effects
    assume(effects <= {"wider", "wording"} or effects <= {"narrower", "wording"})
    for value in values:
        old, new = accepts(before, value), accepts(after, value)
        if old is None or new is None:
            continue
        if "wider" not in effects:
            assert old or not new, "more fits, and it was not said"
        if "narrower" not in effects:
            assert new or not old, "less fits, and it was not said"
