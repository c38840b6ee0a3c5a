"""A user of Locust who calls tools: ``holdfast.load.McpUser``, by the extra ``holdfast[load]``."""

# Which process does what
# -----------------------
#
# Locust's master and workers are Locust's own. Each worker that runs users of this class starts one
# process more, `holdfast.load.caller`, for all of them: there the clients live, because gevent has
# replaced what an event loop stands on in the worker itself. The two talk in lines of JSON over the
# pipes of that process. Here, one greenlet writes and one reads; a user waits for its answer as for
# anything else under gevent, and may be stopped while it waits: then the call is cancelled.
#
# The process is in a session of its own, so that Ctrl-C at a terminal reaches Locust alone, which
# then stops its users in its own order. Nothing is left behind by a worker that is killed: the end
# of its pipes ends the process, which closes its clients.

from __future__ import annotations

import itertools
import logging
import sys
from typing import IO, Any, ClassVar

import msgspec

from holdfast._core.bulk.outcomes import RowOutcome
from holdfast.errors import ValidationError
from holdfast.load.caller import Answer, CallForUser, Cancel, CloseUser, OpenUser, Order

try:
    import gevent
    from gevent.event import AsyncResult
    from gevent.queue import Queue
    from gevent.subprocess import PIPE, Popen
    from locust import User
except ImportError as error:
    raise ValidationError(
        f"McpUser needs Locust ({error}): pip install 'holdfast[load]'"
    ) from error

log: logging.Logger = logging.getLogger("holdfast")

CONNECT = "connect"
"""The name under which the first connection of each user is reported."""
LONGEST_END = 10.0
"""Seconds for the clients to be closed when Locust ends."""

_numbers = itertools.count(1)


class CallFailed(Exception):  # noqa: N818  (a verdict for Locust's table of failures)
    """A call that has no result; Locust counts them by this text, so it is that of the kind.

    Attributes:
        kind: As in ``holdfast.errors``: ``tool``, ``timeout``, ``transport`` and the others.
        outcome_unknown: The call may have run.
        message: What exactly happened.
    """

    def __init__(self, outcome: RowOutcome) -> None:
        facts = outcome.error if isinstance(outcome.error, dict) else {}
        self.kind: str = str(facts.get("kind"))
        self.outcome_unknown: bool = outcome.outcome == "unknown"
        self.message: str = str(facts.get("message"))
        code = f" {facts['code']}" if "code" in facts else ""
        super().__init__(f"{self.kind}{code}{', may have run' if self.outcome_unknown else ''}")


class McpUser(User):  # type: ignore[misc, unused-ignore]
    """A user of an MCP server, for one's own locustfile; each has a connection of its own.

    Every call is reported to Locust as a request of the type ``MCP`` under the name of its tool. A
    call that fails is counted by its kind and raises nothing.

    Attributes:
        target: The server, as `holdfast.connect` takes it: a URL, a command or a name from the
            configuration. Default: Locust's ``--host``.
        options: More of `holdfast.connect`, as far as JSON has it: ``headers``, ``env``,
            ``when_down``; for the rest, name a server of a configuration file.

    Example:
        ::

            from locust import between, task
            from holdfast.load import McpUser

            class Visitor(McpUser):
                target = "https://example.com/mcp"
                wait_time = between(1, 3)

                @task
                def add(self):
                    self.call_tool("add", {"a": 1, "b": 2})
    """

    abstract = True
    target: ClassVar[str | list[str] | None] = None
    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        target = self.target or self.host
        if not target:
            kind = type(self).__name__
            raise ValidationError(f"{kind} has no server: set {kind}.target, or give --host")
        self._target: str | list[str] = target
        self._number = next(_numbers)
        self._process: _CallerProcess | None = None

    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        label: str | None = None,
        **options: Any,
    ) -> RowOutcome:
        """Call a tool, and report how it went.

        Args:
            name: The tool's name.
            arguments: Its arguments.
            label: The name in Locust's tables. Default: the tool's.
            options: ``timeout``, ``total_timeout``, ``meta``, ``once``: as of
                `holdfast.Client.call_tool`.

        Returns:
            The outcome: ``ok``, ``result`` or ``error``, ``ms``.
        """
        process = self._connected()
        if isinstance(process, RowOutcome):
            return process
        order = CallForUser(next(_numbers), self._number, name, arguments or {}, options)
        return self._report(label or name, process.ask(order))

    def start(self, group: Any) -> Any:
        """Start the user's greenlet; disconnect the user when it ends, however it ends."""
        greenlet = super().start(group)
        greenlet.link(lambda _: self._disconnect())
        return greenlet

    def _connected(self) -> _CallerProcess | RowOutcome:
        """Return the process that has this user's client, or why there is none."""
        process = _CallerProcess.current(self.environment)
        if self._process is not process:
            options = dict(self.options)
            order = OpenUser(next(_numbers), self._number, self._target, options)
            outcome = self._report(CONNECT, process.ask(order))
            if not outcome.ok:
                return outcome
            self._process = process
        return process

    def _disconnect(self) -> None:
        if self._process is not None:
            self._process.tell(CloseUser(self._number))
            self._process = None

    def _report(self, name: str, answer: Answer) -> RowOutcome:
        outcome = answer.outcome
        failure = None if outcome.ok else CallFailed(outcome)
        if failure is not None:
            _log_first(name, failure)
        self.environment.events.request.fire(
            request_type="MCP",
            name=name,
            response_time=outcome.ms,
            response_length=answer.length,
            response=outcome,
            exception=failure,
            context={**self.context(), "outcome": outcome.outcome},
        )
        return outcome


