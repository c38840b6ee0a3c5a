"""Files of variables."""

from __future__ import annotations

import pytest

from holdfast.config.envfile import EnvFile, parse


def test_lines_of_names_and_values() -> None:
    text = """
# comment
A=1
export B = two words  # comment
C='single # $A'
D="double\\n\\"x\\" \\q"
E=
F=a=b#c
"""
    assert parse(text) == {
        "A": "1",
        "B": "two words",
        "C": "single # $A",
        "D": 'double\n"x" \\q',
        "E": "",
        "F": "a=b#c",
    }


def test_a_line_that_is_none_is_told_by_number() -> None:
    with pytest.raises(ValueError, match="line 2 is not NAME=value"):
        parse("A=1\nrm -rf /")


def test_a_file_that_is_not_there_or_no_text() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        EnvFile(path="/x").variables()
    with pytest.raises(ValueError, match="is not text"):
        EnvFile(path="/x", data=b"\xff\xfe").variables()
