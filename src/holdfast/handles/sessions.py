"""Sessions that a server keeps by a name in its tools' arguments.

The adapter alone knows how a session is opened and closed, and under which key its name is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from holdfast.client import Client
from holdfast.errors import HoldfastError, ToolError
from holdfast.types.tools import Tool


class SessionAdapter(Protocol):
    """The interface between a handle and a server's sessions.

    Optional attributes: ``lifecycle``, the tools that the adapter calls itself and a replay leaves
    out; ``reopen``, False if a session outlives its connection.
    """

    async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
        """Open a session with the caller's arguments."""

    async def close(self, client: Client, session: str) -> None:
        """Close the session."""

    def inject_session(self, arguments: Mapping[str, Any], session: str) -> dict[str, Any]:
        """Return the arguments with the session added; the caller's own take precedence."""

    def has_session(self, tool: Tool) -> bool:
        """Return True if the tool takes the session as a parameter."""


class ParameterSession:
    """A session whose name is a parameter of every tool that works in it.

    Args:
        key: That parameter.
        open_tool: The tool that opens a session; None: there is none.
        close_tool: The tool that closes it; None: there is none.
        reopen: A session ends with its connection and is opened again on the next.
    """

    def __init__(
        self,
        key: str = "sessionName",
        open_tool: str | None = "session.open",
        close_tool: str | None = "session.close",
        *,
        reopen: bool = True,
    ) -> None:
        self.key = key
        self.open_tool = open_tool
        self.close_tool = close_tool
        self.lifecycle: frozenset[str] = frozenset(filter(None, (open_tool, close_tool)))
        self.reopen = reopen

    def __repr__(self) -> str:
        return f"ParameterSession({self.key!r}, {self.open_tool!r}, {self.close_tool!r})"

    async def open(self, client: Client, session: str, arguments: Mapping[str, Any]) -> None:
        """Open the session with ``open_tool``, if there is one."""
        if self.open_tool is not None:
            await self._run(client, self.open_tool, session, arguments)

    async def close(self, client: Client, session: str) -> None:
        """Close the session with ``close_tool``, if there is one."""
        if self.close_tool is not None:
            await self._run(client, self.close_tool, session, {})

    async def _run(
        self, client: Client, tool: str, session: str, arguments: Mapping[str, Any]
    ) -> None:
        result = await client.call_tool(tool, self.inject_session(arguments, session))
        if result.is_error:
            reason = result.text or "The tool failed and gave no reason."
            raise ToolError(f"session {session!r}: {tool}: {reason}", data=result)

    def inject_session(self, arguments: Mapping[str, Any], session: str) -> dict[str, Any]:
        """Return the arguments with the session's name added."""
        return {self.key: session, **arguments}

    def has_session(self, tool: Tool) -> bool:
        """Return True if the tool has the session's parameter."""
        properties = tool.input_schema.get("properties")
        return isinstance(properties, dict) and self.key in properties


log: logging.Logger = logging.getLogger("holdfast")


class HandleSession:
    """The session that a handle holds open at the server for its calls; none without adapter."""

    def __init__(
        self,
        client: Client,
        adapter: SessionAdapter | None,
        name: str,
        arguments: Mapping[str, object],
    ) -> None:
        self.name = name
        self.is_open: bool = adapter is None
        self._requested = False
        """Opening it was requested; without an answer it may be open."""
        self._client = client
        self._adapter = adapter
        self._arguments = dict(arguments)

    def __repr__(self) -> str:
        state = "open" if self.is_open else "in doubt" if self._requested else "absent"
        return f"<Session {self.name!r} {state}>"

    async def open(self) -> None:
        """Open the session unless it is open."""
        if self.is_open or self._adapter is None:
            return
        self._requested = True
        try:
            await self._adapter.open(self._client, self.name, self._arguments)
        except HoldfastError as error:
            self._requested = error.outcome_unknown
            raise
        # The link may have been lost again just as the answer came.
        self.is_open = self._requested

    def lost(self) -> None:
        """Mark the session as absent if it ends with its connection."""
        if self._adapter is not None and getattr(self._adapter, "reopen", True):
            self.is_open = self._requested = False

    async def close(self) -> None:
        """Close the session if it is open; ignore errors of one in doubt."""
        certain, requested = self.is_open, self._requested
        self.is_open = self._requested = False
        if not requested or self._adapter is None:
            return
        try:
            await self._adapter.close(self._client, self.name)
        except HoldfastError as error:
            if certain:
                raise
            log.debug("%s: session %r: %s", self._client.name, self.name, error)

    def place(self, tool: Tool | None, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments to send: with the session, if the tool takes it."""
        if tool is None or self._adapter is None or not self._adapter.has_session(tool):
            return arguments
        return self._adapter.inject_session(arguments, self.name)
