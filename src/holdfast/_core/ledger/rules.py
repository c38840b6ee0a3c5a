"""What a call with a key may do, given the record of that key."""

# The promise: a key runs at most once, and nobody is told an outcome that nobody saw.
#
#   record                          the call
#   ------------------------------  --------------------------------------------------------
#   none                            is the one that runs: it writes "intended" and sends
#   another tool, other arguments   is refused: one key is one call
#   done, or failed with an error   gets that outcome; nothing is sent
#   failed without an outcome       runs: nothing of the earlier one was sent
#   intended, sent; owner lives     waits, within its own time
#   intended, sent; owner dead      follows the task, if there is one, else OutcomeUnknown
#   unknown                         the same; or goes on with its answers, if the server asked
#
# Two facts carry it. First, a record changes only by `Store.swap`, with the bytes that were read:
# of all who decide on the same record, one wins, and the others read again. That includes a holder
# of the past who wakes up; so whether an owner "lives" may be judged wrongly, by a lease or by the
# process table, and the worst that follows is an "unknown" that was not needed. Second, an open
# record never becomes free by itself: only its owner, who knows that no byte was sent, or a person
# can free it.
#
# "intended" is written before the first byte, and "sent" after it. A mark *before* sending, with
# another write between, could tell "not sent" from "perhaps sent" for the dead; it would cost every
# call a second durable write, for the moment between two lines of code.

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from holdfast._core.ledger.record import Record


class Request(Struct, frozen=True):
    """What a caller wants to do under a key."""

    tool: str
    arguments: str
    """A digest of the arguments."""
    pending: str | None = None
    """A digest of the questions that it answers."""


Verdict = Literal["run", "other", "known", "wait", "follow", "unknown"]
OPEN: Final = ("intended", "sent")


def decide(record: Record | None, request: Request, *, owner_lives: bool) -> Verdict:
    """Return what a call may do; ``owner_lives`` matters for a record that is open."""
    if record is None:
        return "run"
    if (record.tool, record.arguments) != (request.tool, request.arguments):
        return "other"
    if record.is_free:
        return "run"
    if record.state in ("done", "failed"):
        return "known"
    if record.is_open and owner_lives:
        return "wait"
    if record.pending is not None and record.pending == request.pending:
        return "run"
    return "follow" if record.task_id is not None else "unknown"
