"""The states of a connection, and the one table of steps between them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from holdfast.errors import StateError


class State(StrEnum):
    NEW = "new"
    STARTING = "starting"
    INITIALIZING = "initializing"
    READY = "ready"
    BACKOFF = "backoff"
    CLOSING = "closing"
    CLOSED = "closed"


class Step(StrEnum):
    OPEN = "open"
    OPENED = "opened"
    AGREED = "agreed"
    EXPIRED = "expired"
    LOST = "lost"
    DUE = "due"
    GIVE_UP = "give up"
    CLOSE = "close"
    DRAINED = "drained"


TABLE: Final[dict[State, dict[Step, State]]] = {
    State.NEW: {
        Step.OPEN: State.STARTING,
        Step.CLOSE: State.CLOSED,
    },
    State.STARTING: {
        Step.OPENED: State.INITIALIZING,
        Step.LOST: State.BACKOFF,
        Step.CLOSE: State.CLOSED,
    },
    State.INITIALIZING: {
        Step.AGREED: State.READY,
        Step.LOST: State.BACKOFF,
        Step.GIVE_UP: State.CLOSED,
        Step.CLOSE: State.CLOSED,
    },
    State.READY: {
        Step.EXPIRED: State.INITIALIZING,
        Step.LOST: State.BACKOFF,
        Step.CLOSE: State.CLOSING,
    },
    State.BACKOFF: {
        Step.DUE: State.STARTING,
        Step.GIVE_UP: State.CLOSED,
        Step.CLOSE: State.CLOSED,
    },
    State.CLOSING: {
        Step.LOST: State.CLOSED,
        Step.CLOSE: State.CLOSING,
        Step.DRAINED: State.CLOSED,
    },
    State.CLOSED: {
        Step.LOST: State.CLOSED,
        Step.CLOSE: State.CLOSED,
    },
}


def advance(state: State, step: Step) -> State:
    """Return the state after ``step``; raise ``StateError`` for an illegal step."""
    following = TABLE[state].get(step)
    if following is None:
        raise StateError(f"cannot take step '{step}' in state '{state}'", state=state)
    return following


def table() -> str:
    """Return the table as Markdown, for the documentation."""
    head = ["| | " + " | ".join(Step) + " |", "|---" * (len(Step) + 1) + "|"]
    rows = [
        f"| **{state}** | " + " | ".join(TABLE[state].get(step, "") for step in Step) + " |"
        for state in State
    ]
    return "\n".join(head + rows)
