"""What does not fit a schema, and schemas by which nothing can be checked."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct


class Unusable(Exception):  # noqa: N818  (a finding, not a failure)
    """A schema that is not valid, or a check that would take too long: the server has to check."""


class SchemaFault(Struct, frozen=True):
    """One fault: where (a JSON pointer; empty for the whole), what is wrong, by which keyword."""

    path: str
    message: str
    keyword: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def lines(faults: Iterable[SchemaFault]) -> str:
    """Return faults as an indented list."""
    return "\n".join(f"  - {fault}" for fault in faults)
