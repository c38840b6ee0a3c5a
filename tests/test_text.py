"""Strangers' text is shown with every unseen character escaped, the same on every Python."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from holdfast._core import text
from tests.rows import rows

UNSEEN = [
    *("\x00", "\x1b", "\x7f", "\x85", "\x9b", "\xad", "\u034f", "\u061c", "\u115f", "\u17b4"),
    *("\u180e", "\u200b", "\u200d", "\u200e", "\u2028", "\u2029", "\u202e", "\u2060", "\u2064"),
    *("\u2066", "\u206f", "\u2800", "\u3164", "\ud800", "\udfff", "\ue000", "\ufdd0", "\ufe0f"),
    *("\ufeff", "\uffa0", "\ufff9", "\ufffe", "\U0001d173", "\U0001fffe", "\U000e0001"),
    *("\U000e0041", "\U000e007f", "\U000e0100", "\U000f0000", "\U0010ffff"),
]


@rows("char", UNSEEN)
def test_an_unseen_character_is_escaped_everywhere(char: str) -> None:
    assert text.has_unseen(f"a{char}b")
    name = text.escape(char)
    assert name.isascii()
    for shown in (
        text.visible(f"a{char}b"),
        text.visible_lines(f"a{char}b"),
        text.quote(f"a{char}b"),
        text.label(f"a{char}b"),
        text.one_line(f"a{char}b"),
        text.show_json({f"a{char}b": 1}),
        text.did_you_mean("aab", [f"a{char}b", "aXb"], 2),
        text.difference("ab", f"a{char}b"),
        *text.split_lines(f"a{char}b"),
    ):
        assert char not in shown


@given(st.text())
def test_nothing_that_python_calls_a_control_or_format_character_gets_through(raw: str) -> None:
    shown = text.visible(raw)
    hidden = {"Cc", "Zl", "Zp", "Cs", "Co"}
    assert not [char for char in shown if unicodedata.category(char) in hidden]
    assert text.visible(shown) == shown


@given(st.text())
def test_escaped_json_is_the_same_value(raw: str) -> None:
    raw = raw.encode("utf-8", "replace").decode()
    encoded = json.dumps({"a": raw}, ensure_ascii=False, indent=1)
    shown = text.visible_json(encoded)
    assert json.loads(shown) == {"a": raw}
    assert not [line for line in shown.split("\n") if text.has_unseen(line)]


def test_lines_keep_their_breaks_and_tabs() -> None:
    assert text.visible_lines("a\tb\r\nc\xa0d\rX\x1b[0m") == "a\tb\nc d\\rX\\x1b[0m"
    assert text.split_lines("a\tb\u2028c\r\nd\x0be") == ["a   b", "c", "d", "e"]


def test_ordinary_text_of_all_scripts_is_left_alone() -> None:
    for raw in ("naïve", "日本語", "Ελληνικά", "हिन्दी", "عربى", "🎉 x", "\ufffd", "é"):
        assert text.visible(raw) == raw


def test_texts_are_truncated_with_an_ellipsis() -> None:
    assert text.truncate("abcdef", 4) == "abc…"
    assert text.truncate("abcd", 4) == "abcd"
    assert len(text.visible("x" * 1000, 120)) == 120
    assert text.one_line(" a \n\n b\t c ", 50) == "a b c"


def test_a_quoted_text_cannot_close_its_quotes() -> None:
    assert text.quote('a"b\\c\n') == '"a\\"b\\\\c\\n"'
    assert text.label("tools/call") == "tools/call"
    assert text.label("a b") == '"a b"'


def test_json_is_shown_on_one_line() -> None:
    assert text.show_json({"b": 1, "a": "x\ny"}) == '{"a":"x\\ny","b":1}'
    assert text.show_json("x") == '"x"'
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert text.show_json(deep) == "a value that JSON cannot hold"


def test_near_names_are_suggested_whatever_the_names_are() -> None:
    assert text.did_you_mean("serch", ["search", "fetch"]) == "did you mean 'search'?"
    assert text.did_you_mean("lists", ["list", "lint"], 2) == "did you mean 'list' or 'lint'?"
    assert text.did_you_mean("zzz", ["search"]) == ""
    assert text.close_matches("x" * 100_000, ["y" * 100_000] * 100_000) == []


def test_words_are_joined() -> None:
    assert text.join_words(["a"]) == "a"
    assert text.join_words(["a", "b"]) == "a and b"
    assert text.join_words(["a", "b", "c"]) == "a, b and c"
    assert text.join_words(list("abcdefg"), 3) == "a, b, c and 4 more"
