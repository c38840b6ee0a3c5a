"""When calls are the same, and how differences are told."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from holdfast._core.redact import Redactor
from holdfast.calllog.compare import (
    brief,
    describe,
    differences,
    fits,
    has_hidden,
    key,
    nearest,
    normal,
    normal_arguments,
)
from holdfast.calllog.entries import Entry
from holdfast.policies import Redaction

REDACTOR = Redactor(Redaction())


@pytest.mark.req("G5")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": -0.0}, {"a": 0}, True),
        ({"a": [1.0, {"b": 2}]}, {"a": [1, {"b": 2.0}]}, True),
        ({"password": "x"}, {"password": "y"}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": None}, {}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 2**60}, {"a": float(2**60)}, False),
    ],
)
def test_equal_calls_have_equal_keys(one: Any, other: Any, same: bool) -> None:
    keys = [key("t", normal_arguments(given, REDACTOR)) for given in (one, other)]
    assert (keys[0] == keys[1]) is same


def test_what_is_blacked_out_fits_anything() -> None:
    assert has_hidden({"a": [{"b": "see [redacted]"}]})
    assert not has_hidden({"[redacted]": 1})
    assert fits({"a": "[redacted]", "b": 1}, {"a": {"any": "thing"}, "b": 1})
    assert not fits({"a": "[redacted]", "b": 1}, {"a": 1, "b": 2})
    assert not fits({"a": "[redacted]"}, {})


def test_differences_name_their_places() -> None:
    one = {"a": {"b": [1, 2]}, "c": "x"}
    other = {"a": {"b": [1, 3, 4]}, "d": None}
    found = list(differences(one, other))
    assert [(each.path, each.one, each.other) for each in found] == [
        ("a.b[1]", 2, 3),
        ("a.b[2]", UNSET, 4),
        ("c", "x", UNSET),
        ("d", UNSET, None),
    ]
    assert describe(found[:2]) == "a.b[1]: recorded 2, now 3; a.b[2]: recorded nothing, now 4"
    assert describe(differences(1, 2), "first", "then") == "the whole: first 1, then 2"


def test_only_a_few_differences_are_told() -> None:
    text = describe(differences(list(range(20)), []))
    assert text.endswith("; and 12 more")


def test_long_values_are_cut() -> None:
    assert brief("x" * 500) == '"' + "x" * 78 + "…"
    assert normal({"a": [1.0]}) == {"a": [1]}


def test_the_nearest_call_is_the_one_with_fewest_differences() -> None:
    known = [
        (Entry(name="t", arguments=given, line=line), given)
        for line, given in enumerate(({"a": 1, "b": 1}, {"a": 2, "b": 3}), 1)
    ]
    entry, found = nearest({"a": 2, "b": 4}, known)
    assert entry.line == 2
    assert describe(found) == "b: recorded 3, now 4"
