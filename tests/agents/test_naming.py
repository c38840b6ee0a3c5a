"""Names for language models: valid, unique, reversible, and the same whoever else is there."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast import ValidationError
from holdfast.agents.naming import LIMIT, Names, name_of, split
from tests.rows import rows

EVERYWHERE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""What OpenAI, Anthropic and Gemini all take."""

likely = st.text(alphabet="abAB01_-. /é", min_size=0, max_size=12)
anything = st.one_of(likely, st.text(max_size=120), st.from_regex(r"[a-z]{1,4}_[0-9a-f]{8}"))
pairs = st.tuples(anything.filter(bool), anything)


@pytest.mark.req("F3")
@rows(
    ("server", "tool", "name"),
    [
        ("git", "git_log", "git__git_log"),
        ("my-server", "read-file", "my-server__read-file"),
        ("a", "_b", "a___b"),
        ("a", "b__c", "a__b__c"),
        ("git", "log.all", "git__log_all_de25dabd"),
        ("a__b", "c", "a_b__c_bf3c0c39"),
        ("a_", "b", "a__b_dcd870fd"),
        ("3d", "draw", "_3d__draw_76981f4d"),
        ("x", "done_0123abcd", "x__done_0123abcd_22c3e0fe"),
        ("日本", "検索", "server__tool_66988e51"),
        ("x", "", "x__tool_553f121d"),
    ],
)
def test_a_name_is_readable_and_never_changes(server: str, tool: str, name: str) -> None:
    """Golden: prompts, logs and approvals of users hold these names."""
    assert name_of(server, tool) == name
    assert Names([(server, tool)]).resolve(name) == (server, tool)


@pytest.mark.req("F3")
@given(st.lists(pairs, max_size=30))
@example([("a", "b__c"), ("a__b", "c"), ("a_", "b"), ("a", "_b")])
@example([("x", "t_0123abcd"), ("x", "t.0123abcd")])
def test_names_are_valid_unique_and_reversible(found: list[tuple[str, str]]) -> None:
    names = Names(found)
    given_names = {pair: names.add(*pair) for pair in found}
    assert len(set(given_names.values())) == len(set(found)) == len(names)
    for pair, name in given_names.items():
        assert EVERYWHERE.fullmatch(name)
        assert names.resolve(name) == pair


@given(pairs, st.lists(pairs, max_size=10))
def test_a_name_does_not_depend_on_who_else_is_there(
    pair: tuple[str, str], others: list[tuple[str, str]]
) -> None:
    alone, before, after = Names([pair]), Names([*others, pair]), Names([pair])
    for other in others:
        after.add(*other)
    assert alone.add(*pair) == before.add(*pair) == after.add(*pair) == name_of(*pair)


@given(pairs)
def test_a_name_keeps_to_its_limit(pair: tuple[str, str]) -> None:
    assert len(name_of(*pair)) <= LIMIT


@given(pairs)
def test_a_plain_name_is_read_without_a_table(pair: tuple[str, str]) -> None:
    assert split(name_of(*pair)) in (pair, None)


def test_a_long_name_shows_both_parts() -> None:
    name = name_of("the-server-of-the-accounts-department", "list_every_open_invoice_of_a_year" * 2)
    assert len(name) == LIMIT
    assert name.startswith("the-server-of-the__list_every_open_invoice_of_a_")


def test_names_differ_in_case_alone() -> None:
    names = Names([("git", "Log"), ("git", "log")])
    assert [names.resolve(name) for name in ("git__Log", "git__log")] == [
        ("git", "Log"),
        ("git", "log"),
    ]


def test_two_hashes_that_meet_are_told_apart() -> None:
    """These two do: the later name has sixteen digits, and whoever is first is up to the order
    of the names, not of the servers."""
    first, second = ("s", "t/$&!~x"), ("s", "t//&=/x")
    assert name_of(*first) == name_of(*second) == "s__t_x_c23a1ca0"
    for order in ([first, second], [second, first]):
        names = Names(order)
        assert names.add(*first) == "s__t_x_c23a1ca0"
        assert re.fullmatch(r"s__t_x_[0-9a-f]{16}", names.add(*second))
        assert names.resolve(names.add(*second)) == second


def test_an_unknown_name_is_refused_with_those_nearby() -> None:
    names = Names([("git", "log.all"), ("time", "now")])
    with pytest.raises(ValidationError, match=r"'git__log_all_de25dab0'. Did you mean 'git__log_"):
        names.resolve("git__log_all_de25dab0")
    with pytest.raises(ValidationError, match="no tool is called 'nonsense'"):
        names.resolve("nonsense")


def test_a_plain_name_that_was_never_added_is_understood() -> None:
    assert Names().resolve("git__git_log") == ("git", "git_log")


def test_what_is_known_shows() -> None:
    names = Names([("a", "b")])
    assert list(names) == ["a__b"]
    assert repr(names) == "<Names 1 tools>"


@pytest.mark.req("F3")
def test_names_are_bounded_and_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.agents.naming.MOST", 3)
    names = Names(("s", f"t{number}") for number in range(3))
    names.add("s", "t0")
    names.add("s", "new")
    assert list(names) == ["s__t1", "s__t2", "s__new"]
    assert names.add("s", "t0") == "s__t0"
