"""The handle: a server's tools as methods, in one session.

    async with mcp_tools.connect("p4n-test") as mcp:
        await mcp.nav.goto(url="https://park4night.com/en")

Before the first call, and after every reconnect, the tools are compared with those that the handle
was generated from, and the session is opened, on the same connection.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar, Unpack

from holdfast._accounts import AccountsClient
from holdfast._connect import connect
from holdfast._core.calls.options import CallOptions
from holdfast._core.engine.state import State
from holdfast._core.limits.queue import calling_as
from holdfast._core.single_flight import SingleFlight, WorkStopped, retrieve
from holdfast._core.targets import Target
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast._options import LogTarget
from holdfast.client import Client
from holdfast.errors import RpcError, StateError, ValidationError
from holdfast.events import NotificationReceived, Transition
from holdfast.handles.drift import MODES, Drift, DriftCheck, Registry
from holdfast.handles.results import Namespace, attribute_for, given
from holdfast.handles.sessions import HandleSession, SessionAdapter
from holdfast.lock.commands import capabilities
from holdfast.policies import Identity, one_of
from holdfast.types.tools import ToolResult

Log: TypeAlias = "LogTarget | None"

C = TypeVar("C")
T = TypeVar("T")

log: logging.Logger = logging.getLogger("holdfast")

TOOLS_CHANGED: Final = "notifications/tools/list_changed"
MOST_ROUNDS: Final = 4
"""The number of times one call prepares its session again after it changed meanwhile."""
PATIENCE: Final = 5.0
"""Seconds that closing waits for the calls under way."""


class Handle:
    """The base class of generated handles. It may be shared by tasks of one event loop.

    Args:
        target: A target of `holdfast.connect`, or a client.
        session: The name of the session that calls are made in.
        adapter: Opens and closes the session, and adds it to arguments.
        drift: The reaction to tools that differ from the ``registry``'s.
        log: As in `holdfast.connect`.
        open_arguments: Arguments for opening the session.
        registry: The tools that the handle was generated from; generated handles have it.
        options: Those of `holdfast.connect`.
    """

    _REGISTRY: ClassVar[Registry]
    _NAMESPACES: ClassVar[Mapping[str, type[Namespace]]] = {}
    """The attributes of a generated handle, and the classes that they are made of."""

    def __init__(
        self,
        target: Target | Client = None,
        *,
        session: str | None = None,
        adapter: SessionAdapter | None = None,
        drift: Drift = "raise",
        log: Log = None,
        open_arguments: Mapping[str, object] | None = None,
        registry: Registry | None = None,
        **options: Any,
    ) -> None:
        _check_session(session, adapter, open_arguments)
        one_of("drift", drift, MODES)
        self.registry: Registry | None = registry or getattr(self, "_REGISTRY", None)
        client = client_for(target, Client, connect, self.registry, options, log=log)
        if isinstance(client, AccountsClient):
            text = "a handle has one session and one list of tools: name the account, a string"
            raise ValidationError(f"auth=…(account=…): {text}")
        self._handle: Handle = self
        self.client: Client = client
        self.adapter = adapter
        self.session: str | None = session
        keeper = None if session is None else adapter
        self._session = HandleSession(client, keeper, session or "", open_arguments or {})
        self._watch = DriftCheck(client.name, self.registry, drift)
        self._queue = CallQueue(client.name)
        self._flights = SingleFlight()
        self._opened = False
        self._listed = session is None and (drift == "off" or self.registry is None)
        """True if the current tools are known, or need not be."""
        self._removals: list[Callable[[], None]] = []
        if not self._listed:
            self._removals = [
                client.guard_tools(self._watch.check),
                client.events.subscribe(self._heard, Transition.name, NotificationReceived.name),
            ]
        self._ending: asyncio.Task[None] | None = None
        for attribute, kind in self._NAMESPACES.items():
            setattr(self, attribute, kind(self))

    def __repr__(self) -> str:
        session = "" if self.session is None else f" {self._session!r}"
        state = "closed" if self._queue.closed else "open" if self._opened else "new"
        return f"<{type(self).__name__} {self.client.name} {state}{session}>"

    @property
    def closed(self) -> bool:
        """Return True if the handle is closed and refuses all calls."""
        return self._queue.closed

    def __getitem__(self, name: str) -> Namespace:
        """Return the namespace of a prefix; ``_root`` for tools without a dot."""
        namespace: Namespace = getattr(self, attribute_for(self._NAMESPACES, name))
        return namespace

    # Life

    async def __aenter__(self) -> Self:
        try:
            return await self.open()
        except asyncio.CancelledError:
            # Nothing calls __aexit__ if __aenter__ fails.
            with suppress(Exception):
                await self.close(wait=0)
            raise

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            await self.close()
        except Exception as failure:
            if error is None:
                raise
            # The error inside the block matters more than that of closing.
            log.warning("%s: %s", self.client.name, failure)

    async def open(self) -> Self:
        """Start the server and the session now; if that fails, close the handle."""
        self._queue.check("open")
        await self._ready("open")
        if self.client.state is State.NEW:
            # Nothing had to be asked of the server yet.
            try:
                await self.client.open()
            except Exception as error:
                await self._give_up(error)
                raise
        return self

    async def close(self, *, wait: float = PATIENCE) -> bool:
        """Close the session, then the client, even if closing the session fails.

        Queued calls are refused at once. May be called at any time, by any task.

        Args:
            wait: Seconds for calls under way to end.

        Returns:
            True for the call that closed the handle, False for those that found it closed.

        Raises:
            HoldfastError: The session could not be closed; only for the first call.
        """
        first = not self._queue.closed
        self._queue.close()
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(wait), name="holdfast-handle-end")
            self._ending.add_done_callback(retrieve)
        await asyncio.wait((self._ending,))
        if first:
            self._ending.result()
        return first

    async def _end(self, wait: float) -> None:
        try:
            await self._flights.close()
            await self._queue.idle(wait)
        finally:
            await self._close_session()

    async def _give_up(self, error: Exception) -> None:
        """Close what could not be opened."""
        self._queue.close(error)
        await self._close_session()

    async def _close_session(self) -> None:
        """Close the session, and always the client."""
        # A list that is refused must not keep the session from being closed.
        while self._removals:
            self._removals.pop()()
        try:
            await self._session.close()
        finally:
            await self.client.close()

    # Calls

    async def call(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        parallel: bool = False,
        **options: Unpack[CallOptions],
    ) -> ToolResult:
        """Call a tool in the session; raise `ToolError` if it fails.

        Args:
            name: The tool's name, as the server has it.
            arguments: Its arguments; those that are `UNSET` are left out.
            parallel: Go at once, outside of the queue.
            options: See `holdfast.calls.CallOptions`.
        """
        result = await self.call_tool(name, arguments, parallel=parallel, **options)
        return result.raise_for_error()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object] | None = None,
        *,
        parallel: bool = False,
        **options: Unpack[CallOptions],
    ) -> ToolResult:
        """Call a tool like `call`, but return a failure as a result with ``is_error``."""

        async def work() -> ToolResult:
            await self._ready(name)
            tool = self.client.tools.get(name)
            complete = self._session.place(tool, given(arguments or {}))
            with calling_as(id(self)):
                return await self.client.call_tool(name, complete, **options)

        return await self._queue.run(name, work, parallel=parallel)

    # Being ready

    async def _ready(self, subject: str) -> None:
        """Connect, compare the tools and open the session, where that is not done yet."""
        for _ in range(MOST_ROUNDS):
            if self._opened and self._listed and self._session.is_open:
                return
            try:
                await self._flights.join("prepare", self._prepare)
            except WorkStopped:
                raise self._queue.refusal(subject) from None
        if not self._session.is_open:
            text = f"session {self.session!r} is lost each time it is opened; nothing was sent"
            raise StateError(f"{self.client.name}: {subject}: {text}", state=self.client.state)
        # A list that changes whenever it is read is used as it was read last.

    async def _prepare(self) -> None:
        try:
            if not self._listed:
                await self._list()
            await self._session.open()
        except Exception as error:
            if not self._opened:
                await self._give_up(error)
            raise
        self._opened = True

    async def _list(self) -> None:
        """List the tools, which the client's guards then check."""
        # Set before, not after: a change during the listing counts.
        self._listed = True
        try:
            try:
                await self.client.list_tools()
            except RpcError as error:
                if error.code != METHOD_NOT_FOUND:
                    raise
                self._watch.check((), None)
        except BaseException:
            self._listed = False
            raise

    def _heard(self, event: Transition | NotificationReceived) -> None:
        if isinstance(event, NotificationReceived):
            if event.method == TOOLS_CHANGED:
                self._listed = False
        elif event.old == State.READY:
            self._listed = False
            self._session.lost()


