"""Comparison of the server's tools with those that a handle was generated from."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, get_args

import msgspec
from msgspec import Struct, field

from holdfast.errors import DriftError
from holdfast.lock.fingerprint import definition, registry_hash, schema_texts
from holdfast.types.tools import Tool

if TYPE_CHECKING:
    from holdfast.lock.changes import Changes

log: logging.Logger = logging.getLogger("holdfast")

Drift: TypeAlias = Literal["raise", "breaking", "warn", "off"]
"""``raise`` refuses every change, ``breaking`` those that may break callers."""
MODES: Final = get_args(Drift)


class Registry(Struct, frozen=True, kw_only=True):
    """The tools that a module was generated from.

    Attributes:
        hash: Twelve digits, for people to compare.
        command: The command that generates the module again.
        schemas: The input schema of each tool, as JSON text.
        returns: The output schemas likewise.
        capabilities: The client's capabilities at the time: servers list tools by them.
    """

    hash: str
    command: str
    schemas: Mapping[str, str]
    returns: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()

    @classmethod
    def of(cls, tools: Sequence[Tool], command: str) -> Self:
        """Return the registry of live tools, as generation bakes it into a module."""
        schemas, returns = schema_texts(tools)
        return cls(hash=registry_hash(tools), command=command, schemas=schemas, returns=returns)

    def matches(self, tools: Sequence[Tool]) -> bool:
        """Return whether these are the same tools, by the whole of their schemas.

        A result that is described now and was not before does not count.
        """
        schemas, returns = schema_texts(tools)
        same = len(tools) == len(schemas) and schemas == self.schemas
        return same and all(returns.get(name) == text for name, text in self.returns.items())

    def changes(self, tools: Sequence[Tool]) -> Changes:
        """Return what callers will notice, from then to now."""
        from holdfast.lock.changes import compare

        before: dict[str, dict[str, object]] = {
            name: {"name": name, "inputSchema": msgspec.json.decode(text)}
            for name, text in self.schemas.items()
        }
        for name, text in self.returns.items():
            before[name]["outputSchema"] = msgspec.json.decode(text)
        after = {tool.name: definition(tool) for tool in tools}
        for name in after.keys() - self.returns.keys():
            after[name].pop("outputSchema", None)
        return compare(before, after, fields=("inputSchema", "outputSchema"))


class DriftCheck:
    """Looks at each list of tools that a client gets (see ``Client.guard_tools``)."""

    def __init__(self, owner: str, registry: Registry | None, mode: Drift) -> None:
        self._owner = owner
        self._registry = None if mode == "off" else registry
        self._mode = mode
        self._warned: set[str] = set()

    def check(self, tools: Sequence[Tool], instructions: str | None) -> None:
        """Compare tools with the registry; warn or raise `DriftError`, depending on the mode."""
        registry = self._registry
        if registry is None or registry.matches(tools):
            return
        changes = registry.changes(tools)
        what = str(changes) if changes else "the same tools, listed otherwise"
        verdict = "Callers of the handle as it is are not broken by this."
        text = "\n".join(
            (
                f"{self._owner}: drift: the server's tools have changed since the handle was "
                f"generated (hash {registry.hash} then, {registry_hash(tools)} now):",
                *(f"  {line}" for line in what.splitlines()),
                "This breaks callers." if changes.breaking else verdict,
                f"Run: {registry.command}",
            )
        )
        if self._mode == "raise" or (self._mode == "breaking" and changes.breaking):
            raise DriftError(text, data=changes)
        if text not in self._warned:
            self._warned.add(text)
            log.log(logging.INFO if self._mode == "breaking" else logging.WARNING, "%s", text)
