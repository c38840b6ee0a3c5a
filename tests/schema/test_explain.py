"""Faults in words: where, what was wanted, what came, what may have been meant."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw, json

from holdfast.schema.explain import MOST
from holdfast.schema.faults import SchemaFault, lines
from holdfast.schema.validate import Checkers
from tests.rows import rows


def told(schema: Any, value: Any) -> list[str]:
    return [str(fault) for fault in Checkers().get(Raw(json.encode(schema))).faults(value)]


@pytest.mark.req("T5", "E1")
@rows(
    ("schema", "value", "sentence"),
    [
        (
            {"properties": {"q": {"type": "string", "description": "Words"}}, "required": ["q"]},
            {},
            "'q' is required and missing; it is string (Words)",
        ),
        (
            {"properties": {"o": {"enum": ["up", "down"]}}, "required": ["o"]},
            {},
            '\'o\' is required and missing; it is one of "up", "down"',
        ),
        (
            {"properties": {"query": {}, "limit": {}}, "additionalProperties": False},
            {"qurey": 1},
            "not known: 'qurey' (did you mean 'query'?); there are: query, limit",
        ),
        (
            {"properties": {"n": {"type": "integer"}}},
            {"n": "5"},
            '/n: must be integer, not string "5"',
        ),
        ({"properties": {"n": {"type": "integer"}}}, {"n": None}, "/n: must be integer, not null"),
        ({"type": ["null", "string"]}, True, "must be null or string, not true"),
        (
            {"properties": {"o": {"enum": ["asc", "desc"]}}},
            {"o": "ascc"},
            '/o: must be one of "asc", "desc", not "ascc" (did you mean \'asc\'?)',
        ),
        ({"const": 4}, 5, "must be 4, not 5"),
        ({"pattern": "^a+$"}, "b", 'must match the pattern ^a+$, not "b"'),
        ({"maximum": 10}, 30, "30 is greater than the maximum of 10"),
        (False, 1, "nothing is allowed here, not even 1"),
        (
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            1.5,
            "fits none of the alternatives: (1) must be string, not number 1.5; "
            "(2) must be integer, not number 1.5",
        ),
        (
            {"anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "integer"}}}]},
            {"b": "x"},
            "fits none of the alternatives: (1) 'a' is required and missing; "
            '(2) b: must be integer, not string "x"',
        ),
        ({"oneOf": [True, True]}, 3, "fits more than one of the alternatives: 3"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value[:30],
)
def test_a_fault_is_a_sentence_to_act_on(schema: Any, value: Any, sentence: str) -> None:
    assert told(schema, value) == [sentence]


@pytest.mark.req("T5")
def test_a_long_value_is_cut() -> None:
    (sentence,) = told({"type": "integer"}, "x" * 100_000)
    assert len(sentence) < 300


@pytest.mark.req("T5")
def test_there_are_not_too_many_faults_to_read() -> None:
    found = told({"items": {"type": "string"}}, list(range(100)))
    assert len(found) == MOST + 1
    assert found[-1] == "and more"


def test_the_same_fault_is_told_once() -> None:
    assert len(told({"allOf": [{"type": "string"}, {"type": "string"}]}, 1)) == 1


def test_faults_are_a_list_to_read() -> None:
    assert (
        lines([SchemaFault("/a", "is wrong"), SchemaFault("", "so is all")])
        == "  - /a: is wrong\n  - so is all"
    )
