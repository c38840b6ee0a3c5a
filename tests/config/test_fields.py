"""Taking fields one by one."""

from __future__ import annotations

from holdfast.config.fields import EntryFields, Form

FORMS: tuple[Form, ...] = ("text", "list", "flag", "seconds")


def fields(**raw: object) -> EntryFields:
    return EntryFields(raw, "/f.json", "one")


def test_the_first_name_that_is_there_counts() -> None:
    both = fields(a="1", b="2")
    assert both.read("text", "a", "b") == "1"
    assert both.read("text", "missing", "b") == "2"
    assert both.problems == ()


def test_null_is_the_same_as_nothing() -> None:
    nothing = fields(a=None)
    assert "a" not in nothing
    for form in FORMS:
        assert nothing.read(form, "a") is None
    assert (nothing.read("table", "a"), nothing.inner("a")) == ({}, None)
    assert nothing.problems == ()


def test_numbers_and_booleans_are_taken_as_written() -> None:
    assert fields(env={"A": 1, "B": True, "C": 0.5}).read("table", "env") == {
        "A": "1",
        "B": "true",
        "C": "0.5",
    }


def test_a_span_of_time_has_a_unit_and_an_end() -> None:
    assert fields(t=1500).read("seconds", "t", unit=0.001) == 1.5
    for odd in (0, -1, True, "1", float("inf"), float("nan")):
        wrong = fields(t=odd)
        assert wrong.read("seconds", "t") is None
        assert [problem.field for problem in wrong.problems] == ["t"]


def test_a_field_inside_is_named_with_its_way() -> None:
    outer = fields(holdfast={"allow": 5, "odd": 1})
    inner = outer.inner("holdfast")
    assert inner is not None
    inner.read("list", "allow")
    inner.rest()
    assert [problem.field for problem in outer.problems] == ["holdfast.allow", "holdfast.odd"]
