"""The rogue itself: it does what its rules say, so that the client's tests mean something."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.catalogue import catalogue, table
from tests.faults.rogue import ACTIONS, decode_text, encode_text
from tests.faults.rows import ROGUE, at, in_folder, line, result, say

Child = subprocess.Popen[bytes]


@contextmanager
def rogue(*arguments: str) -> Iterator[Child]:
    """A running rogue in a group of its own, which is killed in the end."""
    command = [sys.executable, "-I", "-S", str(ROGUE), *arguments]
    pipe = subprocess.PIPE
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    try:
        yield child
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        close(child)


def close(child: Child) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        assert pipe is not None
        try:
            pipe.close()
        except BrokenPipeError:
            pass
    child.wait(120)


def send(child: Child, method: str, identifier: int | None = None, **params: Any) -> None:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if identifier is not None:
        message["id"] = identifier
    assert child.stdin is not None
    child.stdin.write(json.dumps(message).encode() + b"\n")
    child.stdin.flush()


def heard(child: Child) -> Any:
    assert child.stdout is not None
    return json.loads(child.stdout.readline())


def raw(child: Child) -> bytes:
    assert child.stdout is not None
    return child.stdout.readline()


def call(child: Child, identifier: int = 1, tool: str = "fault", **arguments: Any) -> None:
    send(child, "tools/call", identifier, name=tool, arguments=arguments)


def finish(child: Child) -> int:
    """Close its stdin and wait; its exit code."""
    assert child.stdin is not None
    child.stdin.close()
    return child.wait(120)


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.005)
    return False


def test_without_rules_it_is_a_good_legacy_server() -> None:
    with rogue() as child:
        send(child, "server/discover", 0)
        assert heard(child)["error"]["code"] == -32601
        send(child, "initialize", 1, protocolVersion="2025-06-18")
        assert heard(child)["result"]["protocolVersion"] == "2025-06-18"
        send(child, "notifications/initialized")
        send(child, "tools/list", 2)
        assert [tool["name"] for tool in heard(child)["result"]["tools"]] == ["echo", "fault"]
        call(child, 3)
        assert heard(child)["result"] == {"content": [{"type": "text", "text": str(child.pid)}]}
        call(child, 4, value="hello")
        assert heard(child)["result"]["content"][0]["text"] == "hello"
        assert finish(child) == 0


def test_in_the_modern_era_it_discovers_and_refuses_initialize() -> None:
    with rogue("--era", "modern") as child:
        send(child, "server/discover", 0)
        assert heard(child)["result"]["supportedVersions"] == ["2026-07-28"]
        send(child, "initialize", 1, protocolVersion="2025-06-18")
        assert heard(child)["error"]["code"] == -32022
        call(child, 2)
        assert heard(child)["result"]["resultType"] == "complete"
        send(child, "subscriptions/listen", 3, notifications={"toolsListChanged": True})
        assert heard(child)["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 3}


@pytest.mark.parametrize("data", [b"", b"plain", b"\0\xff\n\r\\x41 @ID@", bytes(range(256))])
def test_any_bytes_survive_the_command_line(data: bytes) -> None:
    assert decode_text(encode_text(data)) == data
    assert encode_text(data).isascii()


def test_marks_are_filled_in() -> None:
    rules = at("fault", line(b"@ID@ @NEXT@ @NEXT:5@ @PAD:3@ @DEEP:2@ @OPEN:2@ @COUNT@ @PID@"))
    with rogue(*rules) as child:
        call(child, 7)
        assert raw(child) == b"7 8 12 xxx [[]] [[ 1 %d\n" % child.pid


def test_a_rule_may_hold_for_one_occurrence_only() -> None:
    with rogue(*at("fault#2", result(b"[]"))) as child:
        for number in (1, 2, 3):
            call(child, number)
        assert "content" in heard(child)["result"]
        assert heard(child)["result"] == []
        assert "content" in heard(child)["result"]


def test_rules_hold_for_the_first_lives_only(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    arguments = ("--log", log, "--lives", "1", *at("start", "exit:3"))
    with rogue(*arguments) as child:
        assert child.wait(120) == 3
    with rogue(*arguments) as child:
        call(child)
        assert "result" in heard(child)
        assert finish(child) == 0
    events = [json.loads(text) for text in (tmp_path / "log").read_text().splitlines()]
    assert [event["event"] for event in events] == ["spawn", "exit", "spawn", "got", "eof", "exit"]


def test_answers_can_be_held_and_shuffled() -> None:
    with rogue(*at("fault", "hold:20", "release:shuffled")) as child:
        for number in range(20):
            call(child, number)
        order = [heard(child)["id"] for _ in range(20)]
    assert sorted(order) == list(range(20)) != order


def test_bytes_are_written_as_they_are_given() -> None:
    with rogue(*at("fault", say(b"\xff\0\r"), ("trickle", b"\xc3\xa9\n"))) as child:
        call(child)
        assert raw(child) == b"\xff\0\r\xc3\xa9\n"


def test_floods_are_of_the_given_length() -> None:
    with rogue(*at("fault", ("flood", b"30000:line @I@\n"), line(b"end"))) as child:
        call(child)
        assert [raw(child) for _ in range(30000)][-1] == b"line 29999\n"
        assert raw(child) == b"end\n"


def test_a_question_is_asked_and_the_reply_kept() -> None:
    ask = line(b'{"jsonrpc":"2.0","id":"s1","method":"ping"}')
    with rogue(*at("fault", ask, "listen:s1", result(b"@REPLY@"))) as child:
        call(child)
        assert heard(child)["method"] == "ping"
        call(child, 2, tool="echo")
        assert child.stdin is not None
        child.stdin.write(b'{"jsonrpc":"2.0","id":"s1","result":{}}\n')
        child.stdin.flush()
        assert json.loads(heard(child)["result"])["result"] == {}
        assert heard(child)["id"] == 2


def test_part_of_a_request_can_be_acted_on() -> None:
    with rogue(*at("partial", line(b"early @ID@")), *at("fault", line(b"whole @ID@"))) as child:
        params = {"name": "fault", "arguments": {"value": "x" * 3000}}
        text = json.dumps({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
        assert child.stdin is not None
        child.stdin.write(text[:2000].encode())
        child.stdin.flush()
        assert raw(child) == b"early 5\n"
        child.stdin.write(text[2000:].encode() + b"\n")
        child.stdin.flush()
        assert raw(child) == b"whole 5\n"


@pytest.mark.parametrize(
    ("deed", "code"), [("exit:42", 42), ("kill:SIGKILL", -9), ("kill:SIGSEGV", -11)]
)
def test_it_dies_as_told(deed: str, code: int) -> None:
    with rogue(*at("fault", deed)) as child:
        call(child)
        assert child.wait(120) == code


def test_it_can_ignore_the_end_and_sigterm(tmp_path: Path) -> None:
    log = tmp_path / "log"
    rules = (*at("start", "ignore:SIGTERM"), *at("eof", "hang"))
    with rogue("--log", str(log), *rules) as child:
        assert child.stdin is not None
        child.stdin.close()
        deadline = time.monotonic() + 120
        while '"hang"' not in log.read_text() if log.exists() else True:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        child.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.1)


@pytest.mark.parametrize("kind", ["plain", "stubborn", "daemon", "escaped"])
def test_a_grandchild_outlives_it(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with rogue("--log", str(log), *at("start", f"fork:{kind}")) as child:
        call(child)
        assert "result" in heard(child)
        assert finish(child) == 0
        events = [json.loads(text) for text in log.read_text().splitlines()]
        (pid,) = [event["pid"] for event in events if event["event"] == "fork"]
        group = child.pid if kind != "escaped" else pid
        assert os.getpgid(pid) == group
        os.kill(pid, signal.SIGTERM)
        if kind == "stubborn":
            os.kill(pid, 0)
            os.kill(pid, signal.SIGKILL)
        assert gone(pid)


def test_it_closes_a_pipe_and_lives() -> None:
    with rogue(*at("fault", "close:stdout", "hang")) as child:
        call(child)
        assert raw(child) == b""
        assert child.poll() is None


def test_it_stops_itself() -> None:
    with rogue(*at("fault", "stop")) as child:
        call(child)
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)


def test_every_rule_of_the_catalogue_names_an_action(tmp_path: Path) -> None:
    rules = [rule for fault in catalogue() for rule in in_folder(fault, tmp_path).rules]
    assert len(rules) > 300
    for rule in rules:
        event, _, deed = rule.partition("=")
        assert re.fullmatch(r"[a-zA-Z/_]+(#\d+)?", event), rule
        assert deed.partition(":")[0] in ACTIONS, rule


def test_the_catalogue_prints_as_a_table() -> None:
    faults = catalogue()
    rows = table(faults).splitlines()
    assert len(rows) == len(faults) + 2
    assert all(row.count("|") == 5 for row in rows)
