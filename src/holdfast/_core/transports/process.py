"""One run of a server process: messages on its stdin and stdout, its stderr drained.

Teardown is bounded: close stdin, wait the grace, SIGTERM the process group, wait again,
SIGKILL it. What the server leaves behind in its group goes the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from typing import Final

from holdfast._core.boundary import (
    Drained,
    Generation,
    Lost,
    Opened,
    Report,
    Room,
    Starting,
    StreamOptions,
    WireId,
)
from holdfast._core.transports.launchers import Activity, activity
from holdfast._core.transports.orphans import guard
from holdfast._core.transports.pipes import LineReader, PipeReader, Writer
from holdfast._core.transports.spawn import ending
from holdfast._core.transports.stderr import Stderr
from holdfast._core.wire.framing import FrameTooLarge
from holdfast.errors import HoldfastError, TransportError
from holdfast.policies import Limits

EXIT_WAIT: Final = 0.25
"""Seconds to wait for the exit code of a server that closed its pipes."""
GROUP_WAIT: Final = 0.5
"""Seconds between SIGTERM and SIGKILL for what outlives the server in its group."""
KILL_WAIT: Final = 5.0
"""Seconds for the kernel to end a killed process: longer only for one stuck in the kernel."""
START_CHECK: Final = 1.0
"""Seconds between two looks at a server that has said nothing yet."""


class StdioLink:
    """One run of the server."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        *,
        stderr: Stderr,
        grace: float,
        startup: float = 0.0,
        launcher: bool = False,
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._generation = generation
        self._report = report
        self._stderr = stderr
        self._grace = grace
        self._startup = startup
        self._launcher = launcher
        self._on_ended = ended
        self._started = self._loop.time()
        self._activity = Activity()
        self._start_check: asyncio.TimerHandle | None = None
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._fading: asyncio.TimerHandle | None = None
        self._teardown: asyncio.Task[None] | None = None
        self._ended = False
        self._own_pipes(limits)
        self._watch_exit()
        self._loop.call_soon(self._begin)

    def __repr__(self) -> str:
        return f"<StdioLink #{self._generation} pid {self._process.pid}>"

    def _own_pipes(self, limits: Limits) -> None:
        """Take the descriptors from the Popen object; from here on they are ours to close."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = os.dup(process.stdin.fileno())
        os.set_blocking(stdin, False)
        self._writer = Writer(stdin, self._loop, limits.backlog_bytes, self._broken, self._room)
        self.send: Callable[..., bool] = self._writer.send
        self._reader = LineReader(
            limits.frame_bytes, self._generation, self._writer, self._report, self._oversized
        )
        self._stdout = PipeReader(_take(process.stdout), self._loop, self._reader.feed, self._end)
        process.stdin.close()
        self._errors: PipeReader | None = None
        if process.stderr is not None:
            self._errors = PipeReader(
                _take(process.stderr), self._loop, self._stderr.feed, self._stderr.end
            )

    def _begin(self) -> None:
        if self._ended:
            return
        guard.watch(self._process.pid)
        self._report(Opened(self._generation))
        if self._launcher:
            self._check_start()
        elif self._startup > 0:
            self._check_later(START_CHECK)

    def _check_start(self) -> None:
        """Report, while nothing has been heard, that a launcher is still at work.

        A launcher counts as working as long as it runs: one that downloads over a slow network
        uses hardly any processor time. Other commands need children that do something.
        """
        self._start_check = None
        elapsed = self._loop.time() - self._started
        if (
            self._reader.heard
            or self._reader.lost
            or self._exited.done()
            or elapsed >= self._startup
        ):
            return
        again = min(START_CHECK, self._startup - elapsed)
        if self._launcher or self._children_busy():
            self._report(Starting(self._generation, elapsed, again))
        self._check_later(again)

    def _check_later(self, seconds: float) -> None:
        self._start_check = self._loop.call_later(seconds, self._check_start)

    def _children_busy(self) -> bool:
        before, self._activity = self._activity, activity(self._process.pid)
        return before != self._activity

    def _room(self) -> None:
        if not self._reader.lost:
            self._report(Room(self._generation))

    # What the driver asks for

    def withdraw(self, wire_id: WireId) -> bool:
        return self._writer.withdraw(wire_id)

    def unsent(self) -> frozenset[WireId]:
        return self._writer.unsent()

    def unread(self) -> bool:
        return self._writer.unread()

    def finish(self, wire_id: WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: StreamOptions | None = None) -> None:
        self._reader.lost = True
        if self._teardown is None and not self._ended:
            self._teardown = self._loop.create_task(self._tear_down(), name=repr(self))

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        if self._teardown is not None:
            self._teardown.cancel()
        self._release()

    # What comes from the server

    def _oversized(self, error: FrameTooLarge) -> None:
        hint = "Limits(frame_bytes=…) sets this"
        self._lose(TransportError(f"the server sent {error}", hint=hint), error.size)

    def _end(self) -> None:
        self._reader.end()
        self._fade("closed its output")

    def _broken(self, error: OSError) -> None:
        self._fade("closed its input")

    def _fade(self, what: str) -> None:
        """A pipe is gone; wait a moment for the exit code."""
        if self._reader.lost or self._fading is not None:
            return
        if self._exited.done():
            self._lose_process(what)
        else:
            self._fading = self._loop.call_later(EXIT_WAIT, self._lose_process, what)

    def _watch_exit(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            self._pidfd = -1
            self._poll = self._loop.call_later(EXIT_WAIT / 10, self._poll_exit)
        else:
            self._loop.add_reader(self._pidfd, self._exit)

    def _poll_exit(self) -> None:
        """Poll for the exit, where the system has no pidfd."""
        if self._process.poll() is not None:
            self._exit()
        elif not self._ended:
            self._poll = self._loop.call_later(EXIT_WAIT / 10, self._poll_exit)

    def _exit(self) -> None:
        if self._exited.done():
            return
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        # It stays a zombie until the teardown, so that the id of its group is not reused: a
        # signal to the group must not reach a stranger.
        self._exited.set_result(None)
        if not self._reader.lost:
            self._stdout.drain()
        if self._errors is not None:
            self._errors.drain()
        if not self._reader.lost:
            self._lose_process("ended")

    def _lose_process(self, what: str) -> None:
        if self._exited.done():
            code = self._exit_code()
            text, exit_code = f"the server {ending(code)}", code
        else:
            text, exit_code = f"the server {what}, though it still runs", None
        tail = self._stderr.tail.text()
        self._lose(TransportError(text, exit_code=exit_code, stderr_tail=tail))

    def _exit_code(self) -> int | None:
        if self._process.returncode is not None or self._pidfd < 0:
            return self._process.returncode
        try:
            found = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except OSError:
            return self._process.poll()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _lose(self, error: HoldfastError, frame_size: int | None = None) -> None:
        if not self._reader.lost:
            self._reader.lost = True
            unsent = self._writer.unsent()
            self._report(Lost(self._generation, error, unsent, frame_size))

    # Teardown

    async def _tear_down(self) -> None:
        try:
            self._writer.close()
            how = "the end of its input"
            if not await self._exits_within(self._grace):
                how = "SIGTERM"
                self._signal(signal.SIGTERM)
                if not await self._exits_within(self._grace):
                    how = "SIGKILL"
                    self._signal(signal.SIGKILL)
                    await self._exits_within(KILL_WAIT)
            self._on_ended(how)
            await self._end_group()
        finally:
            self._release()
        self._report(Drained(self._generation))

    async def _exits_within(self, span: float) -> bool:
        await asyncio.wait([self._exited], timeout=span)
        return self._exited.done()

    async def _end_group(self) -> None:
        """End what the dead leader left behind in its process group."""
        self._signal(signal.SIGTERM)
        self._process.poll()
        deadline = self._loop.time() + GROUP_WAIT
        while self._group_lives():
            if self._loop.time() > deadline:
                self._signal(signal.SIGKILL)
                return
            await asyncio.sleep(0.01)

    def _group_lives(self) -> bool:
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _release(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._reader.lost = True
        for timer in (self._fading, self._start_check):
            if timer is not None:
                timer.cancel()
        self._writer.close()
        self._stdout.close()
        if self._errors is not None:
            self._errors.close()
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        else:
            self._poll.cancel()
        self._process.poll()
        guard.forget(self._process.pid)


def _take(pipe: object) -> int:
    """Return a descriptor of our own for a pipe of Popen's, which is closed."""
    fd = os.dup(pipe.fileno())  # type: ignore[attr-defined]
    pipe.close()  # type: ignore[attr-defined]
    return fd
