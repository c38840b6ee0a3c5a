"""The tools of many servers in one list, and what could not be listed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from msgspec import Struct

from holdfast.agents.naming import LIMIT, VALID, Names
from holdfast.servers.status import Failure
from holdfast.types.tools import Tool

T = TypeVar("T")


class ServerTool(Struct, frozen=True):
    """A tool of one of many servers. ``name`` is what a language model knows it by."""

    server: str
    tool: Tool
    name: str

    @property
    def dotted(self) -> str:
        """What ``Servers.call_tool`` takes."""
        return f"{self.server}.{self.tool.name}" if self.server else self.tool.name

    @property
    def description(self) -> str:
        return self.tool.description or ""

    def __repr__(self) -> str:
        return f"<ServerTool {self.dotted}>"


def server_tools(server: str, tools: Iterable[Tool]) -> list[ServerTool]:
    """Return the enabled tools of one server; names that no model takes are replaced."""
    names, found = Names(), []
    for tool in tools:
        plain = VALID.fullmatch(tool.name) and len(tool.name) <= LIMIT
        if tool.enabled:
            name = tool.name if plain else names.add(server, tool.name)
            found.append(ServerTool(server, tool, name))
    return found


class Partial(list[T]):
    """A list of what the servers gave. ``failures`` tells of those that gave nothing."""

    failures: tuple[Failure, ...]

    def __init__(self, found: Iterable[T] = (), failures: Iterable[Failure] = ()) -> None:
        super().__init__(found)
        self.failures = tuple(failures)

    @property
    def complete(self) -> bool:
        return not self.failures
