"""The tools of one server as this client knows them: listed, guarded, ready to be called."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import is_
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Raw, Struct, UnsetType, structs

from holdfast._core.calls.cached_reads import CachedReads, Listing
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.requester import Requester
from holdfast._core.eras import headers
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.errors import (
    HoldfastError,
    ProtocolError,
    RequestTimeout,
    RpcError,
    TransportError,
    ValidationError,
)
from holdfast.policies import CacheMode, ToolPolicy
from holdfast.schema.faults import SchemaFault, Unusable, lines
from holdfast.schema.simple import Check, SimpleCheck, simple_type
from holdfast.types.tools import Tool, ToolResult, ToolSettings

if TYPE_CHECKING:
    from holdfast.schema.validate import Checkers

log: logging.Logger = logging.getLogger("holdfast")

CALL: Final = "tools/call"
LIST: Final = "tools/list"
HEADER_MISMATCH: Final = -32020
RECENT: Final = 5.0
"""Seconds for which a list is trusted if the server does not announce changes."""
LIST_SHARE: Final = 0.5
"""The part of a call's time that the list of tools may take."""
LIST_AGAIN: Final = 60.0
"""Seconds after which a list that could not be had is tried again."""
MOST_READINGS: Final = 10
"""Attempts to read a list that keeps changing, if a guard has to see a consistent one."""

Guard: TypeAlias = Callable[[Sequence[Tool], "str | None"], None]
"""Sees each new list of tools, and the server's instructions; refuses them by raising."""


class _Unusable(Struct, frozen=True):
    """Stands for a schema that cannot be compiled."""

    error: Unusable

    def faults(self, value: Any, text: bytes | Raw | None = None) -> tuple[SchemaFault, ...]:
        raise type(self.error)(str(self.error))


class ReadyTool(Struct):
    """Everything that a call of one tool needs, made once."""

    settings: ToolSettings
    """The client's settings for it, as they are now."""
    tool: Tool | None = None
    """None if the server was not asked for its definition."""
    checker: Check | None = None
    """Checks arguments."""
    returns: Check | None = None
    """Checks structured results."""
    repeatable: bool = False
    headers: Callable[[Mapping[str, Any]], dict[str, str]] | None = None
    """Makes the headers that repeat arguments, where the tool wants any (``x-mcp-header``)."""
    task: str = ""
    """``required`` or ``optional`` if the tool may be called as a task (2025-11-25 only)."""
    epoch: int | None = None
    """The connection on which a guard saw the tool; None: any will do."""


