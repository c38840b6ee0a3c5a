"""Commands on pages are understood as the program itself would understand them."""

from __future__ import annotations

from tests.docs.commands import commands, fault
from tests.rows import rows


def test_a_block_is_taken_apart() -> None:
    text = (
        "$ NO_COLOR=1 holdfast tools demo | head -3  # the first\n"
        "holdfast call add \\\n  a=2 b:='[3]' -- python server.py > out.txt\n"
    )
    assert [command for command in commands(text) if command] == [
        ["holdfast", "tools", "demo"],
        ["head", "-3"],
        ["holdfast", "call", "add", "a=2", "b:=[3]", "--", "python", "server.py"],
        ["out.txt"],
    ]


@rows(
    "words",
    [
        "--help",
        "tools --help",
        "tools",
        "tools --offline git",
        "call git.git_log repo_path=. max_count:=5 message=@file",
        "call get_current_time timezone=Europe/Warsaw --timeout 5 -- python --not-ours",
        "servers --files",
        "config trust demo",
    ],
)
def test_a_good_command_has_no_fault(words: str) -> None:
    assert fault(words.split()) is None


@rows(
    ("words", "told"),
    [
        ("", "no verb ''"),
        ("tols", "no verb 'tols'"),
        ("config shwo", "no verb 'shwo'"),
        ("tools --ofline", "No such option"),
        ("tools --timeout x", "'x'"),
        ("call", "Missing argument"),
        ("call add --timeout soon", "'soon'"),
    ],
)
def test_a_bad_command_is_told(words: str, told: str) -> None:
    assert told in str(fault(words.split()))
