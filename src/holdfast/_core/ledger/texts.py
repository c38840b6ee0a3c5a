"""What the ledger says, and the forms in which it is told something."""

from __future__ import annotations

import time
from typing import Any, Final

from holdfast._core.ledger.record import LONGEST_KEY, Record
from holdfast._core.text import has_unseen, visible
from holdfast.errors import (
    Hint,
    HoldfastError,
    OutcomeUnknown,
    RequestTimeout,
    ShutdownError,
    StateError,
    ValidationError,
)

NOT_SENT: Final = "nothing was sent"


def check_key(key: object) -> None:
    """Refuse what cannot be a key."""
    is_text = isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and not key.isspace()
    if not is_text or has_unseen(str(key)):
        text = f"must be a text of 1 to {LONGEST_KEY} characters that can be seen"
        raise ValidationError(f"once={visible(repr(key), 80)}: {text}; {NOT_SENT}")


def about(server: str, tool: str, key: str) -> str:
    """Return the beginning of a message."""
    name = f"{server}: " if server else ""
    return f"{name}tools/call {tool!r}: once {visible(key, 60)!r}"


def unreachable(subject: str, error: object) -> StateError:
    """Return the error of a call that was refused; without a subject, that of a question."""
    text = f"the ledger cannot be reached: {error}"
    return StateError(f"{subject}: {text}; {NOT_SENT}" if subject else text)


def late(subject: str, key: str, *, is_waiting: bool) -> HoldfastError:
    """Return the error of a call whose time is over; ``is_waiting``: for another with its key."""
    if not is_waiting:
        return unreachable(subject, "it did not answer within the time of the call")
    text = "another call with this key is under way, and was not done in time"
    hint = Hint("once", "gets its outcome, if the call is made again", key)
    return RequestTimeout(f"{subject}: {text}", hints=(hint,), outcome_unknown=True)


def shut(subject: str) -> ShutdownError:
    """Return the error of a call that was waiting when its client was closed."""
    text = "the client was closed; nothing was sent, but another call with this key may have run"
    return ShutdownError(f"{subject}: {text}", outcome_unknown=True)


def difference(record: Record, tool: str) -> str:
    """Say how a call differs from the one that has its key."""
    if record.tool != tool:
        return f"the key belongs to a call of {record.tool!r}; one key is one call"
    return "the key belongs to a call with other arguments; one key is one call"


def story(record: Record) -> str:
    """Tell what is known of a call whose outcome is not."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(record.begun))
    effects = {"intended": "it may have been sent", "sent": "it was sent"}
    effect = effects.get(record.state, record.note or "it may have run")
    return f"it was begun at {when} UTC by {record.host}, and how it ended is not known: {effect}"


def unknown(subject: str, key: str, text: str, record: Record | None) -> OutcomeUnknown:
    """Return the error of a call whose outcome nobody knows, with what is known."""
    names = ("key", "server", "tool", "state", "host", "begun", "changed", "note", "number")
    facts = None if record is None else {name: getattr(record, name) for name in names}
    hint = Hint("ledger.settle", "decides, when you have found out whether it ran", key)
    if record is None:
        hint = Hint(
            "ledger.forget", "frees the key, when you have found out that it did not run", key
        )
    task_id = None if record is None else record.task_id
    text = f"{subject}: {text}; not sent again"
    return OutcomeUnknown(text, data=facts, hints=(hint,), task_id=task_id, outcome_unknown=True)


def too_large(subject: str, record: Record) -> OutcomeUnknown:
    """Return the error of a call that ended, but whose outcome was too large to be kept."""
    size = 0 if record.outcome is None else record.outcome.size
    text = f"it ran, and its outcome of {size:,} bytes was not kept"
    hint = Hint("", "Ledger(outcome_bytes=…) keeps larger ones")
    facts = {"key": record.key, "state": record.state, "size": size}
    text = f"{subject}: {text}; not sent again"
    return OutcomeUnknown(text, data=facts, hints=(hint,), outcome_unknown=True)


def as_result(result: Any) -> Any:
    """Return a result in the form of the protocol: of a text, a dict, a `ToolResult`, or None."""
    if result is None:
        return {"content": []}
    if isinstance(result, str):
        return {"content": [{"type": "text", "text": result}]}
    value = getattr(result, "raw", result)
    if not isinstance(value, dict):
        raise ValidationError("result: must be a text, a ToolResult or a dict with its fields")
    return value if "content" in value else {"content": [], "structuredContent": value}


def redacted(value: Any) -> Any:
    """Return a value without credentials."""
    from holdfast._core.redact.redactor import default_redactor

    return default_redactor().value(value)