# The order of calls


class CallQueue:
    """The queue of one handle."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._turn = asyncio.Lock()
        self._waiting: set[asyncio.Timeout] = set()
        self._running = 0
        self._idle = asyncio.Event()
        self._reason: Exception | None = None
        self.closed: bool = False

    def __repr__(self) -> str:
        state = "closed" if self.closed else "open"
        return f"<CallQueue {state} {self._running} running, {len(self._waiting)} queued>"

    async def run(
        self, subject: str, work: Callable[[], Awaitable[T]], *, parallel: bool = False
    ) -> T:
        """Do ``work`` when it is its turn, or at once if ``parallel``."""
        self.check(subject)
        if not parallel:
            await self._take_turn()
            self.check(subject)
        self._running += 1
        try:
            return await work()
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
            if not parallel:
                self._turn.release()

    async def _take_turn(self) -> None:
        if not self._turn.locked() and not self._waiting:
            await self._turn.acquire()
            return
        # Without a time limit, until the queue is closed.
        limit = asyncio.timeout(None)
        try:
            with suppress(TimeoutError):
                async with limit:
                    self._waiting.add(limit)
                    await self._turn.acquire()
        finally:
            self._waiting.discard(limit)

    def close(self, reason: Exception | None = None) -> None:
        """Refuse waiting and later calls; running calls continue."""
        if not self.closed:
            self.closed, self._reason = True, reason
            for limit in self._waiting:
                limit.reschedule(-math.inf)

    async def idle(self, wait: float) -> bool:
        """Wait until nothing runs; False if something still does after ``wait`` seconds."""
        self._idle.clear()
        if self._running:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), wait)
        return not self._running

    def check(self, subject: str) -> None:
        """Refuse calls after the end."""
        if self.closed:
            raise self.refusal(subject) from self._reason

    def refusal(self, subject: str) -> StateError:
        """Return the error for a call after closing, which may have a longer cause."""
        why = ""
        if self._reason is not None:
            first = str(self._reason).partition("\n")[0].rstrip(" :")
            why = f", since it could not be opened ({first or type(self._reason).__name__})"
        text = f"{self._owner}: {subject}: the handle is closed{why}; nothing was sent"
        return StateError(text, state="closed")


# Settings


def client_for(
    target: Any,
    kind: type[C],
    connect: Callable[..., C],
    registry: Registry | None,
    options: dict[str, Any],
    *,
    log: Log,
) -> C:
    """Return the given client, or a new one, which declares what the module was made with.

    Servers list other tools to other clients.
    """
    if log is not None:
        options["log"] = log
    if isinstance(target, kind):
        if options:
            given_too = ", ".join(sorted(options))
            raise ValidationError(f"{given_too}: not for a client that exists already")
        return target
    if registry is not None and registry.capabilities:
        identity = options.get("identity") or Identity()
        options["identity"] = identity.declaring(capabilities(registry.capabilities))
    return connect(target, **options)


def _check_session(
    session: str | None,
    adapter: SessionAdapter | None,
    open_arguments: Mapping[str, object] | None,
) -> None:
    """Refuse a session without an adapter, and arguments without a session."""
    if session is not None and adapter is None:
        raise ValidationError(
            f"session={session!r}: there is no adapter that knows how the server keeps "
            "sessions (give adapter=…, or generate the handle with --session)"
        )
    if session is None and open_arguments is not None:
        raise ValidationError("open_arguments=…: there is no session to open with them")
