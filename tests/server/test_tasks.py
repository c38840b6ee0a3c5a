"""Tasks of a server, in both forms."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from holdfast._core.eras.revisions import HANDSHAKE, STATELESS, TASKS
from holdfast._core.server.request import ServerRequest
from holdfast._core.server.server import Server
from holdfast._core.server.tasks import MOST, TaskCancelled, TaskTable
from holdfast._core.wire.codes import RequestError
from tests.server.wire import ALL_CAPABILITIES, Client, Wire

CORE, EXTENSION = HANDSHAKE[0], STATELESS[0]
TAKES = {**ALL_CAPABILITIES, "extensions": {TASKS: {}}}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}

pytestmark = pytest.mark.req("K1")


async def forever(request: ServerRequest) -> Any:
    await request.session.runner.answer()


async def greet(request: ServerRequest) -> Any:
    answer = await request.ask("elicitation/create", FORM)
    return {"content": [], "greeted": answer["content"]["name"]}


async def refuse(request: ServerRequest) -> Any:
    await request.sleep(0)
    raise RequestError(-32050, "no", {"why": "busy"})


async def fail(request: ServerRequest) -> Any:
    raise KeyError("lost")


async def count_down(request: ServerRequest) -> Any:
    request.progress(1, message="half of it")
    await request.session.runner.answer()


def give_up(request: ServerRequest) -> Any:
    raise TaskCancelled


def quick(request: ServerRequest) -> Any:
    return {"content": []}


TOOLS = {tool.__name__: tool for tool in (forever, greet, refuse, fail, count_down, give_up, quick)}


def make(version: str, capabilities: Any = TAKES) -> Client:
    numbers = count(1)
    table = TaskTable(
        lambda request: TOOLS[request.params["name"]](request),
        set(TOOLS),
        new_id=lambda: f"t-{next(numbers)}",
        now=lambda: "now",
    )
    return Client(Wire(Server("test", table.handlers())), version, capabilities)


def begin(client: Client, name: str) -> dict[str, Any]:
    """Call a tool as a task, and return the task."""
    wanted: dict[str, Any] = {} if client.is_stateless else {"task": {}}
    result: dict[str, Any] = client.result("tools/call", {"name": name, **wanted})
    client.wire.rest()
    task: dict[str, Any] = result if client.is_stateless else result["task"]
    return task


def poll(client: Client, task_id: str = "t-1") -> dict[str, Any]:
    found: dict[str, Any] = client.result("tasks/get", {"taskId": task_id})
    return found


@pytest.mark.parametrize("version", [CORE, EXTENSION])
def test_a_call_becomes_a_task_where_the_client_takes_one(version: str) -> None:
    client = make(version)
    task = begin(client, "quick")
    assert (task["taskId"], task["createdAt"]) == ("t-1", "now")
    assert poll(client)["status"] == "completed"
    plain = make(version, ALL_CAPABILITIES)
    assert "taskId" not in plain.result("tools/call", {"name": "quick"})


def test_no_earlier_revision_has_tasks() -> None:
    client = make(HANDSHAKE[1])
    assert client.result("tools/call", {"name": "quick", "task": {}}) == {"content": []}


def test_the_extension_has_the_outcome_in_the_poll() -> None:
    client = make(EXTENSION)
    assert begin(client, "quick")["resultType"] == "task"
    assert poll(client)["result"] == {"content": [], "resultType": "complete"}
    begin(client, "refuse")
    found = poll(client, "t-2")
    refused = {"code": -32050, "message": "no", "data": {"why": "busy"}}
    assert (found["status"], found["error"]) == ("failed", refused)
    begin(client, "fail")
    assert poll(client, "t-3")["error"]["message"] == "internal error: KeyError('lost')"


def test_the_core_has_the_outcome_in_its_result() -> None:
    client = make(CORE)
    begin(client, "quick")
    assert client.result("tasks/result", {"taskId": "t-1"}) == {"content": []}
    begin(client, "refuse")
    refused = client.error("tasks/result", {"taskId": "t-2"})
    assert (refused["code"], refused["data"]) == (-32050, {"why": "busy"})
    listed = client.result("tasks/list")["tasks"]
    assert [task["status"] for task in listed] == ["completed", "failed"]


def test_a_result_is_waited_for() -> None:
    client = make(CORE)
    begin(client, "forever")
    waiting = client.start("tasks/result", {"taskId": "t-1"})
    assert client.wire.rest() == []
    assert client.result("tasks/cancel", {"taskId": "t-1"})["status"] == "cancelled"
    (answer,) = client.wire.rest()
    assert (answer["id"], answer["error"]["message"]) == (waiting, "cancelled")
    assert client.error("tasks/cancel", {"taskId": "t-1"})["code"] == -32602


def test_a_cancelled_task_stays_cancelled() -> None:
    client = make(EXTENSION)
    begin(client, "forever")
    assert client.result("tasks/cancel", {"taskId": "t-1"})["resultType"] == "complete"
    assert client.result("tasks/cancel", {"taskId": "t-1"})["resultType"] == "complete"
    assert poll(client)["status"] == "cancelled"


@pytest.mark.parametrize("version", [CORE, EXTENSION])
def test_progress_is_the_message_of_the_status(version: str) -> None:
    client = make(version)
    begin(client, "count_down")
    assert poll(client)["statusMessage"] == "half of it"


def test_a_tool_may_end_its_task_as_cancelled() -> None:
    client = make(EXTENSION)
    begin(client, "give_up")
    assert poll(client)["status"] == "cancelled"


def test_a_task_that_was_begun_under_an_id_is_known_by_it() -> None:
    table = TaskTable(quick, set(), new_id=lambda: "other", now=lambda: "now")
    handlers = {**table.handlers(), "tools/call": lambda one: table.begin(one, quick, "mine")}
    client = Client(Wire(Server("test", handlers)), EXTENSION, TAKES)
    assert not table.knows("mine")
    begin(client, "quick")
    assert table.knows("mine")
    assert poll(client, "mine")["status"] == "completed"


def test_a_task_asks_and_goes_on_with_the_answer() -> None:
    client = make(EXTENSION)
    begin(client, "greet")
    found = poll(client)
    assert (found["status"], list(found["inputRequests"])) == ("input_required", ["input"])
    client.result("tasks/update", {"taskId": "t-1", "inputResponses": {"other": {}}})
    assert poll(client)["status"] == "input_required"
    answer = {"action": "accept", "content": {"name": "Ada"}}
    client.result("tasks/update", {"taskId": "t-1", "inputResponses": {"input": answer}})
    client.wire.rest()
    assert poll(client)["result"]["greeted"] == "Ada"
    assert client.error("tasks/update", {"taskId": "t-1"})["code"] == -32602


@pytest.mark.parametrize("version", [CORE, EXTENSION])
def test_an_unknown_task_is_refused(version: str) -> None:
    client = make(version)
    error = client.error("tasks/get", {"taskId": "none"})
    assert (error["code"], error["message"]) == (-32602, "Task not found")


def test_the_oldest_tasks_are_forgotten_first() -> None:
    client = make(EXTENSION)
    for _ in range(MOST + 1):
        begin(client, "quick")
    assert client.error("tasks/get", {"taskId": "t-1"})["code"] == -32602
    assert poll(client, "t-2")["status"] == "completed"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_client_that_does_not_declare_tasks_may_not_ask_about_them(method: str) -> None:
    error = make(EXTENSION, ALL_CAPABILITIES).error(method, {"taskId": "t-1"})
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
