"""A task as each era writes it, and what may be promised of tasks to a host of the other era."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.eras.revisions import TASKS
from holdfast._core.eras.serving import Json
from holdfast._core.eras.tasks import TaskForm, TaskState
from holdfast._core.server.request import ServerRequest
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast.relay.envelope import fields_of, items_of, without_hop
from holdfast.types.lifecycle import RELATED_TASK

CREATED: Final = "task"
ENDED: Final = ("completed", "failed", "cancelled")
_CORE: Final = ("ttl", "pollInterval")
_EXTENSION: Final = ("ttlMs", "pollIntervalMs")
_OF_STATUS: Final = frozenset({"result", "error", "inputRequests", "resultType", "_meta"})
"""Fields of an answer of the extension that belong to the status, or to the answer."""
_TEXTS: Final = ("statusMessage", "createdAt", "lastUpdatedAt")


def promised(capabilities: Json, form: TaskForm | None, *, in_core: bool) -> Json:
    """Return the capabilities of a server, as a host of the other era is told them.

    Args:
        capabilities: The server's own.
        form: How the server does tasks; None: it does not.
        in_core: The host has tasks in the core of its revision, not as an extension.
    """
    passed = without_tasks(capabilities)
    if form is None:
        return passed
    if in_core:
        # The extension has no list.
        return {**passed, "tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}}}
    extensions = passed.get("extensions")
    others = extensions if isinstance(extensions, dict) else {}
    return {**passed, "extensions": {**others, TASKS: {}}}


def without_tasks(capabilities: Json) -> Json:
    """Return capabilities that promise no tasks, in the form of either era."""
    passed = {name: value for name, value in capabilities.items() if name != "tasks"}
    extensions = passed.get("extensions")
    if isinstance(extensions, dict) and TASKS in extensions:
        passed["extensions"] = {name: value for name, value in extensions.items() if name != TASKS}
    return passed


def task_fields(task: Raw, state: TaskState, form: TaskForm) -> Json:
    """Return a task of the server in the form of the other era; unknown fields pass.

    Args:
        task: The object of the task, as it came.
        state: What was read of it, within bounds.
        form: The server's.
    """
    fields = fields_of.decode(task)
    theirs, ours = (_CORE, _EXTENSION) if form.core else (_EXTENSION, _CORE)
    task_state = state.task
    shape: Json = {
        name: value
        for name, value in fields.items()
        if name not in _OF_STATUS and name not in theirs and name not in _TEXTS
    }
    shape["taskId"], shape["status"] = task_state.task_id, task_state.status
    now = datetime.now(UTC).isoformat()
    shape["createdAt"] = task_state.created_at or now
    shape["lastUpdatedAt"] = task_state.last_updated_at or now
    if task_state.status_message is not None:
        shape["statusMessage"] = fields["statusMessage"]
    shape[ours[0]] = task_state.ttl
    if theirs[1] in fields:
        shape[ours[1]] = task_state.poll_interval
    return shape


def created(answer: Raw, state: TaskState, form: TaskForm) -> Raw:
    """Return the answer that names a task, in the form of the other era."""
    fields = fields_of.decode(answer)
    task = fields[CREATED] if form.core else answer
    shape = task_fields(task, state, form)
    result: Json = {**shape, "resultType": CREATED} if form.core else {CREATED: shape}
    if "_meta" in fields:
        result["_meta"] = fields["_meta"]
    return Raw(encode(result))


def is_failure(result: Raw) -> bool:
    """Return whether a result is one of a tool that failed."""
    try:
        return bytes(fields_of.decode(result).get("isError", b"false")) == b"true"
    except MALFORMED:
        return False


def of_task(message: Raw, task_id: str) -> Raw:
    """Return parameters or a result with the mark of a task.

    2025-11-25 basic/utilities/tasks, Associating Task-Related Messages.
    """
    fields: dict[str, Any] = dict(fields_of.decode(message))
    meta = without_hop(fields_of.decode(fields.pop("_meta", Raw(b"{}"))))
    mark = {RELATED_TASK: {"taskId": task_id}}
    return Raw(encode({**fields, "_meta": {**meta, **mark}}))


def related_task(params: Raw) -> str | None:
    """Return the id of the task that a question is marked with."""
    if b"related-task" not in bytes(params):
        return None
    try:
        meta = msgspec.json.decode(params)["_meta"][RELATED_TASK]
        task_id = meta["taskId"]
    except (*MALFORMED, KeyError, TypeError):
        return None
    return task_id if isinstance(task_id, str) else None


def with_task_support(page: Raw) -> Raw:
    """Return a page of tools that says of each that a call may ask for a task.

    In the extension the server decides, call by call: what it does not make a task of is one that
    has ended.
    """
    try:
        fields: dict[str, Any] = dict(fields_of.decode(page))
        tools = [fields_of.decode(tool) for tool in items_of.decode(fields["tools"])]
    except (*MALFORMED, KeyError):
        return page
    support = {"execution": {"taskSupport": "optional"}}
    return Raw(encode({**fields, "tools": [{**tool, **support} for tool in tools]}))


def without_wish(request: ServerRequest) -> ServerRequest:
    """Return a call that does not want to become a task, in either era."""
    if request.stateless and request.era.takes_task({}):
        request.era = copy.copy(request.era)
        request.era.capabilities = without_tasks(request.era.capabilities)
    if "task" not in request.fields:
        return request
    fields = {name: value for name, value in request.fields.items() if name != "task"}
    return request.with_params(Raw(encode(fields)))
