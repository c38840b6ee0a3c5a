"""The entrance: help and version at once, and nothing loaded that is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

import holdfast
from holdfast.cli import app, guide, tool_cache
from holdfast.cli.app import ServerCommand
from holdfast.cli.main import FIRST, MOVED, SECTIONS, VERBS, WITHOUT_SERVER, help_text
from tests.cli import golden
from tests.cli.conftest import Cli, Open, Seen
from tests.cli.rig import tools
from tests.cli.terminal import PATIENCE, interruptible
from tests.rows import rows


@pytest.mark.req("F3")
@pytest.mark.parametrize("columns", [120, 80, 40])
def test_the_first_screen_fits_the_window(seen: Seen, columns: int) -> None:
    golden.check(f"help-{columns}", seen("--help", columns=columns).lines)


@pytest.mark.req("F3")
@pytest.mark.parametrize("columns", [120, 80, 40])
def test_the_help_of_a_verb_fits_the_window(seen: Seen, columns: int) -> None:
    golden.check(f"help-call-{columns}", seen("call", "--help", columns=columns).lines)


@pytest.mark.req("N3")
@pytest.mark.parametrize(
    ("topic", "columns"),
    [("--all", 120), ("--all", 80), ("servers", 120), ("servers", 80), ("servers", 40)],
)
def test_the_other_helps_fit_the_window(seen: Seen, topic: str, columns: int) -> None:
    name = topic.removeprefix("--")
    golden.check(f"help-{name}-{columns}", seen("help", topic, columns=columns).lines)


def test_a_real_window_is_measured(terminal: Open) -> None:
    one = terminal("--help", columns=40, lines=100)
    assert one.end() == 0
    assert one.screen.lines == (golden.FOLDER / "help-40.txt").read_text().splitlines()


@pytest.mark.parametrize("words", [[], ["-h"], ["help"]])
def test_help_is_easy_to_ask_for(cli: Cli, words: list[str]) -> None:
    done = cli(*words)
    assert (done.code, done.out, done.err) == (0, help_text() + "\n", "")


def test_help_can_be_asked_about_a_verb(cli: Cli) -> None:
    done = cli("help", "call")
    assert done.out == cli("call", "--help").out
    assert cli("help", "config", "trust").out == cli("config", "trust", "--help").out
    assert cli("help", "ls").out == cli("servers", "--help").out
    assert cli("help", "nonsense").code == 2


def test_every_verb_is_in_the_help(cli: Cli) -> None:
    lines = [line.split(None, 1) for line in cli("help", "--all").out.splitlines()]
    for name, (_, summary) in VERBS.items():
        assert [name, summary] in lines


@pytest.mark.req("N3")
def test_the_first_screen_has_about_fifteen_verbs() -> None:
    assert VERBS.keys() >= FIRST
    assert 13 <= len(FIRST) <= 18
    assert len(help_text().splitlines()) <= 45
    shown = {line.split()[0] for line in help_text().splitlines() if line.startswith("  ")}
    assert shown - {"holdfast"} == FIRST


@pytest.mark.req("N3")
def test_how_servers_are_named_and_their_options_are_in_one_place(cli: Cli) -> None:
    text = cli("help", "servers").out
    for option in app.OPTIONS:
        assert option.name == "output" or option.opts[-1] in text
    for verb in ("tools", "call", "doctor"):
        assert "--inherit-env" not in cli(verb, "--help").out
        assert cli(verb, "--help").out.endswith("holdfast help servers.\n")


@pytest.mark.req("N3")
@pytest.mark.parametrize("path", MOVED)
def test_a_verb_that_there_was_points_to_what_does_its_work(cli: Cli, path: str) -> None:
    done = cli(*path.split(), "x", "--", "y")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"holdfast: '{path}' is gone. Use: {MOVED[path]}\n"
    words = MOVED[path].split()
    assert words[0] != "holdfast" or words[1] in VERBS


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_the_version(cli: Cli, word: str) -> None:
    assert cli(word).out == f"holdfast {holdfast.__version__}\n"


@pytest.mark.req("F3")
def test_ctrl_c_while_modules_are_loaded_is_quiet(home: Path, tmp_path: Path) -> None:
    slow = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    (tmp_path / "click.py").write_text(slow, encoding="utf-8")
    done = subprocess.run(
        interruptible([sys.executable, "-m", "holdfast", "servers"]),
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full is of Linux")
@pytest.mark.parametrize("words", [["--help"], ["version"], ["tools", "git", "--offline"]])
def test_output_that_cannot_be_written_is_one_line(home: Path, words: list[str]) -> None:
    tool_cache.save("git", tools({"name": "log"}))
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("holdfast: stdout: cannot be written: No space")
    assert "Error" not in done.stderr


# What is loaded

PROBE = """
import os, sys
from holdfast.cli.main import main
out = os.dup(1)
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
code = main(sys.argv[1:])
os.write(out, " ".join(sorted(sys.modules)).encode())
sys.exit(code)
"""


def loaded(*words: str) -> set[str]:
    """The modules that a command line has loaded by its end."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def heavy(modules: set[str]) -> set[str]:
    names = ("click", "asyncio", "msgspec", "aiohttp", "logging", "jsonschema_rs")
    return modules & {*names, "holdfast.client", "holdfast.config", "shutil", "tempfile"}


