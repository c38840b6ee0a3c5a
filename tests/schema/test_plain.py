"""Text from servers in terminals, logs and reviews."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.schema import plain

TRICKS = {
    "\x1b[31mred": "\\u001b[31mred",
    "a\nb\tc\r": "a\\nb\\tc\\r",
    "\u202eevil": "\\u202eevil",
    "zero\u200bwidth": "zero\\u200bwidth",
    "tag\U000e0041": "tag\\U000e0041",
    "hidden\ufe0f": "hidden\\ufe0f",
    "selector\U000e0101": "selector\\U000e0101",
    "\x9b2J": "\\u009b2J",
    "\ud800": "\\ud800",
}


@pytest.mark.req("H8")
@pytest.mark.parametrize(("text", "shown"), TRICKS.items())
def test_what_would_not_be_seen_is_shown_by_its_number(text: str, shown: str) -> None:
    assert plain.visible(text) == shown


@pytest.mark.req("H8")
@pytest.mark.parametrize("text", ["plain", "größer", "日本語", "→ …", "😀"])
def test_what_can_be_seen_stays(text: str) -> None:
    assert plain.visible(text) == text


@pytest.mark.req("H8")
@given(st.text())
def test_nothing_shown_controls_anything(text: str) -> None:
    for shown in (plain.visible(text), plain.quoted(text), plain.label(text), plain.json([text])):
        assert not {unicodedata.category(char) for char in shown} & {"Cc", "Cs", "Co", "Zl", "Zp"}
        assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200f")
        assert len(shown) < 12 * plain.LONGEST


def test_quotes_cannot_be_ended_from_inside() -> None:
    assert plain.quoted('a" and \\') == '"a\\" and \\\\"'


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("nav.goto", "nav.goto"),
        ("a b", '"a b"'),
        ("", '""'),
        ("x" * 500, f'"{"x" * 119}…"'),
        ("reаd", '"reаd"'),  # with a Cyrillic letter
    ],
)
def test_only_a_plain_name_goes_without_quotes(name: str, shown: str) -> None:
    assert plain.label(name) == shown


def test_a_value_too_deep_to_write_is_not_shown() -> None:
    deep: object = 1
    for _ in range(50_000):
        deep = [deep]
    assert plain.json(deep) == "a value too deep to show"
    while isinstance(deep, list):  # taken apart here: freeing it at once could be too deep as well
        deep = deep.pop()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (list("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_a_list_is_told_like_one(words: list[str], shown: str) -> None:
    assert plain.listing(words) == shown


@pytest.mark.req("H8")
@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a cat", "a dog", '"a cat" → "a dog"'),
        ("", "new", '"" → "new"'),
        ("aa", "aaa", '"aa" → "aaa"'),
        ("x" * 90 + "cat", "x" * 90 + "dog", f'"…{"x" * 24}cat" → "…{"x" * 24}dog"'),
        ("cat" + "x" * 90, "dog" + "x" * 90, f'"cat{"x" * 24}…" → "dog{"x" * 24}…"'),
        ("read", "reаd", '"read" → "reаd" (U+0061 became U+0430)'),
    ],
)
def test_a_difference_is_shown_where_it_is(before: str, after: str, shown: str) -> None:
    assert plain.difference(before, after) == shown


@pytest.mark.req("H8")
def test_a_long_difference_is_cut_in_its_middle() -> None:
    shown = plain.difference("Adds.", "Adds. " + "y" * 5_000 + " Then sends it to evil.example")
    assert len(shown) < 400
    assert "more characters" in shown
    assert shown.endswith('Then sends it to evil.example"')


@given(st.text("ab\n", max_size=40), st.text("ab\n", max_size=40))
def test_any_difference_can_be_shown(before: str, after: str) -> None:
    old, arrow, new = plain.difference(before, after).partition(" → ")
    assert arrow
    assert (old == new) <= (before == after)
