"""The options that every verb about a server has."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from holdfast.cli.app import pairs
from tests.cli.conftest import DEMO, Cli
from tests.cli.rig import puppet


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-inf", "", "1s", "x"])
def test_a_time_is_more_than_none(cli: Cli, text: str) -> None:
    done = cli("status", "--timeout", text, "--", "never-started")
    assert done.code == 2
    assert "is not a valid float" in done.err or "must be more than 0" in done.err


def test_pairs_are_taken_apart_at_the_first_mark() -> None:
    assert pairs("--env", ("A=b=c", "D=")) == {"A": "b=c", "D": ""}
    assert pairs("--header", ("X-Y: z:z", "A:b"), ":") == {"X-Y": "z:z", "A": "b"}
    for text in ("A", "=b", " =b"):
        with pytest.raises(click.UsageError, match="must be NAME=VALUE"):
            pairs("--env", (text,))


@pytest.mark.req("T8")
def test_a_secret_without_its_name_is_not_shown() -> None:
    for option, mark in (("--env", "="), ("--header", ":")):
        with pytest.raises(click.UsageError) as raised:
            pairs(option, (f"{mark}my-Value-9981x",), mark)
        assert raised.value.message == f"{option} …: must be NAME{mark}VALUE"


@pytest.mark.req("F3")
def test_a_command_gets_its_variables_and_its_folder(cli: Cli, tmp_path: Path) -> None:
    script = "import os, sys; sys.exit(f'{os.getcwd()} {os.environ.get(\"A_B\")}')"
    done = cli("tools", "--env", "A_B=c d", "--cwd", str(tmp_path), "--", DEMO[0], "-c", script)
    assert done.code == 3
    assert f"{tmp_path} c d" in done.err


@pytest.mark.req("F3")
def test_verbose_shows_what_the_server_says_and_what_the_client_does(process: Cli) -> None:
    command = puppet(stderr="hello from the server")
    done = process("tools", "--verbose", "--", *command)
    assert "hello from the server" in done.err
    assert "initializing → ready" in done.err
    assert process("tools", "--", *command).err == ""


@pytest.mark.req("F3")
def test_a_revision_can_be_pinned(cli: Cli) -> None:
    done = cli("status", "--protocol", "2025-06-18", "--json", "--", *DEMO)
    assert done.value["servers"][0]["protocol"] == "2025-06-18"
    done = cli("tools", "--protocol", "1999-01-01", "--", *DEMO)
    assert done.code == 2
    assert "not a revision we speak" in done.err


@pytest.mark.req("F3")
def test_calls_are_logged_and_locks_are_kept(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    assert cli("call", "echo", "text=x", "--log", str(log), "--", *DEMO).code == 0
    assert '"echo"' in log.read_text(encoding="utf-8")
    lock = str(tmp_path / "lock")
    assert cli("lock", "--lock", lock, "--as", "demo", "--", *puppet()).code == 0
    done = cli("call", "echo", "--lock", lock, "--json", "--", *puppet(tools=["other"]))
    assert (done.code, done.error["kind"]) == (6, "drift")
