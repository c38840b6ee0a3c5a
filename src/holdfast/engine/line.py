"""What belongs to the link of the moment, shared by the parts of the engine."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from holdfast.boundary import Dress, Generation, Refused
from holdfast.engine.greeting import Greeting
from holdfast.eras.base import Era
from holdfast.wire.jsonrpc import METHOD_NOT_FOUND

_BAD_REQUEST, _NOT_FOUND = 400, 404


class Line(Struct):
    """``generation`` is the gate: what belongs to another one is not heard."""

    generation: Generation = Generation(0)
    greeting: Greeting | None = None
    streams: bool = False
    """Each request travels on a stream of its own."""
    session: str | None = None
    """What came with the message that is being read."""
    era: Era | None = None
    """The revision agreed last; it outlives its link, so that callers can still ask."""

    def advance(self) -> Generation:
        """From here on nothing of the earlier link is heard."""
        self.generation = Generation(self.generation + 1)
        self.greeting = None
        return self.generation

    def dress(self, method: str, *, first: bool = False) -> Dress | None:
        """What a message other than a request wears, where messages wear anything."""
        if not self.streams or self.era is None:
            return None
        worn = self.era.dress(method)
        return replace(worn, first=True) if first else worn

    def session_ended(self, report: Refused) -> bool:
        """Whether a refusal means that the server does not know our session any more."""
        if self.era is None or self.era.session is None:
            return False
        fault = report.fault
        if report.status == _BAD_REQUEST:
            # Not what the specification says, but what many servers do.
            return fault is not None and "session" in (fault.message or "").lower()
        return report.status == _NOT_FOUND and (fault is None or fault.code != METHOD_NOT_FOUND)
