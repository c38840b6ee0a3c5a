"""What every fault test stands on: endings, the rogue's log, and the search for leaks."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import holdfast
from holdfast import errors
from tests.faults.rows import PATIENT

HANG = 200.0
"""Seconds after which a test is called hung; nothing here should take a tenth of it."""
PAUSE = 0.005
GRACE = 0.1


@dataclass(frozen=True)
class Ending:
    """How a request ended."""

    kind: str
    error: errors.HoldfastError | None = None
    value: Any = None
    seconds: float = 0.0

    def __str__(self) -> str:
        shown = repr(self.error) if self.error else ascii(self.value)[:200]
        return f"{self.kind} after {self.seconds:.2f} s: {shown}"

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def text(self) -> str:
        return str(self.value.text)

    def fits(self, wanted: str) -> bool:
        """Whether this is the ending that a catalogue row names."""
        name, _, code = wanted.partition(":")
        if code and (self.error is None or self.error.code != int(code)):
            return False
        if name == "transport":
            return self.kind in ("lost", "unsent")
        if name == "rpc":
            return self.kind in ("rpc", "missing")
        return self.kind == name


KINDS = {
    "transport": "transport",
    "protocol": "protocol",
    "jsonrpc": "rpc",
    "state": "state",
    "timeout": "timeout",
    "shutdown": "shutdown",
    "validation": "validation",
    "tool": "tool",
    "backpressure": "backpressure",
}


def kind_of(error: errors.HoldfastError) -> str:
    if isinstance(error, errors.ResourceNotFoundError):
        return "missing"
    if isinstance(error, errors.HandshakeTimeout):
        return "handshake"
    if isinstance(error, errors.TransportError):
        return "lost" if error.outcome_unknown else "unsent"
    return KINDS[error.kind]


async def ending(request: Awaitable[Any], within: float = HANG) -> Ending:
    """The one outcome of a request. Not ending, or ending in anything untyped, fails the test."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    task = asyncio.ensure_future(request)
    done, _ = await asyncio.wait([task], timeout=within)
    seconds = loop.time() - started
    if not done:
        task.cancel()
        raise AssertionError(f"no outcome within {within:g} s")
    try:
        return Ending("ok", value=task.result(), seconds=seconds)
    except errors.HoldfastError as error:
        return Ending(kind_of(error), error, seconds=seconds)


async def eventually(
    predicate: Callable[[], object], what: str = "it", within: float = 60.0
) -> None:
    """Wait for something that the operating system does in its own time."""
    deadline = time.monotonic() + within
    while not predicate():
        assert time.monotonic() < deadline, f"{what}: not within {within:g} s"
        await asyncio.to_thread(time.sleep, PAUSE)


class Log:
    """What the rogue wrote down."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def events(self, name: str) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def messages(self, method: str | None = None) -> list[dict[str, Any]]:
        """The messages that the server got; without a method, its answers from us."""
        got = [event["message"] for event in self.events("got")]
        return [message for message in got if message.get("method") == method]

    def faults(self) -> list[dict[str, Any]]:
        """The calls of the tool that misbehaves."""
        calls = self.messages("tools/call")
        return [call for call in calls if call["params"] == "(long)" or names_fault(call)]

    @property
    def spawns(self) -> list[int]:
        return [event["pid"] for event in self.events("spawn")]


def names_fault(call: dict[str, Any]) -> bool:
    return bool(call["params"]["name"] == "fault")


# Leaks.


def descriptors() -> dict[int, str]:
    """The open descriptors of this process."""
    found: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
    return found


def status(pid: int) -> tuple[str, int] | None:
    """A process's state letter and its parent, or None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[1])


def children() -> set[int]:
    """The processes whose parent we are; zombies too."""
    found = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return {pid for pid in found if (seen := status(pid)) and seen[1] == os.getpid()}


def alive(pid: int) -> bool:
    """A zombie of ours is not gone; one that another parent has yet to reap is."""
    seen = status(pid)
    return seen is not None and (seen[0] not in "ZX" or seen[1] == os.getpid())


@asynccontextmanager
async def no_leaks(*logs: Log) -> AsyncIterator[None]:
    """Whatever happens inside, afterwards no process, descriptor or task is left."""
    fds, tasks, brood = descriptors(), asyncio.all_tasks(), children()
    try:
        yield
        left = children() - brood
        assert not left, f"processes left after close: {left}"
        await eventually(lambda: not strangers(*logs), f"grandchildren {logs[0].events('fork')}")
        await eventually(lambda: asyncio.all_tasks() <= tasks, "tasks to end")
        await eventually(
            lambda: len(descriptors()) <= len(fds), f"descriptors {descriptors()} of {fds}"
        )
    finally:
        for pid in {pid for log in logs for pid in pids(log)}:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


def strangers(*logs: Log) -> set[int]:
    """Processes of the rogue that live on, but for those that have left its group."""
    fled = {
        event["pid"] for log in logs for event in log.events("fork") if event["kind"] == "escaped"
    }
    return {pid for log in logs for pid in pids(log) if alive(pid)} - fled


def pids(log: Log) -> list[int]:
    return log.spawns + [event["pid"] for event in log.events("fork")]


# The log.

CHATTER = 10
"""Warnings that one server may be worth, however often it misbehaves."""


@contextmanager
def quiet() -> Iterator[None]:
    """A misbehaving server cannot fill the application's log."""
    records: list[str] = []

    class Counting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    handler = Counting(logging.WARNING)
    logger = logging.getLogger("holdfast")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert len(records) <= CHATTER, f"{len(records)} warnings, such as {records[-3:]}"


# Memory.


def peak_reset() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def memory(field: str) -> int:
    """Bytes: ``VmRSS`` now, ``VmHWM`` at the peak."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise AssertionError(field)


# Policies.

POLICIES = {
    "timeouts": holdfast.Timeouts,
    "limits": holdfast.Limits,
    "backoff": holdfast.Backoff,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "timeouts": {"request": PATIENT, "handshake": PATIENT, "total": PATIENT, "probe": 0.25},
    "backoff": {"first": 0.01, "max": 0.05, "jitter": 0.0, "healthy_after": 0.0},
    "limits": {},
}


def connect(command: list[str], options: dict[str, Any]) -> holdfast.Client:
    """A client of ``command``; policies are given as mappings and laid over quick defaults."""
    merged: dict[str, Any] = {"when_down": "wait", "grace": GRACE, **options}
    for name, policy in POLICIES.items():
        merged[name] = policy(**{**DEFAULTS[name], **merged.get(name, {})})
    return holdfast.connect(command, **merged)
