"""One run of a server process: messages on its stdin and stdout, its stderr drained."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable
from typing import Final

from holdfast._core import boundary as b
from holdfast._core.transports.child import ChildListener, ChildProcess
from holdfast._core.transports.pipes import LineReader
from holdfast._core.transports.spawn import ending
from holdfast._core.transports.stderr import Stderr
from holdfast._core.wire.framing import FrameTooLarge
from holdfast._core.wire.jsonrpc import snippet
from holdfast.errors import Hint, HoldfastError, ProtocolError, TransportError
from holdfast.policies import Limits

# A run, from its start to the last of its processes
# ---------------------------------------------------
#
# A run has three ways to tell that it is over, and they come in any order: its stdout ends, its
# stdin breaks, the process exits. None of them means the others. A server may close its stdout and
# go on running; a child of it may hold its stdout open after it is gone; a write may fail long
# before the exit is seen. What a user wants to know is the exit code and the last lines of stderr,
# and these come with the exit alone. So:
#
# - The exit decides. Before it is reported, both outputs are drained of what is there (not to
#   their end, which a grandchild could put off for ever): answers that were written count.
# - A closed pipe without an exit waits EXIT_WAIT for it, and then says "though it still runs".
# - Whatever comes first, the link is lost once. `LineReader.lost` is that fact; nothing is
#   reported to the engine after it but the end of the teardown.
#
# The teardown is a ladder. Each step waits for the exit, and the exit ends the climb wherever it
# happens:
#
#     close stdin ── grace ──▶ SIGTERM ── grace ──▶ SIGKILL ── KILL_WAIT ──▶ give up waiting
#          │                      │                    │                          │
#          └──────── exit ────────┴─────── exit ───────┴───────── exit ───────────┤
#                                                                                 ▼
#                              what is left of the group: SIGTERM ── GROUP_WAIT ──▶ SIGKILL
#                                                                                 │
#                                                                                 ▼
#                                                               release ──▶ Drained is reported
#
# Why in this order:
#
# - Closing stdin is what MCP asks for (basic/lifecycle, Shutdown: stdio), and most servers end by
#   it within milliseconds. A signal first would cut off those that write a file on their way out.
# - Signals go to the process *group*. The command is often a launcher (``npx``, ``uv``, ``sh``)
#   and the server its child; a signal to the launcher alone makes an orphan of the server.
# - The leader is not reaped before its group has been signalled. As long as it is a zombie, its
#   id, which is that of the group, cannot be given to a new process: a signal sent a moment too
#   late would kill a stranger. This is the one invariant that must not be optimised away.
# - What survives in the group after the leader has ended by itself gets SIGTERM and half a
#   second: it may be a helper that does not know that its server is gone.
#
# Two ways do not climb the ladder. `kill` is for a loop that goes away: there will be no more
# turns in which a timer could fire, so the group is killed, and the exit waited for by polling, as
# long as LOOP_WAIT allows. And if this process dies itself, nothing here runs at all: that is what
# the watcher of `orphans` is for.
#
# The timer is one, `_timer`, because a run waits for one thing at a time: to start, for an exit
# code, or for a step of the ladder. Setting it cancels what it was waiting for before. In
# particular the first step of the teardown ends the supervision of the start: a launcher that is
# closed while it downloads must not report that it is still at work.

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


def _quoted(printed: bytes) -> str:
    return repr(snippet(b" ".join(printed.split())))


class StdioLink:
    """One run of the server.

    Args:
        start: Starts the child; it is given the listener that hears of it.
        generation: The number of the run.
        limits: The largest message.
        report: Receives what happens.
        command: The words of the command, for errors.
        stderr: Receives what the server writes to its stderr.
        grace: Seconds for each step of the teardown.
        startup: Seconds for which a command that is at work may stay silent.
        launcher: The command is known to fetch or build the server first.
        ended: Called with the step of the teardown that ended the run.
    """

    def __init__(
        self,
        start: Callable[[ChildListener], ChildProcess],
        generation: b.Generation,
        limits: Limits,
        report: Callable[[b.Report], None],
        *,
        command: tuple[str, ...],
        stderr: Stderr,
        grace: float,
        startup: float = 0.0,
        launcher: bool = False,
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._generation = generation
        self._report = report
        self._program = command[0] if len(command) == 1 else f"{command[0]} …"
        self._stderr = stderr
        self._grace = grace
        self._startup = startup
        self._launcher = launcher
        self._on_ended = ended
        self._started = self._loop.time()
        self._activity: Hashable = None
        """What the child was doing, and how much it had complained, when it was last looked at."""
        self._fading = self._ended = False
        self._step = ""
        """The last step of the teardown; empty before it begins."""
        self._timer: asyncio.TimerHandle | None = None
        """The one timer: for the start, the exit code, or the teardown."""
        self._reader = LineReader(limits.frame_bytes, generation, report, self._oversized)
        self.on_data: Callable[[bytes], None] = self._reader.feed
        self.on_error_data: Callable[[bytes], None] = stderr.feed
        self.on_error_end: Callable[[], None] = stderr.end
        self._child = child = start(self)
        self.send: Callable[..., bool] = child.send
        self.withdraw: Callable[[b.WireId], bool] = child.withdraw
        self.unsent: Callable[[], frozenset[b.WireId]] = child.unsent
        self.unread: Callable[[], bool] = child.unread
        self._loop.call_soon(self._begin)

    def __repr__(self) -> str:
        return f"<StdioLink #{self._generation} {self._child!r}>"

    def _begin(self) -> None:
        if self._ended:
            return
        self._report(b.Opened(self._generation))
        if self._launcher:
            self._check_start()
        elif self._startup > 0 and not self._step:
            self._wait(START_CHECK, self._check_start)

    def _check_start(self) -> None:
        """Report, while nothing has been heard, that the server is being started.

        A launcher counts as working as long as it runs: one that downloads over a slow network
        uses hardly any processor time. Other commands are at work while they, or their children,
        use the processor or write to stderr; else they are alive, and no more is known.
        """
        elapsed = self._loop.time() - self._started
        silent = not (self._reader.heard or self._reader.lost or self._child.exited)
        if silent and elapsed < self._startup:
            again = min(START_CHECK, self._startup - elapsed)
            busy = self._launcher or self._is_busy()
            self._report(b.Starting(self._generation, elapsed, again, busy))
            self._wait(again, self._check_start)

    def _is_busy(self) -> bool:
        before, self._activity = self._activity, (self._child.activity(), self._stderr.size)
        return before != self._activity

    def _wait(self, seconds: float, then: Callable[..., None], *args: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, then, *args)

    # What the driver asks for

    def received(self) -> None:
        """All that is read is reported at once."""

    def agreed(self) -> None:
        # Servers write pages about messages of the handshake that they do not know. They are in
        # the pipe by now, if not read yet: the answer was written after them.
        self._child.drain_errors()
        self._stderr.forget()
        self._reader.first = None

    def finish(self, wire_id: b.WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: b.StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        self._reader.lost = True
        if self._step or self._ended:
            return
        self._step = "the end of its input"
        self._child.close_input()
        if self._child.exited:
            # Not now: the driver is still handling what made it close the link.
            self._loop.call_soon(self._end_group)
        else:
            self._wait(self._grace, self._terminate)

    def kill(self) -> None:
        self._child.kill()
        until = time.monotonic() + LOOP_WAIT
        while not self._child.reap() and time.monotonic() < until:
            time.sleep(0.001)
        self._release()

    # What comes from the server

    def on_room(self) -> None:
        if not self._reader.lost:
            self._report(b.Room(self._generation))

    def on_output_end(self) -> None:
        self._reader.end()
        self._fade("closed its output")

    def on_input_broken(self, error: OSError) -> None:
        self._fade("closed its input")

    def on_exit(self) -> None:
        if not self._reader.lost:
            self._lose_process("ended")
        elif self._step:
            self._end_group()

    def _oversized(self, error: FrameTooLarge) -> None:
        hint = Hint("limits.frame_bytes", "sets this")
        self._lose(ProtocolError(f"the server sent {error}", hints=(hint,)), error.size)

    def _fade(self, what: str) -> None:
        """Handle a closed pipe: wait a moment for the exit code."""
        if self._reader.lost or self._fading:
            return
        if self._child.exited:
            self._lose_process(what)
        else:
            self._fading = True
            self._wait(EXIT_WAIT, self._lose_process, what)

    def _lose_process(self, what: str) -> None:
        if self._child.exited:
            code = self._child.exit_code()
            text = f"the server {ending(code)}"
        else:
            code, text = None, f"the server {what}, though it still runs"
        hints: tuple[Hint, ...] = ()
        printed = self._reader.first
        if printed is not None and b'"jsonrpc"' not in printed:
            if printed.strip():
                text += f"; it does not look like an MCP server: it printed {_quoted(printed)}"
            hints = (Hint("", f"to see what it does, run: holdfast doctor -- {self._program}"),)
        tail = self._stderr.tail()
        self._lose(TransportError(text, exit_code=code, stderr_tail=tail, hints=hints))

    def _lose(self, error: HoldfastError, frame_size: int | None = None) -> None:
        if not self._reader.lost:
            self._reader.lost = True
            self._report(b.Lost(self._generation, error, self.unsent(), frame_size))

    # Teardown

    def _terminate(self) -> None:
        """Signal a server that has outlived its grace, and wait for its end once more."""
        self._step = self._child.termination[0]
        self._child.terminate()
        self._wait(self._grace, self._kill)

    def _kill(self) -> None:
        self._step = self._child.termination[1]
        self._child.kill()
        self._wait(KILL_WAIT, self._end_group)

    def _end_group(self) -> None:
        """End what the dead leader left behind in its process group."""
        if self._ended:
            return
        self._on_ended(self._step)
        self._child.terminate()
        self._child.reap()
        self._await_group(self._loop.time() + GROUP_WAIT)

    def _await_group(self, until: float) -> None:
        if not self._child.is_gone():
            if self._loop.time() <= until:
                self._wait(0.01, self._await_group, until)
                return
            self._child.kill()
        self._release()
        self._report(b.Drained(self._generation))

    def _release(self) -> None:
        if self._ended:
            return
        self._ended = True
        self._reader.lost = True
        if self._timer is not None:
            self._timer.cancel()
        self._child.release()
