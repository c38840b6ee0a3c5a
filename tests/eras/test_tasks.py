"""Tasks on the wire, in both forms."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from holdfast._core.boundary import WireId
from holdfast._core.eras import headers, tasks
from holdfast._core.eras.base import Invalid
from holdfast._core.eras.handshake import Handshake
from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, HANDSHAKE, STATELESS, TASKS
from holdfast._core.eras.stateless import Stateless
from holdfast._core.eras.tasks import TaskForm, TaskState
from tests.rows import rows

pytestmark = pytest.mark.req("K1")

CORE = Handshake(HANDSHAKE[0])
EXTENSION = Stateless(STATELESS[0], {}, {"roots": {}, "extensions": {"x/y": {}}})
OFFERED: dict[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}, "list": {}}}


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def task(**fields: Any) -> dict[str, Any]:
    return {"taskId": "t", "status": "working", **fields}


def state(found: Any) -> TaskState:
    assert isinstance(found, TaskState), found
    return found


@rows(
    "capabilities",
    [{}, {"tasks": {}}, {"tasks": []}, {"tasks": {"requests": {"tools": {}}}}, [], "x"],
)
def test_a_server_that_does_not_take_calls_as_tasks_has_no_form(capabilities: Any) -> None:
    assert CORE.tasks(raw(capabilities)) is None
    assert EXTENSION.tasks(raw(capabilities)) is None


def test_each_era_has_its_own_form() -> None:
    core = CORE.tasks(raw(OFFERED))
    assert core == TaskForm(core=True, lists=True, cancels=False)
    assert all(Handshake(version).tasks(raw(OFFERED)) is None for version in HANDSHAKE[1:])
    declared: dict[str, Any] = {"extensions": {TASKS: {}}}
    assert EXTENSION.tasks(raw(declared)) == TaskForm(core=False)
    assert EXTENSION.tasks(raw({"extensions": {TASKS: {"revision": "2"}}})) is None


def test_a_request_declares_the_extension_for_itself_alone() -> None:
    def declared(stamped: Any) -> Any:
        return json.loads(json.dumps(stamped["_meta"]))[CLIENT_CAPABILITIES]["extensions"]

    assert declared(EXTENSION.stamp({}, {"k": 1}, None, (TASKS,))) == {TASKS: {}, "x/y": {}}
    stamped = EXTENSION.stamp(None, None, WireId(7), (TASKS,))
    assert (declared(stamped), stamped["_meta"]["progressToken"]) == ({TASKS: {}, "x/y": {}}, 7)
    assert declared(EXTENSION.stamp({}, {})) == {"x/y": {}}
    assert CORE.stamp({"a": 1}, None, None, (TASKS,)) == {"a": 1}


def test_requests_about_a_task_name_it_in_a_header() -> None:
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        assert headers.standard("v", method, {"taskId": "t"})["Mcp-Name"] == "t"
    assert "Mcp-Name" not in headers.standard("v", "tasks/result", {"taskId": "t"})


def test_a_call_is_answered_with_a_task_or_with_a_result() -> None:
    core, extension = TaskForm(core=True), TaskForm(core=False)
    assert core.augment({"name": "x"}) == {"name": "x", "task": {}}
    assert extension.augment({"name": "x"}) == {"name": "x"}
    assert state(core.created(raw({"task": task()}))).task.task_id == "t"
    assert state(extension.created(raw({"resultType": "task", **task()}))).task.task_id == "t"
    plains: list[Any] = [{}, {"content": []}, {"resultType": "complete"}, [], {"resultType": 7}]
    for plain in plains:
        assert core.created(raw(plain)) is None
        assert extension.created(raw(plain)) is None


@rows(
    ("answer", "why"),
    [
        ([], "no usable id"),
        ({"status": "working"}, "no usable id"),
        (task(taskId=""), "no usable id"),
        (task(taskId="x" * 1025), "no usable id"),
        (task(taskId="other"), "about the task 'other'"),
        (task(status="paused"), "cannot be 'paused'"),
        (task(status="completed"), "without a result"),
        (task(status="failed"), "without an error"),
        (task(status="input_required"), "without inputRequests"),
        (task(status="input_required", inputRequests=[]), "without inputRequests"),
    ],
)
def test_an_invalid_answer_says_why(answer: Any, why: str) -> None:
    found = TaskForm(core=False).read(raw(answer), "t")
    assert isinstance(found, Invalid)
    assert why in found.reason


def test_a_poll_is_read_with_all_that_it_has() -> None:
    times = {"createdAt": "then", "lastUpdatedAt": "now", "statusMessage": "half"}
    found = state(
        TaskForm(core=False).read(raw(task(ttlMs=5000, pollIntervalMs=200, **times)), "t")
    )
    assert (found.task.ttl, found.poll, found.task.status_message) == (5000, 0.2, "half")
    assert (found.task.created_at, found.task.last_updated_at) == ("then", "now")
    assert not found.task.done
    done = state(TaskForm(core=False).read(raw(task(status="completed", result={"a": 1})), "t"))
    assert (done.task.done, bytes(done.result or b"")) == (True, b'{"a": 1}')
    core = state(
        TaskForm(core=True).read(raw(task(status="completed", ttl=1, pollInterval=5e9)), "t")
    )
    assert (core.task.ttl, core.poll, core.task.done) == (1, 60.0, True)
    assert state(TaskForm(core=True).read(raw(task(ttl=None)), "t")).task.ttl is None


NUMBERS = st.integers() | st.floats(allow_nan=False) | st.just(10**400)


@given(st.one_of(st.none(), st.booleans(), NUMBERS, st.text()))
def test_whatever_interval_is_asked_for_polls_are_bounded(value: Any) -> None:
    shown = "1e400" if value == float("inf") else json.dumps(value)
    text = f'{{"taskId":"t","status":"working","ttlMs":{shown},"pollIntervalMs":{shown}}}'
    found = TaskForm(core=False).read(Raw(text.encode()), "t")
    if isinstance(found, TaskState):
        assert tasks.SHORTEST <= found.poll <= tasks.LONGEST
        assert found.task.ttl is None or found.task.ttl > 0


def test_a_refusal_may_require_a_task() -> None:
    needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    assert tasks.requires_tasks(-32021, needed)
    assert not tasks.requires_tasks(-32602, needed)
    others: list[Any] = [None, [], {}, {"requiredCapabilities": {"sampling": {}}}]
    for data in others:
        assert not tasks.requires_tasks(-32021, data)


@rows(
    ("result", "good"),
    [
        ({"content": []}, True),
        ({"content": [], "resultType": "complete"}, True),
        ({"resultType": "task", "taskId": "u", "status": "working"}, False),
        ({"resultType": "input_required", "inputRequests": {}}, False),
        ({"task": task()}, False),
        ({"content": [{"type": "text", "text": "a"}], "task": "laundry"}, True),
    ],
)
def test_the_result_of_a_task_is_neither_a_task_nor_a_question(result: Any, good: bool) -> None:
    assert tasks.is_result(raw(result)) is good


def test_a_stream_of_changes_is_asked_for_by_the_id_of_a_task() -> None:
    request = tasks.listen("t")
    assert request.method == "subscriptions/listen"
    assert request.params == {"notifications": {"taskIds": ["t"]}}


@pytest.mark.parametrize(
    ("params", "task_id"),
    [(task(), "t"), ({"taskId": 5}, None), ([], None), (None, None)],
)
def test_a_notification_says_which_task_has_changed(params: Any, task_id: str | None) -> None:
    assert tasks.changed(None if params is None else raw(params)) == task_id


@pytest.mark.parametrize(
    ("agreed", "tells"),
    [
        ({"taskIds": ["t", "u"]}, True),
        ({"taskIds": ["u"]}, False),
        ({"toolsListChanged": True}, False),
        ({"taskIds": "t"}, False),
    ],
)
def test_an_acknowledgement_says_which_tasks_it_covers(agreed: Any, tells: bool) -> None:
    assert tasks.will_tell("t", raw({"notifications": agreed})) is tells