@pytest.mark.req("F3")
def test_help_loads_next_to_nothing(home: Path) -> None:
    modules = loaded("--help")
    assert heavy(modules) == set()
    ours = {name for name in modules if name.startswith("holdfast.cli.")}
    assert ours == {"holdfast.cli.main"}


HARD = {"name": "lög", "description": "one\ttwo\nthree\x1b[31m", "inputSchema": {"type": "object"}}


@pytest.mark.req("F3")
def test_what_is_remembered_is_listed_at_once(home: Path) -> None:
    tool_cache.save("git", tools({"name": "log", "description": "x"}))
    modules = loaded("tools", "git", "--offline")
    assert heavy(modules) == set()
    assert not modules & {"typing", "pathlib", "holdfast.cli.output"}


@pytest.mark.req("F3")
def test_stored_lines_are_those_that_the_verb_writes(cli: Cli, home: Path) -> None:
    tool_cache.save("git", tools(HARD, {"name": "add", "inputSchema": {"properties": {"a": {}}}}))
    at_once = cli("tools", "git", "--offline")
    by_verb = cli("tools", "git", "--offline", "--timeout", "5")
    assert at_once == by_verb
    assert "lög()\tone two\n" in at_once.out
    assert at_once.err.startswith("as seen on 20")


@pytest.mark.req("F3")
def test_lines_of_another_version_are_made_anew(cli: Cli, home: Path) -> None:
    tool_cache.save("git", tools({"name": "log"}))
    path = Path(tool_cache.path_for("git"))
    text = path.read_text().replace(holdfast.__version__, "0.0.1").replace("log()", "OLD")
    path.write_text(text)
    assert "OLD" in text
    assert cli("tools", "git", "--offline").out == "log()\t\n"


@pytest.mark.req("F3")
@pytest.mark.parametrize("words", [["--offline"], ["--offline", "git", "x"], ["--offline", "-x"]])
def test_other_words_are_read_by_the_verb(cli: Cli, home: Path, words: list[str]) -> None:
    tool_cache.save("git", tools({"name": "log"}))
    assert cli("tools", *words).out == ""


@pytest.mark.req("F3")
def test_a_server_that_was_never_seen_is_told_so(cli: Cli, home: Path) -> None:
    done = cli("tools", "nobody", "--offline")
    assert done.code == 2
    assert "nobody: not seen yet" in done.err
    assert cli("tools", "n\udcffy", "--offline").code == 2


# The table of verbs


@pytest.mark.req("F3")
@rows("name", VERBS)
def test_a_verb_is_where_the_table_says(name: str) -> None:
    command = guide.command(name)
    assert isinstance(command, click.Command)
    assert command.name == name
    parts = {name: command}
    if isinstance(command, click.Group) and name not in WITHOUT_SERVER:
        parts = {f"{name} {part}": below for part, below in command.commands.items()}
    for path, part in parts.items():
        assert isinstance(part, ServerCommand) is (path not in WITHOUT_SERVER)
    assert command.help


def test_no_verb_is_in_two_sections() -> None:
    assert sum(len(part) for part in SECTIONS.values()) == len(VERBS)
