"""Tools for a framework that asks for them at every step of a run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.agents.listing import ModelTool
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.servers.group import Servers

log: logging.Logger = logging.getLogger("holdfast")


class ToolSource:
    """The tools of a client or of many servers, by name.

    A server that is down keeps the tools that it had: a run must not end because a list could
    not be had between two of its steps.
    """

    def __init__(self, source: Client | Servers) -> None:
        self._source = source
        self._last: dict[str, ModelTool] = {}

    @property
    def name(self) -> str:
        """The name of the server; ``"holdfast"`` for many."""
        return getattr(self._source, "name", "holdfast")

    async def tools(self) -> dict[str, ModelTool]:
        """List the tools.

        Raises:
            HoldfastError: The only server cannot be reached, and it never was.
        """
        try:
            found = await self._source.model_tools()
        except HoldfastError as error:
            if not self._last:
                raise
            log.warning("the tools are those listed last: %s", error)
            return self._last
        absent = {failure.server for failure in found.failures}
        for failure in found.failures:
            log.warning("%s", failure)
        kept = {name: tool for name, tool in self._last.items() if tool.server in absent}
        self._last = {**{tool.name: tool for tool in found}, **kept}
        return self._last

    async def tool(self, name: str) -> ModelTool:
        """Return one tool, of the list seen last where it is there."""
        if name not in self._last:
            await self.tools()
        return self._last[name]
