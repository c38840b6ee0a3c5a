"""``holdfast call``: from words to a result, or to a reason why not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.progress import WIPE
from tests.cli.conftest import DEMO, Cli, Configure, Open, Seen, stdio
from tests.cli.rig import puppet, told, wait_for
from tests.cli.terminal import PATIENCE, interruptible
from tests.cli.web import Web


@pytest.mark.req("F3")
def test_words_become_arguments_by_the_tools_schema(cli: Cli) -> None:
    done = cli("call", "add", "a=2", "b:=3.5", "--", *DEMO)
    assert (done.code, done.err) == (0, "")
    assert done.value == {"sum": 5.5}


@pytest.mark.req("F3")
def test_arguments_come_from_stdin_a_file_or_one_object(cli: Cli, tmp_path: Path) -> None:
    assert cli("call", "add", "-", "b=1", "--", *DEMO, stdin='{"a": 1, "b": 9}').value["sum"] == 2
    assert cli("call", "add", "--args", '{"a": 1}', "b=4", "--", *DEMO).value["sum"] == 5
    text = tmp_path / "text"
    text.write_text("a\nb", encoding="utf-8")
    assert cli("call", "echo", f"text=@{text}", "--", *DEMO).out == "a\nb\n"
    assert cli("call", "echo", "text=@-", "--", *DEMO, stdin="typed\n").out == "typed\n"


@pytest.mark.req("F3", "E2")
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["ad", "a=1"], 2, "There is no tool 'ad'. Did you mean 'add'?"),
        (["xyzzy"], 2, "There is no tool 'xyzzy'. There are: echo, add,"),
        (["add", "a=1"], 2, "nothing was sent:\n  - 'b' is required and missing"),
        (["add", "a=1", "bb=1"], 2, "not known: 'bb' (did you mean 'b'?)"),
        (["add", "a=x", "b=1"], 2, "a='x': must be a number"),
        (["add", "a", "b=1"], 2, "'a' is no argument: write name=value"),
        (["add", "a=1", "a=2", "b=1"], 2, "a is given twice"),
        (["echo", "text=@nowhere"], 2, "@nowhere: cannot be read: No such file or directory"),
        (["echo", f"text=@{sys.executable}"], 2, "is not text in UTF-8"),
        (["echo", "text=@/"], 2, "@/: cannot be read: Is a directory"),
        (["echo", "--args", "[1]"], 2, "the arguments must be a JSON object, not array"),
        (["echo", "--args", "{"], 2, "--args: not JSON"),
        (["echo", "-"], 2, "stdin: not JSON"),
        (["countdown", "steps=0"], 2, "steps"),
        (["fail", "message=oh no"], 1, "fail: oh no"),
        (["sleep", "seconds=60", "--timeout", "8"], 4, "no answer within 8 s"),
        (["crash"], 3, "crashing with exit code 1, as asked"),
    ],
)
def test_a_wrong_call_is_told_in_words_and_by_the_exit_code(
    cli: Cli, words: list[str], code: int, said: str
) -> None:
    done = cli("call", *words, "--", *DEMO)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert done.err.startswith("holdfast: ")


@pytest.mark.req("F3")
def test_json_is_all_that_the_server_said(cli: Cli) -> None:
    content = [{"type": "text", "text": "a\x1b[31m", "annotations": {"priority": 1}}]
    result = {"content": content, "_meta": {"x/y": 1}, "structuredContent": {"z": [None]}}
    command = puppet(results={"echo": result})
    assert cli("call", "echo", "--json", "--", *command).value == result
    assert cli("call", "echo", "--json", "--", *command).value == result
    assert cli("call", "echo", "--", *command).out == "a\x1b[31m\n"


def test_a_tool_that_fails_says_so_on_stderr_and_all_of_it_in_json(cli: Cli) -> None:
    result = {"content": [{"type": "text", "text": "no"}], "isError": True}
    command = puppet(results={"echo": result})
    done = cli("call", "echo", "--json", "--", *command)
    assert done.value == result
    assert done.error == {"message": "echo: no", "exit": 1, "kind": "tool"}
    silent = puppet(results={"echo": {"content": [], "isError": True}})
    assert "failed and gave no reason" in cli("call", "echo", "--", *silent).err


def test_structured_results_are_shown_where_there_is_nothing_else(cli: Cli) -> None:
    command = puppet(results={"echo": {"content": [], "structuredContent": {"a": 1}}})
    assert cli("call", "echo", "--", *command).value == {"a": 1}


def test_a_server_without_a_list_gets_the_arguments_as_they_are(cli: Cli) -> None:
    done = cli("call", "anything", "a=1", "--", *puppet(tools=None))
    assert (done.code, done.out) == (0, '{"a": "1"}\n'), done.err


# Ctrl-C


@pytest.mark.req("F3")
def test_ctrl_c_cancels_on_the_server(terminal: Open, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    one = terminal(
        "call", "slow", "--", *puppet(tools=["slow"], held=["slow"], journal=str(journal))
    )
    wait_for(journal, "tools/call")
    one.send("\x03")
    assert one.end() == 130
    assert "interrupted" in one.text
    assert "Traceback" not in one.text
    (call,) = told(journal, "tools/call")
    (cancelled,) = told(journal, "notifications/cancelled")
    assert cancelled["params"]["requestId"] == call["id"]


def test_who_presses_twice_does_not_wait_for_a_deaf_server(terminal: Open, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    deaf = {"held": ["slow"], "deaf": ["eof", "SIGTERM"], "journal": str(journal)}
    one = terminal("call", "slow", "--", *puppet(tools=["slow"], **deaf))
    wait_for(journal, "tools/call")
    one.send("\x03")
    wait_for(journal, "notifications/cancelled")
    one.send("\x03")
    assert one.end() == 130
    assert "Traceback" not in one.text


@pytest.mark.req("F3")
def test_ctrl_c_ends_the_wait_for_arguments_that_are_typed(terminal: Open, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    one = terminal("call", "echo", "-", "--", *puppet(journal=str(journal)))
    wait_for(journal, "tools/list")
    time.sleep(1.0)  # in which the status line would be drawn over what is typed
    one.send("\x03")
    assert one.end() == 130
    assert one.text.partition("^C")[0].rpartition(WIPE)[2] == ""
    assert not told(journal, "tools/call")


@pytest.mark.req("F3")
def test_an_interrupt_without_a_terminal_does_the_same(home: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    server = puppet(tools=["slow"], held=["slow"], journal=str(journal))
    command = [sys.executable, "-m", "holdfast", "call", "slow", "--json", "--", *server]
    running = subprocess.Popen(
        interruptible(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(journal, "tools/call")
    os.kill(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, out) == (130, "")
    assert json.loads(err) == {
        "error": {"message": "interrupted", "exit": 130, "kind": "interrupted"}
    }
    assert told(journal, "notifications/cancelled")


# Escape sequences

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\r\nnext"


@pytest.mark.req("F3")
def test_a_terminal_is_never_steered_by_a_server(seen: Seen, cli: Cli) -> None:
    schema = {"type": "object", "properties": {"p": {"description": EVIL, "default": EVIL}}}
    tool = {"name": "evil\x1b[2J", "description": EVIL, "inputSchema": schema, "title": EVIL}
    good = {"content": [{"type": "text", "text": EVIL}], "structuredContent": {EVIL: EVIL}}
    bad = {"content": [{"type": "text", "text": EVIL}], "isError": True}
    tools: list[Any] = [tool, "good", "bad"]
    command = puppet(tools=tools, results={"good": good, "bad": bad}, stderr=EVIL)
    for words in (
        ["tools"],
        ["describe", "evil\x1b[2J"],
        ["call", "good"],
        ["call", "good", "--json"],
        ["call", "bad"],
        ["call", "bad", "--json"],
        ["call", "nope\x1b[2J"],
        ["doctor"],
    ):
        text = seen(*words, "--", *command).text
        for found in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e"):
            assert found not in text, words
    assert cli("call", "good", "--", *command).out == EVIL + "\n"


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    "words",
    [
        ["demo", "add", "a=1", "b=2"],
        ["demo.add", '{"a": 1, "b": 2}'],
        ["demo", "add", '{"a": 1}', "b=2"],
        ["demo.add", "--a", "1", "--b=2"],
        ["demo.add", "--json", "--a", "1", "--b", "2"],
        ["demo", "add", "--json", '{"a": 1, "b": 2}'],
        ["demo.add", "--args", '{"a": 1, "b": 2}', "--json"],
        ["demo.add", "--a=4", "--b", "-1"],
    ],
    ids=" ".join,
)
def test_what_people_type_is_taken(cli: Cli, configure: Configure, words: list[str]) -> None:
    configure(demo=stdio(DEMO))
    done = cli("call", *words)
    assert done.code == 0, done.err
    is_json = "--json" in words or "json" in words
    assert (done.value["structuredContent"] if is_json else done.value) == {"sum": 3}


@pytest.mark.req("F3", "E2")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["demo.add", "--c", "1"], "--c is no option, and no parameter of the tool"),
        (["demo.add", "--verbos"], "did you mean '--verbose'?"),
        (["demo.add", "--a"], "--a: its value is missing"),
        (["add", "a=1"], "Did you mean 'demo.add'?"),
        (["ad", "a=1"], "Did you mean 'demo.add'?"),
        (["other.add", "a=1"], "other has no tool 'add'. Did you mean 'demo.add'?"),
    ],
)
def test_what_is_not_understood_comes_with_a_suggestion(
    cli: Cli, configure: Configure, words: list[str], said: str
) -> None:
    configure(demo=stdio(DEMO), other=stdio(puppet(tools=["t"])))
    assert cli("tools", "demo").code == 0
    done = cli("call", *words)
    assert done.code == 2
    assert said in done.err


def test_a_url_may_stand_before_the_tool(cli: Cli, web: Web) -> None:
    done = cli("call", web.url, "echo", "text=hi")
    assert (done.code, done.value) == (0, {"text": "hi"})


def test_variables_are_taken_from_here(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VALUE", "x y")
    monkeypatch.setenv("OTHER_VALUE", "z")
    for words in (["--env", "SOME_VALUE"], ["--inherit-env"], ["--inherit-env", "SOME_VALUE"]):
        done = cli("doctor", *words, "--json", "--", *DEMO)
        (shown,) = [one["text"] for one in done.value["findings"] if one["step"] == "environment"]
        assert "SOME_VALUE=" in shown
        assert ("OTHER_VALUE=" in shown) == (words == ["--inherit-env"])
    done = cli("status", "--env", "UNSET_VALUE", "--", *DEMO)
    assert "--env UNSET_VALUE: it is not set here" in done.err


def test_list_and_version_are_verbs(cli: Cli, configure: Configure) -> None:
    configure(demo=stdio(DEMO))
    assert cli("list").out == cli("ls").out == cli("servers").out
    assert cli("ls", "demo").out == cli("tools", "demo").out
    assert cli("version").out == cli("--version").out


@pytest.mark.req("D1")
def test_a_long_result_is_cut_and_its_whole_is_a_file(cli: Cli, tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(500))
    words = [f"text={text}", "--budget", "100", "--save", str(tmp_path)]
    done = cli("call", "echo", *words, "--", *DEMO)
    assert done.code == 0
    assert done.out.startswith("line 0\n")
    assert done.out.endswith("line 499\n")
    assert f"of {len(text)} characters left out here; the rest: {tmp_path}/echo-1.txt" in done.out
    assert (tmp_path / "echo-1.txt").read_text(encoding="utf-8") == text


@pytest.mark.req("D1")
def test_the_whole_of_a_result_goes_through_no_link(cli: Cli, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine", encoding="utf-8")
    for name in ("echo.txt", "echo-1.txt"):
        (tmp_path / name).symlink_to(victim)
    os.link(victim, tmp_path / "echo-2.txt")
    words = [f"text={'x' * 500}", "--budget", "100", "--save", str(tmp_path)]
    done = cli("call", "echo", *words, "--", *DEMO)
    assert f"{tmp_path}/echo-3.txt" in done.out
    assert victim.read_text(encoding="utf-8") == "mine"


@pytest.mark.req("D2")
@pytest.mark.parametrize("policy", [{"crash": "never"}, {"add": "always"}, "never"])
def test_the_configuration_does_not_switch_the_question_off(
    cli: Cli, configure: Configure, policy: Any
) -> None:
    configure(demo={**stdio(DEMO), "holdfast": {"approve": policy}})
    done = cli("call", "demo.crash", "--approve")
    assert (done.code, done.out) == (5, "")
    assert "needs approval, and nobody can be asked; nothing was sent" in done.err


@pytest.mark.req("D2")
def test_where_nobody_sits_a_call_to_approve_is_not_sent(cli: Cli) -> None:
    done = cli("call", "crash", "--approve", "--", *DEMO)
    assert (done.code, done.out) == (5, "")
    assert "needs approval, and nobody can be asked; nothing was sent" in done.err
