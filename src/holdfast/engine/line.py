"""What belongs to the link of the moment, shared by the parts of the engine."""

from __future__ import annotations

from msgspec import Struct

from holdfast.boundary import Generation
from holdfast.engine.greeting import Greeting
from holdfast.eras.base import Era


class Line(Struct):
    """``generation`` is the gate: what belongs to another one is not heard."""

    generation: Generation = Generation(0)
    greeting: Greeting | None = None
    era: Era | None = None
    """The revision agreed last; it outlives its link, so that callers can still ask."""

    def advance(self) -> Generation:
        """From here on nothing of the earlier link is heard."""
        self.generation = Generation(self.generation + 1)
        self.greeting = None
        return self.generation