class _CallerProcess:
    """The process with the clients of this worker's users."""

    _running: ClassVar[_CallerProcess | None] = None

    @classmethod
    def current(cls, environment: Any) -> _CallerProcess:
        """Return the one of this worker; another, if the last has ended."""
        process = cls._running
        if process is None or process.has_ended:
            process = cls._running = cls()
            environment.events.quitting.add_listener(process.end)
        return process

    def __init__(self) -> None:
        # Starting a process lets other greenlets run, and each would start one of its own: so it
        # is started by a greenlet, when this one is already known.
        self._orders: Queue = Queue()
        self._waiting: dict[int, AsyncResult] = {}
        self.has_ended: bool = False
        self._greenlet = gevent.spawn(self._run)

    def ask(self, order: OpenUser | CallForUser) -> Answer:
        """Give an order, and wait for its answer; a user who is stopped meanwhile cancels it."""
        result = self._waiting[order.id] = AsyncResult()
        self.tell(order)
        try:
            answer: Answer = result.get()
        except BaseException:
            self.tell(Cancel(order.id))
            raise
        finally:
            self._waiting.pop(order.id, None)
        return answer

    def tell(self, order: Order) -> None:
        """Give an order without an answer. It does not wait: greenlets that end call this."""
        self._orders.put_nowait(order)

    def end(self, **_: Any) -> None:
        """Close the clients, as Locust ends."""
        self._orders.put_nowait(None)
        self._greenlet.join(LONGEST_END)

    def _run(self) -> None:
        """Start the process, pass everything on, and answer for it when it has ended."""
        command = [sys.executable, "-m", "holdfast.load.caller"]
        code: object = "none"
        try:
            process = Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)
            gevent.spawn(self._write, process.stdin)
            self._read(process.stdout)
            code = process.wait()
        finally:
            self.has_ended = True
            for number, result in self._waiting.items():
                result.set(_no_answer(number, f"exit code {code}"))

    def _write(self, stdin: IO[bytes]) -> None:
        try:
            while (order := self._orders.get()) is not None:
                stdin.write(msgspec.json.encode(order) + b"\n")
                stdin.flush()
            stdin.close()
        except OSError:  # it has ended, which the reader finds out too
            pass

    def _read(self, stdout: IO[bytes]) -> None:
        decoder = msgspec.json.Decoder(Answer)
        for line in stdout:
            answer = decoder.decode(line)
            if (result := self._waiting.get(answer.id)) is not None:
                result.set(answer)


def _no_answer(number: int, reason: str) -> Answer:
    message = f"the process that makes the calls has ended ({reason})"
    facts = {"kind": "internal", "message": message}
    return Answer(number, RowOutcome(0, "unknown", error=facts))


_logged: set[tuple[str, str]] = set()


def _log_first(name: str, failure: CallFailed) -> None:
    """Say once in full what a kind of failure was: the tables have its kind alone."""
    if (key := (name, str(failure))) not in _logged:
        _logged.add(key)
        log.warning("%s: %s: %s", name, failure, failure.message)
