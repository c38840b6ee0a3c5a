"""The client: the verbs of MCP, over a connection that is restored when it is lost."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from msgspec.structs import replace

from holdfast import types
from holdfast._core.boundary import Call
from holdfast._core.calls.cache import ResponseCache, partition
from holdfast._core.calls.cached_reads import CachedReads, Listing
from holdfast._core.calls.handlers import (
    Handlers,
    Notification,
    ProgressHandler,
    add_removable,
    require_callable,
    require_sync,
)
from holdfast._core.calls.inputs import Inputs, RawAnswerer
from holdfast._core.calls.logins import CallLogins
from holdfast._core.calls.opener import Opener
from holdfast._core.calls.options import CallOptions, require_toolset, require_type
from holdfast._core.calls.pipeline import Pipeline
from holdfast._core.calls.requester import ENDED, Requester
from holdfast._core.calls.tools import LIST, ToolTable
from holdfast._core.calls.unsolicited import Unsolicited
from holdfast._core.engine.state import State
from holdfast._core.eras import conversation
from holdfast._core.eras.conversation import Facts, Plan
from holdfast._core.forsaken import forsake
from holdfast._core.limits import gate_for
from holdfast._core.observers.observer import Observer, Observers, wanted_observers
from holdfast.policies import CacheMode, Policy
from holdfast.types.base import Wire
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast._core.boundary import Transport
    from holdfast._core.bulk.engine import Outcomes, Rows
    from holdfast._core.calls.call_values import RunningCall
    from holdfast._core.calls.invocation import Invocation
    from holdfast._core.calls.pending import PendingCall
    from holdfast._core.driver import Driver
    from holdfast._core.limits.gate import Gate
    from holdfast._core.tap import Watcher
    from holdfast.agents.budget import ResultBudget
    from holdfast.agents.listing import ModelTool, Partial
    from holdfast.agents.providers import ModelAnswer, Provider
    from holdfast.agents.toolset import Toolset
    from holdfast.events import Events


W = TypeVar("W", bound=Wire)


class Client:
    """A client of one server, which starts at the first use and is restarted when it dies.

    Make one with `holdfast.connect`. It may be shared by tasks, opened in one and closed in
    another; ``async with`` closes it at the end. Every verb that asks the server takes a
    ``timeout`` in seconds, which covers connecting and every page or round as well, and raises
    the errors of `holdfast.errors`: a lost link, a timeout, an error of the server.

    Attributes:
        name: The name of the server in messages and logs.

    Example:
        async with holdfast.connect("python server.py") as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
            print(result.text)
    """

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        handlers: Handlers,
        *,
        name: str | None = None,
        observers: Iterable[Observer] = (),
        gate: Gate | None = None,
    ) -> None:
        self.name: str = transport.name if name is None else name
        self._transport = transport
        self._policy = policy
        self._closing: asyncio.Task[None] | None = None
        self._budget: ResultBudget | None = None
        """Cuts results for language models; made with the first list of tools for them."""
        traits, identity = transport.traits, policy.identity
        if traits.extensions:
            identity = identity.with_extensions(traits.extensions)
        plan = Plan(
            identity,
            handlers.abilities,
            pin=policy.protocol,
            opening=conversation.recall(transport.key) if policy.protocol is None else None,
            patience=policy.timeouts.probe,
        )
        self._observers = Observers(self.name, tuple(observers))
        self._inputs = Inputs(handlers, policy.limits.asks, handlers.approval)
        self._logins = CallLogins(self.name, transport, handlers.login)
        gate = gate or gate_for(policy, transport)
        opener = Opener(self.name, transport, policy, plan, self._logins, gate=gate)
        self._requester = requester = Requester(opener, self._inputs, self._observers)
        self._observers.all += wanted_observers(
            self.name, policy, transport, requester.post, opener.era
        )
        cache = ResponseCache(policy.cache, *partition(transport, policy))
        self._cached = CachedReads(requester, cache, shared=traits.credentials is not None)
        self._tools = ToolTable(requester, self._cached, policy.tools)
        self._pipeline = Pipeline(requester, self._tools, self._cached)
        self._unsolicited = opener.listener = Unsolicited(requester, cache, self._tools)
        self._logins.watch(change=self._unsolicited.leave_session)
        if handlers.notification is not None:
            self._unsolicited.add(handlers.notification, None)
        if handlers.progress is not None:
            requester.progress_handlers.append(handlers.progress)

    def __repr__(self) -> str:
        return f"<Client {self.name} {self.state}>"

    def __del__(self) -> None:
        # Not made completely, or never used: there is nothing to end.
        requester = self.__dict__.get("_requester")
        driver = None if requester is None else requester.opener.started
        if driver is not None and forsake(driver):
            text = f"unclosed client {self.name!r}: close it, or use 'async with'"
            warnings.warn(text, ResourceWarning, stacklevel=2, source=self)

    # Life

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def open(self, *, timeout: float | None = None) -> Self:
        """Start the server now rather than at the first use.

        Args:
            timeout: Seconds to wait; None: the time of the handshake, by `Timeouts`.

        Returns:
            The client itself.

        Raises:
            HoldfastError: The first attempt to connect failed.
        """
        await self._requester.opener.open(timeout=timeout)
        return self

    async def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the server is ready, over failed attempts too.

        Args:
            timeout: Seconds to wait; None waits as long as it takes.

        Raises:
            RequestTimeout: The server was not ready in time.
            ShutdownError: The client was closed meanwhile.
        """
        await self._requester.opener.open(wait=True, timeout=timeout)

    async def close(self) -> bool:
        """End the server and every call under way.

        May be called at any time, any number of times, by any task, also by a handler of this
        client. It completes even if the task that waits for it is cancelled.

        Returns:
            True for the call that closed the client, False for those that found it closed.
        """
        first = self._closing is None and self._requester.opener.state not in ENDED
        if self._closing is None or self._closing.cancelled():
            # A task, which begins in the next turn: calls that were cancelled just now tell the
            # server before it.
            driver = self._requester.driver
            self._closing = driver.loop.create_task(self._close(driver))
        await asyncio.shield(self._closing)
        return first

    async def _close(self, driver: Driver) -> None:
        self._requester.waits.end()
        if self._transport.traits.shutdown_request and self.is_connected:
            # A request that is not part of MCP: only where it is asked for.
            grace = self._transport.traits.grace
            await driver.say_goodbye(Call("shutdown", idle=grace, total=grace))
        if self._policy.protocol is None:
            conversation.remember(self._transport.key, driver.engine.opening)
        self._unsolicited.close()
        try:
            await driver.close()
        finally:
            await self._logins.close()
            self._observers.close()
            for close in self._tap_closers:
                close()

    _tap_closers: tuple[Callable[[], None], ...] = ()

    def _attach_tap(self, watch: Watcher, close: Callable[[], None] | None = None) -> None:
        """Show what crosses between this client and its transport; before its first use.

        ``close`` is called when the client is closed. A second tap sees the same as the first.
        """
        from holdfast._core.tap import both

        opener = self._requester.opener
        opener.tap = watch if opener.tap is None else both(opener.tap, watch)
        if close is not None:
            self._tap_closers += (close,)

    def _attach_answerer(
        self,
        answerer: RawAnswerer,
        abilities: Iterable[str] = (),
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        """Answer all that the server asks by one raw function; before the first use.

        ``abilities`` are what is declared to the server, such as ``elicitation.form``;
        ``capabilities`` the same as they are sent, such as those of a host.
        """
        opener = self._requester.opener
        self._inputs.answerer = answerer
        opener.plan = replace(opener.plan, abilities=frozenset(abilities))
        self._declare(capabilities or {})

    def _declare(self, capabilities: Mapping[str, Any]) -> None:
        """Declare these capabilities, besides those of the policy, on the next link."""
        opener = self._requester.opener
        identity = self._policy.identity.declaring(capabilities)
        opener.plan = replace(opener.plan, identity=identity)
        if opener.started is not None:
            opener.started.engine.replan(opener.plan)

    # Credentials

    async def login(self, *, fresh: bool = False) -> None:
        """Log in to the server, by the login handler or at the terminal.

        Args:
            fresh: Register this client anew with the authorization server first.

        Raises:
            LoginFailed: The person refused, or did not log in in time.
            DiscoveryError: The server has no usable authorization server.
        """
        await self._requester.opener.log_in(fresh=fresh)

    async def logout(self) -> bool:
        """Revoke and delete the stored login; return whether there was one."""
        return await self._logins.authorizer.log_out()

    # State

    @property
    def state(self) -> State:
        """The state of the connection, such as ``"ready"`` or ``"backoff"``."""
        return self._requester.opener.state

    @property
    def transport(self) -> Any:
        """The transport, such as a `holdfast.Stdio`."""
        return self._transport

    @property
    def is_connected(self) -> bool:
        """True while the server is ready for calls."""
        return self.state is State.READY

    @property
    def _is_busy(self) -> bool:
        """True while anything is under way, a call that waits for an approval included."""
        cached = self._cached
        return cached.begun_calls > cached.writes or self._requester.is_busy

    @property
    def _facts(self) -> Facts | None:
        driver = self._requester.opener.started
        return None if driver is None else driver.facts

    @property
    def server_info(self) -> types.Implementation | None:
        """The server's name and version; None before the first connection, or if not given."""
        return None if self._facts is None else self._facts.server_info

    @property
    def server_capabilities(self) -> types.ServerCapabilities | None:
        """The server's declared capabilities; None before the first connection."""
        return None if self._facts is None else self._facts.server_capabilities

    @property
    def protocol_version(self) -> str | None:
        """The negotiated revision; None before the first connection."""
        era = self._requester.opener.era()
        return None if era is None else era.version

    @property
    def instructions(self) -> str | None:
        """The server's instructions for a model; None if it gives none."""
        return None if self._facts is None else self._facts.instructions

    @property
    def violations(self) -> dict[str, int]:
        """The number of protocol violations by kind; each message was dropped."""
        driver = self._requester.opener.started
        return {} if driver is None else driver.engine.violations

    # Tools

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools listed last, by name; their ``timeout`` and ``enabled`` can be set."""
        return self._tools.tools

    async def list_tools(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[Tool]:
        """List every tool, of every page.

        Args:
            cache: ``"use"``, ``"refresh"`` or ``"bypass"``; None: as the cache policy says.
            timeout: Seconds for the whole list, connecting included.

        Returns:
            The tools; ``stale`` says that they are an old answer.
        """
        return await self._tools.list(cache, self._requester.deadline(LIST, timeout))

    def guard_tools(
        self, check: Callable[[Sequence[Tool], str | None], None]
    ) -> Callable[[], None]:
        """Check every new list of tools before any tool is called.

        Args:
            check: Called with the tools and the server's instructions; it refuses them by
                raising. It sees the list before the first call, when the server says that it
                changed, and after a reconnect.

        Returns:
            A function that removes the check.
        """
        remove = self._tools.guard(require_sync("check", check))
        self._unsolicited.subscriptions.changes_wanted()
        return remove

    async def available_tools(self, *, timeout: float | None = None) -> bool:
        """Return True if there is any tool to call.

        Args:
            timeout: Seconds, connecting included.
        """
        return await self._tools.any_enabled(self._requester.deadline(LIST, timeout))

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> ToolResult:
        """Call a tool.

        The arguments are checked against the tool's schema first; the tools are listed once
        for that if they are not known yet (``ToolPolicy(validate=…)`` changes this).

        Args:
            name: The tool's name.
            arguments: Its arguments, as the input schema has them.
            options: ``timeout``, ``total_timeout``, ``on_progress``, ``meta``, ``task``,
                ``on_task``, ``once``: see `holdfast.calls.CallOptions`.

        Returns:
            The result. A tool that ran and failed gives one with ``is_error``.

        Raises:
            ValidationError: There is no such tool, it is disabled, or the arguments do not fit;
                nothing was sent.
            RequestTimeout: No answer in time; the server was told to stop.
            TransportError: The link was lost; ``outcome_unknown`` says whether it may have run.
            RpcError: The server answered with an error.
            OutcomeUnknown: A call with this ``once`` key began, and how it ended is not known.

        Example:
            result = await client.call_tool("search", {"query": "anchor"}, timeout=5)
        """
        return await self._pipeline.call_tool(name, arguments, options)

    async def resume(
        self, pending: PendingCall, answers: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> ToolResult:
        """Answer the questions of a pending call, and go on with it.

        With ``Handlers(elicitation="return")``, a call that the server answers with questions
        returns them as ``result.pending``. It can be stored, and resumed in another process.

        Args:
            pending: The call, from ``result.pending``.
            answers: The answer to each question, by its key: a dict with ``action``, an instance
                with the form's values, or None to decline.
            options: As for `call_tool`.

        Returns:
            The result, or further questions.

        Raises:
            ValidationError: A question has no answer, or an answer no question; nothing was sent.
        """
        return await self._pipeline.resume(pending, answers, options)

    async def invoke_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> Invocation:
        """Call a tool, and return an error of the call instead of raising it.

        Takes what `call_tool` takes.
        """
        from holdfast._core.calls.invocation import invoke

        return await invoke(self.call_tool(name, arguments, **options))

    def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        **options: Unpack[CallOptions],
    ) -> RunningCall[ToolResult]:
        """Start a tool call without waiting for its result.

        Takes what `call_tool` takes.

        Returns:
            The call under way: await it for the result, ``async for`` its progress,
            ``cancel()`` it, or ``detach()`` it once it is a task.
        """
        from holdfast._core.calls.call_values import ProgressQueue, RunningCall

        progress = ProgressQueue()
        also = options.get("on_progress")
        if also is None or callable(also):  # what is wrong is refused where options are checked
            options["on_progress"] = progress.handler(also)
        view = self._pipeline.tasks.view(options)
        work = self._pipeline.call_tool(name, arguments, options, view)
        return RunningCall(f"{self.name}: tools/call {name!r}", work, view, self, progress)

    def map(
        self,
        tool: str,
        rows: Rows,
        *,
        concurrency: int = 32,
        ordered: bool = False,
        retry: Collection[str] = (),
        **options: Unpack[CallOptions],
    ) -> Outcomes:
        """Call a tool for each row; yield how each call ends, as it ends.

        At most ``concurrency`` calls are under way, and no more rows are read than that. An error
        is an outcome: it ends nothing. Leaving the loop cancels the calls under way.

        Args:
            tool: The tool's name.
            rows: The arguments of each call: mappings, from an iterable or async iterable. A row
                that is none, or does not fit the tool, is an outcome with its number.
            concurrency: Calls at once.
            ordered: Yield in the order of the rows. A slow row holds back those after it.
            retry: When to try a row again, up to five times, if nothing of it has run:
                ``"transport"``, ``"busy"``, ``"timeout"``.
            options: Those of each call, as for `call_tool`.

        Returns:
            An iterator over a `RowOutcome` for each row.

        Raises:
            ValidationError: An option cannot work. What reading the rows raises is raised when
                the rows before it have ended.

        Example:
            async for outcome in client.map("geocode", rows, concurrency=8):
                print(outcome.row, outcome.outcome, outcome.result)
        """
        from holdfast._core.bulk.engine import bulk_of

        settings: Any = {"concurrency": concurrency, "ordered": ordered, "retry": retry}
        return bulk_of(self.call_tool, tool, rows, options, **settings).outcomes()

    async def model_tools(self, *, timeout: float | None = None) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called.

        Disabled tools and those for applications alone are left out.

        Args:
            timeout: Seconds for the list, connecting included.
        """
        from holdfast.agents.listing import tools_of_one

        return tools_of_one(self, await self.list_tools(timeout=timeout))

    async def toolset(
        self, /, shape: Provider, *, timeout: float | None = None, **options: Any
    ) -> Toolset:
        """Return the tools for models in the shape that a model provider wants.

        Args:
            shape: Such as ``"anthropic"`` or ``"openai"``.
            timeout: Seconds for the list of tools, connecting included.
            options: Those of `holdfast.agents.Toolset`, such as ``strict``.

        Example:
            toolset = await client.toolset("anthropic")
            request = {"tools": toolset.definitions, ...}
            answer = await client.perform(toolset, tool_use_block)
            messages.append({"role": "user", "content": [answer.message]})
        """
        from holdfast.agents.toolset import Toolset

        return Toolset(shape, await self.model_tools(timeout=timeout), **options)

    async def perform(self, toolset: Toolset, call: Any) -> ModelAnswer:
        """Make the call that a model asked for, and return the message that answers it.

        Takes and raises what `Servers.perform` does.
        """
        return await require_toolset(toolset).perform(call)

    # Tasks

    async def resume_task(
        self,
        task_id: str,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_task: Callable[[types.Task], Any] | None = None,
    ) -> ToolResult:
        """Follow a task to its end, whichever client or process began it.

        Args:
            task_id: From `RunningCall.detach`, ``on_task``, or an error's ``task_id``.
            timeout: Seconds for each poll.
            total_timeout: Seconds in all; at their end the server is told to cancel the task.
            on_task: Called with the `Task` whenever it has changed.

        Returns:
            The result of the tool. It is not checked against the tool's schema.

        Raises:
            RpcError: The tool's call failed, or the server does not know the task any more:
                then ``outcome_unknown`` is True.
            RequestTimeout: The task did not end in time.

        Example:
            result = await client.resume_task(task_id, total_timeout=3600)
        """
        return await self._pipeline.tasks.resume(task_id, timeout, total_timeout, on_task)

    async def get_task(self, task_id: str, *, timeout: float | None = None) -> types.Task:
        """Get the state of a task.

        Raises:
            RpcError: The server does not know it.
            StateError: The server does not offer tasks.
        """
        return await self._pipeline.tasks.get(task_id, timeout)

    async def cancel_task(self, task_id: str, *, timeout: float | None = None) -> None:
        """Ask the server to cancel a task. It may still complete: `get_task` returns its state."""
        await self._pipeline.tasks.cancel(task_id, timeout)

    async def list_tasks(self, *, timeout: float | None = None) -> Listing[types.Task]:
        """List the tasks that the server has for this client, where it offers that."""
        return await self._pipeline.tasks.list(self._cached, timeout)

    # Resources

    async def list_resources(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[types.Resource]:
        """List every resource, of every page. Takes what `list_tools` takes."""
        return await self._list("resources/list", "resources", types.Resource, cache, timeout)

    async def list_resource_templates(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[types.ResourceTemplate]:
        """List every resource template, of every page. Takes what `list_tools` takes."""
        method = "resources/templates/list"
        return await self._list(method, "resourceTemplates", types.ResourceTemplate, cache, timeout)

    async def read_resource(
        self, uri: str, *, timeout: float | None = None, cache: CacheMode | None = None
    ) -> types.ReadResult:
        """Read a resource.

        Args:
            uri: The resource's URI, as listed or made from a template.
            timeout: Seconds, connecting included.
            cache: ``"use"``, ``"refresh"`` or ``"bypass"``; None: as the cache policy says.

        Returns:
            The contents, text and binary; ``stale`` says that they are an old answer.

        Raises:
            ResourceNotFoundError: The server has no such resource.
        """
        deadline = self._requester.deadline("resources/read", timeout)
        return await self._cached.read(uri, deadline, cache)

    async def subscribe_resource(self, uri: str, *, timeout: float | None = None) -> None:
        """Subscribe to ``notifications/resources/updated`` for a resource.

        The subscription is renewed after every reconnect. `on_notification` receives the updates.

        Args:
            uri: The resource's URI.
            timeout: Seconds for the server to confirm it, connecting included.
        """
        deadline = self._requester.deadline("resources/subscribe", timeout)
        await self._unsolicited.subscriptions.subscribe(uri, deadline)

    async def unsubscribe_resource(self, uri: str, *, timeout: float | None = None) -> None:
        """End a subscription. No update of the resource is delivered after this returns.

        Args:
            uri: The resource's URI.
            timeout: Seconds, connecting included.
        """
        deadline = self._requester.deadline("resources/unsubscribe", timeout)
        await self._unsolicited.subscriptions.unsubscribe(uri, deadline)

    # Skills

    async def list_skills(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[types.Skill]:
        """List every skill that the server publishes; read no file of any of them.

        A server may publish more than it lists: see `get_skill`. Takes what `list_tools` takes.

        Raises:
            StateError: The server does not offer skills.
            DriftError: A skill is not as the lock file says.
        """
        return await self._cached.skills.list(cache, timeout)

    async def get_skill(self, uri: str, *, timeout: float | None = None) -> types.Skill:
        """Get the entry of one skill as it is now, listed or not.

        Args:
            uri: The URI of its SKILL.md.
            timeout: Seconds, connecting included.

        Raises:
            ResourceNotFoundError: The server has no such skill.
        """
        return await self._cached.skills.get(uri, timeout)

    async def read_skill(
        self,
        skill: types.Skill,
        file: str = "SKILL.md",
        *,
        dynamic: bool = False,
        timeout: float | None = None,
    ) -> types.SkillFile:
        """Read a file of a skill, and verify it against the entry.

        The size and digest of each file are checked, and the frontmatter of SKILL.md, which is
        read first. A skill's text is written by its server: show a model where it comes from,
        and let it run nothing without the user's consent.

        Args:
            skill: The entry, from `list_skills` or `get_skill` of this client.
            file: The path in the skill's directory, or the URI.
            dynamic: Read a skill without digests, too.
            timeout: Seconds, connecting included.

        Raises:
            DriftError: The file is not what the entry or the lock file says, or not listed.

        Example:
            for skill in await client.list_skills():
                if skill.name == "git-workflow":
                    print((await client.read_skill(skill)).text)
        """
        return await self._cached.skills.read(skill, file, timeout, dynamic=dynamic)

    async def list_directory(
        self, uri: str, *, timeout: float | None = None
    ) -> Listing[types.Resource]:
        """List the direct children of a directory resource, where the server offers that.

        Args:
            uri: The directory's URI, without a slash at its end.
            timeout: Seconds, connecting included.

        Raises:
            StateError: The server does not offer it.
        """
        return await self._cached.skills.directory(uri, timeout)

    def guard_skills(self, check: Callable[[Sequence[types.Skill]], None]) -> Callable[[], None]:
        """Check skills whenever they are listed, got or read.

        Args:
            check: Called with the skills; it refuses them by raising.

        Returns:
            A function that removes the check.
        """
        return add_removable(self._cached.skills.guards, require_sync("check", check))

    # Prompts and completion

    async def list_prompts(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[types.Prompt]:
        """List every prompt, of every page. Takes what `list_tools` takes."""
        return await self._list("prompts/list", "prompts", types.Prompt, cache, timeout)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> types.PromptResult:
        """Get a prompt, filled in.

        Args:
            name: The prompt's name.
            arguments: Its arguments, all of them text.
            timeout: Seconds, connecting included.
        """
        require_type("name", name)
        require_type("arguments", arguments, Mapping | None, "a mapping")
        method, params = "prompts/get", {"name": name, "arguments": arguments or {}}
        deadline = self._requester.deadline(method, timeout)
        return await self._requester.read(method, params, deadline, types.PromptResult, about=name)

    async def complete(
        self,
        ref: types.Reference,
        name: str,
        value: str = "",
        context: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> types.Completion:
        """Ask for suggestions for an argument of a prompt or resource template.

        Args:
            ref: A `PromptReference` or `ResourceReference`.
            name: The argument's name.
            value: What has been typed so far.
            context: Arguments that are filled in already.
            timeout: Seconds, connecting included.
        """
        from holdfast.types.resources import CompleteResult

        method = "completion/complete"
        params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
        if context is not None:
            params["context"] = {"arguments": context}
        deadline = self._requester.deadline(method, timeout)
        result = await self._requester.read(method, params, deadline, CompleteResult, about=name)
        return result.completion

    # The rest of the protocol

    async def ping(self, *, timeout: float | None = None) -> None:
        """Check that the server answers.

        Args:
            timeout: Seconds, connecting included.

        Raises:
            RequestTimeout: It does not.
        """
        await self._requester.ping(timeout)

    async def set_log_level(self, level: str, *, timeout: float | None = None) -> None:
        """Set the lowest level of the log messages that the server sends, after reconnects too.

        Args:
            level: One of ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``,
                ``alert``, ``emergency``.
            timeout: Seconds, connecting included.

        Raises:
            ValidationError: There is no such level.
        """
        await self._requester.set_log_level(level, timeout)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Any:
        """Send any request, even one that Holdfast has no method for.

        Args:
            method: The JSON-RPC method.
            params: Its parameters.
            timeout: Seconds, as for `call_tool`.
            total_timeout: Seconds in all, as for `call_tool`.

        Returns:
            The result as plain JSON.
        """
        return await self._requester.request_any(method, params, timeout, total_timeout)

    async def create_message(self, params: types.SamplingRequest | Mapping[str, Any]) -> Any:
        """Run the client's own sampling handler, as a server's request would.

        Raises:
            StateError: There is no sampling handler.
        """
        return await self._inputs.create_message(params)

    async def list_roots(self) -> list[types.Root]:
        """Return the roots that servers are given.

        Raises:
            StateError: There are no roots.
        """
        return (await self._inputs.list_roots(self._inputs.require("roots"))).roots

    async def roots_changed(self) -> None:
        """Tell the server that the roots have changed, where its revision has that."""
        driver = self._requester.driver
        driver.notify("notifications/roots/list_changed")

    # Listening

    @property
    def events(self) -> Events:
        """The events to ``subscribe`` to: requests, states, notifications, violations."""
        if self._unsolicited.events is None:
            from holdfast.events import Events

            events = Events(self.name, self._observers.all, self._requester.post)
            self._unsolicited.events = events.watch(self._policy, self._transport.authorizer)
            self._logins.watch(events=events.authorization)
        return self._unsolicited.events

    def on_notification(
        self, handler: Callable[[Notification], Any], method: str | None = None
    ) -> Callable[[], None]:
        """Call a handler with notifications, in order.

        They do not include the progress of calls: see `on_progress`.

        Args:
            handler: Called with each `Notification`, on the event loop, off the reading path.
                A plain function should be quick; an async one may take its time.
            method: The only method to receive; None: all of them.

        Returns:
            A function that removes the handler.
        """
        return self._unsolicited.add(handler, method)

    def on_log(self, handler: Callable[[types.LogMessage], Any]) -> Callable[[], None]:
        """Call a handler with the server's log messages; `set_log_level` sets from which level.

        Args:
            handler: Called with each `LogMessage`, like a handler of `on_notification`.

        Returns:
            A function that removes the handler.
        """
        from holdfast._core.calls.handlers import log_handler

        return self._unsolicited.add(log_handler(handler), "notifications/message")

    def on_progress(self, handler: ProgressHandler) -> Callable[[], None]:
        """Call a handler with the progress of every call from now on.

        Args:
            handler: Called with each `Progress`, before the result of its call is returned.

        Returns:
            A function that removes the handler.
        """
        return add_removable(
            self._requester.progress_handlers, require_callable("handler", handler)
        )

    async def _list(
        self, method: str, key: str, kind: type[W], cache: CacheMode | None, timeout: float | None
    ) -> Listing[W]:
        deadline = self._requester.deadline(method, timeout)
        return await self._cached.listing(method, key, kind, deadline, cache)
