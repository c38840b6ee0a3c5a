"""The bounds on work that a schema may cause, one for everything that reads schemas.

Servers write schemas, and the results that are checked against them, so both may be hostile:
references that double at every step, alternatives inside alternatives, patterns over
megabytes. Every reader counts its steps with a `Budget` and stops when it is used up.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class SchemaLimits(NamedTuple):
    """The bounds of one reading."""

    depth: int = 100
    """Levels of nested schemas that are followed."""
    nodes: int = 5_000
    """JSON values in one schema."""
    work: int = 5_000
    """Steps of one reading: each costs two to four microseconds."""


LIMITS: Final = SchemaLimits()


class SchemaTooComplex(Exception):  # noqa: N818  (a finding, not a failure)
    """A schema, or a check against it, exceeds its bounds; the text says which."""


class Elsewhere(SchemaTooComplex):
    """A schema refers to what is not in it: nothing is ever fetched."""


class Budget:
    """The steps that one reading may still take."""

    def __init__(self, work: int = LIMITS.work) -> None:
        self.left: int = work

    def spend(self, steps: int = 1) -> None:
        """Use up some steps.

        Raises:
            SchemaTooComplex: None are left.
        """
        self.left -= steps
        if self.left < 0:
            raise SchemaTooComplex("it is too large or too deep")

    def afford(self, steps: int = 1) -> bool:
        """Use up some steps; return False when none are left."""
        self.left -= steps
        return self.left >= 0
