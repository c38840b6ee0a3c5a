"""A real redis-server for tests, on loopback, with nothing of anybody else's in it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

DURABLE = ("--appendonly", "yes", "--appendfsync", "always")
"""Options of a server that has written what it answers."""
_START = 60.0
"""Seconds for it to answer, on a machine that is busy."""


class RedisServer:
    """One server; ``stop`` and ``start`` keep its port and its files."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.options = options
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it; return when it answers and has read its files."""
        for _ in range(10):
            port = self.port or _free_port()
            command = [_program(), "--port", str(port), "--bind", "127.0.0.1"]
            command += ["--dir", str(self.folder), "--save", "", "--daemonize", "no"]
            self._process = subprocess.Popen(
                [*command, *self.options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            if self._answers(port):
                self.port = port
                return
        raise RuntimeError("redis-server does not start")

    def _answers(self, port: int) -> bool:
        import redis

        assert self._process is not None
        until = time.monotonic() + _START
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with redis.Redis(port=port) as client:
                    return bool(client.info("server")["process_id"] == self._process.pid)
            except redis.exceptions.RedisError:
                time.sleep(0.02)
        return False

    def stop(self) -> None:
        """Kill it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Keep it from answering, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def client(self) -> Any:
        """A connection of the test's own, without await."""
        import redis

        return redis.Redis(port=self.port)


def _program() -> str:
    return shutil.which("redis-server") or shutil.which("valkey-server") or "redis-server"


def _free_port() -> int:
    """Below those that the kernel gives to clients: nobody takes it while the server is down."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def require_redis() -> None:
    """Skip what needs a redis-server where there is none."""
    if shutil.which(_program()) is None:
        pytest.skip("needs redis-server (apt install redis-server)")


@contextmanager
def running_redis(folder: Path, *options: str) -> Iterator[RedisServer]:
    """Run a server for a while."""
    require_redis()
    os.makedirs(folder, exist_ok=True)
    server = RedisServer(folder, *options)
    server.start()
    try:
        yield server
    finally:
        server.stop()
