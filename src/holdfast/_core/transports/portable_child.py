"""A child on any system and any event loop: its pipes are read and written by threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from threading import Thread
from typing import Final

from holdfast._core.boundary import WireId
from holdfast._core.transports.child import ChildListener, ProcessTree
from holdfast._core.transports.pipe_threads import JOIN, ThreadReader, ThreadWriter
from holdfast._core.transports.spawn import Spawned

# The end of a child is known to three threads, in any order: two see the end of an output, one the
# exit. `PosixChild` reads what is in the pipes when it hears of the exit; a thread that waits in a
# read cannot be asked whether there is more. So the exit is told when both outputs have ended, or
# after DRAIN: a grandchild may hold them open for ever. Until then the end of stdout is held back
# as well: it would be taken for the end of the run, before the last lines of stderr are there.

DRAIN: Final = 0.2
"""Seconds after the exit for what is still in the pipes."""


class PortableChild:
    """A started process; threads wait for its outputs, its exit, and where its stdin is full."""

    def __init__(
        self, process: Spawned, tree: ProcessTree, listener: ChildListener, backlog: int
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._listener = listener
        self._tree = tree
        self.pid: int = process.pid
        self.exited: bool = False
        self.termination: tuple[str, str] = tree.termination
        self._exit_told = self._released = False
        self._output_open = True
        """The end of stdout has not been told, when the process ended."""
        on_broken, on_room = self._input_broken, listener.on_room
        self._writer = writer = ThreadWriter(process.stdin, loop, backlog, on_broken, on_room)
        self.send: Callable[..., bool] = writer.send
        self.withdraw: Callable[[WireId], bool] = writer.withdraw
        self.unsent: Callable[[], frozenset[WireId]] = writer.unsent
        self.unread: Callable[[], bool] = writer.unread
        self.close_input: Callable[[], None] = writer.close
        self.exit_code: Callable[[], int | None] = tree.exit_code
        self.activity: Callable[[], Hashable] = tree.activity
        self.terminate: Callable[[], None] = tree.terminate
        self.kill: Callable[[], None] = tree.kill
        self.reap: Callable[[], bool] = tree.reap
        self.is_gone: Callable[[], bool] = tree.is_gone
        self._stdout = ThreadReader(
            process.stdout, loop, listener.on_data, self._output_ended, writer
        )
        self._stderr: ThreadReader | None = None
        if process.stderr is not None:
            on_data = listener.on_error_data
            self._stderr = ThreadReader(process.stderr, loop, on_data, self._errors_ended)
        self._timer: asyncio.TimerHandle | None = None
        self._exit_thread = Thread(target=self._await_exit, name="holdfast-exit", daemon=True)
        self._exit_thread.start()
        loop.call_soon(self._guard)

    def __repr__(self) -> str:
        return f"<PortableChild {self.pid}{' exited' if self.exited else ''}>"

    def _guard(self) -> None:
        if not self._released:
            self._tree.guard()

    def _input_broken(self, error: OSError) -> None:
        # The exit of a child is told once its last words are read; this must not come before.
        if not self.exited:
            self._listener.on_input_broken(error)

    # Output

    def drain_errors(self) -> None:
        if self._stderr is not None:
            self._stderr.drain()

    def _output_ended(self) -> None:
        if self.exited:
            self._check_outputs()
        else:
            self._listener.on_output_end()

    def _errors_ended(self) -> None:
        self._listener.on_error_end()
        if self.exited:
            self._check_outputs()

    # The end

    def _await_exit(self) -> None:
        """Wait for the exit, in a thread."""
        self._tree.wait()
        try:
            self._loop.call_soon_threadsafe(self._exit)
        except RuntimeError:
            pass  # The loop is closed.

    def _exit(self) -> None:
        self.exited = True
        if not self._released:
            self._output_open = not self._stdout.ended
            self._timer = self._loop.call_later(DRAIN, self._tell_exit)
            self._check_outputs()

    def _check_outputs(self) -> None:
        if self._stdout.ended and (self._stderr is None or self._stderr.ended):
            self._tell_exit()

    def _tell_exit(self) -> None:
        if self._exit_told or self._released:
            return
        self._exit_told = True
        if self._timer is not None:
            self._timer.cancel()
        if self._output_open and self._stdout.ended:
            self._listener.on_output_end()
        self._listener.on_exit()

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        if self._timer is not None:
            self._timer.cancel()
        self._writer.close()
        self._stdout.close()
        if self._stderr is not None:
            self._stderr.close()
        self._writer.join()
        if self._tree.reap():
            self._exit_thread.join(JOIN)
        self._tree.release()
