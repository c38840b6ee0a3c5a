"""log replay, run, diff, serve: call logs from the terminal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import DEMO, Cli, Open
from tests.cli.rig import puppet, told
from tests.cli.terminal import PATIENCE, interruptible
from tests.cli.test_codegen import SZKRABOK


@pytest.fixture
def log(cli: Cli) -> str:
    """A log of three calls."""
    for words in (["echo", "text=a"], ["add", "a=1", "b=2"], ["fail", "message=no"]):
        cli("call", *words, "--log", "calls.jsonl", "--", *DEMO)
    return "calls.jsonl"


@pytest.mark.req("F3")
def test_a_log_is_replayed_and_compared(cli: Cli, log: str) -> None:
    done = cli("log", "replay", log, "--", *DEMO)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("3 calls: 3 same\n")
    found = cli("log", "replay", log, "--json", "--", *DEMO).value
    assert (found["ok"], [one["verdict"] for one in found["calls"]]) == (True, ["same"] * 3)


@pytest.mark.req("F3")
def test_what_ends_otherwise_is_told(cli: Cli, log: str) -> None:
    server = puppet(tools=["echo", "add", "fail"])
    done = cli("log", "replay", log, "--go-on", "--yes", "--", *server)
    assert (done.code, done.err) == (1, "")
    done = cli("log", "replay", log, "--go-on", "--yes", "--json", "--", *server)
    assert (done.code, done.value["ok"], done.error["kind"]) == (1, False, "replay")
    assert len(done.value["calls"]) == 3
    done = cli("log", "replay", log, "--json", "--", "no-such-command")
    assert done.code == 3
    assert "command not found" in done.error["message"]


@pytest.mark.req("F3")
def test_two_logs_are_compared(cli: Cli, log: str) -> None:
    text = Path(log).read_text()
    Path("other.jsonl").write_text(text.replace('"text":"a"', '"text":"b"'))
    assert cli("log", "diff", log, log).code == 0
    done = cli("log", "diff", log, "other.jsonl")
    assert (done.code, done.err) == (1, "")
    assert "--- calls.jsonl\n+++ other.jsonl" in done.out
    done = cli("log", "diff", log, "other.jsonl", "--json")
    assert (done.value["same"], done.error["kind"]) == (2, "difference")


@pytest.mark.req("F3")
def test_a_log_answers_as_a_server(cli: Cli, log: str) -> None:
    mock = [sys.executable, "-m", "holdfast", "log", "serve", log]
    assert cli("call", "add", "a:=1", "b:=2", "--", *mock).value == {"sum": 3}
    done = cli("call", "echo", "text=other", "--", *mock)
    assert done.code == 1
    assert "was not recorded with these arguments" in done.err
    cli("lock", "--as", "demo", "--", *DEMO)
    done = cli("tools", "--", *mock, "--tools", "holdfast.lock", "--server", "demo")
    assert "echo(text: str)\tGives the text back." in done.out
    assert cli("log", "serve", log, "--tools", "holdfast.lock", "--server", "x").code == 2


def test_a_log_that_serves_ends_quietly(home: Path, log: str) -> None:
    command = interruptible([sys.executable, "-m", "holdfast", "log", "serve", log])
    pipe = subprocess.PIPE
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    for ending in ("interrupt", "nobody reads"):
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as running:
            assert running.stdin is not None
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdin.write(ping)
            running.stdin.flush()
            assert running.stdout.readline()
            if ending == "interrupt":
                running.send_signal(signal.SIGINT)
                assert running.wait(PATIENCE) == 130
                assert running.stderr.read() == b"holdfast: interrupted\n"
            else:
                running.stdout.close()
                running.stdin.write(ping)
                running.stdin.flush()
                assert running.wait(PATIENCE) == 0
                assert running.stderr.read() == b""


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    "words",
    [
        ["log", "replay", "nowhere.jsonl", "--", *DEMO],
        ["log", "replay", ".", "--", *DEMO],
        ["log", "replay", "bad.jsonl", "--", *DEMO],
        ["log", "run", "nowhere.jsonl", "--", *DEMO],
        ["log", "run", "bad.jsonl", "--", *DEMO],
        ["log", "run", "nowhere.jsonl", "--write", "--", *DEMO],
        ["log", "replay", "bad.jsonl", "--fill", "x", "--", *DEMO],
        ["log", "diff", "bad.jsonl", "nowhere.jsonl"],
        ["log", "diff", "nowhere.jsonl", "bad.jsonl"],
        ["log", "serve", "nowhere.jsonl"],
        ["log", "serve", "bad.jsonl", "--tools", "nowhere.lock"],
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_a_wrong_file_is_told_and_stays_as_it_is(cli: Cli, words: list[str]) -> None:
    bad = Path("bad.jsonl")
    bad.write_bytes(b'{"name": "echo", "arguments": {"text": "a"}}\n\xff\nnot a call\n')
    before = bad.read_bytes()
    done = cli(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("holdfast: ")
    assert bad.read_bytes() == before


# Sequences


def lines(*calls: dict[str, object]) -> Path:
    path = Path("login.jsonl")
    path.write_text("".join(json.dumps(one) + "\n" for one in calls), encoding="utf-8")
    return path


@pytest.mark.req("F3")
def test_a_sequence_runs_in_a_session(cli: Cli, tmp_path: Path) -> None:
    path = lines(
        {"name": "nav.goto", "arguments": {"url": "https://example.org"}},
        {"name": "browser.snapshot", "arguments": {}},
    )
    journal = tmp_path / "journal"
    server = [*SZKRABOK, "--journal", str(journal)]
    done = cli("log", "run", str(path), "--session", "test", "--yes", "--", *server)
    assert (done.code, done.err) == (0, ""), done
    calls = [json.loads(line) for line in journal.read_text().splitlines()]
    names = [call["name"] for call in calls]
    assert names == ["session.open", "nav.goto", "browser.snapshot", "session.close"]
    assert {call["arguments"]["sessionName"] for call in calls} == {"test"}


@pytest.mark.req("F3")
def test_a_sequence_without_its_session_fails_at_the_first_call(cli: Cli) -> None:
    path = lines(
        {"name": "nav.goto", "arguments": {"sessionName": "none", "url": "https://example.org"}},
        {"name": "health", "arguments": {}},
    )
    done = cli("log", "run", str(path), "--yes", "--json", "--", *SZKRABOK)
    assert (done.code, done.value["ok"]) == (1, False)
    assert cli("log", "run", str(path), "--yes", "--go-on", "--", *SZKRABOK).code == 1


@pytest.mark.req("F3")
@pytest.mark.parametrize("verb", ["replay", "run"])
def test_calls_that_may_change_something_are_not_sent_unasked(
    cli: Cli, tmp_path: Path, verb: str
) -> None:
    path = lines(
        {"name": "nav.goto", "arguments": {"url": "x\u200b", "sessionName": "a"}},
        {"name": "x\n\nNothing else.", "arguments": {}},
    )
    journal = tmp_path / "journal"
    done = cli("log", verb, str(path), "--", *SZKRABOK, "--journal", str(journal))
    assert done.code == 2
    assert "These calls may change something:\n  nav.goto {" in done.err
    assert r"x\n\nNothing else. {}" in done.err
    assert "Nothing was sent. Add --yes" in done.err
    assert "\u200b" not in done.err
    assert not journal.exists() or "nav.goto" not in journal.read_text()


@pytest.fixture
def many() -> Path:
    """Calls of which the twenty-fifth, at the end of its argument, is another one."""
    long = "x" * 400
    calls: list[dict[str, object]] = [
        {"name": "echo", "arguments": {"text": f"{long} {number}"}} for number in range(24)
    ]
    return lines(*calls, {"name": "echo", "arguments": {"text": f"{long}; rm -rf /"}})


@pytest.mark.req("F3")
@pytest.mark.parametrize("verb", ["replay", "run"])
@pytest.mark.parametrize("reply", ["y", "n", "q"])
def test_every_call_is_read_to_its_end_before_the_yes(
    terminal: Open, many: Path, tmp_path: Path, verb: str, reply: str
) -> None:
    journal = tmp_path / "journal"
    server = puppet(journal=str(journal))
    sending = terminal("log", verb, str(many), "--", *server, NO_COLOR="1", lines=50)
    sending.expect("These calls may change something:")
    if reply == "q":
        sending.expect("Enter: more, q: stop, nothing is sent -- ")
        sending.send("q\n")
    else:
        shown = sending.turn_pages("Send them?")
        assert all(f"{number} of 25: echo" in shown for number in range(1, 26))
        assert "; rm -rf /" in shown
        sending.send(f"{reply}\n")
    assert sending.end() == (0 if reply == "y" else 2)
    assert len(told(journal, "tools/call")) == (25 if reply == "y" else 0)


@pytest.mark.req("F3")
def test_the_yes_is_for_the_calls_that_were_shown(terminal: Open, tmp_path: Path) -> None:
    path = lines({"name": "echo", "arguments": {"text": "shown"}})
    journal = tmp_path / "journal"
    sending = terminal(
        "log", "replay", str(path), "--", *puppet(journal=str(journal)), NO_COLOR="1"
    )
    sending.expect("Send them?")
    lines({"name": "echo", "arguments": {"text": "exchanged"}})
    sending.send("y\n")
    sending.end()
    (call,) = told(journal, "tools/call")
    assert call["params"]["arguments"] == {"text": "shown"}


@pytest.mark.req("F3")
def test_a_script_learns_where_the_other_calls_are(cli: Cli, many: Path) -> None:
    done = cli("log", "replay", str(many), "--", *puppet())
    assert done.code == 2
    assert f"and 5 more; all are in {many}" in done.err
    assert "Nothing was sent. Add --yes" in done.err


@pytest.mark.req("F3")
def test_ctrl_c_at_the_question_sends_nothing(terminal: Open, tmp_path: Path) -> None:
    path = lines({"name": "echo", "arguments": {"text": "x"}})
    journal = tmp_path / "journal"
    sending = terminal("log", "replay", str(path), "--", *puppet(journal=str(journal)))
    sending.expect("Send them?")
    sending.send("\x03")
    assert sending.end() == 130
    assert not told(journal, "tools/call")
