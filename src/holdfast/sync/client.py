"""The client's verbs, for code without a loop.

Written by tools/sync_face.py from client.py: change that, and run it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from holdfast._core.calls.cached import Listing
from holdfast._core.calls.handlers import Notification, ProgressHandler, in_thread
from holdfast._core.calls.options import CallOptions
from holdfast._core.calls.running import Invocation, PendingCall
from holdfast._core.engine.state import State
from holdfast.client import Client as AsyncClient
from holdfast.policies import CacheMode
from holdfast.sync.portal import Portal
from holdfast.sync.running import RunningCall
from holdfast.types.lifecycle import Implementation, ServerCapabilities, Task
from holdfast.types.resources import Prompt, PromptResult, ReadResult, Resource, ResourceTemplate
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.sync.tools import ModelTool

if TYPE_CHECKING:
    from holdfast.agents.listing import Partial
    from holdfast.agents.providers import ModelAnswer, Shape
    from holdfast.agents.toolset import Toolset
    from holdfast.events import Events
    from holdfast.types.inputs import SamplingRequest
    from holdfast.types.lifecycle import LogMessage, Task
    from holdfast.types.resources import Completion, Reference, Root
    from holdfast.types.skills import Skill, SkillFile


class Client:
    """One server, for as long as you need it. May be shared by threads.

    ``with`` closes it at the end; the server starts at the first use.
    """

    def __init__(self, client: AsyncClient, portal: Portal) -> None:
        self._client = client
        self._portal = portal
        self.name: str = client.name
        portal.keep(client)

    def __repr__(self) -> str:
        return repr(self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def open(self, *, timeout: float | None = None) -> Self:
        """Start the server now rather than at the first use.

        Args:
            timeout: Seconds to wait; None: the time of the handshake, by `Timeouts`.

        Returns:
            The client itself.

        Raises:
            HoldfastError: The first attempt to connect failed.
        """
        self._portal.run(self._client.open(timeout=timeout))
        return self

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the server is ready, over failed attempts too.

        Args:
            timeout: Seconds to wait; None waits as long as it takes.

        Raises:
            RequestTimeout: The server was not ready in time.
            ShutdownError: The client was closed meanwhile.
        """
        self._portal.run(self._client.wait_ready(timeout))

    def close(self) -> bool:
        """End the server and every call under way.

        May be called at any time, any number of times, by any task, also by a handler of this
        client. It goes on to its end even if the task that waits for it is cancelled.

        Returns:
            True for the call that closed the client, False for those that found it closed.
        """
        return self._portal.end(self._client, self._client.close())

    def login(self, *, fresh: bool = False) -> None:
        """Log in to the server, by the login handler or at the terminal.

        Args:
            fresh: Register this client anew with the authorization server first.

        Raises:
            LoginFailed: The person refused, or did not come.
            DiscoveryError: The server has no authorization server that can be used.
        """
        self._portal.run(self._client.login(fresh=fresh))

    def logout(self) -> bool:
        """Revoke and delete the stored login; return whether there was one."""
        return self._portal.run(self._client.logout())

    @property
    def state(self) -> State:
        """The state of the connection, such as ``"ready"`` or ``"backoff"``."""
        return self._client.state

    @property
    def transport(self) -> Any:
        """The way to the server, such as a `holdfast.Stdio`."""
        return self._client.transport

    @property
    def is_connected(self) -> bool:
        """True while the server is ready for calls."""
        return self._client.is_connected

    @property
    def server_info(self) -> Implementation | None:
        """The server's name and version; None before the first connection, or if not given."""
        return self._client.server_info

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """The server's declared capabilities; None before the first connection."""
        return self._client.server_capabilities

    @property
    def protocol_version(self) -> str | None:
        """The negotiated revision; None before the first connection."""
        return self._client.protocol_version

    @property
    def instructions(self) -> str | None:
        """The server's instructions for a model; None if it gives none."""
        return self._client.instructions

    @property
    def violations(self) -> dict[str, int]:
        """The number of protocol violations by kind; each message was dropped."""
        return self._client.violations

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools listed last, by name; their ``timeout`` and ``enabled`` can be set."""
        return self._client.tools

    def list_tools(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[Tool]:
        """List every tool, of every page.

        Args:
            cache: ``"use"``, ``"refresh"`` or ``"bypass"``; None: as the cache policy says.
            timeout: Seconds for the whole list, connecting included.

        Returns:
            The tools; ``stale`` says that they are an old answer.
        """
        return self._portal.run(self._client.list_tools(cache=cache, timeout=timeout))

    def guard_tools(
        self, check: Callable[[Sequence[Tool], str | None], None]
    ) -> Callable[[], None]:
        """Have every new list of tools checked before any tool is called.

        Args:
            check: Called with the tools and the server's instructions; it refuses them by
                raising. It sees the list before the first call, when the server says that it
                changed, and after a reconnect.

        Returns:
            A function that removes the check.
        """
        return self._portal.do(lambda: self._client.guard_tools(check))

    def available_tools(self, *, timeout: float | None = None) -> bool:
        """Return True if there is any tool to call.

        Args:
            timeout: Seconds, connecting included.
        """
        return self._portal.run(self._client.available_tools(timeout=timeout))

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult:
        """Call a tool.

        The arguments are checked against the tool's schema first; the tools are listed once
        for that if they are not known yet (``ToolPolicy(validate=…)`` changes this).

        Args:
            name: The tool's name.
            arguments: Its arguments, as the input schema has them.
            options: ``timeout``, ``total_timeout``, ``on_progress``, ``meta``, ``task``,
                ``on_task``: see `holdfast.CallOptions`.

        Returns:
            The result. A tool that ran and failed gives one with ``is_error``.

        Raises:
            ValidationError: There is no such tool, it is disabled, or the arguments do not fit;
                nothing was sent.
            RequestTimeout: No answer in time; the server was told to stop.
            TransportError: The link was lost; ``outcome_unknown`` says whether it may have run.
            RpcError: The server answered with an error.

        Example:
            result = await client.call_tool("search", {"query": "anchor"}, timeout=5)
        """
        return self._portal.run(self._client.call_tool(name, arguments, **options))

    def resume(
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
        return self._portal.run(self._client.resume(pending, answers, **options))

    def invoke_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Invocation:
        """Call a tool, and return an error of the call instead of raising it.

        Takes what `call_tool` takes.
        """
        return self._portal.run(self._client.invoke_tool(name, arguments, **options))

    def start_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> RunningCall[ToolResult]:
        """Start a tool call and go on.

        Takes what `call_tool` takes.

        Returns:
            The call under way: await it for the result, ``cancel()`` it, or ``detach()`` it
            once it is a task.
        """
        return RunningCall(
            self._portal,
            self._portal.do(lambda: self._client.start_tool(name, arguments, **options)),
        )

    def model_tools(self, *, timeout: float | None = None) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called.

        Disabled tools and those for applications alone are left out.

        Args:
            timeout: Seconds for the list, connecting included.
        """
        from holdfast.sync.tools import bound

        return bound(self._portal, self._portal.run(self._client.model_tools(timeout=timeout)))

    def toolset(self, shape: Shape, *, timeout: float | None = None, **options: Any) -> Toolset:
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
        return self._portal.run(self._client.toolset(shape, timeout=timeout, **options))

    def perform(self, toolset: Toolset, call: Any) -> ModelAnswer:
        """Make the call that a model asked for, and return the message that answers it.

        Takes and raises what `Servers.perform` does.
        """
        return self._portal.run(self._client.perform(toolset, call))

    def resume_task(
        self,
        task_id: str,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_task: Callable[[Task], Any] | None = None,
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
        return self._portal.run(
            self._client.resume_task(
                task_id, timeout=timeout, total_timeout=total_timeout, on_task=on_task
            )
        )

    def get_task(self, task_id: str, *, timeout: float | None = None) -> Task:
        """Ask once how a task is doing.

        Raises:
            RpcError: The server does not know it.
            StateError: The server does not offer tasks.
        """
        return self._portal.run(self._client.get_task(task_id, timeout=timeout))

    def cancel_task(self, task_id: str, *, timeout: float | None = None) -> None:
        """Ask the server to cancel a task. It may complete all the same: `get_task` tells."""
        self._portal.run(self._client.cancel_task(task_id, timeout=timeout))

    def list_tasks(self, *, timeout: float | None = None) -> Listing[Task]:
        """List the tasks that the server has for this client, where it offers that."""
        return self._portal.run(self._client.list_tasks(timeout=timeout))

    def list_resources(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[Resource]:
        """List every resource, of every page. Takes what `list_tools` takes."""
        return self._portal.run(self._client.list_resources(cache=cache, timeout=timeout))

    def list_resource_templates(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[ResourceTemplate]:
        """List every resource template, of every page. Takes what `list_tools` takes."""
        return self._portal.run(self._client.list_resource_templates(cache=cache, timeout=timeout))

    def read_resource(
        self, uri: str, *, timeout: float | None = None, cache: CacheMode | None = None
    ) -> ReadResult:
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
        return self._portal.run(self._client.read_resource(uri, timeout=timeout, cache=cache))

    def subscribe_resource(self, uri: str, *, timeout: float | None = None) -> None:
        """Subscribe to ``notifications/resources/updated`` for a resource.

        The subscription is renewed after every reconnect. Use `on_notification` to hear.

        Args:
            uri: The resource's URI.
            timeout: Seconds until the server has to have confirmed it, connecting included.
        """
        self._portal.run(self._client.subscribe_resource(uri, timeout=timeout))

    def unsubscribe_resource(self, uri: str, *, timeout: float | None = None) -> None:
        """End a subscription. No update of the resource is delivered after this returns.

        Args:
            uri: The resource's URI.
            timeout: Seconds, connecting included.
        """
        self._portal.run(self._client.unsubscribe_resource(uri, timeout=timeout))

    def list_skills(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[Skill]:
        """List every skill that the server publishes; read no file of any of them.

        A server may publish more than it lists: see `get_skill`. Takes what `list_tools` takes.

        Raises:
            StateError: The server does not offer skills.
            DriftError: A skill is not as the lock file says.
        """
        return self._portal.run(self._client.list_skills(cache=cache, timeout=timeout))

    def get_skill(self, uri: str, *, timeout: float | None = None) -> Skill:
        """Get the entry of one skill as it is now, listed or not.

        Args:
            uri: The URI of its SKILL.md.
            timeout: Seconds, connecting included.

        Raises:
            ResourceNotFoundError: The server has no such skill.
        """
        return self._portal.run(self._client.get_skill(uri, timeout=timeout))

    def read_skill(
        self,
        skill: Skill,
        file: str = "SKILL.md",
        *,
        dynamic: bool = False,
        timeout: float | None = None,
    ) -> SkillFile:
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
        return self._portal.run(
            self._client.read_skill(skill, file, dynamic=dynamic, timeout=timeout)
        )

    def list_directory(self, uri: str, *, timeout: float | None = None) -> Listing[Resource]:
        """List the direct children of a directory resource, where the server offers that.

        Args:
            uri: The directory's URI, without a slash at its end.
            timeout: Seconds, connecting included.

        Raises:
            StateError: The server does not offer it.
        """
        return self._portal.run(self._client.list_directory(uri, timeout=timeout))

    def guard_skills(self, check: Callable[[Sequence[Skill]], None]) -> Callable[[], None]:
        """Have skills checked whenever they are listed, got or read.

        Args:
            check: Called with the skills; it refuses them by raising.

        Returns:
            A function that removes the check.
        """
        return self._portal.do(lambda: self._client.guard_skills(check))

    def list_prompts(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[Prompt]:
        """List every prompt, of every page. Takes what `list_tools` takes."""
        return self._portal.run(self._client.list_prompts(cache=cache, timeout=timeout))

    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> PromptResult:
        """Get a prompt, filled in.

        Args:
            name: The prompt's name.
            arguments: Its arguments, all of them text.
            timeout: Seconds, connecting included.
        """
        return self._portal.run(self._client.get_prompt(name, arguments, timeout=timeout))

    def complete(
        self,
        ref: Reference,
        name: str,
        value: str = "",
        context: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Completion:
        """Ask for suggestions for an argument of a prompt or resource template.

        Args:
            ref: A `PromptReference` or `ResourceReference`.
            name: The argument's name.
            value: What has been typed so far.
            context: Arguments that are filled in already.
            timeout: Seconds, connecting included.
        """
        return self._portal.run(self._client.complete(ref, name, value, context, timeout=timeout))

    def ping(self, *, timeout: float | None = None) -> None:
        """Check that the server answers.

        Args:
            timeout: Seconds, connecting included.

        Raises:
            RequestTimeout: It does not.
        """
        self._portal.run(self._client.ping(timeout=timeout))

    def set_log_level(self, level: str, *, timeout: float | None = None) -> None:
        """Have the server send log messages from this level up, after reconnects too.

        Args:
            level: One of ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``,
                ``alert``, ``emergency``.
            timeout: Seconds, connecting included.

        Raises:
            ValidationError: There is no such level.
        """
        self._portal.run(self._client.set_log_level(level, timeout=timeout))

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Any:
        """Send any request, also one that Holdfast has no verb for.

        Args:
            method: The JSON-RPC method.
            params: Its parameters.
            timeout: Seconds, as for `call_tool`.
            total_timeout: Seconds in all, as for `call_tool`.

        Returns:
            The result as plain JSON.
        """
        return self._portal.run(
            self._client.request(method, params, timeout=timeout, total_timeout=total_timeout)
        )

    def create_message(self, params: SamplingRequest | Mapping[str, Any]) -> Any:
        """Run our own sampling handler, as a server's request would.

        Raises:
            StateError: There is no sampling handler.
        """
        return self._portal.run(self._client.create_message(params))

    def list_roots(self) -> list[Root]:
        """Return the roots that servers are given.

        Raises:
            StateError: There are no roots.
        """
        return self._portal.run(self._client.list_roots())

    def roots_changed(self) -> None:
        """Tell the server that the roots have changed, where its revision has that."""
        self._portal.run(self._client.roots_changed())

    @property
    def events(self) -> Events:
        """The events to ``subscribe`` to: requests, states, notifications, violations."""
        return self._client.events

    def on_notification(
        self, handler: Callable[[Notification], Any], method: str | None = None
    ) -> Callable[[], None]:
        """Call a handler with notifications, in order.

        Progress belongs to the call that it is of and is not among them: see `on_progress`.

        Args:
            handler: Called with each `Notification`, on the event loop, off the reading path.
                A plain function should be quick; an async one may take its time.
            method: The only method to hear; None: all of them.

        Returns:
            A function that removes the handler.
        """
        return self._portal.do(lambda: self._client.on_notification(in_thread(handler), method))

    def on_log(self, handler: Callable[[LogMessage], Any]) -> Callable[[], None]:
        """Call a handler with the server's log messages; `set_log_level` sets from which level.

        Args:
            handler: Called with each `LogMessage`, like a handler of `on_notification`.

        Returns:
            A function that removes the handler.
        """
        return self._portal.do(lambda: self._client.on_log(in_thread(handler)))

    def on_progress(self, handler: ProgressHandler) -> Callable[[], None]:
        """Call a handler with the progress of every call from now on.

        Args:
            handler: Called with each `Progress`, before the result of its call is returned.

        Returns:
            A function that removes the handler.
        """
        return self._portal.do(lambda: self._client.on_progress(handler))
