"""``holdfast shell``: a prompt over one kept connection."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli import tool_cache
from holdfast.cli.readline_lines import completer
from holdfast.cli.verbs.shell import ask, editing, history_file
from tests.cli.conftest import DEMO, Cli, Open
from tests.cli.rig import puppet, told, wait_for


def prompt() -> str:
    """As it is for a server that is started by Python."""
    return f"{Path(DEMO[0]).name}> "


# Lines through a pipe


@pytest.mark.req("F3")
def test_lines_come_through_a_pipe(cli: Cli) -> None:
    lines = [
        *("# a comment", "", "echo text='two words'", "call add a=1 b:=2", "state"),
        *("note name=x text=kept", "read demo://note/x", "prompt greeting name=Bo", "prompts"),
        *("resources", "describe add", "tools", "help"),
    ]
    done = cli("shell", "--", *DEMO, stdin="\n".join(lines))
    assert done.code == 0
    assert done.err == "holdfast-demo 1.0.0: 12 tools. 'help' helps.\n"
    out = done.out.splitlines()
    assert out[:5] == [
        *("two words", '{"sum": 3}', "ready", "wrote demo://note/x", "kept"),
    ]
    assert "Write a friendly greeting to Bo." in out
    assert "greeting\tname [style]\tAsks a model to greet somebody" in out
    assert "holdfast call add a=1 b=1" in out
    assert out[-1].startswith("help, exit")


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        ("fail message=no\necho text=on", 1, "holdfast: fail: no"),
        ("ech text=x", 2, "There is no tool 'ech'. Did you mean 'echo'?"),
        ("tols", 2, "There is no tool 'tols'. Did you mean 'tools'?"),
        ("echo", 2, "'text' is required and missing"),
        ("echo 'text", 2, "not understood: No closing quotation"),
        ("call", 2, "Missing argument 'TOOL'."),
        ("read", 2, "Missing: URI."),
        ("tools --url http://x", 2, "Server options are given to the shell"),
        ("read demo://nope", 1, "resource not found"),
        ("prompt", 2, "Missing argument 'PROMPT'."),
        ("prompt tour y", 2, "'y' is no argument: write name=value"),
        ("fail\nexit\necho text=never", 1, "failed, as asked"),
        ("quit", 0, ""),
        ("", 0, ""),
    ],
)
def test_a_script_is_told_what_failed_last(cli: Cli, lines: str, code: int, said: str) -> None:
    done = cli("shell", "--", *DEMO, stdin=lines)
    assert done.code == code
    assert said in done.err
    assert done.out == ("on\n" if "text=on" in lines else "")


def test_json_lines_for_a_program(cli: Cli) -> None:
    lines = ["echo text=x", "tools", "resources", "prompts", "describe add", "fail"]
    done = cli("shell", "--json", "--", *DEMO, stdin="\n".join(lines))
    found = [json.loads(line) for line in done.out.splitlines()]
    assert len(found) == len(lines)
    assert found[0]["content"][0]["text"] == "x"
    assert done.error["message"] == "fail: failed, as asked"


def test_one_connection_serves_all_lines(cli: Cli, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    command = puppet(journal=str(journal))
    cli("shell", "--", *command, stdin="echo\necho\n")
    assert len(told(journal, "initialize")) == 1
    assert len(told(journal, "tools/call")) == 2
    assert cli("tools", "--offline", "--", *command).code == 0, "and its tools are remembered"


@pytest.mark.req("F3")
def test_it_survives_a_crash_of_the_server(cli: Cli) -> None:
    lines = ["echo text=before", "crash", "echo text=after"]
    done = cli("shell", "--", *DEMO, stdin="\n".join(lines))
    assert done.out == "before\nafter\n"
    assert done.code == 3
    assert "crashing with exit code 1, as asked" in done.err


def test_it_ends_when_nobody_reads_any_more(home: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    read, written = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "holdfast", "shell", "--", *puppet(journal=str(journal))]
    done = subprocess.run(
        command, input=b"echo\necho\n", stdout=written, stderr=subprocess.PIPE, check=False
    )
    os.close(written)
    assert done.returncode == 141
    assert len(told(journal, "tools/call")) == 1


# At a terminal


@pytest.mark.req("F3")
def test_tab_completes_tools_and_parameters(terminal: Open) -> None:
    one = terminal("shell", "--", *DEMO)
    one.expect(prompt())
    one.send("ec\t")
    one.expect("echo ")
    one.send("\t")
    one.expect("text=")
    one.send("hello\n")
    one.expect("hello\r\nhello".replace("\r", ""))
    one.expect(prompt())
    one.send("desc\tadd\n")
    one.expect("Adds two numbers.")
    one.expect(prompt())
    one.send("re\t\t")
    one.expect("read")
    one.expect("resources")
    one.send("\x15exit\n")
    assert one.end() == 0


@pytest.mark.req("F3")
def test_what_was_typed_is_there_the_next_time(terminal: Open, home: Path) -> None:
    for words in ("echo text=first", "echo text=second"):
        one = terminal("shell", "--", *DEMO)
        one.expect(prompt())
        one.send(f"{words}\n")
        one.expect(words[10:] + "\n" + words[10:])
        one.expect(prompt())
        one.send("\x04")
        assert one.end() == 0
    history = home / "state" / "holdfast" / "history"
    assert history.read_text() == "echo text=first\necho text=second\n"
    assert history.stat().st_mode & 0o777 == 0o600
    one = terminal("shell", "--", *DEMO)
    one.expect(prompt())
    one.send("\x1b[A")
    one.expect("echo text=second")
    one.send("\n")
    one.expect("\nsecond")
    one.expect(prompt())
    one.send("\x04")
    assert one.end() == 0


@pytest.mark.req("F3")
def test_ctrl_c_ends_the_call_and_not_the_shell(terminal: Open, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    one = terminal(
        "shell", "--", *puppet(tools=["slow", "echo"], held=["slow"], journal=str(journal))
    )
    one.expect(prompt())
    one.send("slow\n")
    wait_for(journal, "tools/call")
    one.send("\x03")
    one.expect("interrupted; the server was told to stop")
    one.expect(prompt())
    one.send("echo x=1\n")
    one.expect('"1"\x1b[0m}')
    one.expect(prompt())
    (first, _), (cancelled,) = told(journal, "tools/call"), told(journal, "notifications/cancelled")
    assert cancelled["params"]["requestId"] == first["id"]
    one.send("exit\n")
    assert one.end() == 0


def test_ctrl_c_at_the_prompt_begins_a_new_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: at a terminal, readline may sleep over a signal that comes just before."""
    lines: Iterator[str | BaseException] = iter([KeyboardInterrupt(), "echo text=after"])

    def ask(_: str) -> str:
        line = next(lines, EOFError())
        if isinstance(line, BaseException):
            raise line
        return line

    monkeypatch.setattr("holdfast.cli.verbs.shell.ask", ask)
    done = cli("shell", "--", *DEMO)
    assert (done.code, done.out) == (0, "after\n")


