"""The processes of one run: started, found again, killed. Linux only: they are found in /proc."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Final

from examples.service.settings import ROOT, RUN

START: Final = 60.0
"""Seconds for a process to come up, or to be gone: a guard against hanging, nothing more."""
GLANCE: Final = 0.02

_given: set[int] = set()
"""Ports that are somebody's already, though nobody may listen yet."""


def free_port() -> int:
    """A port outside the range that outgoing connections are given theirs from.

    Inside it a client that keeps trying a port without a listener may one day connect to itself,
    and any program may take the port while its server is down.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


async def listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until something takes connections there."""
    async with asyncio.timeout(START):
        while process.poll() is None:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(GLANCE)
    raise RuntimeError(f"ended with code {process.returncode} before it listened on port {port}")


class Run:
    """What belongs together: every process has the run's name in its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = uuid.uuid4().hex
        self.output = folder / "output.log"

    def start(self, module: str, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        with self.output.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                env={**os.environ, **env, RUN: self.name},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def find(self, word: str = "") -> dict[int, str]:
        """The living processes with this word in their command line, by id."""
        mark = f"{RUN}={self.name}".encode()
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                # A process that has ended and was not waited for has neither any more.
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if word in command:
                        found[int(entry.name)] = command.strip()
        return found

    async def left_over(self, patience: float = 15.0) -> dict[int, str]:
        """What is still there after a moment in which it may end by itself."""
        until = time.monotonic() + patience
        while (found := self.find()) and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(GLANCE)
        return found

    def kill(self, word: str = "", most: int | None = None) -> int:
        """Kill processes without a warning; how many."""
        killed = 0
        for pid in list(self.find(word))[:most]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
        return killed


class Ledger:
    """The shared HTTP server. It comes back at the same place, with the same book."""

    def __init__(self, run: Run) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.database = run.folder / "ledger.sqlite"
        self._run = run
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        arguments = ("--port", str(self.port), "--database", str(self.database))
        self._process = self._run.start("examples.service.ledger", *arguments)
        await listening(self.port, self._process)

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            await asyncio.to_thread(self._process.wait, START)


class Web:
    """The service itself, under uvicorn."""

    def __init__(self, run: Run, ledger: str, workers: int, timeout: float) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._run = run
        self._env = {
            "SERVICE_LEDGER": ledger,
            "SERVICE_FOLDER": str(run.folder),
            "SERVICE_TIMEOUT": str(timeout),
            "SERVICE_TRACES": "1",
        }
        self._arguments = (
            *("--factory", "examples.service.app:create"),
            *("--workers", str(workers), "--port", str(self.port)),
            *("--log-level", "warning", "--no-access-log"),
            # A busy machine is no reason to replace a worker.
            *("--timeout-worker-healthcheck", "60"),
        )
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self._process = self._run.start("uvicorn", *self._arguments, **self._env)
        await listening(self.port, self._process)

    async def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            await asyncio.to_thread(self._process.wait, START)
