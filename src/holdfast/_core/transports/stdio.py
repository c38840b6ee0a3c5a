"""`Stdio`: a server as a child process, as a target and as a transport."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from logging import Logger
from typing import TYPE_CHECKING, Final, Literal

from holdfast._core.boundary import Generation, Report, Traits
from holdfast._core.transports import options
from holdfast._core.transports.child import ChildListener, ChildProcess
from holdfast._core.transports.children import start_child
from holdfast._core.transports.environment import environment
from holdfast._core.transports.launchers import is_launcher, uses_launcher
from holdfast._core.transports.process import StdioLink
from holdfast._core.transports.spawn import SpawnRequest
from holdfast._core.transports.stderr import Sink, Stderr
from holdfast.errors import Hint
from holdfast.policies import Limits

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer

_SCRIPT: Final = r"\w\.(py|[cm]?js|m?ts|sh|rb|jar)$"


def _no_names(program: str, path: str) -> tuple[Hint, ...]:
    return ()


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
            only a fixed list is passed (`docs/reference/environment.md`), never a credential.
        cwd: The working directory of the server. Default: the current one.
        stderr: Receives the server's stderr: a function called with each line, a
            `logging.Logger` (at INFO), or ``"inherit"`` for the stderr of this process.
            Default: only the last lines are kept, for error messages.
        grace: Seconds for the server to exit after its stdin is closed, and again after
            SIGTERM; then it is killed. Default: 2.
        startup: Seconds that a launcher (``npx``, ``uvx``, ``docker run`` …), or a command that
            is seen to be at work, may stay silent before the handshake timeout counts.
            Default: 120.
        shutdown_request: Send a ``shutdown`` request before closing. It is not part of MCP;
            some servers want it. Default: False.
        threads: Read and write the server's pipes in threads, for event loops that cannot wait
            for a pipe. Default: on Windows only, or where ``HOLDFAST_STDIO_THREADS=1`` is set.

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
        threads: bool | None = None,
    ) -> None:
        self.command: tuple[str, ...] = options.command("Stdio", command, args)
        self.env: dict[str, str] = options.table("Stdio", "env", env or {})
        self.inherit_env: bool | tuple[str, ...]
        if isinstance(inherit_env, bool):
            self.inherit_env = inherit_env
        else:
            self.inherit_env = options.words("Stdio", "inherit_env", inherit_env, "names")
        self.cwd: str | None = options.path("Stdio", "cwd", cwd)
        self.name: str = _program_name(self.command)
        """The name of the program for messages, or of the script that an interpreter runs."""
        self.key: Hashable = ("stdio", self.command, self.cwd, tuple(sorted(self.env.items())))
        """Equal for all transports that start the same server in the same way."""
        usable = stderr in (None, "inherit") or callable(stderr) or isinstance(stderr, Logger)
        options.require(usable, "Stdio", "stderr", stderr, "a function, a Logger or 'inherit'")
        self.stderr = stderr
        self.grace: float = options.seconds("Stdio", "grace", grace, zero=True)
        self.startup: float = options.seconds("Stdio", "startup", startup, zero=True)
        self.shutdown_request: bool = options.flag("Stdio", "shutdown_request", shutdown_request)
        if threads is not None:
            threads = options.flag("Stdio", "threads", threads)
        self.threads: bool | None = threads
        self.authorizer: Authorizer | None = None
        self.traits: Traits = Traits(
            shutdown_request=self.shutdown_request,
            grace=self.grace,
            shows_stderr=stderr is not None,
        )
        self.near_names: Callable[[str, str], tuple[Hint, ...]] = _no_names
        """Suggests what a command that is not found may have meant."""
        self._stderr_watchers: tuple[Callable[[str], object], ...] = ()
        self.ended_by: str | None = None
        """The step that ended the last run: the end of its input, or a signal."""
        if self.env or self.inherit_env or len(self.command) > 1:
            from holdfast._core.redact.known import KNOWN, secrets_of

            KNOWN.hold(self, secrets_of("stdio", self.command, self.env, self.inherit_env))

    def __repr__(self) -> str:
        from shlex import join

        from holdfast._core.redact.redactor import redact_text

        return f"Stdio({redact_text(join(self.command))!r})"

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> StdioLink:
        """Start the server; for the driver."""
        launcher = uses_launcher(self.command)
        env = self.environment()

        def start(listener: ChildListener) -> ChildProcess:
            request = SpawnRequest(
                self.command, env, self.cwd, self.stderr == "inherit", self.near_names
            )
            return start_child(request, listener, limits.backlog_bytes, self.threads)

        sink = None if isinstance(self.stderr, str) else self.stderr
        stderr = Stderr(self.name, sink, limits.stderr_bytes, self._stderr_watchers)
        return StdioLink(
            start,
            generation,
            limits,
            report,
            command=self.command,
            stderr=stderr,
            grace=self.grace,
            startup=self.startup,
            launcher=launcher and is_launcher(self.command),
            ended=self._ended,
        )

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the server."""
        launcher = uses_launcher(self.command)
        return environment(self.env, self.inherit_env, os.environ, launcher=launcher)

    def watch_stderr(self, receive: Callable[[str], object]) -> None:
        """Give the lines of the server's stderr to one more function; for traces."""
        self._stderr_watchers += (receive,)

    def _ended(self, by: str) -> None:
        self.ended_by = by


def _program_name(command: tuple[str, ...]) -> str:
    first, *rest = command
    return os.path.basename(rest[0] if rest and re.search(_SCRIPT, rest[0]) else first)
