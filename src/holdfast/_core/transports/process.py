"""One run of a server process: messages on its stdin and stdout, its stderr drained.

Teardown is bounded: close stdin, wait the grace, SIGTERM the process group, wait again,
SIGKILL it. What the server leaves behind in its group goes the same way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from holdfast._core import boundary as b
from holdfast._core.transports.orphans import guard
from holdfast._core.transports.pipes import LineReader, PipeReader, Writer
from holdfast._core.transports.spawn import Spawned, activity, ending
from holdfast._core.wire.framing import FrameTooLarge
from holdfast.errors import Hint, HoldfastError, ProtocolError, TransportError
from holdfast.policies import Limits

log: logging.Logger = logging.getLogger("holdfast")

Sink: TypeAlias = "Callable[[str], object] | logging.Logger | None"
"""Receives the lines of a stderr."""

EXIT_WAIT: Final = 0.25
"""Seconds to wait for the exit code of a server that closed its pipes."""
GROUP_WAIT: Final = 0.5
"""Seconds between SIGTERM and SIGKILL for what outlives the server in its group."""
KILL_WAIT: Final = 5.0
"""Seconds for the kernel to end a killed process: longer only for one stuck in the kernel."""
LOOP_WAIT: Final = 1.0
"""The same at the end of the loop, where waiting blocks everything."""
START_CHECK: Final = 1.0
"""Seconds between two checks of a server that has sent nothing yet."""
_LONGEST_LINE: Final = 8 * 1024
"""Bytes of a line of stderr; a longer one is passed on in parts."""


class Stderr:
    """Keep the last bytes of a stderr of any length, and pass its lines on."""

    __slots__ = ("_emit", "_limit", "_name", "_rest", "_tail")

    def __init__(self, name: str, sink: Sink, limit: int) -> None:
        self._name = name
        self._emit = sink.info if isinstance(sink, logging.Logger) else sink
        self._limit = limit
        self._tail = bytearray()
        self._rest = b""
        """The start of a line whose end has not come yet."""

    def feed(self, data: bytes) -> None:
        self._tail += data[-self._limit :]
        if len(self._tail) >= 2 * self._limit:
            # Half is removed at a time: a fixed cost for each byte.
            del self._tail[: -self._limit]
        if self._emit is None:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._pass_on(line)
        if len(self._rest) > _LONGEST_LINE:
            self.end()

    def end(self) -> None:
        """Pass on what has no end of line."""
        line, self._rest = self._rest, b""
        if line:
            self._pass_on(line)

    def _pass_on(self, line: bytes) -> None:
        assert self._emit is not None
        try:
            self._emit(line.decode("utf-8", "replace").rstrip("\r"))
        except Exception:
            log.exception("%s: the stderr callback failed", self._name)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines."""
        whole = self._tail[-self._limit :].decode("utf-8", "replace")
        return "\n".join(whole.rstrip().splitlines()[-lines:])


