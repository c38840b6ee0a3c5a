"""The process with the clients of Locust's users, without Locust: orders in, answers out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

DEMO = [sys.executable, "-m", "holdfast.demo.server"]


class Process:
    """The process, spoken to as Locust's side does."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "holdfast.load.caller"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout

    def tell(self, kind: str, **fields: Any) -> None:
        self._stdin.write(json.dumps({"type": kind, **fields}).encode() + b"\n")
        self._stdin.flush()

    def answer(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._stdout.readline())
        return answer

    def open(self, user: int, target: list[str] | str = DEMO, **options: Any) -> dict[str, Any]:
        self.tell("open", id=user, user=user, target=target, options=options)
        return self.answer()

    def call(self, number: int, user: int, tool: str, *pairs: Any, **arguments: Any) -> None:
        options = dict(pairs)
        self.tell("call", id=number, user=user, tool=tool, arguments=arguments, options=options)

    def end(self) -> int:
        self._stdin.close()
        code = self._process.wait()
        self._stdout.close()
        return code


@pytest.fixture
def process() -> Iterator[Process]:
    caller = Process()
    yield caller
    assert caller.end() == 0


@pytest.mark.req("S4")
def test_each_call_has_its_outcome_duration_and_length(process: Process) -> None:
    opened = process.open(1)
    assert (opened["id"], opened["outcome"]["outcome"]) == (1, "ok")
    process.call(2, 1, "add", a=1, b=2)
    answer = process.answer()
    assert (answer["id"], answer["length"]) == (2, len('{"sum":3}'))
    assert answer["outcome"]["result"] == {"sum": 3}
    assert answer["outcome"]["ms"] > 0


@pytest.mark.req("S4")
def test_failures_are_answers_and_end_nothing(process: Process) -> None:
    process.open(1, when_down="wait")
    process.call(2, 1, "add", a="x")
    wrong = process.answer()
    assert (wrong["outcome"]["outcome"], wrong["outcome"]["error"]["kind"]) == (
        "error",
        "validation",
    )
    process.call(3, 1, "crash")
    lost = process.answer()
    assert (lost["outcome"]["outcome"], lost["outcome"]["error"]["kind"]) == (
        "unknown",
        "transport",
    )
    process.call(4, 1, "add", a=1, b=2)
    assert process.answer()["outcome"]["result"] == {"sum": 3}


@pytest.mark.req("S4")
def test_users_have_connections_of_their_own(process: Process) -> None:
    process.open(1)
    process.open(2, when_down="wait")
    process.call(3, 2, "crash")
    assert process.answer()["outcome"]["outcome"] == "unknown"
    process.call(4, 1, "add", a=1, b=2)
    assert process.answer()["outcome"]["result"] == {"sum": 3}
    process.tell("close", user=1)
    process.call(5, 1, "add", a=1, b=2)
    assert "user 1 is not connected" in process.answer()["outcome"]["error"]["message"]


@pytest.mark.req("S4")
def test_a_cancelled_call_has_no_answer_and_others_go_on(process: Process) -> None:
    process.open(1)
    process.call(2, 1, "sleep", ("timeout", 7200), seconds=3600)
    process.tell("cancel", id=2)
    process.tell("cancel", id=99)  # one that has ended meanwhile
    process.call(3, 1, "add", a=1, b=2)
    assert process.answer()["id"] == 3


@pytest.mark.req("S4")
def test_a_server_that_cannot_be_reached_is_an_answer(process: Process) -> None:
    refused = process.open(1, [sys.executable, "-c", "raise SystemExit(3)"])
    assert refused["outcome"]["error"]["kind"] == "transport"
    odd = process.open(2, "")
    assert odd["outcome"]["error"]["kind"] == "validation"
    unknown = process.open(3, DEMO, no_such_option=1)
    assert "no_such_option" in unknown["outcome"]["error"]["message"]


@pytest.mark.req("S4")
def test_the_end_of_the_input_ends_calls_under_way(process: Process) -> None:
    process.open(1)
    process.call(2, 1, "sleep", ("timeout", 7200), seconds=3600)
    assert process.end() == 0


@pytest.mark.req("S4")
def test_a_missing_locust_is_named_with_the_extra_that_brings_it() -> None:
    code = "import sys; sys.modules['locust'] = None\nimport holdfast.load\nholdfast.load.McpUser"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert "ValidationError" in done.stderr
    assert "pip install 'holdfast[load]'" in done.stderr
