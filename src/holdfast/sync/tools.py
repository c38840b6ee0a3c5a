"""Tools for language models, for code without a loop.

Written by tools/sync_face.py from agents/listing.py: change that, and run it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from holdfast._core.calls.options import CallOptions
from holdfast.agents.listing import ModelTool as AsyncModelTool
from holdfast.agents.listing import Partial
from holdfast.agents.outcome import ToolOutcome
from holdfast.schema.walk import Schema
from holdfast.sync.portal import Portal
from holdfast.types.tools import Tool, ToolAnnotations


class ModelTool:
    """A tool that a language model can be given, for code without a loop."""

    def __init__(self, portal: Portal, tool: AsyncModelTool) -> None:
        self._portal = portal
        self._tool = tool
        self.server: str = tool.server
        self.tool: Tool = tool.tool
        self.name: str = tool.name

    def __repr__(self) -> str:
        return repr(self._tool)

    @property
    def dotted(self) -> str:
        """The name that ``Servers.call_tool`` takes."""
        return self._tool.dotted

    @property
    def description(self) -> str:
        """The tool's description, or else its title."""
        return self._tool.description

    @property
    def input_schema(self) -> Schema:
        """The JSON Schema of the arguments, always an object's."""
        return self._tool.input_schema

    @property
    def annotations(self) -> ToolAnnotations | None:
        """The server's hints on what the tool does."""
        return self._tool.annotations

    def call(
        self, arguments: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> ToolOutcome:
        """Call the tool. A failure is an outcome too; cancelling this cancels the call."""
        return self._portal.run(self._tool.call(arguments, **options))


def bound(portal: Portal, tools: Partial[AsyncModelTool]) -> Partial[ModelTool]:
    """Return tools whose calls run on the portal's loop."""
    return Partial((ModelTool(portal, tool) for tool in tools), tools.failures)
