"""What a server repeats of the secrets that it was given is not shown to the person."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Seen

SECRET = 'blue-7/x "y"'
SERVER = [sys.executable, str(Path(__file__).parents[1] / "redact" / "echo_server.py")]


def is_shown(text: str) -> bool:
    return "blue-7" in text


@pytest.mark.req("T8")
@pytest.mark.parametrize("words", [["--json"], ["-v"], []], ids=["json", "verbose", "plain"])
def test_what_a_server_says_of_itself_shows_no_secret(cli: Cli, words: list[str]) -> None:
    done = cli("doctor", *words, "--env", f"ECHO_1={SECRET}", "--", *SERVER)
    assert done.code == 0
    assert "[redacted]" in done.out
    assert not is_shown(done.out + done.err)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "words", [["tools"], ["describe"], ["describe", "echo"], ["search", "tool"]]
)
def test_what_a_server_offers_is_shown_without_secrets(
    cli: Cli, seen: Seen, words: list[str]
) -> None:
    server = ["--env", f"ECHO_TOOL={SECRET}", "--", *SERVER]
    shown = cli(*words, *server).out
    assert "echo" in shown or words[0] == "search"
    assert not is_shown(shown)
    assert not is_shown(seen(*words, *server).raw.decode())


@pytest.mark.req("T8")
@pytest.mark.parametrize("how", ["tool_error", "error", "stderr", "junk"])
@pytest.mark.parametrize("words", [["--json"], ["-vv"], []], ids=["json", "verbose", "plain"])
def test_no_secret_is_shown_to_the_person(cli: Cli, how: str, words: list[str]) -> None:
    arguments = ["wrap=JSON", "place=alone", f"how={how}"]
    done = cli("call", "echo", *arguments, *words, "--env", f"ECHO_1={SECRET}", "--", *SERVER)
    assert done.code == (1 if how.endswith("error") else 0)
    assert "[redacted]" in done.err or not how.endswith("error")
    assert not is_shown(done.err)


@pytest.mark.req("T8")
def test_a_note_on_the_name_of_a_tool_shows_no_secret(cli: Cli, tmp_path: Path) -> None:
    module = str(tmp_path / "made.py")
    done = cli("codegen", "-o", module, "--env", f"ECHO_TOOL={SECRET}", "--", *SERVER)
    assert done.code == 0
    assert "is called" in done.err
    assert not is_shown(done.err)


@pytest.mark.req("T8")
@pytest.mark.parametrize("words", [["--json"], []], ids=["json", "plain"])
def test_a_file_to_be_shared_that_has_a_secret_in_it_is_named(
    cli: Cli, tmp_path: Path, words: list[str]
) -> None:
    made, locked = str(tmp_path / "made.py"), str(tmp_path / "holdfast.lock")
    plain = ["--env", "ECHO_1=word", "--", *SERVER]
    server = ["--env", f"ECHO_TOOL={SECRET}", "--", *SERVER]
    assert "Look at" not in cli("lock", "--as", "x", "--lock", locked, *words, *plain).err
    done = cli("check", "--lock", locked, *words, *server)
    assert done.code == 6
    assert "[redacted]" in done.out
    assert not is_shown(done.out + done.err)
    for command in (["codegen", "-o", made], ["lock", "--as", "x", "--lock", locked]):
        done = cli(*command, *words, *server)
        assert done.code == 0
        assert "and repeats in the tool" in (done.out if words else done.err)
        assert "Look at the file" in (done.out if words else done.err)
        assert not is_shown(done.err + done.out)