@pytest.mark.req("F3")
def test_questions_are_asked_between_the_lines(terminal: Open) -> None:
    one = terminal("shell", "--", *DEMO)
    one.expect(prompt())
    one.send("ask_name\n")
    one.expect("Answer? [Y/n] ")
    one.send("y\n")
    one.expect("Name (string): ")
    one.send("\x03")
    one.expect("interrupted; the server was told to stop")
    one.expect(prompt())
    one.send("ask_name\n")
    one.expect("Answer? [Y/n] ")
    one.send("\n")
    one.expect("Name (string): ")
    one.send("Bo\n")
    one.expect("Hello, Bo!")
    one.expect(prompt())
    one.send("\x04")
    assert one.end() == 0


@pytest.mark.req("F3")
def test_questions_outside_of_a_line_are_not_asked(terminal: Open, tmp_path: Path) -> None:
    """What is typed at the prompt is a line, and never the answer to a question."""
    journal = tmp_path / "journal"
    question = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
    one = terminal("shell", "--", *puppet(question=question, journal=str(journal)))
    for number in range(3):
        one.expect(prompt())
        one.send(f"echo x={number}\n")
        one.expect(f'"{number}"\x1b[0m}}')
    one.expect(prompt())
    one.send("exit\n")
    assert one.end() == 0
    assert "y or n" not in one.text
    answers = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    answers = [one["result"] for one in answers if one.get("id") == "question"]
    assert answers == [{"action": "cancel"}] * 4


