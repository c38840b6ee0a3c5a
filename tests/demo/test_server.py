"""The demo server as a process: how it starts, crashes and ends."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import holdfast
from tests.server.wire import Client, Json, Wire

DEADLINE = 20.0  # seconds; a guard against hanging, not a measure of speed

META = "io.modelcontextprotocol/"
STATELESS = "2026-07-28"
HANDSHAKE = "2025-11-25"


class Process(Wire):
    """A running server: writes messages, reads the next one within the deadline."""

    def __init__(self, *options: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "holdfast.demo.server", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.count = 0

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, line: bytes) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line + b"\n")
        self._child.stdin.flush()

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def receive(self) -> Json:
        line = self._lines.get(timeout=DEADLINE)
        assert line, "the server ended"
        message = json.loads(line)
        assert isinstance(message, dict)
        assert message["jsonrpc"] == "2.0"
        return message

    def next_id(self) -> int:
        self.count += 1
        return self.count

    def end_input(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()

    def wait(self) -> int:
        """The exit code; whatever was not received by then is left over."""
        code = self._child.wait(DEADLINE)
        self._reader.join(DEADLINE)
        return code

    def rest(self) -> list[Json]:
        """What the server still wrote, after its end."""
        found = []
        while line := self._lines.get(timeout=DEADLINE):
            found.append(json.loads(line))
        return found

    def stderr(self) -> str:
        assert self._child.stderr is not None
        return self._child.stderr.read().decode()

    def address(self) -> str:
        """The URL that a server over HTTP writes when it listens."""
        assert self._child.stderr is not None
        return self._child.stderr.readline().decode().strip()

    def close(self) -> None:
        self._child.kill()
        self.wait()
        for stream in (self._child.stdin, self._child.stdout, self._child.stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                pass


Launch = Callable[..., Process]


@pytest.fixture
def launch() -> Iterator[Launch]:
    processes: list[Process] = []

    def start(*options: str) -> Process:
        processes.append(Process(*options))
        return processes[-1]

    yield start
    for process in processes:
        process.close()


@pytest.fixture(params=[STATELESS, HANDSHAKE])
def client(request: pytest.FixtureRequest, launch: Launch) -> Client:
    return Client(launch(), request.param)


def process_of(client: Client) -> Process:
    assert isinstance(client.wire, Process)
    return client.wire


def test_a_large_text_goes_both_ways(client: Client) -> None:
    text = "x" * 3_000_000
    (block,) = client.tool("echo", text=text)["content"]
    assert block["text"] == text


def test_many_calls_at_once_are_all_answered(client: Client) -> None:
    ids = [client.start_tool("echo", text=str(number)) for number in range(200)]
    assert [client.wire.receive()["id"] for _ in ids] == ids


def test_time_passes_for_one_call_while_others_are_answered(client: Client) -> None:
    slow = client.start_tool("sleep", seconds=0.05)
    client.tool("echo", text="meanwhile")
    assert client.wire.receive()["id"] == slow


def test_crash_exits_with_the_code_given_and_one_line_on_stderr(client: Client) -> None:
    client.start_tool("crash", code=42)
    process = process_of(client)
    assert process.wait() == 42
    assert process.rest() == []
    assert process.stderr() == "demo server: crashing with exit code 42, as asked\n"


def test_the_end_of_input_ends_the_server_whatever_it_does(client: Client) -> None:
    client.start_tool("sleep", seconds=3600)
    client.start_tool("ask_name")
    client.wire.receive()
    process = process_of(client)
    process.end_input()
    assert process.wait() == 0
    assert process.stderr() == ""


def test_what_was_asked_before_the_end_of_input_is_still_answered(client: Client) -> None:
    last = client.start_tool("echo", text="last words")
    process = process_of(client)
    process.end_input()
    assert process.wait() == 0
    (answer,) = process.rest()
    assert answer["id"] == last


def test_the_end_of_input_is_seen_while_nobody_reads_the_answers() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "holdfast.demo.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    meta = {META + "protocolVersion": STATELESS, META + "clientCapabilities": {}}
    params = {"_meta": meta, "name": "echo", "arguments": {"text": "x" * 1_000_000}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    with child:
        assert child.stdin is not None
        child.stdin.write(json.dumps(request).encode() + b"\n")
        child.stdin.close()
        assert child.wait(DEADLINE) == 0


@pytest.mark.parametrize("eras", ["handshake", "stateless"])
async def test_a_countdown_may_become_a_task(eras: str) -> None:
    command = [sys.executable, "-m", "holdfast.demo.server", "--eras", eras]
    async with holdfast.connect(command) as client:
        running = client.start_tool("countdown", {"steps": 2, "seconds": 0.1}, task=True)
        assert await running.wait_task() is not None
        assert (await running).text == "counted down from 2"


@pytest.mark.parametrize("eras", ["handshake", "stateless"])
async def test_the_progress_of_a_task_is_what_its_state_says(eras: str) -> None:
    command = [sys.executable, "-m", "holdfast.demo.server", "--eras", eras]
    counting = asyncio.Event()

    def on_task(task: holdfast.types.Task) -> None:
        if task.status_message is not None and task.status_message.endswith(" to go"):
            counting.set()

    async with holdfast.connect(command) as client:
        # Longer than anybody asks for its state, on any machine.
        arguments = {"steps": 100_000, "seconds": 0.01}
        running = client.start_tool("countdown", arguments, task=True, on_task=on_task)
        async with asyncio.timeout(DEADLINE):
            await counting.wait()
        running.cancel()


async def test_a_task_over_http_outlives_its_client(launch: Launch) -> None:
    url = launch("--http", "0").address()
    async with holdfast.connect(url) as client:
        running = client.start_tool("countdown", {"steps": 2, "seconds": 0.1}, task=True)
        await running.wait_task()
        task_id = running.detach()
    async with holdfast.connect(url) as client:
        assert (await client.resume_task(task_id)).text == "counted down from 2"


async def test_its_skill_is_verified() -> None:
    async with holdfast.connect([sys.executable, "-m", "holdfast.demo.server"]) as client:
        (skill,) = await client.list_skills()
        assert "word_count" in (await client.read_skill(skill)).text
        assert "sea" in (await client.read_skill(skill, "style.md")).text
        assert skill.uri not in [one.uri for one in await client.list_resources()]


def test_bad_options_are_refused_with_a_usage_line(launch: Launch) -> None:
    process = launch("--page-size", "0")
    assert process.wait() == 2
    assert "usage: python -m holdfast.demo.server" in process.stderr()
