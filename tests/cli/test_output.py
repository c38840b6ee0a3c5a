"""stdout and stderr: whole, quiet when nobody reads, and harmless at a terminal."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast._core.text import has_unseen, visible_lines
from holdfast.cli.output import Output, advice_for, color, explain, highlight, wrap_words, write
from holdfast.errors import Hint, TransportError
from tests.cli.conftest import DEMO, Cli, Seen
from tests.cli.rig import puppet
from tests.cli.terminal import PATIENCE

HOLDFAST = [sys.executable, "-m", "holdfast"]


@pytest.mark.req("F3")
@pytest.mark.parametrize("size", [200 * 1024, 5 * 1024 * 1024])
def test_much_arrives_whole_through_a_pipe(home: Path, tmp_path: Path, size: int) -> None:
    """With a reader that takes its time, and a pipe that somebody has made non-blocking."""
    text = tmp_path / "text"
    text.write_text("0123456789abcdef" * (size // 16), encoding="utf-8")
    read, written = os.pipe()
    fcntl.fcntl(written, fcntl.F_SETFL, fcntl.fcntl(written, fcntl.F_GETFL) | os.O_NONBLOCK)
    command = [*HOLDFAST, "call", "echo", f"text=@{text}", "--", *DEMO]
    running = subprocess.Popen(command, stdout=written, stderr=subprocess.PIPE)
    os.close(written)
    with open(read, "rb") as pipe:
        first = pipe.read(10)
        rest = pipe.read()
    _, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (0, b"")
    assert first + rest == text.read_bytes() + b"\n"


@pytest.mark.req("F3")
@pytest.mark.parametrize("words", [["--help"], ["call", "--help"], ["tools", "--", *DEMO]])
def test_a_broken_pipe_is_quiet(home: Path, words: list[str]) -> None:
    read, written = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*HOLDFAST, *words], stdout=written, stderr=subprocess.PIPE, check=False, timeout=PATIENCE
    )
    os.close(written)
    assert done.stderr == b""
    assert done.returncode == 141


def test_head_ends_it_without_a_word(home: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("line\n" * 200_000, encoding="utf-8")
    command = f'"{sys.executable}" -m holdfast call echo text=@{text} -- {DEMO[0]} -m {DEMO[2]}'
    done = subprocess.run(
        ["sh", "-c", f"{command} | head -1"], capture_output=True, check=False, timeout=PATIENCE
    )
    assert (done.stdout, done.stderr) == (b"line\n", b"")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_nothing_to_fall_over(home: Path, closed: str) -> None:
    script = f"{' '.join(HOLDFAST)} servers {closed}"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=False, timeout=PATIENCE)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_full_disk_is_told(home: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*HOLDFAST, "call", "echo", "text=x", "--", *DEMO],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE,
        )
    assert done.returncode == 2
    assert done.stderr == b"holdfast: stdout: cannot be written: No space left on device\n"


@pytest.mark.req("F3")
@pytest.mark.parametrize("option", ["--verbose", "--trace"])
def test_a_broken_stderr_does_not_lose_a_result(home: Path, option: str) -> None:
    read, written = os.pipe()
    os.close(read)
    command = [*HOLDFAST, "call", option, "echo", "text=x", "--", *DEMO]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=written, check=False, timeout=PATIENCE
    )
    os.close(written)
    assert (done.returncode, done.stdout) == (0, b"x\n")


@pytest.mark.req("F3")
def test_a_note_that_cannot_be_written_is_no_failure(home: Path) -> None:
    command = [*HOLDFAST, "add", "mine", "--", "true"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stderr=full, check=False, timeout=PATIENCE)
    assert done.returncode == 0


@pytest.mark.req("F3")
def test_no_colour_without_a_terminal(process: Cli) -> None:
    done = process("call", "fail", "--", *DEMO, FORCE_COLOR="1")
    assert (done.code, done.err) == (1, "holdfast: fail: failed, as asked\n")


@pytest.mark.req("F3")
def test_no_colour_for_who_does_not_want_it(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    assert seen("nonsense").text.startswith("\x1b[1;31mholdfast:\x1b[0m There is no verb")
    monkeypatch.setenv("NO_COLOR", "1")
    assert seen("nonsense").text.startswith("holdfast: There is no verb")


@pytest.mark.req("N3")
def test_json_is_readable_at_a_terminal_and_one_line_elsewhere(
    cli: Cli, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = puppet(results={"echo": {"content": [], "x": ["\x7f\u202e"]}})
    words = ["call", "echo", "--json", "--", *command]
    assert cli(*words).out == '{"content":[],"x":["\\u007f\\u202e"]}\n'
    assert {"blue", "green"} <= seen(*words).colours
    monkeypatch.setenv("NO_COLOR", "1")
    assert json.loads(seen(*words).text) == {"content": [], "x": ["\x7f\u202e"]}
    assert seen(*words).lines == [
        *("{", '  "content": [],', '  "x": [', '    "\\u007f\\u202e"', "  ]", "}")
    ]


def test_a_text_ends_its_last_line_once(capfd: pytest.CaptureFixture[str]) -> None:
    for text in ("a", "a\n", "a\n\n", ""):
        Output().text(text)
    assert capfd.readouterr().out == "a\na\na\n\n\n"


def test_half_a_surrogate_is_written_all_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    Output().text("a\ud800b")
    assert capfd.readouterr().out == "a\\ud800b\n"


@given(st.text())
def test_nothing_that_steers_is_left(text: str) -> None:
    shown = visible_lines(text)
    assert not any(ord(one) < 32 and one not in "\t\n" for one in shown)
    assert not set(shown) & set("\x7f\x80\x9b\x9f\u200e\u202e\u2066\u2028")
    assert visible_lines(shown) == shown


def test_what_is_plain_stays_as_it_is() -> None:
    for text in ("", "a\tb\nc", "äöü 日本語 🙂", "\\x1b"):
        assert visible_lines(text) == text
    assert visible_lines("a\r\nb\rc\x1b\u202e") == "a\nb\\rc\\x1b\\u202e"


def test_paint_needs_a_terminal() -> None:
    assert color("x", "1") == "x"


def test_all_of_it_is_written_however_slow_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    read, written = os.pipe()
    os.set_blocking(written, False)
    found = bytearray()

    def drain() -> None:
        while data := os.read(read, 1000):
            found.extend(data)

    reader = threading.Thread(target=drain)
    data = os.urandom(300_000)
    with open(written, "w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        reader.start()
        write(data)
    reader.join()
    os.close(read)
    assert bytes(found) == data


@pytest.mark.req("E2")
def test_advice_is_in_the_words_of_the_command_line(cli: Cli) -> None:
    slow = cli("tools", "--timeout", "0.2", "--", *puppet(delay=60, deaf=[]))
    assert "--timeout gives it longer" in slow.err
    pinned = cli("tools", "--protocol", "2026-07-28", "--", *puppet())
    assert "--protocol left out negotiates an older one" in pinned.err
    unknown = cli("tools", "--protocol", "2020-01-01", "--", *puppet())
    assert "protocol '2020-01-01': not a revision we speak" in unknown.err


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_highlighting_changes_nothing_but_colours(value: Any) -> None:
    for text in (json.dumps(value), json.dumps({"a": value}, indent=2, ensure_ascii=False)):
        assert re.sub(r"\x1b\[[0-9;]*m", "", highlight(text)) == text


def options_of_hints() -> set[str]:
    """Return every option that a hint of the library names."""
    sources = [path.read_text("utf-8") for path in Path(holdfast.__file__).parent.rglob("*.py")]
    calls = [
        node
        for source in sources
        if "Hint(" in source  # few of hundreds of files: the others need no parser
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Hint"
    ]
    options = [call.args[0] for call in calls]
    return {str(option.value) for option in options if isinstance(option, ast.Constant)}


HANDLERS = {"handlers.elicitation", "handlers.roots", "handlers.sampling"}
"""Options that a hint names by a variable."""


@pytest.mark.req("E2")
def test_a_hint_has_words_for_programs_and_for_the_terminal() -> None:
    options = (options_of_hints() | HANDLERS) - {""}
    assert len(options) > len(HANDLERS)
    for option in sorted(options):
        hint = Hint(option, "gives it longer", "later")
        name = option.rpartition(".")[2]
        assert name in str(hint), option
        assert "gives it longer" in str(hint), option
        advice = advice_for(hint)
        assert advice != str(hint) or option == "env.PATH", option
        assert "=" not in advice.replace("K=V", ""), option
        assert option not in HANDLERS or "configuration" not in advice, option


@pytest.mark.req("E2")
def test_a_setting_without_an_option_of_a_verb_is_one_of_the_configuration() -> None:
    assert advice_for(Hint("when_down", "waits for it", "wait")) == (
        '"when_down": "wait" in the configuration waits for it'
    )
    assert advice_for(Hint("limits.asks", "sets this")) == (
        '"limits": {"asks": …} in the configuration sets this'
    )
    assert advice_for(Hint("", "is it one?")) == "is it one?"


@pytest.mark.req("E2")
def test_the_path_is_shown_where_it_is_asked_for() -> None:
    error = TransportError("no such program", hints=(Hint("env.PATH", "is '/bin'"),))
    assert explain(error) == "no such program"
    assert explain(error, with_path=True) == str(error) == "no such program; PATH is '/bin'"


UNSEEN_TEXT = "\x1b[31m\u202e\u200b\U000e0041\x07\x9b2J\u2028\u00ad\u115f"


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    "words",
    [
        ["tools", "-v"],
        ["tools", "--json"],
        ["describe", "echo", "--json"],
        ["call", "echo", "--json"],
        ["call", "nope", "--json"],
        ["status", "-v", "--trace"],
    ],
)
def test_no_form_of_output_shows_what_cannot_be_seen(cli: Cli, words: list[str]) -> None:
    text = UNSEEN_TEXT
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": text}}}
    listed = [{"name": f"t{text}", "description": text, "inputSchema": schema}, "echo"]
    results = {"echo": {"content": [{"type": "text", "text": text}], "isError": True}}
    told = {"tools": listed, "results": results, "banner": f"{text}\n", "stderr": text}
    notify = [["notifications/message", {"level": "error", "logger": text, "data": text}]]
    done = cli(*words, "--", *puppet(**told, notify=notify))
    assert [one for one in done.out + done.err if has_unseen(one) and one not in "\n\t"] == []


@pytest.mark.req("F3")
def test_a_command_to_be_pasted_is_not_wrapped() -> None:
    """A terminal wraps it without a line feed; one inside of quotes would change it."""
    command = "holdfast lock --as e --env 'A=some quite long value' -- python3 server.py"
    told = f"If it is as it should be, accept it with: {command}"
    assert wrap_words(told, 30, "", "  ").splitlines() == [
        "If it is as it should be,",
        "  accept it with:",
        f"  {command}",
    ]
    assert wrap_words(told, 200) == told
