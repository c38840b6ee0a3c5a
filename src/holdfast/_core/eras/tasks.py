"""Tasks on the wire: the core of 2025-11-25, and the extension of 2026-07-28.

Reading bounds what a server can do with a task: intervals are clamped, and an answer about
another task, of an unknown status, or without what its status promises is invalid.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from holdfast._core.eras.base import Invalid, OutgoingRequest
from holdfast._core.eras.revisions import MISSING_CAPABILITY, TASKS
from holdfast._core.text import has_unseen
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.jsonrpc import ErrorObject

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_STATUSES: Final = ENDED | {"working", "input_required"}
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


class TaskState(Struct, frozen=True, kw_only=True):
    """A task as one answer shows it."""

    id: str
    status: str
    message: str | None = None
    created_at: str = ""
    updated_at: str = ""
    ttl: float | None = None
    """Seconds; None: unlimited, or not usable."""
    poll: float = POLL
    """Seconds until the next poll."""
    requests: dict[str, Raw] = {}
    """Questions of an ``input_required`` task, by key (extension only)."""
    result: Raw | None = None
    error: ErrorObject | None = None

    @property
    def ended(self) -> bool:
        return self.status in ENDED


class CoreTasks:
    """2025-11-25 basic/utilities/tasks: the client asks for a task, tool by tool."""

    extensions: tuple[str, ...] = ()
    """What each request about tasks declares."""
    per_tool = True
    """Only tools that say so may be called as a task."""
    inline = False
    """A poll has questions and results; otherwise ``tasks/result`` gives both."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.cancels: bool = isinstance(settings.get("cancel"), dict)
        self.lists: bool = isinstance(settings.get("list"), dict)

    def augment(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a call that is to become a task."""
        return {**params, "task": {}}

    def created(self, result: Raw) -> TaskState | Invalid | None:
        """Return the task that answers a call; None if the answer is a plain result."""
        try:
            task = _created.decode(result).task
        except jsonrpc.MALFORMED:
            return None
        return None if task is UNSET else _state(task, None, core=True)

    def read(self, task_id: str, result: Raw) -> TaskState | Invalid:
        """Return the task of an answer to ``tasks/get``."""
        return _state(result, task_id, core=True)


class ExtensionTasks:
    """The extension ``io.modelcontextprotocol/tasks``: the server decides, if we declare it."""

    extensions: tuple[str, ...] = (TASKS,)
    per_tool = False
    inline = True
    cancels = True
    lists = False

    def augment(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def created(self, result: Raw) -> TaskState | Invalid | None:
        try:
            if _created.decode(result).resultType != "task":
                return None
        except jsonrpc.MALFORMED:
            return None
        return _state(result, None, core=False)

    def read(self, task_id: str, result: Raw) -> TaskState | Invalid:
        return _state(result, task_id, core=False)


TaskForm: TypeAlias = CoreTasks | ExtensionTasks
"""The way one connection has of asking for a task, and about it."""


def core_tasks(capabilities: Raw) -> TaskForm | None:
    """Return the form of a handshake session, if its server takes tool calls as tasks."""
    tasks = _inside(_decoded(capabilities), "tasks")
    return (
        CoreTasks(tasks) if isinstance(_inside(tasks, "requests", "tools", "call"), dict) else None
    )


def extension_tasks(capabilities: Raw) -> TaskForm | None:
    """Return the form of a stateless connection, if its server declares the extension."""
    settings = _inside(_decoded(capabilities), "extensions", TASKS)
    # A revision that we do not know must not be enabled.
    known = isinstance(settings, dict) and "revision" not in settings
    return ExtensionTasks() if known else None


def requires_tasks(code: int | None, data: Any) -> bool:
    """Return True if a server refused a call because it has to become a task.

    Tasks extension, Capability Negotiation: -32021 with the extension among the required.
    """
    found = _inside(data, "requiredCapabilities", "extensions")
    return code == MISSING_CAPABILITY and isinstance(found, dict) and TASKS in found


def about(task_id: str, method: str, **params: Any) -> OutgoingRequest:
    """Return a request about one task."""
    return OutgoingRequest(method, {"taskId": task_id, **params})


def listen(task_id: str) -> OutgoingRequest:
    """Return the request for a stream on which the server says that a task has changed."""
    return OutgoingRequest("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})


def changed(params: Raw | None) -> str | None:
    """Return the id of the task that a notification is about."""
    try:
        return None if params is None else _changed.decode(params).taskId
    except jsonrpc.MALFORMED:
        return None


def will_tell(task_id: str, acknowledgement: Raw) -> bool:
    """Return True if a server has agreed to say when a task changes."""
    try:
        return task_id in _acknowledged.decode(acknowledgement).notifications.taskIds
    except jsonrpc.MALFORMED:
        return False


def _decoded(raw: Raw) -> Any:
    """Return the value of JSON; None if it cannot be read."""
    try:
        return msgspec.json.decode(raw)
    except jsonrpc.MALFORMED:
        return None


def _inside(value: Any, *path: str) -> Any:
    """Return the value at a path of nested objects; None if there is none."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _state(raw: Raw, task_id: str | None, *, core: bool) -> TaskState | Invalid:
    try:
        task = _task.decode(raw)
    except jsonrpc.MALFORMED as error:
        return Invalid(f"the task cannot be read: {error}")
    # People store ids, paste them into commands and read them in errors.
    if not 0 < len(task.taskId) <= LONGEST_ID or has_unseen(task.taskId):
        return Invalid("the task has no usable id")
    if task_id is not None and task.taskId != task_id:
        return Invalid(f"it is about the task {task.taskId[:80]!r}")
    if task.status not in _STATUSES:
        return Invalid(f"a task cannot be {task.status[:80]!r}")
    try:
        requests = _requests.decode(task.inputRequests) if _given(task.inputRequests) else None
        fault = _error.decode(task.error) if _given(task.error) else None
    except jsonrpc.MALFORMED as error:
        return Invalid(f"the task cannot be read: {error}")
    result = task.result if _given(task.result) else None
    if not core and task_id is not None:
        promised = {"completed": result, "failed": fault, "input_required": requests}
        if promised.get(task.status, task) is None:
            return Invalid(f"a task that is {task.status} without {_PROMISED[task.status]}")
    return TaskState(
        id=task.taskId,
        status=task.status,
        message=_text(task.statusMessage) or None,
        created_at=_text(task.createdAt),
        updated_at=_text(task.lastUpdatedAt),
        ttl=_ttl(task.ttl if core else task.ttlMs),
        poll=_interval(task.pollInterval if core else task.pollIntervalMs),
        requests=requests or {},
        result=result,
        error=fault,
    )


def is_result(raw: Raw) -> bool:
    """Return False for what cannot be the result of a task: another task, or questions."""
    found = _created.decode(raw)
    plain = found.task is UNSET or bool(found.content)
    return found.resultType in (None, "complete") and plain


def _given(value: Raw) -> bool:
    """Return False for a field that is absent, or null: some servers write all of them."""
    return bytes(value) not in (b"", b"null")


def _number(value: Raw) -> int | float | None:
    """Return a number, or None for anything else: one out of range makes no task unreadable."""
    found = _decoded(value)
    return found if type(found) in (int, float) else None


def _interval(raw: Raw) -> float:
    """Return the seconds until the next poll, whatever the server asks for."""
    value = _number(raw)
    if value is None:
        return POLL
    return min(max(value, SHORTEST * 1000), LONGEST * 1000) / 1000


def _ttl(raw: Raw) -> float | None:
    value = _number(raw)
    return None if value is None or value < 1 else min(value, LONGEST_TTL) / 1000


def _text(value: Any) -> str:
    return value[:1000] if isinstance(value, str) else ""


class _Created(Struct):
    resultType: Any = None  # noqa: N815
    task: Raw | UnsetType = UNSET
    content: list[Any] | None = None


class _Task(Struct):
    taskId: str  # noqa: N815
    status: str
    statusMessage: Any = None  # noqa: N815
    createdAt: Any = None  # noqa: N815
    lastUpdatedAt: Any = None  # noqa: N815
    ttl: Raw = Raw()
    ttlMs: Raw = Raw()  # noqa: N815
    pollInterval: Raw = Raw()  # noqa: N815
    pollIntervalMs: Raw = Raw()  # noqa: N815
    inputRequests: Raw = Raw()  # noqa: N815
    result: Raw = Raw()
    error: Raw = Raw()


class _Changed(Struct):
    taskId: str  # noqa: N815


class _Filter(Struct):
    taskIds: list[str] = []  # noqa: N815


class _Acknowledged(Struct):
    notifications: _Filter = msgspec.field(default_factory=_Filter)


_created = msgspec.json.Decoder(_Created)
_task = msgspec.json.Decoder(_Task)
_requests = msgspec.json.Decoder(dict[str, Raw])
_error = msgspec.json.Decoder(ErrorObject)
_changed = msgspec.json.Decoder(_Changed)
_acknowledged = msgspec.json.Decoder(_Acknowledged)
