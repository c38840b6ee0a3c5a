"""A server as a child process: messages on its stdin and stdout, its stderr kept.

Teardown is bounded: close stdin, wait the grace, SIGTERM the process group, wait again,
SIGKILL it. What the server leaves behind in its group goes the same way.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Callable, Hashable, Iterable, Mapping
from logging import Logger
from typing import Literal

from holdfast._core.boundary import (
    Delivered,
    Drained,
    Generation,
    Lost,
    Opened,
    Report,
    StreamOptions,
    Traits,
    WireId,
)
from holdfast._core.transports import options
from holdfast._core.transports.launchers import is_launcher
from holdfast._core.transports.orphans import guard
from holdfast._core.transports.pipes import Reader, Writer
from holdfast._core.transports.spawn import ending, environment, spawn
from holdfast._core.transports.stderr import Sink, Stderr
from holdfast._core.wire.framing import FrameTooLarge, Lines
from holdfast.errors import HoldfastError, TransportError
from holdfast.policies import Limits

LAST_WORDS = 0.25
"""Seconds in which a server that closed its pipes may still tell its exit code."""
LINGER = 0.5
"""Seconds between SIGTERM and SIGKILL for what outlives the server in its group."""


KILLED = 5.0
"""Seconds for the kernel to end a killed process: longer only for one stuck in the kernel."""


class Stdio:
    """A server that is started by a command and spoken to over its stdin and stdout.

    A target for `holdfast.connect`, with the options that only commands have. The process is
    started on first use, in a session of its own, and ends with the client.

    Args:
        command: The command line: a string, split as a shell would split it (no shell is
            run), or the words one by one.
        args: More words for the command. With ``args``, a string ``command`` is the program
            alone and is not split.
        env: Variables to set for the server, beside those that it inherits.
        inherit_env: Names of more variables to pass on, or True for all of them. By default
            only a fixed list is passed (`docs/reference/environment.md`), never your API keys.
        cwd: The working directory of the server. Default: the current one.
        stderr: Receives the server's stderr: a function called with each line, a
            `logging.Logger` (at INFO), or ``"inherit"`` for the stderr of this process.
            Default: only the last lines are kept, for error messages.
        grace: Seconds for the server to exit after its stdin is closed, and again after
            SIGTERM; then it is killed. Default: 2.
        startup: Seconds that a launcher (``npx``, ``uvx``, ``docker run`` …), or a command
            whose children are busy, may stay silent before the handshake timeout counts.
            Default: 120.
        shutdown_request: Send a ``shutdown`` request before closing. It is not part of MCP;
            some servers want it. Default: False.

    Raises:
        ValidationError: An option has the wrong type or value; the message names it.

    Example:
        ```python
        server = holdfast.Stdio(["npx", "-y", "some-server"], env={"API_KEY": key}, grace=5)
        async with holdfast.connect(server) as client:
            print(await client.list_tools())
        ```
    """

    def __init__(
        self,
        command: str | os.PathLike[str] | Iterable[str],
        *,
        args: Iterable[str] | None = None,
        env: Mapping[str, str] | None = None,
        inherit_env: Iterable[str] | bool = (),
        cwd: str | os.PathLike[str] | None = None,
        stderr: Sink | Literal["inherit"] = None,
        grace: float = 2.0,
        startup: float = 120.0,
        shutdown_request: bool = False,
    ) -> None:
        self.command: tuple[str, ...] = options.command("Stdio", command, args)
        self.env: dict[str, str] = options.table("Stdio", "env", env or {})
        self.inherit_env: bool | tuple[str, ...] = options.names(
            "Stdio", "inherit_env", inherit_env
        )
        self.cwd: str | None = options.path("Stdio", "cwd", cwd)
        if not (stderr in (None, "inherit") or callable(stderr) or isinstance(stderr, Logger)):
            raise options.refuse("Stdio", "stderr", stderr, "a function, a Logger or 'inherit'")
        self.stderr = stderr
        self.grace: float = options.seconds("Stdio", "grace", grace, zero=True)
        self.startup: float = options.seconds("Stdio", "startup", startup, zero=True)
        self.shutdown_request: bool = options.flag("Stdio", "shutdown_request", shutdown_request)
        self.ended_by: str | None = None
        """What ended the last run: the end of its input, or a signal."""

    def __repr__(self) -> str:
        return f"Stdio({shlex.join(self.command)!r})"

    @property
    def name(self) -> str:
        """The name of the program, for messages."""
        return os.path.basename(self.command[0])

    @property
    def key(self) -> Hashable:
        """Equal for all transports that start the same server in the same way."""
        return ("stdio", self.command, self.cwd, tuple(sorted(self.env.items())))

    @property
    def launcher(self) -> bool:
        """True if the command may download or build the server before it starts it."""
        return is_launcher(self.command)

    @property
    def traits(self) -> Traits:
        return Traits(shutdown_request=self.shutdown_request)

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> StdioLink:
        """Start the server; for the driver."""
        if os.name != "posix":
            raise TransportError("servers started by a command need a POSIX system so far")
        inherit_stderr = self.stderr == "inherit"
        env = environment(self.env, self.inherit_env, os.environ)
        process = spawn(self.command, env, self.cwd, inherit_stderr=inherit_stderr)
        sink = None if isinstance(self.stderr, str) else self.stderr
        stderr = Stderr(self.name, sink, limits.stderr_bytes)
        return StdioLink(
            process, generation, limits, report, stderr=stderr, grace=self.grace, ended=self._ended
        )

    def _ended(self, by: str) -> None:
        self.ended_by = by


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
        ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._process = process
        self._generation = generation
        self._report = report
        self._stderr = stderr
        self._grace = grace
        self._tell_ending = ended
        self._lines = Lines(limits.frame_bytes)
        self._exited: asyncio.Future[None] = self._loop.create_future()
        self._lost = False
        self._fading: asyncio.TimerHandle | None = None
        self._teardown: asyncio.Task[None] | None = None
        self._ended = False
        self._own_pipes(limits)
        self._watch_exit()
        self._loop.call_soon(self._begin)

    def __repr__(self) -> str:
        return f"<StdioLink #{self._generation} pid {self._process.pid}>"

    def _own_pipes(self, limits: Limits) -> None:
        """Take the descriptors from the Popen object: from here on we close them."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        stdin = os.dup(process.stdin.fileno())
        os.set_blocking(stdin, False)
        self._writer = Writer(stdin, self._loop, limits.backlog_bytes, self._broken)
        self._stdout = Reader(_take(process.stdout), self._loop, self._read, self._end)
        process.stdin.close()
        self._errors: Reader | None = None
        if process.stderr is not None:
            self._errors = Reader(
                _take(process.stderr), self._loop, self._stderr.feed, self._stderr.end
            )

    def _begin(self) -> None:
        if not self._ended:
            guard.watch(self._process.pid)
            self._report(Opened(self._generation))

    # What the driver asks for

    def send(
        self, frame: bytes, wire_id: WireId | None, options: StreamOptions | None = None
    ) -> bool:
        return self._writer.send(frame, wire_id)

    def withdraw(self, wire_id: WireId) -> bool:
        return self._writer.withdraw(wire_id)

    def unread(self) -> bool:
        return self._writer.unread()

    def finish(self, wire_id: WireId) -> None:
        """There are no streams to end."""

    def listen(self, options: StreamOptions) -> None:
        """There is one channel, and it is open."""

    def close(self, farewell: StreamOptions | None = None) -> None:
        self._lost = True
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

    def _read(self, data: bytes) -> None:
        self._writer.burst = 0
        if self._lost:
            return
        try:
            lines = self._lines.feed(data)
        except FrameTooLarge as error:
            self._lose(TransportError(f"the server sent {error}; Limits(frame_bytes=…) sets this"))
            return
        if lines:
            self._report(Delivered(self._generation, lines))

    def _end(self) -> None:
        rest = self._lines.rest()
        if rest and not self._lost:
            self._report(Delivered(self._generation, rest + b"\n"))
        self._fade("closed its output")

    def _broken(self, error: OSError) -> None:
        self._fade("closed its input")

    def _fade(self, what: str) -> None:
        """A pipe is gone; the exit code is worth a moment's wait."""
        if self._lost or self._fading is not None:
            return
        if self._exited.done():
            self._lose_process(what)
        else:
            self._fading = self._loop.call_later(LAST_WORDS, self._lose_process, what)

    def _watch_exit(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            self._pidfd = -1
            self._poll = self._loop.call_later(LAST_WORDS / 10, self._poll_exit)
        else:
            self._loop.add_reader(self._pidfd, self._exit)

    def _poll_exit(self) -> None:
        """Where the kernel does not tell us: look now and then."""
        if self._process.poll() is not None:
            self._exit()
        elif not self._ended:
            self._poll = self._loop.call_later(LAST_WORDS / 10, self._poll_exit)

    def _exit(self) -> None:
        if self._exited.done():
            return
        if self._pidfd >= 0:
            self._loop.remove_reader(self._pidfd)
        # It stays a zombie until the teardown, so that its group's number is not used again.
        self._exited.set_result(None)
        if not self._lost:
            self._stdout.drain()
        if self._errors is not None:
            self._errors.drain()
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

    def _lose(self, error: HoldfastError) -> None:
        if not self._lost:
            self._lost = True
            self._report(Lost(self._generation, error, self._writer.unsent()))

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
                    await self._exits_within(KILLED)
            self._tell_ending(how)
            await self._end_group()
        finally:
            self._release()
        self._report(Drained(self._generation))

    async def _exits_within(self, span: float) -> bool:
        await asyncio.wait([self._exited], timeout=span)
        return self._exited.done()

    async def _end_group(self) -> None:
        """The leader is dead; whatever it left in its group follows."""
        self._signal(signal.SIGTERM)
        self._process.poll()
        deadline = self._loop.time() + LINGER
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
        self._lost = True
        if self._fading is not None:
            self._fading.cancel()
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
    """A descriptor of our own for a pipe of Popen's, which is closed."""
    fd = os.dup(pipe.fileno())  # type: ignore[attr-defined]
    pipe.close()  # type: ignore[attr-defined]
    return fd
