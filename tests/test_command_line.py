"""Command lines as people write them, on each system."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.command_line import split_windows, split_words
from holdfast._core.transports.windows_command import quoted
from tests.rows import rows


@pytest.mark.req("S5")
@rows(
    ("line", "words"),
    [
        (r"C:\Users\me\server.exe", [r"C:\Users\me\server.exe"]),
        (r'"C:\My Tools\node.exe" a\b "c d"', [r"C:\My Tools\node.exe", r"a\b", "c d"]),
        (r'"a b c" d e', ["a b c", "d", "e"]),
        (r'"ab\"c" "\\" d', ['ab"c', "\\", "d"]),
        (r'a\\\b d"e f"g h', [r"a\\\b", "de fg", "h"]),
        (r"a\\\"b c d", [r"a\"b", "c", "d"]),
        (r'a\\\\"b c" d e', [r"a\\b c", "d", "e"]),
        ("a  b\tc ", ["a", "b", "c"]),
        ('a "" b', ["a", "", "b"]),
        ("'a b'", ["'a", "b'"]),  # single quotes mean nothing there
        ("a\\ b\\", ["a\\", "b\\"]),
        ("", []),
    ],
)
def test_a_line_is_split_as_windows_splits_it(line: str, words: list[str]) -> None:
    assert split_words(line, "win32") == words


@pytest.mark.req("S5")
@given(st.lists(st.text(st.sampled_from('ab "\\\t\n%^'), max_size=10)))
def test_what_is_quoted_is_split_again(words: list[str]) -> None:
    assert split_windows(" ".join(map(quoted, words))) == words


@pytest.mark.parametrize("platform", ["win32", "linux"])
def test_a_quotation_that_is_not_closed_is_refused(platform: str) -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        split_words('server "a b', platform)


def test_elsewhere_a_shell_is_the_model() -> None:
    assert split_words(r"a\ b 'c d'", "linux") == ["a b", "c d"]
