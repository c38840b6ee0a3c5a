"""A driver as the harness sees it: a child process that takes orders and answers, in time or not.

Whatever happens to it, it is ended, and so is everything that it started and left behind: each
driver has a mark, which stands in the command line of every server that it starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from benchmarks.peers.clients import Client

MEMORY_LIMIT: Final = 1 << 30
"""Resident bytes at which a driver is ended, before the machine is."""
LOOK: Final = 0.05
"""Seconds between two looks at its memory."""
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
SETTLE: Final = 1.0
"""Seconds that the kernel gets to clear up what was ended."""


@dataclass(frozen=True)
class Reply:
    """How an order went. ``ended`` is answer, error, hung, memory or died (the client did)."""

    ended: str
    seconds: float
    value: Any = None
    kind: str = ""
    message: str = ""


class DriverError(Exception):
    """A driver did not do what was ordered; its number would mean nothing."""


@dataclass
class Driver:
    """A driver that runs. Orders are numbered, so that several may be under way at once."""

    process: subprocess.Popen[bytes]
    mark: str
    errors: IO[bytes]
    answers: dict[int, dict[str, Any]] = field(default_factory=dict)
    lines: queue.SimpleQueue[dict[str, Any] | None] = field(default_factory=queue.SimpleQueue)
    peak: int = 0
    count: int = 0
    dead: bool = False

    def send(self, do: str, **details: Any) -> int:
        self.count += 1
        order = {"id": self.count, "do": do, **details}
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(order).encode() + b"\n")
            self.process.stdin.flush()
        return self.count

    def wait(self, number: int, limit: float) -> Reply:
        """The answer to an order, or what happened instead within ``limit`` seconds."""
        started = time.monotonic()
        while number not in self.answers:
            spent = time.monotonic() - started
            self.peak = max(self.peak, self.resident())
            if self.peak > MEMORY_LIMIT:
                self.process.kill()
                return Reply("memory", spent)
            if self.dead:
                return Reply("died", spent, message=f"exit status {self.process.wait()}")
            if spent >= limit:
                return Reply("hung", spent)
            with contextlib.suppress(queue.Empty):
                self.take(self.lines.get(timeout=LOOK))
        return read(self.answers.pop(number))

    def take(self, said: dict[str, Any] | None) -> None:
        if said is None:
            self.dead = True
        else:
            self.answers[said["id"]] = said

    def ask(self, limit: float, do: str, **details: Any) -> Reply:
        return self.wait(self.send(do, **details), limit)

    def resident(self) -> int:
        try:
            text = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii")
        except (OSError, ValueError):
            return 0
        return int(text.split()[1]) * PAGE if text else 0

    def said_last(self) -> str:
        """The last line of its stderr: what to look at when it failed."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else "it said nothing"


def read(said: dict[str, Any]) -> Reply:
    seconds = float(said["seconds"])
    if "error" in said:
        error = said["error"]
        return Reply("error", seconds, kind=error["type"], message=error["message"])
    return Reply("answer", seconds, value=said["ok"])


@contextmanager
def driver(client: Client, command: Sequence[str] | None = None) -> Iterator[Driver]:
    """The client's driver, waiting for orders; afterwards nothing of it is left."""
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [*(command or client.command()), "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=client.environment(),
        )
        started = Driver(process, f"peers-{secrets.token_hex(8)}", errors)
        listener = threading.Thread(target=_listen, args=(process, started.lines), daemon=True)
        listener.start()
        try:
            yield started
        finally:
            process.kill()
            process.wait()
            end(left_over(started.mark))
            listener.join(5)
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]


def _listen(process: subprocess.Popen[bytes], lines: queue.SimpleQueue[Any]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        with contextlib.suppress(ValueError):  # a client that prints: not ours to judge
            said = json.loads(line)
            if isinstance(said, dict) and "id" in said:
                lines.put(said)
    lines.put(None)


# -- what a client leaves behind -----------------------------------------------------------------


def left_over(mark: str) -> set[int]:
    """Processes that carry the mark in their command line, zombies not counted."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "cmdline").read_bytes():
                found.add(int(entry.name))
    return found


def remaining(mark: str, within: float = SETTLE) -> int:
    """How many are left, after a moment for the kernel to clear up."""
    ends = time.monotonic() + within
    while (count := len(left_over(mark))) and time.monotonic() < ends:
        time.sleep(LOOK)
    return count


def end(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