def test_the_prompt_is_not_in_the_output(terminal: Open, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = terminal("shell", "--", *DEMO, stdout=out)
    one.expect(prompt())
    one.send("echo text=x\n")
    one.expect(prompt())
    one.send("\x04")
    assert one.end() == 0
    assert out.read_text() == "x\n"


def test_a_server_without_tools_has_the_rest(cli: Cli) -> None:
    done = cli("shell", "--", *puppet(tools=None), stdin="state\nresources\n")
    assert done.out.startswith("ready\n")
    assert "0 tools." in done.err


def test_a_server_that_cannot_be_started_ends_it(cli: Cli) -> None:
    done = cli("shell", "--", "no-such-command", stdin="tools")
    assert (done.code, done.out) == (3, "")
    assert tool_cache.load("no-such-command") is None


# Reading lines


def test_history_is_kept_where_state_is(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert history_file() == home / "state" / "holdfast" / "history"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert history_file() == home / ".local" / "state" / "holdfast" / "history"


def test_without_a_terminal_there_is_neither(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\n"))
    with editing(lambda line: []):
        assert ask("prompt> ") == "one"
        with pytest.raises(EOFError):
            ask("prompt> ")
    assert not history_file().exists()
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.req("E2")
def test_what_tab_puts_into_the_line_is_one_line_that_can_be_seen() -> None:
    complete = completer(lambda line: ["a\nexit\n=", "b\u200b"])
    assert [complete("", at) for at in range(3)] == [r"a\nexit\n=", r"b\u200b ", None]


class Keyboard(io.StringIO):
    """Somebody at a terminal."""

    def isatty(self) -> bool:
        return True


def test_what_is_typed_is_nobody_elses(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard())
    history_file().parent.mkdir(parents=True)
    history_file().touch(mode=0o644)
    with editing(lambda line: []):
        pass
    assert stat.S_IMODE(history_file().stat().st_mode) == 0o600


def test_a_history_that_cannot_be_kept_is_done_without(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard())
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/x")
    with editing(lambda line: []):
        pass


def test_the_prompt_stays_out_of_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard("one\n"))
    assert ask("prompt> ") == "one"
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "prompt> ")


# Without readline


@pytest.mark.req("F3", "S5")
def test_prompt_toolkit_reads_and_remembers_where_there_is_no_readline(tmp_path: Path) -> None:
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from holdfast.cli.prompt_toolkit_lines import line_reader

    history = tmp_path / "state" / "history"

    with create_pipe_input() as keys:
        read = line_reader(lambda line: [], history, 10, (keys, DummyOutput()))
        keys.send_text("echo text=x\r")
        assert read("> ") == "echo text=x"
        keys.send_text("\x04")
        with pytest.raises(EOFError):
            read("> ")
        keys.send_text("\x03")
        with pytest.raises(KeyboardInterrupt):
            read("> ")
    kept = tmp_path / "state" / "history.prompt"
    assert "+echo text=x" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with create_pipe_input() as keys:
        read = line_reader(lambda line: [], history, 10, (keys, DummyOutput()))
        keys.send_text("\x1b[A\r")  # the arrow up
        assert read("> ") == "echo text=x"


@pytest.mark.req("S5")
@pytest.mark.parametrize(
    ("line", "completed"),
    [("ec", "echo "), ("echo te", "echo text="), ("echo ", "echo text="), ("ev", "ev\\x1bil ")],
)
def test_prompt_toolkit_completes_the_last_word(line: str, completed: str) -> None:
    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from holdfast.cli.prompt_toolkit_lines import ToolCompleter

    def suggest(text: str) -> list[str]:
        words = ["text="] if " " in text else ["echo", "ev\x1bil"]
        return [word for word in words if word.startswith(text.rpartition(" ")[2])]

    (completion,) = ToolCompleter(suggest).get_completions(Document(line), CompleteEvent())
    assert line[: len(line) + completion.start_position] + completion.text == completed


@pytest.mark.req("S5")
def test_a_long_history_is_cut(tmp_path: Path) -> None:
    from prompt_toolkit.input import create_pipe_input
    from prompt_toolkit.output import DummyOutput

    from holdfast.cli.prompt_toolkit_lines import line_reader

    kept = tmp_path / "history.prompt"
    kept.write_text("\n# date\n+line\n" * 100)
    with create_pipe_input() as keys:
        line_reader(lambda line: [], tmp_path / "history", 5, (keys, DummyOutput()))
    assert kept.read_text().count("+line") == 5


@pytest.mark.req("S5")
@pytest.mark.parametrize("installed", [True, False])
def test_without_readline_the_next_best_reads_the_lines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: bool
) -> None:
    def find_spec(name: str) -> object:
        return object() if installed and name == "prompt_toolkit" else None

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("holdfast.cli.verbs.shell.find_spec", find_spec)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with editing(lambda line: []) as read:
        assert (read is ask) is not installed
