"""Choosing a revision, and declaring what we can do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.eras.base import Era, best, declare
from holdfast._core.eras.handshake import Handshake
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, VERSIONS
from holdfast._core.eras.stateless import Stateless


@pytest.mark.req("L3")
def test_we_speak_five_revisions_newest_first() -> None:
    assert VERSIONS == ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
    assert STATELESS + HANDSHAKE == VERSIONS
    assert list(VERSIONS) == sorted(VERSIONS, reverse=True)


@pytest.mark.req("L3")
def test_the_newest_common_revision_is_best_whatever_the_order() -> None:
    assert best(["2024-11-05", "2025-06-18", "1999-01-01"], HANDSHAKE) == "2025-06-18"
    assert best(["2031-01-01"], VERSIONS) is None
    assert best([], VERSIONS) is None


@pytest.mark.req("L3")
@given(st.lists(st.sampled_from(VERSIONS) | st.text() | st.none() | st.lists(st.integers())))
def test_whatever_is_offered_the_best_is_one_of_both(offered: list[object]) -> None:
    found = best(offered, VERSIONS)
    common = [version for version in VERSIONS if version in offered]
    assert found == (common[0] if common else None)


@pytest.mark.req("P4")
def test_only_what_has_a_handler_is_declared() -> None:
    assert declare([], {}, changes=True) == {}
    assert declare(["sampling"], {}, changes=True) == {"sampling": {}}
    both = declare(["elicitation.form", "elicitation.url"], {}, changes=False)
    assert both == {"elicitation": {"form": {}, "url": {}}}


@pytest.mark.req("P4")
def test_changes_of_roots_are_declared_where_they_can_be_told() -> None:
    assert declare(["roots"], {}, changes=True) == {"roots": {"listChanged": True}}
    assert declare(["roots"], {}, changes=False) == {"roots": {}}


@pytest.mark.req("X5")
def test_what_the_user_declares_has_the_last_word() -> None:
    extra = {"experimental": {"x": {}}, "roots": {"listChanged": False}}
    assert declare(["roots"], extra, changes=True) == extra


def test_both_eras_answer_every_question() -> None:
    eras: list[Era] = [Handshake("2025-11-25"), Stateless("2026-07-28", {}, {})]
    questions = {name for name in vars(Era) if not name.startswith("_")} | set(Era.__annotations__)
    for era in eras:
        assert all(hasattr(era, question) for question in questions)
        assert era.version in repr(era)
