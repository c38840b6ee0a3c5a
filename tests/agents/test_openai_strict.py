"""OpenAI's strict mode: closed, all required, nulls for what is left out, and back again."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.agents import openai_strict
from holdfast.agents.openai_strict import LEVELS, NotStrict
from holdfast.agents.schemas import Losses, object_root, restore
from tests.rows import rows

TEXT = {"type": "string"}


def to_strict(schema: dict[str, Any], report: Losses) -> dict[str, Any]:
    return openai_strict.to_strict(object_root(schema, report, plain=True), report)


def of(properties: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **rest}


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return of(properties, required=list(properties), additionalProperties=False)


@pytest.mark.req("F3")
@rows(
    ("optional", "nullable"),
    [
        (TEXT, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a", "b"]}, {"enum": ["a", "b", None], "type": ["string", "null"]}),
        (
            {"type": "string", "const": "a"},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"anyOf": [TEXT, {"type": "integer"}]},
            {"anyOf": [TEXT, {"type": "integer"}, {"type": "null"}]},
        ),
        ({"type": "array", "items": TEXT}, {"type": ["array", "null"], "items": TEXT}),
    ],
)
def test_what_may_be_left_out_may_be_null(
    optional: dict[str, Any], nullable: dict[str, Any]
) -> None:
    assert to_strict(of({"a": optional}), Losses()) == closed({"a": nullable})
    assert restore({"a": "x"}, of({"a": optional})) == {"a": "x"}


def test_what_is_required_stays_as_it_is() -> None:
    assert to_strict(of({"a": TEXT}, required=["a"]), Losses()) == closed({"a": TEXT})


def test_objects_inside_are_closed_as_well() -> None:
    inner = of({"b": TEXT}, required=["b"])
    found = to_strict(of({"a": inner, "l": {"type": "array", "items": inner}}), Losses())
    assert found["properties"]["a"] == {**closed({"b": TEXT}), "type": ["object", "null"]}
    assert found["properties"]["l"]["items"] == closed({"b": TEXT})


def test_references_are_resolved() -> None:
    schema = of({"a": {"$ref": "#/$defs/A"}}, required=["a"], **{"$defs": {"A": TEXT}})
    assert to_strict(schema, Losses()) == closed({"a": TEXT})


def described(text: str) -> dict[str, Any]:
    return {"type": "string", "description": text}


@rows(
    ("node", "kept", "lost"),
    [
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}, []),
        ({"type": "string", "format": "uri"}, described("format: uri"), ["format"]),
        ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a+$"}, []),
        ({"type": "string", "pattern": "(?=a)"}, described("pattern: (?=a)"), ["pattern"]),
        ({"type": "string", "minLength": 2}, described("minLength: 2"), ["minLength"]),
        ({"type": "integer", "minimum": 1}, {"type": "integer", "minimum": 1}, []),
        ({"type": "string", "not": {"const": "a"}}, TEXT, ["not"]),
        ({"oneOf": [TEXT, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}, ["oneOf"]),
        ({"type": "string", "$comment": "x"}, TEXT, []),
        (
            of({"b": TEXT}, required=["b"], additionalProperties=True),
            closed({"b": TEXT}),
            ["additionalProperties"],
        ),
    ],
)
def test_what_strict_mode_does_not_know_is_told(
    node: dict[str, Any], kept: dict[str, Any], lost: list[str]
) -> None:
    report = Losses()
    found = to_strict(of({"a": node}, required=["a"]), report)
    assert found["properties"]["a"] == kept
    assert [loss.keyword for loss in report] == lost


def nested(levels: int) -> dict[str, Any]:
    node: dict[str, Any] = of({"a": TEXT})
    for _ in range(levels):
        node = of({"a": node})
    return node


@rows(
    ("schema", "why"),
    [
        (of({"a": {}}), "takes any value"),
        (of({"a": True}), "takes any value"),
        (of({"a": {"type": "object"}}), "an object of any keys"),
        (of({"a": of({})}), "an object of any keys"),
        (of({}, additionalProperties=True), "takes arguments of any name"),
        (of({"a": {"type": "array"}}), "a list of any values"),
        (of({"a": {"type": "array", "items": {}}}), "takes any value"),
        (of({"a": {"$ref": "#"}}), "leads back to itself"),
        (nested(LEVELS), "nested deeper than 10 levels"),
        (of({"a": {"enum": list(map(str, range(1001)))}}), "more than 1000 enum values"),
        (of({f"p{i}": TEXT for i in range(5001)}), "more than 5000 properties"),
    ],
)
def test_what_cannot_be_strict_is_not(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(NotStrict, match=why):
        to_strict(schema, Losses())


def test_no_arguments_at_all_are_strict() -> None:
    assert to_strict({"type": "object"}, Losses()) == closed({})


LOOSE = of(
    {
        "must": {"type": ["string", "null"]},
        "may": TEXT,
        "null": {"type": ["string", "null"]},
        "inner": of({"x": TEXT, "y": TEXT}, required=["x"]),
        "list": {"type": "array", "items": of({"z": TEXT})},
        "either": {"anyOf": [of({"k": TEXT}), of({"m": TEXT, "n": TEXT})]},
        "tagged": {
            "anyOf": [
                of({"tag": {"enum": ["a"]}, "x": TEXT}, required=["tag", "x"]),
                of({"tag": {"enum": ["b"]}, "x": TEXT}, required=["tag"]),
                of({"tag": {"enum": ["c"]}, "x": {"type": "null"}}, required=["tag"]),
            ]
        },
    },
    required=["must"],
)


@rows(
    ("given_", "meant"),
    [
        ({"must": None, "may": None, "null": None}, {"must": None, "null": None}),
        ({"inner": {"x": "1", "y": None}}, {"inner": {"x": "1"}}),
        ({"list": [{"z": None}, {"z": "1"}]}, {"list": [{}, {"z": "1"}]}),
        ({"either": {"m": None, "n": "1"}}, {"either": {"n": "1"}}),
        ({"unknown": None}, {"unknown": None}),
        ({"tagged": {"tag": "b", "x": None}}, {"tagged": {"tag": "b"}}),
        ({"tagged": {"tag": "c", "x": None}}, {"tagged": {"tag": "c", "x": None}}),
        ({"tagged": {"tag": "a", "x": None}}, {"tagged": {"tag": "a", "x": None}}),
    ],
)
def test_nulls_for_what_was_left_out_are_taken_out(given_: Any, meant: Any) -> None:
    assert restore(given_, LOOSE) == meant
