"""Whether the server's tools are still those that a handle was generated from."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, get_args

import msgspec
from msgspec import Struct

from holdfast.errors import DriftError
from holdfast.lock.fingerprint import canonical, definition, registry_hash
from holdfast.types.tools import Tool

if TYPE_CHECKING:
    from holdfast.lock.changes import Changes

log: logging.Logger = logging.getLogger("holdfast")

Drift: TypeAlias = Literal["raise", "warn", "off"]
MODES: Final = get_args(Drift)

WHAT_CALLERS_RELY_ON: Final = ("inputSchema",)


class Registry(Struct, frozen=True, kw_only=True):
    """The tools that a module was generated from: their hash, and enough to tell what changed.

    ``schemas`` has each tool's input schema as JSON text; ``command`` generates the module anew.
    """

    hash: str
    command: str
    schemas: Mapping[str, str]

    @classmethod
    def of(cls, tools: Sequence[Tool], command: str) -> Self:
        """The registry of live tools, as generation bakes it into a module."""
        schemas = {tool.name: canonical(tool.input_schema).decode() for tool in tools}
        return cls(hash=registry_hash(tools), command=command, schemas=schemas)

    def changes(self, tools: Sequence[Tool]) -> Changes:
        """What callers will notice, from then to now."""
        from holdfast.lock.changes import compare

        before = {
            name: {"name": name, "inputSchema": msgspec.json.decode(text)}
            for name, text in self.schemas.items()
        }
        after = {tool.name: definition(tool) for tool in tools}
        return compare(before, after, fields=WHAT_CALLERS_RELY_ON)


class Watch:
    """Looks at each list of tools that a client gets (see ``Client.guard_tools``)."""

    def __init__(self, owner: str, registry: Registry | None, mode: Drift) -> None:
        self._owner = owner
        self._registry = registry
        self._mode = mode
        self._warned: set[str] = set()

    @property
    def looks(self) -> bool:
        return self._registry is not None and self._mode != "off"

    def check(self, tools: Sequence[Tool], instructions: str | None) -> None:
        registry = self._registry
        if registry is None or self._mode == "off":
            return
        now = registry_hash(tools)
        if now == registry.hash:
            return
        if self._mode == "raise":
            changes = registry.changes(tools)
            raise DriftError(describe(self._owner, registry, now, changes), data=changes)
        if now not in self._warned:
            self._warned.add(now)
            log.warning("%s", describe(self._owner, registry, now, registry.changes(tools)))


def describe(owner: str, registry: Registry, now: str, changes: Changes) -> str:
    """The whole story: what changed, what it means for callers, and what to do."""
    head = (
        f"{owner}: the server's tools have changed since the handle was generated "
        f"(hash {registry.hash} then, {now} now):"
    )
    what = str(changes) if changes else "the same tools, listed otherwise"
    verdict = (
        "This breaks callers."
        if changes.breaking
        else "Callers of the handle as it is are not broken by this."
    )
    body = [f"  {line}" for line in what.splitlines()]
    return "\n".join([head, *body, verdict, f"Run: {registry.command}"])
