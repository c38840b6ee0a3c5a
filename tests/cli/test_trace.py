"""``--trace``: the messages as they leave and arrive, a line each."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.boundary import Generation
from holdfast._core.tap import TraceEvent
from holdfast._core.text import visible
from holdfast.cli.message_lines import MessageLines
from holdfast.trace.writer import TraceFile
from tests.cli.conftest import DEMO, Cli, Configure, Seen, stdio
from tests.cli.web import Web

HEAD = re.compile(r"([→←~]) +(\d+\.\d{3})  (.*)")


def heads(text: str) -> list[tuple[str, str]]:
    """The arrow and the rest of each head line."""
    matches = [HEAD.fullmatch(line) for line in text.splitlines()]
    return [(match[1], match[3]) for match in matches if match]


def shown(*frames: tuple[Any, str], full: bool = False) -> list[str]:
    messages = MessageLines(lambda text, code: text, full=full)
    return [
        line
        for number, (arrow, frame) in enumerate(frames)
        for line in messages.lines(
            TraceEvent(number / 10, "message", Generation(1), arrow, frame.encode())
        )
    ]


@pytest.mark.req("F3")
def test_each_message_is_one_line_and_an_answer_names_its_request(
    cli: Cli, configure: Configure
) -> None:
    configure(demo=stdio(DEMO))
    for words in (["call", "demo.add"], ["call", "add"]):
        command = ["--", *DEMO] if words[1] == "add" else []
        done = cli(*words, "a=1", "b=2", "--trace", *command)
        assert done.value == {"sum": 3}
        lines = heads(done.err)
        assert len(lines) == len(done.err.splitlines())
        ((arrow, call), (other, answer)) = [line for line in lines if "tools/call add" in line[1]]
        assert (arrow, other) == ("→", "←")
        assert call.startswith("tools/call add  a=1 b=2  · #")
        assert re.fullmatch(r"tools/call add  ok  · #\d+ · \d+ ms · \d+ B", answer)
        assert ("~", "initializing → ready") in lines


@pytest.mark.req("F3")
def test_lists_are_counted_and_failures_say_why(cli: Cli) -> None:
    done = cli("call", "fail", "--trace", "--", *DEMO)
    text = "\n".join(line for _, line in heads(done.err))
    assert re.search(r"tools/list  \d+ tools", text)
    assert "tools/call fail  the tool failed: failed, as asked" in text


@pytest.mark.req("F3")
def test_bodies_are_shown_where_they_are_asked_for(cli: Cli) -> None:
    done = cli("call", "add", "a=1", "b=2", "--trace=full", "--", *DEMO)
    assert '"method": "tools/call"' in done.err
    assert all(line.startswith(("→", "←", "~", " " * 12)) for line in done.err.splitlines())
    wrong = cli("call", "add", "--trace=loud", "--", *DEMO)
    assert wrong.code == 2
    assert "'loud' is not one of 'head', 'full'" in wrong.err


@pytest.mark.req("F3")
@pytest.mark.parametrize("columns", [80, 40])
def test_at_a_terminal_a_head_line_fits(seen: Seen, columns: int) -> None:
    words = ["call", "echo", f"text={'long ' * 40}", "--trace", "--", *DEMO]
    lines = seen(*words, columns=columns).lines
    (call,) = [line for line in lines if line.startswith("→") and "tools/call" in line]
    assert len(call) <= columns
    assert "…" in call


def test_messages_over_http_are_shown_too(cli: Cli, web: Web) -> None:
    done = cli("call", web.url, "echo", "text=hi", "--trace")
    assert done.value == {"text": "hi"}
    assert any(line.startswith("tools/call echo") for _, line in heads(done.err))


@pytest.mark.req("F3")
def test_secrets_are_not_shown(cli: Cli) -> None:
    for form in ("--trace", "--trace=full"):
        done = cli("call", "echo", "text=password=s3cret-s3cret", form, "--", *DEMO)
        assert "tools/call echo" in done.err
        assert "s3cret" not in done.err


@pytest.mark.req("W1")
def test_a_trace_is_written_to_a_file(cli: Cli, configure: Configure, tmp_path: Path) -> None:
    configure(demo=stdio(DEMO))
    path = tmp_path / "run.jsonl"
    assert cli("call", "demo.add", "a=1", "b=2", "--trace-file", str(path)).code == 0
    header, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert list(header["servers"]) == ["demo"]
    assert [line for line in lines if line.get("method") == "tools/call"]
    assert cli("view", str(path)).code == 0


@pytest.mark.req("W1")
@pytest.mark.parametrize(
    ("words", "method"),
    [
        (("log", "run", "calls.jsonl"), "tools/call"),
        (("log", "replay", "calls.jsonl"), "tools/call"),
        (("tasks", "get", "none"), "tasks/get"),
        (("tools",), "tools/list"),
    ],
)
def test_every_verb_that_talks_to_a_server_writes_a_trace(
    cli: Cli, tmp_path: Path, words: tuple[str, ...], method: str
) -> None:
    (tmp_path / "calls.jsonl").write_text('{"name":"add","arguments":{"a":1,"b":2}}\n')
    path = tmp_path / "run.jsonl"
    words = tuple(str(tmp_path / word) if word.endswith(".jsonl") else word for word in words)
    cli(*words, "--trace-file", str(path), "--", *DEMO)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line for line in lines if line.get("method") == method]


def test_junk_errors_and_questions_are_named() -> None:
    lines = shown(
        ("←", "hello"),
        ("←", '{"level":"info","id":1}'),
        ("→", '{"id":1,"method":"resources/read","params":{"uri":"file:///a"}}'),
        ("←", '{"id":1,"error":{"code":-32002,"message":"no such file"}}'),
        ("→", '{"id":2,"method":"tools/call","params":{"name":"pay"}}'),
        ("←", '{"id":2,"result":{"inputRequests":{"a":{}}}}'),
        ("←", '{"id":9,"result":{}}'),
        ("←", '{"method":"notifications/progress","params":{"progress":1,"total":4}}'),
        ("→", '{"method":"notifications/cancelled","params":{"requestId":2,"reason":"late"}}'),
    )
    assert "  · of #2 · " in lines[-1]
    assert [line[12:].split("  · ")[0] for line in lines] == [
        "junk  hello",
        'junk  {"level":"info","id":1}',
        "resources/read file:///a",
        "resources/read file:///a  error -32002: no such file",
        "tools/call pay",
        "tools/call pay  asks 1 question",
        "answer to no request  ok",
        "notifications/progress  1 of 4",
        "notifications/cancelled  late",
    ]


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(
    lambda value: json.dumps({"id": 1, "method": value, "params": value, "result": value}).encode()
))  # fmt: skip
def test_whatever_comes_is_one_line_that_can_be_shown(frame: bytes) -> None:
    messages = MessageLines(lambda text, code: text, columns=40)
    event = TraceEvent(0.0, "message", Generation(1), "←", frame)
    (line,) = messages.lines(event)
    assert len(line.splitlines()) == 1
    assert visible(line, 1000) == line


def test_a_secret_that_goes_on_behind_what_is_shown_is_hidden() -> None:
    (line,) = shown(("←", "x" * 70 + " https://ann:hunter2hunter2hunter2@example.org/"))
    assert "hunter" not in line


@pytest.mark.req("W1")
def test_lines_of_a_file_that_were_lost_are_told(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(TraceFile, "_append", full)
    trace = tmp_path / "run.jsonl"
    words = ["call", "add", "a=1", "b=2", "--trace-file", str(trace)]
    done = cli(*words, "--", *DEMO)
    assert (done.value, done.code) == ({"sum": 3}, 0)
    lost = f"holdfast: the trace {trace}: lines were lost: [Errno 28] No space left on device"
    assert done.err.split() == lost.split()
    assert not cli(*words, "--json", "--", *DEMO).err
