"""The client's own records of a server's tools, and the call of one, start to end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from msgspec import Raw, Struct, UnsetType

from holdfast._core.boundary import Call
from holdfast._core.calls import acquaintance
from holdfast._core.calls.cached import Listing, Reader
from holdfast._core.calls.handlers import ProgressHandler
from holdfast._core.calls.param_headers import ParamHeaders
from holdfast._core.calls.pipeline import Pipeline
from holdfast._core.observers.audit import Auditor
from holdfast._core.text import close_matches
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.errors import RpcError, TransportError, ValidationError
from holdfast.policies import CacheMode
from holdfast.schema.explain import SchemaFault, Unbounded, Unusable, lines
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.schema.validate import Checker, Checkers

log: logging.Logger = logging.getLogger("holdfast")

LIST: Final = "tools/list"
MOST_NAMES: Final = 10_000
"""Names that were never listed whose settings are remembered."""


class ToolOptions(Struct, gc=False):
    """What the caller of one tool may say about the call."""

    timeout: float | None = None
    total_timeout: float | None = None
    on_progress: ProgressHandler | None = None
    meta: Mapping[str, Any] | None = None


Guard: TypeAlias = Callable[[Sequence[Tool], "str | None"], None]
"""Sees each new list of tools, and the server's instructions; refuses them by raising."""


class Recorder(Protocol):
    """Writes down each call, before it and after it."""

    async def watch(
        self,
        name: str,
        arguments: Mapping[str, Any],
        schema: Callable[[], Any],
        work: Coroutine[Any, Any, ToolResult],
    ) -> ToolResult: ...

    def close(self) -> None: ...


class _Plan(Struct):
    """What is known of a tool that was called before."""

    tool: Tool
    harmless: bool
    checks: Checker | None
    unusable: str | None
    """Why its arguments cannot be checked."""
    returns: Raw | None


