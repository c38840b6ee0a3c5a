"""When calls are the same, and how differences are told."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from holdfast._core.redact.redactor import Redactor
from holdfast.calllog.compare import (
    brief,
    compare,
    describe,
    differences,
    has_hidden,
    normal,
    normal_arguments,
)
from holdfast.policies import Redaction
from holdfast.schema.types import canonical
from tests.rows import rows

REDACTOR = Redactor(Redaction())


@pytest.mark.req("G5")
@rows(
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
    keys = [canonical(normal_arguments(given, REDACTOR)) for given in (one, other)]
    assert (keys[0] == keys[1]) is same


def test_what_is_blacked_out_fits_anything() -> None:
    assert has_hidden({"a": [{"b": "see [redacted]"}]})
    assert not has_hidden({"[redacted]": 1})

    def fits(recorded: Any, given: Any) -> bool:
        return not list(differences(recorded, given, hidden=True))

    assert fits({"a": "[redacted]", "b": 1}, {"a": {"any": "thing"}, "b": 1})
    assert not fits({"a": "[redacted]", "b": 1}, {"a": 1, "b": 2})
    assert not fits({"a": "[redacted]"}, {})


def test_differences_name_their_places() -> None:
    one = {"a": {"b": [1, 2]}, "c": "x"}
    other = {"a": {"b": [1, 3, 4]}, "d": None}
    found = list(differences(one, other))
    assert [(each.path, each.first, each.second) for each in found] == [
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


def call(name: str, arguments: Any, result: Any = "ok", ms: int = 1, **rest: Any) -> list[str]:
    head = {"name": name, "arguments": arguments}
    end = {"_result": result, "_ok": True, "_ms": ms, "_seq": 1, **rest}
    return [
        json.dumps({**head, "_phase": "before", "_seq": 1}),
        json.dumps({**head, "_phase": "after", **end}),
    ]


ONE = [*call("open", {"a": 1}), *call("goto", {"url": "x"}), *call("close", {})]


@pytest.mark.req("G5")
def test_the_same_calls_are_the_same_however_long_they_took() -> None:
    other = [*call("open", {"a": 1.0}, ms=9), *call("goto", {"url": "x"}), *call("close", {})]
    found = compare(ONE, other)
    assert not found
    assert str(found) == "3 calls are the same, 0 not"


@pytest.mark.req("G5")
def test_differences_are_told_call_by_call(tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    first.write_text("\n".join([*ONE, *call("snap", {}, {"n": 1}), *call("x", {})]) + "\n")
    failed = call("close", {}, _ok=False, _error="no luck")
    other = [
        *call("open", {"a": 1}),
        *call("wait", {}),
        *call("goto", {"url": "y"}),
        *failed,
        *call("snap", {}, {"n": 2}),
    ]
    second.write_text("\n".join(other) + "\n")
    found = compare(first, str(second))
    assert str(found) == (
        f"--- {first}\n"
        f"+++ {second}\n"
        "1 call is the same, 5 not\n"
        "+ 'wait' (line 3)\n"
        "! 'goto' (line 3, then 5): other arguments\n"
        '    url: first "x", then "y"\n'
        "! 'close' (line 5, then 7): other outcome\n"
        "    ok, then failed (no luck)\n"
        "! 'snap' (line 7, then 9): other outcome\n"
        "    result.n: first 1, then 2\n"
        "- 'x' (line 9)"
    )
    assert [one.kind for one in found] == ["added", "arguments", "outcome", "outcome", "removed"]


def test_errors_are_compared_by_their_words() -> None:
    one, other = (call("t", {}, _ok=False, _error=word) for word in ("a", "b"))
    assert not compare(one, one)
    assert [change.details for change in compare(one, other)] == [("failed (a), then failed (b)",)]
    assert [change.details for change in compare(one, one[:1])] == [("failed (a), then not ended",)]


def test_long_results_are_compared_as_far_as_they_are_known(tmp_path: Path) -> None:
    short, long = (call("t", {}, f"[text {size} chars]") for size in (300, 400))
    assert not compare(short, short)
    assert compare(short, long)
    assert not compare(short, call("t", {}, "x" * 300))
    (tmp_path / "s").mkdir()
    for number, text in enumerate(("x", "x", "y")):
        (tmp_path / "s" / f"{number}-t.txt").write_text(text * 300)
        line = "\n".join(call("t", {}, f"[text 300 chars → s/{number}-t.txt]"))
        (tmp_path / f"{number}.jsonl").write_text(line)
    logs = [tmp_path / f"{number}.jsonl" for number in range(3)]
    assert not compare(logs[0], logs[1])
    assert compare(logs[0], logs[2])


def test_nothing_and_something() -> None:
    empty = '{"name":"t","arguments":{},"_phase":"after","_ok":true,"_ms":1,"_seq":1}'
    (change,) = compare([empty], call("t", {}, None))
    assert change.details == ("result: first nothing, then null",)
    assert not compare([], [])


def test_long_logs_are_compared_quickly() -> None:
    many = call("poll", {}) * 3000
    found = compare([*many, *call("a", {}), *many], [*many, *call("b", {}), *many])
    assert (found.same, len(found.items)) == (6000, 2)


NAMES = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1)), max_size=8)


@given(NAMES, NAMES)
def test_every_call_is_accounted_for(one: Any, other: Any) -> None:
    logs = [[line for name, n in calls for line in call(name, {"n": n})] for calls in (one, other)]
    found = compare(*logs)
    both = found.same + sum(
        change.first is not None and change.second is not None for change in found
    )
    assert both + sum(change.second is None for change in found) == len(one)
    assert both + sum(change.first is None for change in found) == len(other)
    assert bool(found) is (one != other)


@pytest.mark.req("G5")
def test_logs_that_repeat_their_calls_are_compared_in_linear_time() -> None:
    """The time of `difflib` grew with the third power: 12 s for a tenth of this."""

    def log(names: str) -> list[dict[str, Any]]:
        return [{"name": name, "arguments": {}} for name in names]

    began = time.process_time()
    found = compare(log("ab" * 5000), log("bba" * 5000))
    assert time.process_time() - began < 30
    assert found.same > 7400


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_every_call_of_both_logs_is_accounted_for(first: str, second: str) -> None:
    def log(names: str) -> list[dict[str, Any]]:
        return [{"name": name, "arguments": {}} for name in names]

    found = compare(log(first), log(second))
    kinds = [change.kind for change in found]
    assert found.same + kinds.count("removed") == len(first)
    assert found.same + kinds.count("added") == len(second)
