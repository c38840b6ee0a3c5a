"""The client's verbs, for code without a loop.

Written by tools/sync_face.py from client.py: change that, and run it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast._core.calls.handlers import Notification, ProgressHandler
from holdfast._core.calls.invocation import Invocation
from holdfast._core.engine.state import State
from holdfast.client import Client as AsyncClient
from holdfast.events import Events
from holdfast.policies import CacheMode
from holdfast.sync.handlers import in_thread
from holdfast.sync.portal import Portal
from holdfast.sync.running import RunningCall
from holdfast.types.lifecycle import Implementation, ServerCapabilities
from holdfast.types.prompts import Prompt, PromptResult
from holdfast.types.resources import ReadResult, Resource, ResourceTemplate
from holdfast.types.tools import Tool, ToolResult

if TYPE_CHECKING:
    from holdfast.types.prompts import Completion, Reference
    from holdfast.types.resources import Root
    from holdfast.types.sampling import SamplingRequest


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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> Self:
        """Start now rather than at the first use; raise what went wrong if it did."""
        self._portal.run(self._client.open())
        return self

    def wait_ready(self, timeout: float | None = None) -> None:
        """Start if need be and wait until the server is ready, over failed attempts too."""
        self._portal.run(self._client.wait_ready(timeout))

    def close(self) -> bool:
        """End the server and every call under way. Any time, any number of times, any task.

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
        return self._client.state

    @property
    def transport(self) -> Any:
        """The way to the server, such as a `holdfast.Stdio`."""
        return self._client.transport

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    @property
    def server_info(self) -> Implementation | None:
        """Who the server says it is; None before the first connection, or if it does not."""
        return self._client.server_info

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """What the server says it can do; None before the first connection."""
        return self._client.server_capabilities

    @property
    def protocol_version(self) -> str | None:
        """The revision agreed on; None before the first connection."""
        return self._client.protocol_version

    @property
    def instructions(self) -> str | None:
        """What the server would have a model know about it."""
        return self._client.instructions

    @property
    def violations(self) -> dict[str, int]:
        """How often the server broke the protocol, by kind; it was dropped each time."""
        return self._client.violations

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools listed last, by name; their ``timeout`` and ``enabled`` can be set."""
        return self._client.tools

    def list_tools(self, *, cache: CacheMode | None = None) -> list[Tool]:
        """Every tool, of every page."""
        return self._portal.run(self._client.list_tools(cache=cache))

    def guard_tools(
        self, check: Callable[[Sequence[Tool], str | None], None]
    ) -> Callable[[], None]:
        """Have every new list of tools, and the server's instructions, checked before use.

        ``check`` refuses them by raising. It sees the list before the first call, when the
        server says that it changed, and after a reconnect; the result removes it again.
        """
        return self._portal.do(lambda: self._client.guard_tools(check))

    def available_tools(self) -> bool:
        """Whether there is any tool to call."""
        return self._portal.run(self._client.available_tools())

    def call_tool(
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
        return self._portal.run(
            self._client.call_tool(
                name,
                arguments,
                timeout=timeout,
                total_timeout=total_timeout,
                on_progress=on_progress,
                meta=meta,
            )
        )

    def invoke_tool(
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
        return self._portal.run(
            self._client.invoke_tool(
                name,
                arguments,
                timeout=timeout,
                total_timeout=total_timeout,
                on_progress=on_progress,
                meta=meta,
            )
        )

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
        return RunningCall(
            self._portal,
            self._portal.do(
                lambda: self._client.start_tool(
                    name,
                    arguments,
                    timeout=timeout,
                    total_timeout=total_timeout,
                    on_progress=on_progress,
                    meta=meta,
                )
            ),
        )

    def list_resources(self, *, cache: CacheMode | None = None) -> list[Resource]:
        return self._portal.run(self._client.list_resources(cache=cache))

    def list_resource_templates(self, *, cache: CacheMode | None = None) -> list[ResourceTemplate]:
        return self._portal.run(self._client.list_resource_templates(cache=cache))

    def read_resource(
        self, uri: str, *, timeout: float | None = None, cache: CacheMode | None = None
    ) -> ReadResult:
        """The contents of a resource, text and binary."""
        return self._portal.run(self._client.read_resource(uri, timeout=timeout, cache=cache))

    def subscribe_resource(self, uri: str) -> None:
        """Hear ``notifications/resources/updated`` for a resource, over reconnects too."""
        self._portal.run(self._client.subscribe_resource(uri))

    def unsubscribe_resource(self, uri: str) -> None:
        self._portal.run(self._client.unsubscribe_resource(uri))

    def list_prompts(self, *, cache: CacheMode | None = None) -> list[Prompt]:
        return self._portal.run(self._client.list_prompts(cache=cache))

    def get_prompt(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout: float | None = None
    ) -> PromptResult:
        return self._portal.run(self._client.get_prompt(name, arguments, timeout=timeout))

    def complete(
        self, ref: Reference, name: str, value: str = "", context: Mapping[str, str] | None = None
    ) -> Completion:
        """Suggestions for the argument ``name`` of a prompt or resource template."""
        return self._portal.run(self._client.complete(ref, name, value, context))

    def ping(self, *, timeout: float | None = None) -> None:
        """See whether the server answers."""
        self._portal.run(self._client.ping(timeout=timeout))

    def set_log_level(self, level: str) -> None:
        """Have the server send log messages from this level up; kept over reconnects."""
        self._portal.run(self._client.set_log_level(level))

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Any:
        """Any request, also one that Holdfast has no verb for; the result as plain JSON."""
        return self._portal.run(
            self._client.request(method, params, timeout=timeout, total_timeout=total_timeout)
        )

    def create_message(self, params: SamplingRequest | Mapping[str, Any]) -> Any:
        """Run our own sampling handler, as a server's request would."""
        return self._portal.run(self._client.create_message(params))

    def list_roots(self) -> list[Root]:
        """The roots that servers are told."""
        return self._portal.run(self._client.list_roots())

    def roots_changed(self) -> None:
        """Tell the server that the roots are others now (where its revision has that)."""
        self._portal.run(self._client.roots_changed())

    @property
    def events(self) -> Events:
        """Where to ``subscribe`` to what happens: requests, states, notifications, violations."""
        return self._client.events

    def on_notification(
        self, handler: Callable[[Notification], Any], method: str | None = None
    ) -> Callable[[], None]:
        """Hear notifications, all or of one method, in order; the result stops it again."""
        return self._portal.do(lambda: self._client.on_notification(in_thread(handler), method))

    def on_progress(self, handler: ProgressHandler) -> Callable[[], None]:
        """Hear the progress of every call from now on; the result stops it again."""
        return self._portal.do(lambda: self._client.on_progress(handler))