class Toolbox:
    """The tools of one client."""

    def __init__(self, pipeline: Pipeline, reader: Reader, auditor: Auditor) -> None:
        self._pipeline = pipeline
        self._reader = reader
        self._auditor = auditor
        self._policy = pipeline.policy.tools
        self._param_headers = ParamHeaders(pipeline)
        self._tools: dict[str, Tool] = {}
        self._plans: dict[str, _Plan] = {}
        self._unlisted: dict[str, tuple[bool, float | None]] = {}
        self._pages: tuple[Any, ...] = ()
        self._current = False
        """The list is known, and the server has not said since that it changed."""
        self._invalidates = frozenset(pipeline.policy.cache.invalidate_on)
        self._guards: list[Guard] = []
        self._skipped: set[str] = set()
        """Tools whose arguments are left to the server, each reported once."""
        self.recorder: Recorder | None = None

    @cached_property
    def _checkers(self) -> Checkers:
        """Made with the first schema: not every client needs one."""
        from holdfast.schema.validate import Checkers

        return Checkers()

    @property
    def tools(self) -> Mapping[str, Tool]:
        return MappingProxyType(self._tools)

    # The list

    async def list(self, mode: CacheMode | None = None) -> Listing[Tool]:
        found = await self._reader.listing(LIST, "tools", Tool, mode)
        found[:] = self._param_headers.learn(found)
        if not self._current or not _same(found.pages, self._pages):
            self._examine(found)
            self._learn(found)
        return found

    def _examine(self, found: Sequence[Tool]) -> None:
        """Nothing of a list that a guard refuses is used."""
        self.forget()
        for guard in tuple(self._guards):
            guard(found, acquaintance.instructions(self._pipeline))

    def guard(self, guard: Guard) -> Callable[[], None]:
        """Have each new list seen by ``guard`` first, from the next call on."""
        self._guards.append(guard)
        self._pipeline.reception.guards += 1
        self.forget()

        def remove() -> None:
            if guard in self._guards:
                self._guards.remove(guard)
                self._pipeline.reception.guards -= 1

        return remove

    def disconnected(self) -> None:
        """What comes back may be another program: to a guard it is a stranger again."""
        if self._guards:
            self.forget()

    def _learn(self, found: Listing[Tool]) -> None:
        """Take over a list. What was set on a record before stays set on its successor."""
        former, self._tools = self._tools, {}
        for tool in found:
            own = tool.__dict__
            own.setdefault("_timeout", self._policy.timeout(tool.name))
            own.setdefault("_enabled", self._policy.enables(tool.name))
            before = former.get(tool.name)
            if before is not None:
                own.update(_timeout=before.timeout, _enabled=before.enabled)
            self._tools.setdefault(tool.name, tool)
        self._plans.clear()
        self._pages = found.pages
        self._current = not found.stale

    def forget(self) -> None:
        """The server says that its tools are others now."""
        self._current = False
        self._plans.clear()

    # The call

    def call(
        self, name: str, arguments: Mapping[str, Any] | None, options: ToolOptions
    ) -> Coroutine[Any, Any, ToolResult]:
        given = {} if arguments is None else arguments
        if self.recorder is not None:
            return self._recorded(self.recorder, name, given, options)
        return self._audited(name, given, options)

    async def _recorded(
        self,
        recorder: Recorder,
        name: str,
        arguments: Mapping[str, Any],
        options: ToolOptions,
    ) -> ToolResult:
        work = self._audited(name, arguments, options)
        return await recorder.watch(name, arguments, lambda: self._schema(name), work)

    def _audited(
        self, name: str, arguments: Mapping[str, Any], options: ToolOptions
    ) -> Coroutine[Any, Any, ToolResult]:
        if not self._auditor.wanted():
            return self._call(name, arguments, options)
        return self._auditor.watch(
            name,
            arguments,
            lambda: self._schema(name),
            lambda correlation: self._call(name, arguments, options, correlation),
        )

    def _schema(self, name: str) -> Any:
        return self._tools[name].input_schema if name in self._tools else None

    async def _call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        options: ToolOptions,
        correlation: str | None = None,
    ) -> ToolResult:
        plan = self._plans.get(name)
        if plan is None and (self._current or self._guards or self._policy.validate == "always"):
            plan = await self._find(name)
        call = self._prepare(name, arguments, options, plan)
        try:
            raw = await self._pipeline.run(call, options.on_progress, correlation)
        except RpcError as error:
            if not self._param_headers.mismatched(error):
                raise
            await self.list("refresh")
            self._param_headers.add(call, arguments)
            raw = await self._pipeline.run(call, options.on_progress, correlation)
        except TransportError:
            # Where each request goes its own way, this is all that is seen of a lost server.
            self.disconnected()
            raise
        finally:
            self._reader.writes += 1
            if name in self._invalidates:
                self._reader.kept.invalidate()
        result = self._pipeline.decode(call, raw, ToolResult)
        if plan is not None and plan.returns is not None and not result.is_error:
            self._check_result(call, plan.returns, result, raw)
        return result

    def _prepare(
        self, name: str, arguments: Mapping[str, Any], options: ToolOptions, plan: _Plan | None
    ) -> Call:
        if plan is None:
            enabled, timeout = self._settings(name)
        else:
            enabled, timeout = plan.tool.enabled, plan.tool.timeout
        if not enabled:
            raise self._refusal(name, "is disabled in this client", {"tool": name})
        call = self._pipeline.prepare(
            "tools/call",
            {"name": name, "arguments": arguments},
            about=name,
            timeout=timeout if options.timeout is None else options.timeout,
            total_timeout=options.total_timeout,
            meta=options.meta,
        )
        call.progress = True
        self._param_headers.add(call, arguments)
        if plan is not None:
            call.repeatable = plan.harmless
            if plan.checks is not None or plan.unusable is not None:
                self._check_arguments(name, arguments, plan)
        return call

    async def _find(self, name: str) -> _Plan | None:
        """What is known of a tool; None if the server has to say whether there is such a one."""
        if not self._current:
            await self._list_once()
        if not self._current:
            return None
        tool = self._tools.get(name)
        if tool is None:
            raise self._unknown(name)
        plan = self._plans[name] = self._make_plan(tool)
        return plan

    async def _list_once(self) -> None:
        try:
            await self.list()
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            # It has tools, perhaps, and no list of them: nothing can be checked.
            self._examine(())

    def _make_plan(self, tool: Tool) -> _Plan:
        hints = tool.annotations
        harmless = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)
        checks, unusable = None, None
        if self._policy.validate != "off" and _says_something(tool.input_schema_json):
            try:
                checks = self._checkers.get(tool.input_schema_json, fills=True)
            except Unbounded as error:
                self._skip(tool.name, str(error))
            except Unusable as error:
                unusable = str(error)
        schema = tool.output_schema_json
        wanted = self._policy.results != "off" and not isinstance(schema, UnsetType)
        returns = schema if wanted and isinstance(schema, Raw) else None
        return _Plan(tool, harmless, checks, unusable, returns)

    def _settings(self, name: str) -> tuple[bool, float | None]:
        """Whether, and for how long, a tool is called whose list is not known or out of date."""
        tool = self._tools.get(name)
        if tool is not None:
            return tool.enabled, tool.timeout
        found = self._unlisted.get(name)
        if found is None:
            if len(self._unlisted) >= MOST_NAMES:
                self._unlisted.clear()
            found = self._policy.enables(name), self._policy.timeout(name)
            self._unlisted[name] = found
        return found

    # Checks

    def _check_arguments(self, name: str, arguments: Mapping[str, Any], plan: _Plan) -> None:
        if plan.checks is None:
            raise self._unchecked(name, str(plan.unusable))
        try:
            faults = plan.checks.faults(arguments)
        except Unbounded as error:
            self._skip(name, str(error))
            return
        except Unusable as error:
            raise self._unchecked(name, str(error)) from None
        if faults:
            text = f"the arguments do not fit its schema; nothing was sent:\n{lines(faults)}"
            raise ValidationError(f"{self._subject(name)}: {text}", data=faults)

    def _check_result(self, call: Call, schema: Raw, result: ToolResult, raw: Raw) -> None:
        """A result that does not fit is delivered, with a warning, unless that is to raise."""
        try:
            checks = self._checkers.get(schema)
            faults = checks.faults(result.structured, raw) if result.has_structured else _NONE
        except Unbounded as error:
            log.warning("%s: the result is not checked: %s", self._subject(call.about), error)
            return
        except Unusable as error:
            faults = (SchemaFault("", f"could not be checked: {error}"),)
        if not faults:
            return
        result.__dict__["_faults"] = faults
        text = f"{self._subject(call.about)}: the result does not fit its schema"
        if self._policy.results == "raise":
            raise ValidationError(f"{text}:\n{lines(faults)}", data=result)
        log.warning("%s: %s", text, "; ".join(str(fault) for fault in faults))

    def _skip(self, name: str, why: str) -> None:
        """Leave the arguments of a tool to the server, because checking them has no bound."""
        if name not in self._skipped:
            self._skipped.add(name)
            text = "%s: the arguments are not checked, the server has to: %s"
            log.warning(text, self._subject(name), why)

    # Refusals

    def _subject(self, name: str) -> str:
        return f"{self._pipeline.name}: tools/call {name!r}"

    def _refusal(self, name: str, why: str, data: Any) -> ValidationError:
        return ValidationError(f"{self._subject(name)}: {why}; nothing was sent", data=data)

    def _unchecked(self, name: str, why: str) -> ValidationError:
        hint = "ToolPolicy(validate='off') sends them unchecked"
        text = f"its arguments cannot be checked: {why} ({hint})"
        return self._refusal(name, text, {"tool": name})

    def _unknown(self, name: str) -> ValidationError:
        known = [tool.name for tool in self._tools.values() if tool.enabled]
        near = close_matches(name, known, 3)
        error = self._refusal(
            name,
            f"there is no such tool among the {len(self._tools)} listed",
            {"tool": name, "near": near},
        )
        error.message += f". Did you mean {' or '.join(map(repr, near))}?" if near else ""
        return error


_NONE: Final = (SchemaFault("", "there is no structured result", "required"),)


def _same(pages: tuple[Any, ...], others: tuple[Any, ...]) -> bool:
    """Whether these are the very same objects: a list that was kept is learned once."""
    return len(pages) == len(others) and all(
        one is other for one, other in zip(pages, others, strict=True)
    )


def _says_something(schema: Raw) -> bool:
    """Whether a schema can refuse anything at all: a sign that it is worth compiling."""
    return len(schema) > len(b'{"type":"object"}')
