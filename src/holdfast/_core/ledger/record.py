"""One record of the ledger: its states, and what may follow each."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

State = Literal["intended", "sent", "done", "failed", "unknown"]

NEXT: Final[dict[str, frozenset[str]]] = {
    "intended": frozenset({"sent", "done", "failed", "unknown"}),
    "sent": frozenset({"sent", "done", "failed", "unknown"}),
    "unknown": frozenset({"sent", "intended", "done", "failed"}),
    "failed": frozenset({"intended"}),
    "done": frozenset(),
}
"""The states that may follow each state. From "unknown" a task is taken up again ("sent"), the
caller's answers to a question are sent ("intended"), or a person settles it. From "failed" only a
record without an outcome goes on: nothing of it had been sent."""

LONGEST_KEY: Final = 200
VERSION: Final = 1


class RecordedOutcome(Struct, frozen=True, omit_defaults=True):
    """How a call ended: the server's result, or its error."""

    result: Raw | UnsetType = UNSET
    """The result as it came, as JSON."""
    error: dict[str, Any] | None = None
    """The error: ``type``, ``message``, ``code``, ``data``, ``server_message``."""
    size: int = 0
    """The bytes of an outcome that was too large to be kept."""
    by_hand: bool = False
    """A person settled it."""


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known about one key.

    Attributes:
        key: The caller's key.
        server: The server's name, for people.
        scope: Tells the keys of one server and account from those of others.
        tool: The tool's name.
        arguments: A digest of the arguments.
        state: ``intended``: it may have been sent. ``sent``: it was. ``done``: there is a result,
            also one of a tool that failed. ``failed``: with an outcome, an error of the server;
            without one, nothing was sent, and the key is free. ``unknown``: nobody can tell.
        number: Grows with each claim; a write by an earlier holder is refused.
        owner: Who works, or worked, on it.
        host: Where that was, for people.
        begun: When it was claimed, in seconds since the epoch, by the owner's clock. Times are
            for people: nothing is decided by comparing clocks of two machines.
        changed: When this was written.
        task_id: The task that the server has made of it.
        pending: A digest of the server's questions, if it waits for its caller's answers.
        note: Why it failed, or is unknown.
        outcome: How it ended.
    """

    key: str
    server: str
    scope: str
    tool: str
    arguments: str
    state: State
    number: int
    owner: str = ""
    host: str = ""
    begun: float = 0.0
    changed: float = 0.0
    task_id: str | None = None
    pending: str | None = None
    note: str = ""
    outcome: RecordedOutcome | None = None
    version: int = VERSION

    @property
    def is_open(self) -> bool:
        """True while its owner works on it, as far as the record tells."""
        return self.state in ("intended", "sent")

    @property
    def is_free(self) -> bool:
        """True if it can be claimed: nothing of it was sent."""
        return self.state == "failed" and self.outcome is None


class CorruptRecord(ValueError):  # noqa: N818  (a state)
    """What is stored under a key is no record."""


def encode(record: Record) -> bytes:
    return msgspec.json.encode(record)


def decode(data: bytes) -> Record:
    """Return a record; raise `CorruptRecord` for anything else."""
    try:
        record = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise CorruptRecord(str(error)) from None
    if record.version > VERSION:
        raise CorruptRecord(f"it was written by a newer version ({record.version})")
    return record


def moved(record: Record, state: State, **changes: Any) -> Record:
    """Return a record in its next state; a step that is not allowed is an error of ours."""
    if state not in NEXT[record.state] or (record.state == "failed" and not record.is_free):
        raise AssertionError(f"a record that is {record.state!r} cannot become {state!r}")
    return msgspec.structs.replace(record, state=state, **changes)


def digest_of(arguments: Any) -> str:
    """Return a digest that is the same for equal arguments, in whatever order their keys are.

    1 and 1.0 are one number, as in JSON Schema.

    Raises:
        TypeError, ValueError, RecursionError: They cannot be written as JSON.
    """
    plain = _plain_decoder.decode(msgspec.json.encode(arguments, order="deterministic"))
    return sha256(msgspec.json.encode(plain, order="deterministic")).hexdigest()


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < _EXACT else value


_EXACT: Final = 2.0**53
"""Whole numbers below it are themselves as a float."""
_decoder: Final = msgspec.json.Decoder(Record)
_plain_decoder: Final = msgspec.json.Decoder(float_hook=_number)