class ToolTable(Struct, eq=False):
    """The tools of one client."""

    _requester: Requester
    _cached: CachedReads
    _policy: ToolPolicy
    ready: dict[str, ReadyTool] = {}
    _tools: dict[str, Tool] = {}
    _headers: dict[str, headers.HeaderPaths] = {}
    _pages: tuple[Any, ...] = ()
    _current: bool = False
    """The list is known, and the server has not said since that it changed."""
    _changes: int = 0
    """The number of times that the list was found to be out of date."""
    _epoch: int | None = None
    """The connection that the list came from."""
    _listed_at: float = 0.0
    _without_list: int | None = None
    """The connection on which the server could not list its tools."""
    _list_again_at: float = 0.0
    """The time on the loop's clock at which it is asked again."""
    _skipped: dict[tuple[str, str], None] = {}
    """Tools whose arguments are left to the server, each reported once."""
    _guards: list[Guard] = []

    @property
    def tools(self) -> Mapping[str, Tool]:
        return MappingProxyType(self._tools)

    @property
    def guarded(self) -> bool:
        return bool(self._guards)

    # The list

    async def list(self, mode: CacheMode | None, deadline: Deadline) -> Listing[Tool]:
        """List the tools, and show every new list to the guards."""
        driver = self._requester.driver
        before: Sequence[Tool] | None = None
        if self._guards:
            await self._requester.opener.connected(deadline)
            deadline = deadline.after_connecting(self._requester.driver.loop.time())
        for _ in range(MOST_READINGS):
            if self._guards:
                # A guard is shown what this server says now, not what a cache holds.
                mode = "bypass"
                await self._requester.opener.connected(deadline)
            epoch, changes = driver.epoch, self._changes
            tools = await self._cached.listing(LIST, "tools", Tool, deadline, mode)
            # Pages of two servers, or the list of one that is gone, are not a checked list; nor
            # is one that changed while it was read, unless it reads the same again.
            whole = epoch == driver.epoch
            still = changes == self._changes or tools == before
            if not self._guards or (whole and still):
                break
            before = tools if whole else None
        else:
            text = f"its list of tools changed {MOST_READINGS} times while it was read"
            raise ProtocolError(f"{self._requester.name}: {LIST}: {text}")
        self._headers.clear()
        if driver.param_headers:
            tools[:] = self._with_headers(tools)
        # A cached list, whose pages are the very same objects, is learned once.
        same = len(tools.pages) == len(self._pages) and all(map(is_, tools.pages, self._pages))
        if not (same and self._current and self._epoch == epoch):
            self.forget()
            if self._guards:
                self._show(tools)
            self._learn(tools, epoch)
        return tools

    async def any_enabled(self, deadline: Deadline) -> bool:
        """Return True if there is any tool to call."""
        await self._requester.opener.connected(deadline)
        facts = self._requester.driver.facts
        if facts is not None and not facts.offers("tools"):
            return False
        return any(tool.enabled for tool in await self.list(None, deadline))

    def _show(self, tools: Sequence[Tool]) -> None:
        """Show a list to every guard, which raises to refuse it."""
        facts = self._requester.driver.facts
        for guard in tuple(self._guards):
            guard(tools, None if facts is None else facts.instructions)

    def guard(self, guard: Guard) -> Callable[[], None]:
        """Check each new list with ``guard``, from the next call on; return its removal."""
        self._guards.append(guard)
        self.forget()

        def remove() -> None:
            if guard in self._guards:
                self._guards.remove(guard)
                self.forget()

        return remove

    def disconnected(self) -> None:
        """Forget checked tools: the server that comes back may be another program."""
        if self._guards:
            self.forget()

    def forget(self) -> None:
        """Mark the list as out of date: the server says so, or it may be another server."""
        self._current = False
        self._changes += 1
        self._without_list = None
        self.ready.clear()

    def _learn(self, listed: Listing[Tool], epoch: int) -> None:
        """Replace the known tools. Settings of a tool (timeout, enabled) are carried over."""
        former, self._tools = self._tools, {}
        timeouts, rules = self._policy.timeouts, self._policy.deny or self._policy.allow is not None
        for tool in listed:
            name = tool.name
            if name in former:
                tool.timeout, tool.enabled = former[name].timeout, former[name].enabled
            elif timeouts or rules:
                tool.settings.apply(self._policy.enables(name), self._policy.timeout(name))
            self._tools.setdefault(name, tool)
        self.ready.clear()
        self._pages = listed.pages
        self._current = not listed.stale
        self._epoch = epoch
        self._listed_at = self._requester.driver.loop.time()

    def _with_headers(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Note which arguments go into headers; return the tools whose annotations are allowed.

        Specification 2026-07-28, "Custom Headers from Tool Parameters": a tool whose
        annotations are not allowed is left out of the list.
        """
        allowed = []
        for tool in tools:
            if b"x-mcp-header" in bytes(tool.input_schema_json):
                try:
                    self._headers[tool.name] = headers.header_paths(tool.input_schema)
                except (headers.BadParamHeader, ValueError) as error:
                    text = "%s: left out the tool %r: %s"
                    log.warning(text, self._requester.name, tool.name, error)
                    continue
            allowed.append(tool)
        return allowed

    def headers_changed(self, error: RpcError) -> bool:
        """Return True if the server refused the headers, which it does before anything runs."""
        return error.code == HEADER_MISMATCH and self._requester.driver.param_headers

    # Finding a tool

    @property
    def list_is_current(self) -> bool:
        """True if the list is recent, or a change of it would have been announced to us."""
        driver = self._requester.driver
        if driver.loop.time() - self._listed_at < RECENT:
            return True
        facts, era = driver.facts, driver.era
        if facts is None or era is None or era.listens:
            return False
        capabilities = facts.server_capabilities
        return capabilities.tools is not None and bool(capabilities.tools.list_changed)

    async def find(self, name: str, deadline: Deadline) -> ReadyTool:
        """Return a tool that is ready to be called; list the tools first if need be.

        Raises:
            ValidationError: The server lists its tools, and this is none of them.
        """
        lists = bool(self._guards) or self._policy.validate in ("always", "required")
        listed = not self._current and lists
        if listed:
            await self.list_for_call(deadline)
        if not self._current:
            return self._unchecked(name)
        tool = self._tools.get(name)
        unchecked = self._policy.validate == "off" and not self._guards
        if tool is None and not (listed or unchecked or self.list_is_current):
            if not await self.list_for_call(deadline, "refresh"):
                return self._unchecked(name)
            tool = self._tools.get(name)
        if tool is not None:
            ready = self.ready[name] = self._make_ready(tool)
            return ready
        if not self._tools or unchecked:
            # An empty list proves nothing: the server has to decide.
            return self._unchecked(name)
        raise self._no_such_tool(name)

    # A call must not depend on a list more than its caller wants. Some servers take minutes to list
    # (each of their own backends is asked first), answer with an error, die of it or never
    # answer, and their tools work all the same. So the list has a part of the call's time; without
    # one the server checks the arguments itself, as it has to anyway, and a warning says so. It is
    # asked again after a while, or when the server says that its tools changed, or on a new
    # connection: not before every call, each of which would lose half of its time to it.
    #
    # Two callers cannot do without: one that validates by ``required``, and a guard, which exists
    # to see every definition before it is used. For them the list's error is the call's.

    async def list_for_call(self, deadline: Deadline, mode: CacheMode | None = None) -> bool:
        """List the tools for a call, in a part of its time.

        Returns:
            False if they cannot be had: then nothing is checked.
        """
        requester = self._requester
        await requester.opener.connected(deadline)
        driver, now = requester.driver, requester.driver.loop.time()
        deadline = deadline.after_connecting(now)
        required = bool(self._guards) or self._policy.validate == "required"
        offered = driver.facts is None or driver.facts.offers("tools")
        missing = self._without_list == driver.epoch and now < self._list_again_at
        # A server that refuses a call because of its definition has a list, whatever it declares.
        if mode is None and not self._guards and (not offered or missing):
            return False
        try:
            await self.list(mode, deadline if required else deadline.part(LIST_SHARE, now))
        except (RpcError, ProtocolError, RequestTimeout, TransportError) as error:
            lacking = isinstance(error, RpcError) and error.code == METHOD_NOT_FOUND
            if required and not lacking:
                raise
            self._go_without_list(error, lacking=lacking)
            return False
        return True

    def _go_without_list(self, error: HoldfastError, *, lacking: bool) -> None:
        """Note that the tools cannot be listed; ``lacking``: the server has no such method.

        It may have tools and no list of them: nothing can be checked.
        """
        driver = self._requester.driver
        self.forget()
        self._epoch = self._without_list = driver.epoch
        self._list_again_at = math.inf if lacking else driver.loop.time() + LIST_AGAIN
        self._show(())
        level = logging.DEBUG if lacking else logging.WARNING
        text = "%s: the arguments of calls are not checked: its tools cannot be listed: %s"
        log.log(level, text, self._requester.name, error.message)

    def _make_ready(self, tool: Tool) -> ReadyTool:
        hints, output = tool.annotations, tool.output_schema_json
        repeatable = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        checker = returns = None
        # A schema that can refuse nothing is not worth compiling.
        says_something = len(tool.input_schema_json) > len(b'{"type":"object"}')
        if self._policy.validate != "off" and says_something:
            checker = _check(tool.input_schema_json, fills=True)
        if self._policy.results != "off" and not isinstance(output, UnsetType):
            returns = _check(output)
        paths = self._headers.get(tool.name)
        return ReadyTool(
            tool.settings,
            tool,
            checker,
            returns,
            repeatable,
            None if paths is None else partial(headers.param_headers, paths),
            "" if tool.execution is None else tool.execution.task_support or "",
            self._epoch if self._guards else None,
        )

    def _unchecked(self, name: str) -> ReadyTool:
        """Return a tool whose definition is unknown, or out of date: nothing is checked."""
        tool = self._tools.get(name)
        if tool is not None:
            settings = tool.settings
        else:
            settings = ToolSettings(self._policy.enables(name), self._policy.timeout(name))
        return ReadyTool(settings, epoch=self._epoch if self._guards else None)

    # Refusals

    def disabled(self, name: str) -> ValidationError:
        text = f"{self._subject(name)}: is disabled in this client; nothing was sent"
        return ValidationError(text, data={"tool": name})

    def unchecked(self, name: str, error: Unusable) -> None:
        """Note that arguments cannot be checked: the server has to, which is said once."""
        self._warn_unchecked(name, "the arguments are not checked, the server has to", error)

    def invalid_arguments(self, name: str, faults: tuple[SchemaFault, ...]) -> ValidationError:
        text = f"the arguments do not fit its schema; nothing was sent:\n{lines(faults)}"
        return ValidationError(f"{self._subject(name)}: {text}", data=faults)

    def unchecked_result(self, name: str, error: Unusable) -> None:
        """Note that a result cannot be checked, once."""
        self._warn_unchecked(name, "the result is not checked", error)

    def _warn_unchecked(self, name: str, text: str, error: Unusable) -> None:
        if (name, text) not in self._skipped:
            self._skipped[name, text] = None
            log.warning("%s: %s: %s", self._subject(name), text, error)

    def report_invalid_result(
        self, name: str, result: ToolResult, faults: tuple[SchemaFault, ...]
    ) -> None:
        """Mark a result that does not fit its schema; warn, or raise where that is asked for."""
        result._notes = structs.replace(result._notes, faults=faults)
        text = f"{self._subject(name)}: the result does not fit its schema"
        if self._policy.results == "raise":
            raise ValidationError(f"{text}:\n{lines(faults)}", data=result)
        log.warning("%s: %s", text, "; ".join(str(fault) for fault in faults))

    def _no_such_tool(self, name: str) -> ValidationError:
        from holdfast._core.text import close_matches

        enabled = [tool.name for tool in self._tools.values() if tool.enabled]
        near = close_matches(name, enabled, 3)
        question = f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
        why = f"there is no such tool among the {len(self._tools)} listed"
        text = f"{self._subject(name)}: {why}; nothing was sent{question}"
        return ValidationError(text, data={"tool": name, "near": near})

    def _subject(self, name: str) -> str:
        return f"{self._requester.name}: tools/call {name!r}"


_COMPILING: Final = Lock()
"""Clients in several threads share the compiled schemas."""


@cache
def _checkers() -> Checkers:
    """Return the compiled schemas of all clients: many have the same server."""
    from holdfast.schema.validate import Checkers

    return Checkers()


def _check(schema: Raw, *, fills: bool = False) -> Check:
    """Return the check of a schema; a simple one is compiled only to explain a fault."""

    def compiled() -> Check:
        try:
            with _COMPILING:
                return _checkers().get(schema, fills=fills)
        except Unusable as error:
            return _Unusable(error)

    plain = simple_type(schema)
    return compiled() if plain is None else SimpleCheck(plain, compiled)
