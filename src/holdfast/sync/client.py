"""The client's verbs, for code without a loop.

Written by tools/sync_face.py from client.py and call_values.py: change those instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Self, TypeVar, Unpack

from holdfast import _connect, types
from holdfast._core.calls.call_values import RunningCall as AsyncRunningCall
from holdfast._core.calls.options import CallOptions
from holdfast._core.engine.state import State
from holdfast.client import Client as AsyncClient
from holdfast.sync.iteration import Outcomes, in_batches
from holdfast.sync.portal import (
    Portal,
    SyncWrapper,
    blocking,
    closing,
    on_loop,
    portal,
    with_threads,
)
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast._core.bulk.engine import Rows
    from holdfast.agents.listing import Partial
    from holdfast.agents.listing import SyncModelTool as ModelTool
    from holdfast.events import Events

P = ParamSpec("P")
R = TypeVar("R")


class Client(SyncWrapper[AsyncClient]):
    """One server, for as long as you need it. May be shared by threads.

    ``with`` closes it at the end; the server starts at the first use.
    """

    def __init__(self, client: AsyncClient, portal: Portal) -> None:
        super().__init__(client, portal)
        self.name: str = client.name
        portal.closables.add(client)

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
        self._portal.run(self._inner.open(timeout=timeout))
        return self

    wait_ready: Final = blocking(AsyncClient.wait_ready)
    close: Final = closing(AsyncClient.close)
    login: Final = blocking(AsyncClient.login)
    logout: Final = blocking(AsyncClient.logout)

    @property
    def state(self) -> State:
        """The state of the connection, such as ``"ready"`` or ``"backoff"``."""
        return self._inner.state

    @property
    def transport(self) -> Any:
        """The transport, such as a `holdfast.Stdio`."""
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

    list_tools: Final = blocking(AsyncClient.list_tools)
    guard_tools: Final = on_loop(AsyncClient.guard_tools)
    available_tools: Final = blocking(AsyncClient.available_tools)
    call_tool: Final = blocking(AsyncClient.call_tool)
    resume: Final = blocking(AsyncClient.resume)
    invoke_tool: Final = blocking(AsyncClient.invoke_tool)

    def start_tool(
        self, name: str, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> RunningCall[ToolResult]:
        """Start a tool call without waiting for its result.

        Takes what `call_tool` takes.

        Returns:
            The call under way: await it for the result, ``async for`` its progress,
            ``cancel()`` it, or ``detach()`` it once it is a task.
        """
        return RunningCall(
            self._portal.do(lambda: self._inner.start_tool(name, arguments, **options)),
            self._portal,
        )

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
        return in_batches(
            self._portal,
            lambda rows: self._inner.map(
                tool, rows, concurrency=concurrency, ordered=ordered, retry=retry, **options
            ),
            rows,
        )

    def model_tools(self, *, timeout: float | None = None) -> Partial[ModelTool]:
        """List the tools that a language model can be given, ready to be called.

        Disabled tools and those for applications alone are left out.

        Args:
            timeout: Seconds for the list, connecting included.
        """
        return bound(self._portal.run(self._inner.model_tools(timeout=timeout)), self._portal)

    toolset: Final = blocking(AsyncClient.toolset)
    perform: Final = blocking(AsyncClient.perform)
    resume_task: Final = blocking(AsyncClient.resume_task)
    get_task: Final = blocking(AsyncClient.get_task)
    cancel_task: Final = blocking(AsyncClient.cancel_task)
    list_tasks: Final = blocking(AsyncClient.list_tasks)
    list_resources: Final = blocking(AsyncClient.list_resources)
    list_resource_templates: Final = blocking(AsyncClient.list_resource_templates)
    read_resource: Final = blocking(AsyncClient.read_resource)
    subscribe_resource: Final = blocking(AsyncClient.subscribe_resource)
    unsubscribe_resource: Final = blocking(AsyncClient.unsubscribe_resource)
    list_skills: Final = blocking(AsyncClient.list_skills)
    get_skill: Final = blocking(AsyncClient.get_skill)
    read_skill: Final = blocking(AsyncClient.read_skill)
    list_directory: Final = blocking(AsyncClient.list_directory)
    guard_skills: Final = on_loop(AsyncClient.guard_skills)
    list_prompts: Final = blocking(AsyncClient.list_prompts)
    get_prompt: Final = blocking(AsyncClient.get_prompt)
    complete: Final = blocking(AsyncClient.complete)
    ping: Final = blocking(AsyncClient.ping)
    set_log_level: Final = blocking(AsyncClient.set_log_level)
    request: Final = blocking(AsyncClient.request)
    create_message: Final = blocking(AsyncClient.create_message)
    list_roots: Final = blocking(AsyncClient.list_roots)
    roots_changed: Final = blocking(AsyncClient.roots_changed)

    @property
    def events(self) -> Events:
        """The events to ``subscribe`` to: requests, states, notifications, violations."""
        return self._inner.events

    on_notification: Final = on_loop(AsyncClient.on_notification, handler=True)
    on_log: Final = on_loop(AsyncClient.on_log, handler=True)
    on_progress: Final = on_loop(AsyncClient.on_progress)


class RunningCall(SyncWrapper[AsyncRunningCall[R]], Generic[R]):
    """A call under way. ``result()`` waits for it; ``cancel()`` ends it and tells the server.

    ``for`` gives its progress, until it ends.
    """

    def __iter__(self) -> Iterator[types.Progress]:
        while (progress := self._portal.run(self._inner._next_progress())) is not None:
            yield progress

    @property
    def done(self) -> bool:
        """True once there is a result or an error."""
        return self._inner.done

    cancel: Final = on_loop(AsyncRunningCall.cancel)

    @property
    def task(self) -> types.Task | None:
        """The task that the server has made of the call, as it was last seen."""
        return self._inner.task

    wait_task: Final = blocking(AsyncRunningCall.wait_task)
    detach: Final = on_loop(AsyncRunningCall.detach)

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


def bound(tools: Partial[Any], portal: Portal) -> Partial[ModelTool]:
    """Return tools whose calls run on the portal's loop."""
    from holdfast.agents.listing import Partial, SyncModelTool

    calls = (SyncModelTool(tool.server, tool.tool, tool.name, tool, portal.run) for tool in tools)
    return Partial(calls, tools.failures)


def _returning_client(connect: Callable[P, AsyncClient]) -> Callable[P, Client]:
    @wraps(connect)
    def connected(*args: P.args, **options: P.kwargs) -> Client:
        return Client(connect(*args, **with_threads(options)), portal())

    return connected


connect: Final = _returning_client(_connect.connect)
"""Return a synchronous client. Takes what `holdfast.connect` takes."""
