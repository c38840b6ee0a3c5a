"""The seam between a run of a server and the system that runs it.

`StdioLink` knows what a run is: messages, time to start, a bounded end. A `ChildProcess` knows how
a system does it: pipes, signals, process groups. Another system is another implementation, and
the tests of this one are a suite that it is put under.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from holdfast._core.boundary import StreamOptions, WireId


class ChildListener(Protocol):
    """Hears of a child. But for `ChildProcess.drain_errors`, no call to the child calls it."""

    def on_data(self, data: bytes) -> None:
        """The child wrote to its stdout."""

    def on_output_end(self) -> None:
        """The child closed its stdout: nothing more will be written."""

    def on_error_data(self, data: bytes) -> None:
        """The child wrote to its stderr."""

    def on_error_end(self) -> None:
        """The child closed its stderr."""

    def on_input_broken(self, error: OSError) -> None:
        """The child closed its stdin; what is not written yet never will be."""

    def on_room(self) -> None:
        """There is room again, after `ChildProcess.send` has returned False."""

    def on_exit(self) -> None:
        """The child has ended; all that it wrote was handed over before."""


class ChildProcess(Protocol):
    """A running program, its pipes, and whatever it has started itself.

    Every method returns at once. ``send``, ``withdraw``, ``unsent`` and ``unread`` are those of a
    `Link`: what was written of which frame is known only where it is written.
    """

    @property
    def pid(self) -> int: ...

    @property
    def termination(self) -> tuple[str, str]:
        """What `terminate` and `kill` do on this system, in words."""

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        """Write or queue a frame; False if too much is waiting already."""

    def withdraw(self, wire_id: WireId, /) -> bool:
        """Take back a frame of which no byte was written."""

    def unsent(self) -> frozenset[WireId]:
        """Return the requests of which no byte was written."""

    def unread(self) -> bool:
        """Return True if the child is known not to have read all that was written."""

    def close_input(self) -> None:
        """Close the child's stdin: the polite way to ask it to end."""

    def drain_errors(self) -> None:
        """Hand over what the child has written to its stderr by now."""

    @property
    def exited(self) -> bool:
        """Whether the child itself has ended; what it has started may be left."""

    def exit_code(self) -> int | None:
        """Return the exit code, or minus the number of a signal; None: running, or not known."""

    def activity(self) -> Hashable:
        """Return a value that changes while the child, or what it has started, is at work."""

    def terminate(self) -> None:
        """Ask the child, and all that it has started, to end."""

    def kill(self) -> None:
        """End the child, and all that it has started."""

    def reap(self) -> bool:
        """Let go of a child that has ended; return False if it has not."""

    def is_gone(self) -> bool:
        """Return True if nothing is left of the child and of what it has started."""

    def release(self) -> None:
        """Close all pipes; nothing is heard of the child from here on."""


class ProcessTree(Protocol):
    """A process with all that it has started: how a system ends it, and knows that it has ended.

    The methods are those of a `ChildProcess`, but for these.
    """

    @property
    def termination(self) -> tuple[str, str]: ...

    def guard(self) -> None:
        """Have everything killed when this process dies."""

    def wait(self) -> None:
        """Block until the process itself has ended; for a thread."""

    def exit_code(self) -> int | None: ...

    def activity(self) -> Hashable: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...

    def reap(self) -> bool: ...

    def is_gone(self) -> bool: ...

    def release(self) -> None:
        """Let go of what the system keeps for it."""
