"""What an effect that could not be carried out means to the engine."""

from __future__ import annotations

from holdfast._core import boundary as b
from holdfast._core.boundary import Effect, Generation, Report
from holdfast.errors import TransportError


def report_of_failure(
    effect: Effect, error: BaseException, generation: Generation
) -> Report | None:
    """Return the report that stands for the one which an effect would have led to; None: none."""
    if type(effect) is b.Send and effect.wire_id is not None:
        cause = TransportError(f"the request could not be handed to the transport: {error!r}")
        return b.Refused(cause, b.RefusalReason.BROKEN).of(generation, effect.wire_id)
    if type(effect) is b.Open:
        cause = TransportError(f"the transport could not be opened: {error!r}")
        return b.Lost(effect.generation, cause)
    if type(effect) is b.Close:
        return b.Drained(effect.generation)
    if type(effect) is b.CheckRead:
        return b.ReadChecked(generation, unread=False)
    return None
