"""Tasks on the wire: the core of 2025-11-25, and the extension of 2026-07-28.

Reading bounds what a server can do with a task: intervals are clamped, and an answer about
another task, of an unknown status, or without what its status promises is invalid.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from holdfast._core.eras.base import FINAL, Invalid, OutgoingRequest
from holdfast._core.eras.revisions import MISSING_CAPABILITY, TASKS
from holdfast._core.text import has_unseen, truncate
from holdfast._core.wire.jsonrpc import MALFORMED, ErrorObject
from holdfast.types.lifecycle import Task

_STATUSES: Final = frozenset({"working", "input_required", "completed", "failed", "cancelled"})
_PROMISED: Final = {
    "completed": "a result",
    "failed": "an error",
    "input_required": "inputRequests",
}
"""What the answer to a poll comes with, by status (extension only)."""

POLL: Final = 1.0
"""Seconds between two polls where the server names none."""
SHORTEST, LONGEST = 0.05, 60.0
"""Bounds of the interval that a server may choose, in seconds."""
LONGEST_ID: Final = 1024
LONGEST_TTL: Final = 10**15
LONGEST_TEXT: Final = 1000
_NULL: Final = Raw(b"null")


class TaskState(Struct, frozen=True, kw_only=True):
    """A task as one answer shows it, with what its status comes with (extension only)."""

    task: Task
    poll: float
    """Seconds until the next poll."""
    requests: dict[str, Raw] | None = None
    """Questions of an ``input_required`` task, by key."""
    result: Raw | None = None
    error: ErrorObject | None = None


class TaskForm(Struct, frozen=True, kw_only=True):
    """The way one connection has of asking for a task, and about it.

    ``core``: 2025-11-25 basic/utilities/tasks. The client asks for a task, tool by tool, and
    ``tasks/result`` has questions and results. Otherwise the extension
    ``io.modelcontextprotocol/tasks``: the server decides, and a poll has both.
    """

    core: bool
    cancels: bool = True
    lists: bool = False

    @property
    def extensions(self) -> tuple[str, ...]:
        """Return the extensions that each request about tasks declares."""
        return () if self.core else (TASKS,)

    def augment(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a call that is to become a task."""
        return {**params, "task": {}} if self.core else params

    def created(self, result: Raw) -> TaskState | Invalid | None:
        """Return the task that answers a call; None if the answer is a plain result."""
        fields = _fields(result)
        if self.core:
            return self.read(fields["task"]) if "task" in fields else None
        return self.read(result) if _field(fields, "resultType", str) == "task" else None

    def read(self, answer: Raw, task_id: str | None = None) -> TaskState | Invalid:
        """Return the task of an answer, which has to be ``task_id`` where that was asked for."""
        fields = _fields(answer)
        answered_id = _field(fields, "taskId", str) or ""
        status = _field(fields, "status", str) or ""
        if (invalid := _unusable(answered_id, status, task_id)) is not None:
            return invalid
        ttl = _field(fields, "ttl" if self.core else "ttlMs", float)
        poll = _field(fields, "pollInterval" if self.core else "pollIntervalMs", float)
        poll = _poll_pause(poll)
        result = None if fields.get("result") == _NULL else fields.get("result")
        error = _field(fields, "error", ErrorObject)
        requests = _field(fields, "inputRequests", dict[str, Raw])
        promised = {"completed": result, "failed": error, "input_required": requests}
        if not self.core and task_id is not None and promised.get(status, task_id) is None:
            return Invalid(f"a task that is {status} without {_PROMISED[status]}")
        task = Task(
            task_id=answered_id,
            status=status,
            status_message=_text(fields, "statusMessage") or None,
            created_at=_text(fields, "createdAt"),
            last_updated_at=_text(fields, "lastUpdatedAt"),
            ttl=_life(ttl),
            poll_interval=int(poll * 1000),
        )
        return TaskState(task=task, poll=poll, result=result, error=error, requests=requests)


def _poll_pause(milliseconds: float | None) -> float:
    return POLL if milliseconds is None else min(max(milliseconds / 1000, SHORTEST), LONGEST)


def _life(ttl: float | None) -> int | None:
    return None if ttl is None or ttl < 1 else int(min(ttl, LONGEST_TTL))


def _unusable(answered_id: str, status: str, task_id: str | None) -> Invalid | None:
    # People store ids, paste them into commands and read them in errors.
    if not 0 < len(answered_id) <= LONGEST_ID or has_unseen(answered_id):
        return Invalid("the task has no usable id")
    if task_id not in (None, answered_id):
        return Invalid(f"it is about the task {truncate(answered_id, 80)!r}")
    if status not in _STATUSES:
        return Invalid(f"a task cannot be {truncate(status, 80)!r}")
    return None


def core_tasks(capabilities: Raw) -> TaskForm | None:
    """Return the form of a handshake session, if its server takes tool calls as tasks."""
    tasks = _inside(capabilities, "tasks")
    if not isinstance(_inside(tasks, "requests", "tools", "call"), dict):
        return None
    offers = {name: isinstance(tasks.get(name), dict) for name in ("cancel", "list")}
    return TaskForm(core=True, cancels=offers["cancel"], lists=offers["list"])


def extension_tasks(capabilities: Raw) -> TaskForm | None:
    """Return the form of a stateless connection, if its server declares the extension."""
    settings = _inside(capabilities, "extensions", TASKS)
    # A revision that we do not know must not be enabled.
    is_known = isinstance(settings, dict) and "revision" not in settings
    return TaskForm(core=False) if is_known else None


def requires_tasks(code: int | None, data: Any) -> bool:
    """Return True if a server refused a call because it has to become a task.

    Tasks extension, Capability Negotiation: -32021 with the extension among the required.
    """
    extensions = _inside(data, "requiredCapabilities", "extensions")
    return code == MISSING_CAPABILITY and isinstance(extensions, dict) and TASKS in extensions


def listen(task_id: str) -> OutgoingRequest:
    """Return the request for a stream on which the server says that a task has changed."""
    return OutgoingRequest("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})


def changed(params: Raw | None) -> str | None:
    """Return the id of the task that a notification is about."""
    return None if params is None else _field(_fields(params), "taskId", str)


def will_tell(task_id: str, acknowledgement: Raw) -> bool:
    """Return True if a server has agreed to say when a task changes."""
    task_ids = _inside(acknowledgement, "notifications", "taskIds")
    return isinstance(task_ids, list) and task_id in task_ids


def is_result(raw: Raw) -> bool:
    """Return False for what cannot be the result of a task: another task, or questions."""
    fields = _fields(raw)
    kind = _field(fields, "resultType", Any)
    return kind in FINAL and ("task" not in fields or bool(_field(fields, "content", list)))


def _inside(value: Any, *path: str) -> Any:
    """Return the value at a path of nested objects, or of JSON; None if there is none."""
    if isinstance(value, Raw):
        value = _field({"": value}, "", Any)
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _fields(raw: Raw) -> dict[str, Raw]:
    """Return the fields of an object; none if it is not one."""
    return _field({"": raw}, "", dict[str, Raw]) or {}


def _field(fields: dict[str, Raw], name: str, kind: Any) -> Any:
    """Return a field as a type; None if it is absent, null or unreadable: one number out of
    range makes no task unreadable, and some servers write all fields."""
    try:
        return msgspec.json.decode(fields.get(name, _NULL), type=kind | None)
    except MALFORMED:
        return None


def _text(fields: dict[str, Raw], name: str) -> str:
    return (_field(fields, name, str) or "")[:LONGEST_TEXT]
