"""A terminal to run programs at: what they write is kept, and drawn as an emulator draws it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pyte
import pytest

PATIENCE = 120.0
"""Seconds after which something has hung."""

# A suite that runs in the background ignores Ctrl-C, and so would all that it starts.
HEED = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
TAKE_TERMINAL = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
START = "os.execv(sys.argv[1], sys.argv[1:])"

# A terminal may report that its other side is closed before all that was written to it was read.
# So the other side stays open here, and this (a window's title) is the last that is written to it.
END = b"\x1b]2;the end\x07"


def interruptible(command: list[str]) -> list[str]:
    """The command, for a process that an interrupt ends."""
    return [sys.executable, "-I", "-S", "-c", HEED + START, *command]


class Screen:
    """All that was written to a terminal."""

    def __init__(self, columns: int, lines: int) -> None:
        self.raw = b""
        self.ended = False
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)

    def feed(self, data: bytes) -> None:
        self.raw += data
        if self.raw.endswith(END):
            self.ended = True
            self.raw = self.raw.removesuffix(END)
        self._stream.feed(data)

    @property
    def text(self) -> str:
        """As it came, decoded; lines end as programs end them."""
        return self.raw.decode("utf-8", "replace").replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        """As it looks, without the empty lines at the end."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().splitlines()

    @property
    def colours(self) -> set[str]:
        """Those that are on it now."""
        cells = [cell for row in self._screen.buffer.values() for cell in row.values()]
        return {cell.fg for cell in cells if cell.data.strip()}


class Terminal:
    """A process at a terminal of its own."""

    def __init__(
        self,
        command: list[str],
        *,
        columns: int = 80,
        lines: int = 40,
        stdout: Path | None = None,
        **env: str,
    ) -> None:
        self._master, self._slave = os.openpty()
        termios.tcsetwinsize(self._slave, (lines, columns))
        self.screen = Screen(columns, lines)
        target = self._slave if stdout is None else os.open(stdout, os.O_WRONLY | os.O_CREAT, 0o600)
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", HEED + TAKE_TERMINAL + START, *command],
            stdin=self._slave,
            stdout=target,
            stderr=self._slave,
            start_new_session=True,
            env={**os.environ, **env},
        )
        if stdout is not None:
            os.close(target)

    @property
    def text(self) -> str:
        return self.screen.text

    def send(self, text: str) -> None:
        os.write(self._master, text.encode())

    def expect(self, *texts: str) -> str:
        """Wait until one of the texts was written; what was until then, and is now done with."""
        deadline = time.monotonic() + PATIENCE
        while not any(text in self.text[self._done :] for text in texts):
            assert time.monotonic() < deadline, f"no {texts!r} in:\n{self.text}"
            assert self._read(1.0) is not None, f"ended without {texts!r}:\n{self.text}"
        rest = self.text[self._done :]
        end = self._done + min(rest.index(text) + len(text) for text in texts if text in rest)
        before, self._done = self.text[self._done : end], end
        return before

    def turn_pages(self, question: str) -> str:
        """Press Enter at each screen until the question; all that was shown, without breaks."""
        shown = self.expect(" -- ", question)
        while not shown.endswith(question):
            self.send("\n")
            shown += self.expect(" -- ", question)
        return shown.replace("\n", "")

    def see(self, text: str) -> None:
        """Wait until a text is on the screen, however it was drawn."""
        deadline = time.monotonic() + PATIENCE
        while text not in "\n".join(self.screen.lines):
            shown = "\n".join(self.screen.lines)
            assert time.monotonic() < deadline, f"no {text!r} on:\n{shown}"
            assert self._read(1.0) is not None, f"ended without {text!r}:\n{shown}"

    _done = 0
    _closed = False

    def end(self) -> int:
        """Wait until the process has ended; its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(1.0) is not None:
            assert time.monotonic() < deadline, f"still running:\n{self.text}"
        return self.process.wait(PATIENCE)

    def _read(self, seconds: float) -> bytes | None:
        """What was written since; None when the process has ended and all of it was read."""
        if self.screen.ended:
            return None
        if not select.select([self._master], [], [], min(seconds, 0.05))[0]:
            if self.process.poll() is not None and not self._closed:
                self._closed = True
                os.write(self._slave, END)
            return b""
        data = os.read(self._master, 65536)
        self.screen.feed(data)
        return data

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._slave)
        os.close(self._master)


@contextmanager
def attached(monkeypatch: pytest.MonkeyPatch, columns: int = 80) -> Iterator[Screen]:
    """A terminal as stdout and stderr of this very process."""
    master, slave = os.openpty()
    screen = Screen(columns, 100)

    def drain() -> None:
        while not screen.ended:
            screen.feed(os.read(master, 65536))

    reader = Thread(target=drain)
    reader.start()
    with monkeypatch.context() as patched, open(slave, "w", encoding="utf-8") as file:
        patched.setattr(sys, "stdout", file)
        patched.setattr(sys, "stderr", file)
        try:
            yield screen
        finally:
            file.flush()
            os.write(slave, END)
            reader.join()
    os.close(master)
