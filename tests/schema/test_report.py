"""Reports: bounded in what they tell, complete in what they mean."""

from __future__ import annotations

import pytest

from holdfast.schema.report import MOST, SchemaDiff, named, where, worst


def test_what_is_not_told_still_counts() -> None:
    found = SchemaDiff()
    for _ in range(MOST):
        found.add("told", "wording")
    found.add("not told", "narrower")
    below = SchemaDiff()
    below.add("not told either", "wider")
    found.include(below, "below")
    assert len(found.changes) == MOST
    assert found.effects == {"wording", "narrower", "wider"}


def test_a_report_is_included_with_its_place() -> None:
    inner, outer = SchemaDiff(), SchemaDiff()
    inner.add("now required", "narrower", "b")
    outer.include(inner, "a", "[]")
    assert outer.changes[0].place == ("a", "[]", "b")


@pytest.mark.parametrize(
    ("place", "text"),
    [((), "arguments"), (("a", "b"), "a.b"), (("a", "[]", "[0]", "*"), "a[][0].*")],
)
def test_a_place_reads_like_code(place: tuple[str, ...], text: str) -> None:
    assert where(place, "arguments") == text


def test_a_place_in_the_result_says_so() -> None:
    assert where(("a",), "result", "result") == "result.a"


def test_a_name_is_no_sign() -> None:
    assert [named(name) for name in ("a", "*", "[]")] == ["a", '"*"', '"[]"']


def test_the_worst_of_several() -> None:
    assert worst(["wording", "breaking", "safe"]) == "breaking"
    assert worst(["wording", "safe"]) == "safe"
    assert worst([]) is None
