"""What a schema asks of one value. The table of cases is in test_schemas.py."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.schema.constraints import ARGUMENTS, compare
from holdfast.schema.report import Findings, Report


def compared(before: dict[str, Any], after: dict[str, Any]) -> tuple[bool, Report]:
    found = Findings()
    return compare(before, after, ARGUMENTS, found), found.report()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"type": "string"}, {"type": "integer", "minimum": 1}),
        ({"const": "a"}, {"const": "b", "minLength": 1}),
        ({"type": "integer"}, {"enum": ["a"]}),
        ({"enum": ["a"]}, {"type": "integer", "minimum": 1}),
    ],
)
def test_where_nothing_is_left_in_common_the_rest_is_not_told(before: Any, after: Any) -> None:
    common, report = compared(before, after)
    assert not common
    assert not any("at least" in one.text for one in report.findings)
    assert not report.harmless


def test_values_of_a_new_kind_widen_a_choice() -> None:
    _, report = compared({"type": "integer"}, {"enum": [None, 1]})
    assert report.effects == {"narrower", "wider"}


def test_of_two_bounds_the_tighter_counts() -> None:
    _, report = compared({"minimum": 3}, {"minimum": 1, "exclusiveMinimum": 3})
    assert [one.text for one in report.findings] == ["now more than 3, was 3"]


def test_numbers_too_large_for_a_float_are_compared() -> None:
    _, report = compared({"maximum": 10**400}, {"maximum": 1.5})
    assert report.effects == {"narrower"}
