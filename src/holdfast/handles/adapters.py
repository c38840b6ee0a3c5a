"""Sessions that a server keeps by a name in its tools' arguments.

How a session is opened and closed, and under which key its name travels, is known to the
adapter and to nobody else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from holdfast.client import Client
from holdfast.errors import ToolError
from holdfast.types.tools import Tool, ToolResult


class SessionAdapter(Protocol):
    """The interface between a handle and a server's sessions.

    Two attributes are looked for besides: ``lifecycle``, the tools that the adapter calls itself,
    so that a replay of a log does not (none, if it has no such attribute), and ``reopen``,
    whether a session ends with its connection and is opened again on the next (True).
    """

    async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
        """Open the session ``session``; ``arguments`` are what the caller wants it opened with."""
        ...

    async def close(self, client: Client, session: str) -> None:
        """End it."""
        ...

    def inject_session(self, arguments: Mapping[str, Any], session: str) -> dict[str, Any]:
        """The arguments with the session in them. What the caller gave goes before."""
        ...

    def has_session(self, tool: Tool) -> bool:
        """Return True if the tool takes the session as a parameter."""
        ...


class ParameterSession:
    """A session whose name is a parameter of every tool that works in it.

    ``key`` is that parameter. ``open_tool`` and ``close_tool`` are called with it alone, and
    with ``open_arguments`` at the opening; a server that has no such tool is told so by None.
    """

    def __init__(
        self,
        key: str = "sessionName",
        open_tool: str | None = "session.open",
        close_tool: str | None = "session.close",
        *,
        open_arguments: Mapping[str, Any] | None = None,
        hide: Collection[str] = (),
        reopen: bool = True,
    ) -> None:
        self.key = key
        self.open_tool = open_tool
        self.close_tool = close_tool
        self.open_arguments: Mapping[str, Any] = dict(open_arguments or {})
        self.lifecycle: frozenset[str] = frozenset({*hide, *filter(None, (open_tool, close_tool))})
        self.reopen = reopen

    def __repr__(self) -> str:
        return f"ParameterSession({self.key!r}, {self.open_tool!r}, {self.close_tool!r})"

    async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
        """Open the session with ``open_tool``, if there is one."""
        if self.open_tool is not None:
            wanted = {self.key: session, **self.open_arguments, **arguments}
            _check(self.open_tool, session, await client.call_tool(self.open_tool, wanted))

    async def close(self, client: Client, session: str) -> None:
        """Close the session with ``close_tool``, if there is one."""
        if self.close_tool is not None:
            result = await client.call_tool(self.close_tool, {self.key: session})
            _check(self.close_tool, session, result)

    def inject_session(self, arguments: Mapping[str, Any], session: str) -> dict[str, Any]:
        """Return the arguments with the session's name added."""
        return {self.key: session, **arguments}

    def has_session(self, tool: Tool) -> bool:
        """Return True if the tool has the session's parameter."""
        properties = tool.input_schema.get("properties")
        return isinstance(properties, dict) and self.key in properties


def _check(tool: str, session: str, result: ToolResult) -> None:
    if result.is_error:
        reason = result.text or "The tool failed and gave no reason."
        raise ToolError(f"session {session!r}: {tool}: {reason}", data=result)
