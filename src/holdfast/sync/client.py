"""The client's verbs, for code without a loop.

Written by tools/sync_face.py from client.py, running.py and listing.py: change those instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, Unpack

from holdfast import types
from holdfast._core.calls.cached import Listing
from holdfast._core.calls.handlers import Notification, ProgressHandler, in_thread
from holdfast._core.calls.options import CallOptions
from holdfast._core.calls.running import Invocation
from holdfast._core.calls.running import RunningCall as AsyncRunningCall
from holdfast._core.engine.state import State
from holdfast.client import Client as AsyncClient
from holdfast.policies import CacheMode
from holdfast.sync.portal import Blocking, Portal
from holdfast.types.lifecycle import Implementation, ServerCapabilities, Task
from holdfast.types.resources import Prompt, PromptResult, ReadResult, Resource, ResourceTemplate
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast._core.calls.pending import PendingCall
    from holdfast.agents.listing import ModelTool as AsyncModelTool
    from holdfast.agents.listing import Partial
    from holdfast.agents.outcome import ToolOutcome
    from holdfast.agents.providers import ModelAnswer, Shape
    from holdfast.agents.toolset import Toolset
    from holdfast.events import Events
    from holdfast.schema.walk import Schema
    from holdfast.types.inputs import SamplingRequest
    from holdfast.types.lifecycle import LogMessage, Task
    from holdfast.types.resources import Completion, Reference, Root
    from holdfast.types.skills import Skill, SkillFile
    from holdfast.types.tools import ToolAnnotations


R = TypeVar("R")


class Client(Blocking[AsyncClient], of=AsyncClient):
    """One server, for as long as you need it. May be shared by threads.

    ``with`` closes it at the end; the server starts at the first use. A method takes, returns and
    raises what the method of `holdfast.Client` does.
    """

    def __init__(self, client: AsyncClient, portal: Portal) -> None:
        super().__init__(client, portal)
        self.name: str = client.name
        portal.keep(client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def open(self, *, timeout: float | None = None) -> Self:
        """Start the server now rather than at the first use."""
        self._portal.run(self._inner.open(timeout=timeout))
        return self

    def wait_ready(self, timeout: float | None = None) -> None:
        """Wait until the server is ready, over failed attempts too."""
        self._portal.run(self._inner.wait_ready(timeout))

    def close(self) -> bool:
        """End the server and every call under way."""
        return self._portal.end(self._inner, self._inner.close())

    def login(self, *, fresh: bool = False) -> None:
        """Log in to the server, by the login handler or at the terminal."""
        self._portal.run(self._inner.login(fresh=fresh))

    def logout(self) -> bool:
        """Revoke and delete the stored login; return whether there was one."""
        return self._portal.run(self._inner.logout())

    @property
    def state(self) -> State:
        """The state of the connection, such as ``"ready"`` or ``"backoff"``."""
        return self._inner.state

    @property
    def transport(self) -> Any:
        """The way to the server, such as a `holdfast.Stdio`."""
        return self._inner.transport

    @property
    def is_connected(self) -> bool:
        """True while the server is ready for calls."""
        return self._inner.is_connected

    @property
    def server_info(self) -> types.Implementation | None:
        """The server's name and version; None before the first connection, or if not given."""
        return self._inner.server_info

    @property
    def server_capabilities(self) -> types.ServerCapabilities | None:
        """The server's declared capabilities; None before the first connection."""
        return self._inner.server_capabilities

    @property
    def protocol_version(self) -> str | None:
        """The negotiated revision; None before the first connection."""
        return self._inner.protocol_version

    @property
    def instructions(self) -> str | None:
        """The server's instructions for a model; None if it gives none."""
        return self._inner.instructions

    @property
    def violations(self) -> dict[str, int]:
        """The number of protocol violations by kind; each message was dropped."""
        return self._inner.violations

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools listed last, by name; their ``timeout`` and ``enabled`` can be set."""
        return self._inner.tools

    def list_tools(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[Tool]:
        """List every tool, of every page."""
        return self._portal.run(self._inner.list_tools(cache=cache, timeout=timeout))

    def guard_tools(
        self, check: Callable[[Sequence[Tool], str | None], None]
    ) -> Callable[[], None]:
        """Have every new list of tools checked before any tool is called."""
        return self._portal.do(lambda: self._inner.guard_tools(check))

    def available_tools(self, *, timeout: float | None = None) -> bool:
        """Return True if there is any tool to call."""
        return self._portal.run(self._inner.available_tools(timeout=timeout))

    def call_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolResult:
        """Call a tool."""
        return self._portal.run(self._inner.call_tool(name, arguments, **options))

    def resume(
        self, pending: PendingCall, answers: Mapping[str, Any], **options: Unpack[CallOptions]
    ) -> ToolResult:
        """Answer the questions of a pending call, and go on with it."""
        return self._portal.run(self._inner.resume(pending, answers, **options))

    def invoke_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Invocation:
        """Call a tool, and return an error of the call instead of raising it."""
        return self._portal.run(self._inner.invoke_tool(name, arguments, **options))

    def start_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> RunningCall[ToolResult]:
        """Start a tool call and go on."""
        return RunningCall(
            self._portal.do(lambda: self._inner.start_tool(name, arguments, **options)),
            self._portal,
        )

    def model_tools(self, *, timeout: float | None = None) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called."""
        return bound(self._portal.run(self._inner.model_tools(timeout=timeout)), self._portal)

    def toolset(self, shape: Shape, *, timeout: float | None = None, **options: Any) -> Toolset:
        """Return the tools for models in the shape that a model provider wants."""
        return self._portal.run(self._inner.toolset(shape, timeout=timeout, **options))

    def perform(self, toolset: Toolset, call: Any) -> ModelAnswer:
        """Make the call that a model asked for, and return the message that answers it."""
        return self._portal.run(self._inner.perform(toolset, call))

    def resume_task(
        self,
        task_id: str,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
        on_task: Callable[[types.Task], Any] | None = None,
    ) -> ToolResult:
        """Follow a task to its end, whichever client or process began it."""
        return self._portal.run(
            self._inner.resume_task(
                task_id, timeout=timeout, total_timeout=total_timeout, on_task=on_task
            )
        )

    def get_task(self, task_id: str, *, timeout: float | None = None) -> Task:
        """Ask once how a task is doing."""
        return self._portal.run(self._inner.get_task(task_id, timeout=timeout))

    def cancel_task(self, task_id: str, *, timeout: float | None = None) -> None:
        """Ask the server to cancel a task. It may complete all the same: `get_task` tells."""
        self._portal.run(self._inner.cancel_task(task_id, timeout=timeout))

    def list_tasks(self, *, timeout: float | None = None) -> Listing[types.Task]:
        """List the tasks that the server has for this client, where it offers that."""
        return self._portal.run(self._inner.list_tasks(timeout=timeout))

    def list_resources(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[types.Resource]:
        """List every resource, of every page. Takes what `list_tools` takes."""
        return self._portal.run(self._inner.list_resources(cache=cache, timeout=timeout))

    def list_resource_templates(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[types.ResourceTemplate]:
        """List every resource template, of every page. Takes what `list_tools` takes."""
        return self._portal.run(self._inner.list_resource_templates(cache=cache, timeout=timeout))

    def read_resource(
        self, uri: str, *, timeout: float | None = None, cache: CacheMode | None = None
    ) -> ReadResult:
        """Read a resource."""
        return self._portal.run(self._inner.read_resource(uri, timeout=timeout, cache=cache))

    def subscribe_resource(self, uri: str, *, timeout: float | None = None) -> None:
        """Subscribe to ``notifications/resources/updated`` for a resource."""
        self._portal.run(self._inner.subscribe_resource(uri, timeout=timeout))

    def unsubscribe_resource(self, uri: str, *, timeout: float | None = None) -> None:
        """End a subscription. No update of the resource is delivered after this returns."""
        self._portal.run(self._inner.unsubscribe_resource(uri, timeout=timeout))

    def list_skills(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[Skill]:
        """List every skill that the server publishes; read no file of any of them."""
        return self._portal.run(self._inner.list_skills(cache=cache, timeout=timeout))

    def get_skill(self, uri: str, *, timeout: float | None = None) -> Skill:
        """Get the entry of one skill as it is now, listed or not."""
        return self._portal.run(self._inner.get_skill(uri, timeout=timeout))

    def read_skill(
        self,
        skill: types.Skill,
        file: str = "SKILL.md",
        *,
        dynamic: bool = False,
        timeout: float | None = None,
    ) -> SkillFile:
        """Read a file of a skill, and verify it against the entry."""
        return self._portal.run(
            self._inner.read_skill(skill, file, dynamic=dynamic, timeout=timeout)
        )

    def list_directory(self, uri: str, *, timeout: float | None = None) -> Listing[Resource]:
        """List the direct children of a directory resource, where the server offers that."""
        return self._portal.run(self._inner.list_directory(uri, timeout=timeout))

    def guard_skills(self, check: Callable[[Sequence[Skill]], None]) -> Callable[[], None]:
        """Have skills checked whenever they are listed, got or read."""
        return self._portal.do(lambda: self._inner.guard_skills(check))

    def list_prompts(
        self, *, cache: CacheMode | None = None, timeout: float | None = None
    ) -> Listing[types.Prompt]:
        """List every prompt, of every page. Takes what `list_tools` takes."""
        return self._portal.run(self._inner.list_prompts(cache=cache, timeout=timeout))

    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> PromptResult:
        """Get a prompt, filled in."""
        return self._portal.run(self._inner.get_prompt(name, arguments, timeout=timeout))

    def complete(
        self,
        ref: types.Reference,
        name: str,
        value: str = "",
        context: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Completion:
        """Ask for suggestions for an argument of a prompt or resource template."""
        return self._portal.run(self._inner.complete(ref, name, value, context, timeout=timeout))

    def ping(self, *, timeout: float | None = None) -> None:
        """Check that the server answers."""
        self._portal.run(self._inner.ping(timeout=timeout))

    def set_log_level(self, level: str, *, timeout: float | None = None) -> None:
        """Have the server send log messages from this level up, after reconnects too."""
        self._portal.run(self._inner.set_log_level(level, timeout=timeout))

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Any:
        """Send any request, also one that Holdfast has no verb for."""
        return self._portal.run(
            self._inner.request(method, params, timeout=timeout, total_timeout=total_timeout)
        )

    def create_message(self, params: SamplingRequest | Mapping[str, Any]) -> Any:
        """Run our own sampling handler, as a server's request would."""
        return self._portal.run(self._inner.create_message(params))

    def list_roots(self) -> list[Root]:
        """Return the roots that servers are given."""
        return self._portal.run(self._inner.list_roots())

    def roots_changed(self) -> None:
        """Tell the server that the roots have changed, where its revision has that."""
        self._portal.run(self._inner.roots_changed())

    @property
    def events(self) -> Events:
        """The events to ``subscribe`` to: requests, states, notifications, violations."""
        return self._inner.events

    def on_notification(
        self, handler: Callable[[Notification], Any], method: str | None = None
    ) -> Callable[[], None]:
        """Call a handler with notifications, in order."""
        return self._portal.do(lambda: self._inner.on_notification(in_thread(handler), method))

    def on_log(self, handler: Callable[[LogMessage], Any]) -> Callable[[], None]:
        """Call a handler with the server's log messages; `set_log_level` sets from which level."""
        return self._portal.do(lambda: self._inner.on_log(in_thread(handler)))

    def on_progress(self, handler: ProgressHandler) -> Callable[[], None]:
        """Call a handler with the progress of every call from now on."""
        return self._portal.do(lambda: self._inner.on_progress(handler))


class RunningCall(Blocking[AsyncRunningCall[R]], Generic[R], of=AsyncRunningCall):
    """A call under way. ``result()`` waits for it; ``cancel()`` ends it and tells the server."""

    @property
    def done(self) -> bool:
        """True once there is a result or an error."""
        return self._inner.done

    def cancel(self) -> bool:
        """End the call and tell the server to stop."""
        return self._portal.do(self._inner.cancel)

    @property
    def task(self) -> Task | None:
        """The task that the server has made of the call, as it was last seen."""
        return self._inner.task

    def wait_task(self) -> Task | None:
        """Wait until the call has become a task; return None if it ended without one."""
        return self._portal.run(self._inner.wait_task())

    def detach(self) -> str:
        """Stop waiting for the task, and leave it running on the server."""
        return self._portal.do(self._inner.detach)

    def result(self, timeout: float | None = None) -> R:
        """Wait for the result.

        Args:
            timeout: Seconds to wait; the call goes on if they pass: ask again, or cancel it.

        Raises:
            TimeoutError: There is no result yet.
        """
        return self._portal.run(self._wait(), timeout)

    async def _wait(self) -> R:
        return await self._inner  # Shielded: a wait that is given up leaves the call alone.


class ModelTool(Blocking["AsyncModelTool"]):
    """A tool that a language model can be given, for code without a loop."""

    def __init__(self, tool: AsyncModelTool, portal: Portal) -> None:
        super().__init__(tool, portal)
        self.server: str = tool.server
        self.tool: Tool = tool.tool
        self.name: str = tool.name

    @property
    def dotted(self) -> str:
        """The name that ``Servers.call_tool`` takes."""
        return self._inner.dotted

    @property
    def description(self) -> str:
        """The tool's description, or else its title."""
        return self._inner.description

    @property
    def input_schema(self) -> Schema:
        """The JSON Schema of the arguments, always an object's."""
        return self._inner.input_schema

    @property
    def annotations(self) -> ToolAnnotations | None:
        """The server's hints on what the tool does."""
        return self._inner.annotations

    def call(
        self, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolOutcome:
        """Call the tool. A failure is an outcome too; cancelling this cancels the call."""
        return self._portal.run(self._inner.call(arguments, **options))


def bound(tools: Partial[AsyncModelTool], portal: Portal) -> Partial[ModelTool]:
    """Return tools whose calls run on the portal's loop."""
    from holdfast.agents.listing import Partial

    return Partial((ModelTool(tool, portal) for tool in tools), tools.failures)
