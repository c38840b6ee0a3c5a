"""The client: the verbs of MCP, over a connection that holds on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from msgspec import Raw

from holdfast._core.boundary import Call
from holdfast._core.calls import acquaintance
from holdfast._core.calls.assembly import Assembly
from holdfast._core.calls.handlers import Handlers, Notification, ProgressHandler
from holdfast._core.calls.invocation import Invocation, invoke
from holdfast._core.calls.running import RunningCall
from holdfast._core.calls.tools import Recorder, ToolOptions
from holdfast._core.engine.state import State
from holdfast._core.eras import memory
from holdfast.errors import HoldfastError, ValidationError
from holdfast.events import Events
from holdfast.policies import (
    CacheMode,
    Policy,
)
from holdfast.types.base import Wire
from holdfast.types.lifecycle import Implementation, ServerCapabilities
from holdfast.types.prompts import Prompt, PromptResult
from holdfast.types.resources import ReadResult, Resource, ResourceTemplate
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.types.prompts import Completion, Reference
    from holdfast.types.resources import Root
    from holdfast.types.sampling import SamplingRequest

T = TypeVar("T", bound=Wire)
R = TypeVar("R")


class Client:
    """One server, for as long as you need it.

    May be shared by tasks, opened in one and closed in another. ``async with`` closes it at
    the end; the server starts at the first use.
    """

    def __init__(
        self,
        transport: Any,
        policy: Policy,
        handlers: Handlers,
        *,
        name: str | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self._transport = transport
        self._policy = policy
        self.name: str = transport.name if name is None else name
        opening = memory.recall(transport.key) if policy.protocol is None else None
        parts = Assembly(self.name, transport, policy, handlers, opening)
        self._pipeline, self._standing = parts.pipeline, parts.standing
        self._reader, self._toolbox = parts.reader, parts.toolbox
        self._toolbox.recorder = recorder

    def __repr__(self) -> str:
        return f"<Client {self.name} {self.state}>"

    # Life

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> Self:
        """Start now rather than at the first use; raise what went wrong if it did."""
        await self._pipeline.open()
        return self

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Start if need be and wait until the server is ready, over failed attempts too."""
        await self._pipeline.open(wait=True, timeout=timeout)

    async def close(self) -> bool:
        """End the server and every call under way. Any time, any number of times, any task.

        True for the call that closed the client, False for those that found it closed.
        """
        await self._say_goodbye()
        self._remember_opening()
        self._standing.close()
        try:
            await self._pipeline.logins.close()
            return await self._pipeline.close()
        finally:
            if self._toolbox.recorder is not None:
                self._toolbox.recorder.close()

    async def login(self, *, fresh: bool = False) -> None:
        """Log in to the server, by the login handler or at the terminal.

        Args:
            fresh: Register this client anew with the authorization server first.

        Raises:
            LoginFailed: The person refused, or did not come.
            DiscoveryError: The server has no authorization server that can be used.
        """
        await self._pipeline.log_in(fresh=fresh)

    async def logout(self) -> bool:
        """Revoke and delete the stored login; return whether there was one."""
        return await self._pipeline.logins.account.log_out()

    async def _say_goodbye(self) -> None:
        """A ``shutdown`` request, which is not part of MCP, where the option asks for it."""
        if self._transport.traits.shutdown_request and self.is_connected:
            call = Call("shutdown", idle=self._transport.grace, total=self._transport.grace)
            try:
                await self._pipeline.run(call)
            except HoldfastError:
                pass

    def _remember_opening(self) -> None:
        driver = self._pipeline.started
        if driver is None or self._policy.protocol is not None:
            return
        memory.remember(self._transport.key, driver.engine.opening)

    # What is known

    @property
    def state(self) -> State:
        return self._pipeline.state

    @property
    def transport(self) -> Any:
        """The way to the server, such as a `holdfast.Stdio`."""
        return self._transport

    @property
    def is_connected(self) -> bool:
        return self.state is State.READY

    @property
    def server_info(self) -> Implementation | None:
        """Who the server says it is; None before the first connection, or if it does not."""
        return acquaintance.info(self._pipeline)

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """What the server says it can do; None before the first connection."""
        return acquaintance.capabilities(self._pipeline)

    @property
    def protocol_version(self) -> str | None:
        """The revision agreed on; None before the first connection."""
        return acquaintance.version(self._pipeline)

    @property
    def instructions(self) -> str | None:
        """What the server would have a model know about it."""
        return acquaintance.instructions(self._pipeline)

    @property
    def violations(self) -> dict[str, int]:
        """How often the server broke the protocol, by kind; it was dropped each time."""
        driver = self._pipeline.started
        return {} if driver is None else driver.engine.violations

    # Tools

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools listed last, by name; their ``timeout`` and ``enabled`` can be set."""
        return self._toolbox.tools

    async def list_tools(self, *, cache: CacheMode | None = None) -> list[Tool]:
        """Every tool, of every page."""
        return await self._toolbox.list(cache)

    def guard_tools(
        self, check: Callable[[Sequence[Tool], str | None], None]
    ) -> Callable[[], None]:
        """Have every new list of tools, and the server's instructions, checked before use.

        ``check`` refuses them by raising. It sees the list before the first call, when the
        server says that it changed, and after a reconnect; the result removes it again.
        """
        remove = self._toolbox.guard(check)
        self._standing.changes_wanted()
        return remove

    async def available_tools(self) -> bool:
        """Whether there is any tool to call."""
        await self._pipeline.connected()
        capabilities = self.server_capabilities
        if capabilities is not None and capabilities.tools is None:
            return False
        return any(tool.enabled for tool in await self.list_tools())

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: ProgressHandler | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Call a tool. A tool that fails gives a result with ``is_error``, not an exception."""
        options = ToolOptions(timeout, total_timeout, on_progress, meta)
        return await self._toolbox.call(name, arguments, options)

    async def invoke_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: ProgressHandler | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Invocation:
        """Call a tool; whatever goes wrong with the call is in the value, not raised."""
        options = ToolOptions(timeout, total_timeout, on_progress, meta)
        return await invoke(self._toolbox.call(name, arguments, options))

    def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_progress: ProgressHandler | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> RunningCall[ToolResult]:
        """Start a tool call and go on; await what it gives back, or ``cancel()`` it."""
        options = ToolOptions(timeout, total_timeout, on_progress, meta)
        work = self._toolbox.call(name, arguments, options)
        return RunningCall(f"{self.name}: tools/call {name!r}", work)

    # Resources

    async def list_resources(self, *, cache: CacheMode | None = None) -> list[Resource]:
        return await self._reader.listing("resources/list", "resources", Resource, cache)

    async def list_resource_templates(
        self, *, cache: CacheMode | None = None
    ) -> list[ResourceTemplate]:
        return await self._reader.listing(
            "resources/templates/list", "resourceTemplates", ResourceTemplate, cache
        )

    async def read_resource(
        self, uri: str, *, timeout: float | None = None, cache: CacheMode | None = None
    ) -> ReadResult:
        """The contents of a resource, text and binary."""
        return await self._reader.read(uri, timeout, cache)

    async def subscribe_resource(self, uri: str) -> None:
        """Hear ``notifications/resources/updated`` for a resource, over reconnects too."""
        await self._standing.subscribe(uri)

    async def unsubscribe_resource(self, uri: str) -> None:
        await self._standing.unsubscribe(uri)

    # Prompts and completion

    async def list_prompts(self, *, cache: CacheMode | None = None) -> list[Prompt]:
        return await self._reader.listing("prompts/list", "prompts", Prompt, cache)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> PromptResult:
        params = {"name": name, "arguments": {} if arguments is None else arguments}
        call = self._pipeline.prepare("prompts/get", params, about=name, timeout=timeout)
        call.repeatable = True
        return self._pipeline.decode(call, await self._pipeline.run(call), PromptResult)

    async def complete(
        self,
        ref: Reference,
        name: str,
        value: str = "",
        context: Mapping[str, str] | None = None,
    ) -> Completion:
        """Suggestions for the argument ``name`` of a prompt or resource template."""
        from holdfast.types.prompts import CompleteResult

        params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
        if context is not None:
            params["context"] = {"arguments": context}
        call = self._pipeline.prepare("completion/complete", params, about=name)
        call.repeatable = True
        return self._pipeline.decode(
            call, await self._pipeline.run(call), CompleteResult
        ).completion

    # The rest of the protocol

    async def ping(self, *, timeout: float | None = None) -> None:
        """See whether the server answers."""
        era = await self._pipeline.connected()
        request = era.ping()
        await self._pipeline.run(
            self._pipeline.prepare(request.method, request.params, timeout=timeout)
        )

    async def set_log_level(self, level: str) -> None:
        """Have the server send log messages from this level up; kept over reconnects."""
        from holdfast.types.notifications import LOG_LEVELS

        if level not in LOG_LEVELS:
            raise ValidationError(f"log level {level!r}: must be one of {', '.join(LOG_LEVELS)}")
        era = await self._pipeline.connected()
        request = era.log_level(level)
        if request is not None:
            await self._pipeline.run(self._pipeline.prepare(request.method, request.params))
        self._pipeline.driver.engine.log_level = level

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Any:
        """Any request, also one that Holdfast has no verb for; the result as plain JSON."""
        plain = None if params is None else dict(params)
        call = self._pipeline.prepare(method, plain, timeout=timeout, total_timeout=total_timeout)
        return msgspec.json.decode(await self._pipeline.run(call))

    async def create_message(self, params: SamplingRequest | Mapping[str, Any]) -> Any:
        """Run our own sampling handler, as a server's request would."""
        self._pipeline.inputs.require("sampling")
        return await self._pipeline.inputs.sample(Raw(msgspec.json.encode(params)))

    async def list_roots(self) -> list[Root]:
        """The roots that servers are told."""
        self._pipeline.inputs.require("roots")
        return (await self._pipeline.inputs.list_roots()).roots

    async def roots_changed(self) -> None:
        """Tell the server that the roots are others now (where its revision has that)."""
        driver = self._pipeline.driver
        driver.send(driver.engine.notify("notifications/roots/list_changed"))

    # Listening

    @property
    def events(self) -> Events:
        """Where to ``subscribe`` to what happens: requests, states, notifications, violations."""
        return self._pipeline.observation.events

    def on_notification(
        self, handler: Callable[[Notification], Any], method: str | None = None
    ) -> Callable[[], None]:
        """Hear notifications, all or of one method, in order; the result stops it again."""
        remove = self._pipeline.reception.add(handler, method)
        self._standing.changes_wanted()
        return remove

    def on_progress(self, handler: ProgressHandler) -> Callable[[], None]:
        """Hear the progress of every call from now on; the result stops it again."""
        watchers = self._pipeline.watchers
        watchers.append(handler)

        def remove() -> None:
            if handler in watchers:
                watchers.remove(handler)

        return remove