class StdioLink:
    """One run of the server."""

    def __init__(
        self,
        process: Spawned,
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
        *,
        stderr: Stderr,
        grace: float,
        startup: float = 0.0,
        launcher: bool = False,
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._pid = process.pid
        self._generation = generation
        self._report = report
        self._stderr = stderr
        self._grace = grace
        self._startup = startup
        self._launcher = launcher
        self._on_ended = ended
        self._started = loop.time()
        self._activity: dict[int, int] = {}
        """The processor time of the server's children, when it was last looked at."""
        self._status: int | None = None
        """The exit code, once the process has been waited for."""
        self._exited = self._fading = self._ended = False
        self._how = ""
        """The last step of the teardown; empty before it begins."""
        self._timer: asyncio.TimerHandle | None = None
        """The one timer: for the start, the exit code, or the teardown."""
        limit = limits.backlog_bytes
        self._writer = writer = Writer(process.stdin, loop, limit, self._broken, self._room)
        self.send: Callable[..., bool] = writer.send
        self.withdraw: Callable[..., bool] = writer.withdraw
        self.unsent: Callable[[], frozenset[b.WireId]] = writer.unsent
        self.unread: Callable[[], bool] = writer.unread
        limit = limits.frame_bytes
        self._reader = LineReader(limit, generation, writer, report, self._oversized)
        self._stdout = PipeReader(process.stdout, loop, self._reader.feed, self._end)
        self._errors: PipeReader | None = None
        if process.stderr is not None:
            self._errors = PipeReader(process.stderr, loop, stderr.feed, stderr.end)
        self._watch_exit()
        loop.call_soon(self._begin)

    def __repr__(self) -> str:
        return f"<StdioLink #{self._generation} pid {self._pid}>"

    def _begin(self) -> None:
        if self._ended:
            return
        guard.watch(self._pid)
        self._report(b.Opened(self._generation))
        if self._launcher:
            self._check_start()
        elif self._startup > 0 and not self._how:
            self._wait(START_CHECK, self._check_start)

    def _check_start(self) -> None:
        """Report, while nothing has been heard, that a launcher is still at work.

        A launcher counts as working as long as it runs: one that downloads over a slow network
        uses hardly any processor time. Other commands need children that do something.
        """
        elapsed = self._loop.time() - self._started
        silent = not (self._reader.heard or self._reader.lost or self._exited)
        if silent and elapsed < self._startup:
            again = min(START_CHECK, self._startup - elapsed)
            if self._launcher or self._children_busy():
                self._report(b.Starting(self._generation, elapsed, again))
            self._wait(again, self._check_start)

    def _children_busy(self) -> bool:
        before, self._activity = self._activity, activity(self._pid)
        return before != self._activity

    def _wait(self, seconds: float, then: Callable[..., None], *args: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, then, *args)

    def _room(self) -> None:
        if not self._reader.lost:
            self._report(b.Room(self._generation))

    # What the driver asks for

    def finish(self, wire_id: b.WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: b.StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        self._reader.lost = True
        if self._how or self._ended:
            return
        self._how = "the end of its input"
        self._writer.close()
        if self._exited:
            # Not now: the driver is still handling what made it close the link.
            self._loop.call_soon(self._end_group)
        else:
            self._wait(self._grace, self._terminate, signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        until = time.monotonic() + LOOP_WAIT
        while not self._reap() and time.monotonic() < until:
            time.sleep(0.001)
        self._release()

    # What comes from the server

    def _oversized(self, error: FrameTooLarge) -> None:
        hint = Hint("limits.frame_bytes", "sets this")
        self._lose(ProtocolError(f"the server sent {error}", hints=(hint,)), error.size)

    def _end(self) -> None:
        self._reader.end()
        self._fade("closed its output")

    def _broken(self, error: OSError) -> None:
        self._fade("closed its input")

    def _fade(self, what: str) -> None:
        """Handle a closed pipe: wait a moment for the exit code."""
        if self._reader.lost or self._fading:
            return
        if self._exited:
            self._lose_process(what)
        else:
            self._fading = True
            self._wait(EXIT_WAIT, self._lose_process, what)

    def _watch_exit(self) -> None:
        self._poll: asyncio.TimerHandle | None = None
        try:
            self._pidfd = os.pidfd_open(self._pid)
        except (AttributeError, OSError):
            self._pidfd = -1
            self._poll = self._loop.call_later(EXIT_WAIT / 10, self._poll_exit)
        else:
            self._loop.add_reader(self._pidfd, self._exit)

    def _poll_exit(self) -> None:
        """Poll for the exit, where the system has no pidfd."""
        if self._reap():
            self._exit()
        elif not self._ended:
            self._poll = self._loop.call_later(EXIT_WAIT / 10, self._poll_exit)

    def _exit(self) -> None:
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        # It stays a zombie until the teardown, so that the id of its group is not reused: a
        # signal to the group must not reach a stranger.
        self._exited = True
        if not self._reader.lost:
            self._stdout.drain()
        if self._errors is not None:
            self._errors.drain()
        if not self._reader.lost:
            self._lose_process("ended")
        elif self._how:
            self._end_group()

    def _lose_process(self, what: str) -> None:
        if self._exited:
            code = self._exit_code()
            text = f"the server {ending(code)}"
        else:
            code, text = None, f"the server {what}, though it still runs"
        self._lose(TransportError(text, exit_code=code, stderr_tail=self._stderr.tail()))

    def _exit_code(self) -> int | None:
        if self._status is not None or self._pidfd < 0:
            return self._status
        try:
            found = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except OSError:
            self._reap()
            return self._status
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def _lose(self, error: HoldfastError, frame_size: int | None = None) -> None:
        if not self._reader.lost:
            self._reader.lost = True
            self._report(b.Lost(self._generation, error, self.unsent(), frame_size))

    # Teardown

    def _terminate(self, number: signal.Signals) -> None:
        """Signal a server that has outlived its grace, and wait for its end once more."""
        self._how = number.name
        self._signal(number)
        if number is signal.SIGTERM:
            self._wait(self._grace, self._terminate, signal.SIGKILL)
        else:
            self._wait(KILL_WAIT, self._end_group)

    def _end_group(self) -> None:
        """End what the dead leader left behind in its process group."""
        if self._ended:
            return
        self._on_ended(self._how)
        self._signal(signal.SIGTERM)
        self._reap()
        self._await_group(self._loop.time() + GROUP_WAIT)

    def _await_group(self, until: float) -> None:
        if self._signal(0):
            if self._loop.time() <= until:
                self._wait(0.01, self._await_group, until)
                return
            self._signal(signal.SIGKILL)
        self._release()
        self._report(b.Drained(self._generation))

    def _signal(self, number: int) -> bool:
        """Signal the process group; return False if nothing is left of it."""
        try:
            os.killpg(self._pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _reap(self) -> bool:
        """Reap the process if it has exited, without blocking; return True if it is gone."""
        if self._status is None:
            try:
                pid, status = os.waitpid(self._pid, os.WNOHANG)
            except ChildProcessError:
                self._status = 0  # Somebody else waited for it; the code is lost.
            else:
                self._status = os.waitstatus_to_exitcode(status) if pid else None
        return self._status is not None

    def _release(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._reader.lost = True
        for timer in (self._timer, self._poll):
            if timer is not None:
                timer.cancel()
        self._writer.close()
        self._stdout.close()
        if self._errors is not None:
            self._errors.close()
        if self._pidfd >= 0:
            if not self._exited:
                self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._reap()
        guard.forget(self._pid)
