"""Tasks in both forms: driven to their end, resumed by id, bounded whatever the server does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import (
    Backoff,
    Handlers,
    ProtocolError,
    RequestTimeout,
    RpcError,
    StateError,
    Timeouts,
    ToolPolicy,
)
from holdfast._core.eras.revisions import TASKS
from holdfast._core.serve.http import HttpServer
from holdfast.calllog.entries import read_log
from holdfast.calllog.mock import MockServer
from holdfast.errors import CancelledCallError
from holdfast.policies import Identity
from holdfast.testing import SILENCE, Peer, RequestError, ServerRequest
from holdfast.types import RELATED_TASK, Task
from tests.rows import rows
from tests.skipping import ends_within

EXTENSION, CORE = "2026-07-28", "2025-11-25"
DONE = {"content": [{"type": "text", "text": "done"}]}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
FORMS = pytest.mark.parametrize("version", [EXTENSION, CORE])

pytestmark = pytest.mark.req("K1")


class Worker(Peer):
    """A server whose tool becomes a task, and whose tasks go through a script of states.

    The last state of the script stays.
    """

    def __init__(self, version: str = EXTENSION, support: str = "optional") -> None:
        core: dict[str, Any] = {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}
        super().__init__(
            "worker",
            versions=[version],
            capabilities={"tools": {}, "tasks": core, "extensions": {TASKS: {}}},
        )
        self.core = version == CORE
        self.script: list[dict[str, Any]] = [{"status": "completed", "result": DONE}]
        self.seed: dict[str, Any] = {}
        self.plain: list[str] = []
        self.tool(execution={"taskSupport": support})(work)
        self.on("tools/call", self.call)
        self.on("tasks/get", self.get)
        self.on("tasks/result", lambda _: self.result())
        self.on("tasks/cancel", lambda _: {})
        self.on("tasks/update", lambda _: {})

    def count(self, method: str) -> int:
        return sum(one.method == method for one in self.received)

    def call(self, incoming: ServerRequest) -> Any:
        if self.core:
            if "task" not in incoming.params:
                return DONE
            return {"task": self.task({"status": "working"} | self.seed)}
        if TASKS not in incoming.meta[CAPABILITIES].get("extensions", {}):
            return DONE
        return {"resultType": "task", **self.task({"status": "working"} | self.seed)}

    def task(self, state: dict[str, Any]) -> dict[str, Any]:
        made = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
        times = {"ttl": None, "pollInterval": 1} if self.core else {"ttlMs": None} | POLL
        return {"taskId": "t-1", **made, **times, **state}

    def get(self, incoming: ServerRequest) -> Any:
        polls = self.count("tasks/get")
        return self.task(self.script[min(polls, len(self.script)) - 1])

    def result(self) -> Any:
        state = self.script[-1]
        if "error" in state:
            raise RequestError(state["error"]["code"], state["error"]["message"])
        return state["result"]


POLL = {"pollIntervalMs": 1}


def work() -> str:
    return "done"


def connect(peer: Worker, **options: Any) -> holdfast.Client:
    return holdfast.connect(peer, backoff=Backoff(first=0.001, max=0.001), **options)


# Driven to the end


@FORMS
async def test_a_call_becomes_a_task_and_returns_its_result(version: str) -> None:
    peer = Worker(version)
    peer.script.insert(0, {"status": "working", "statusMessage": "half"})
    seen: list[Task] = []
    async with connect(peer) as client:
        result = await client.call_tool("work", task=True, on_task=seen.append)
    assert result.text == "done"
    assert [(one.task_id, one.status, one.status_message) for one in seen] == [
        ("t-1", "working", None),
        ("t-1", "working", "half"),
        ("t-1", "completed", None),
    ]
    assert peer.count("tasks/result") == (1 if peer.core else 0)
    if not peer.core:
        polls = [one for one in peer.received if one.method == "tasks/get"]
        assert all(TASKS in one.meta[CAPABILITIES]["extensions"] for one in polls)


@FORMS
async def test_nothing_becomes_a_task_unless_asked(version: str) -> None:
    peer = Worker(version)
    async with connect(peer) as client:
        assert (await client.call_tool("work")).text == "done"
    assert peer.count("tasks/get") == 0
    (call,) = (one for one in peer.received if one.method == "tools/call")
    assert "task" not in call.params
    assert "extensions" not in call.meta.get(CAPABILITIES, {})


async def test_declaring_the_extension_asks_for_all_calls() -> None:
    peer = Worker()
    declared = Identity(capabilities={"extensions": {TASKS: {}}})
    async with connect(peer, identity=declared) as client:
        await client.call_tool("work")
    assert peer.count("tasks/get") == 1


async def test_a_tool_that_requires_a_task_gets_one() -> None:
    peer = Worker(CORE, "required")
    async with connect(peer) as client:
        await client.call_tool("work")
    assert peer.count("tasks/result") == 1


async def test_a_server_that_requires_a_task_gets_one() -> None:
    peer = Worker()
    plain = peer.call

    def insist(incoming: ServerRequest) -> Any:
        if "extensions" not in incoming.meta[CAPABILITIES]:
            needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise RequestError(-32021, "a task is needed", needed)
        return plain(incoming)

    peer.on("tools/call", insist)
    async with connect(peer) as client:
        assert (await client.call_tool("work")).text == "done"
        with pytest.raises(RpcError) as caught:
            await client.call_tool("work", task=False)
        assert caught.value.code == -32021
    assert peer.count("tasks/get") == 1


@pytest.mark.parametrize("support", ["forbidden", "unheard-of"])
async def test_a_tool_that_forbids_tasks_gets_a_plain_call(support: str) -> None:
    peer = Worker(CORE, support)
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"
    assert peer.count("tasks/get") == 0


async def test_tools_are_listed_where_that_decides() -> None:
    peer = Worker(CORE)
    async with connect(peer, tools=ToolPolicy(validate="off")) as client:
        await client.call_tool("work", task=True)
    assert (peer.count("tools/list"), peer.count("tasks/get")) == (1, 1)


@pytest.mark.parametrize(
    "capabilities", [{"tools": {}}, {"tools": {}, "extensions": {TASKS: {"revision": "9"}}}]
)
async def test_a_server_without_tasks_is_asked_for_none(capabilities: dict[str, Any]) -> None:
    peer = Worker()
    peer.capabilities = capabilities
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"
        with pytest.raises(StateError, match="does not offer tasks"):
            await client.get_task("t-1")


async def test_a_task_that_was_not_declared_is_an_invalid_answer() -> None:
    peer = Worker()
    peer.on("tools/call", lambda _: {"resultType": "task", **peer.task({"status": "working"})})
    async with connect(peer) as client:
        with pytest.raises(ProtocolError, match="'task'"):
            await client.call_tool("work")


@FORMS
async def test_a_failed_task_raises_the_error_of_the_server(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "failed", "error": {"code": -32603, "message": "no quota"}}]
    async with connect(peer) as client:
        with pytest.raises(RpcError, match="no quota") as caught:
            await client.call_tool("work", task=True)
    assert (caught.value.code, caught.value.task_id) == (-32603, "t-1")
    assert not caught.value.outcome_unknown


@FORMS
async def test_a_tool_error_is_a_result(version: str) -> None:
    peer = Worker(version)
    status = "failed" if peer.core else "completed"
    peer.script = [{"status": status, "result": DONE | {"isError": True}}]
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).is_error


@FORMS
async def test_a_task_that_the_server_cancelled_has_no_known_outcome(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "cancelled", "statusMessage": "by\nan operator"}]
    async with connect(peer) as client:
        with pytest.raises(CancelledCallError, match=r"by\\nan operator") as caught:
            await client.call_tool("work", task=True)
    assert caught.value.outcome_unknown
    assert peer.count("tasks/cancel") == 0


@FORMS
@pytest.mark.parametrize("status", ["completed", "input_required"])
async def test_a_task_may_be_past_working_when_it_is_made(version: str, status: str) -> None:
    peer = Worker(version)
    peer.seed = {"status": status}
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"


async def test_progress_under_the_token_of_the_call_goes_on() -> None:
    peer = Worker(CORE)
    token: list[Any] = []

    def call(incoming: ServerRequest) -> Any:
        token.append(incoming.meta["progressToken"])
        return {"task": peer.task({"status": "working"})}

    def get(incoming: ServerRequest) -> Any:
        peer.notify("notifications/progress", {"progressToken": token[0], "progress": 7})
        return peer.task({"status": "completed"})

    peer.on("tools/call", call)
    peer.on("tasks/get", get)
    seen: list[float] = []
    async with connect(peer) as client:
        notified: list[Any] = []
        client.on_notification(notified.append)
        await client.call_tool(
            "work", task=True, on_progress=lambda progress: seen.append(progress.progress)
        )
        peer.notify("notifications/progress", {"progressToken": token[0], "progress": 8})
        await client.ping()
    assert (seen, notified) == ([7], [])


# Questions


def form(message: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    return {
        "method": "elicitation/create",
        "params": {"message": message, "requestedSchema": schema},
    }


async def test_each_question_is_answered_once() -> None:
    peer = Worker()
    both = {"a": form("A?"), "b": form("B?")}
    asking = {"status": "input_required"}
    peer.script = [
        asking | {"inputRequests": {"a": form("A?")}},
        asking | {"inputRequests": both},
        asking | {"inputRequests": both},
        *peer.script,
    ]
    asked: list[str] = []

    def elicit(request: Any) -> Any:
        asked.append(request.message)
        return {"action": "accept", "content": {"name": request.message}}

    async with connect(peer, handlers=Handlers(elicitation=elicit)) as client:
        await client.call_tool("work", task=True)
    assert asked == ["A?", "B?"]
    updates = [one.params for one in peer.received if one.method == "tasks/update"]
    assert [list(one["inputResponses"]) for one in updates] == [["a"], ["b"]]
    assert updates[0]["inputResponses"]["a"]["content"] == {"name": "A?"}


async def test_an_answer_that_was_lost_is_sent_again_without_asking_again() -> None:
    peer = Worker()
    asking = {"status": "input_required", "inputRequests": {"a": form("A?")}}
    peer.script = [asking, asking, *peer.script]
    asked: list[Any] = []

    def update(incoming: ServerRequest) -> Any:
        if peer.count("tasks/update") < 3:  # the request, and its one repetition
            peer.hang_up()
            return SILENCE
        return {}

    def elicit(request: Any) -> Any:
        asked.append(request)
        return {"action": "decline"}

    peer.on("tasks/update", update)
    async with connect(peer, handlers=Handlers(elicitation=elicit)) as client:
        await client.call_tool("work", task=True)
    assert len(asked) == 1


async def test_a_key_that_comes_for_another_question_is_a_violation() -> None:
    peer = Worker()
    asking = {"status": "input_required"}
    peer.script = [
        asking | {"inputRequests": {"a": form("A?")}},
        asking | {"inputRequests": {"a": form("Your password?")}},
    ]
    handlers = Handlers(elicitation=lambda request: {"action": "decline"})
    async with connect(peer, handlers=handlers) as client:
        with pytest.raises(ProtocolError, match="two questions") as caught:
            await client.call_tool("work", task=True)
    assert (caught.value.outcome_unknown, caught.value.task_id) == (True, "t-1")


async def test_questions_of_the_core_come_while_the_result_is_asked_for() -> None:
    peer = Worker(CORE)
    peer.script = [{"status": "input_required"}, {"status": "completed", "result": DONE}]
    mark = {"_meta": {RELATED_TASK: {"taskId": "t-1"}}}
    answers: list[Any] = []

    async def result(incoming: ServerRequest) -> Any:
        answers.append(await peer.ask("elicitation/create", form("A?")["params"] | mark))
        return DONE

    peer.on("tasks/result", result)
    handlers = Handlers(elicitation=lambda request: {"action": "decline"})
    async with connect(peer, handlers=handlers) as client:
        assert (await client.call_tool("work", task=True)).text == "done"
    assert answers == [{"action": "decline", **mark}]


# Faults


@rows(
    "answer",
    [
        {"taskId": "t-2", "status": "completed", "result": DONE},
        {"taskId": "t-1", "status": "paused"},
        {"taskId": "t-1", "status": "completed"},
        {"taskId": "t-1", "status": "completed", "result": None},
        {"taskId": "t-1", "status": "completed", "result": []},
        {"taskId": "t-1", "status": "completed", "result": {"resultType": "task"}},
        {"taskId": "t-1", "status": "completed", "result": {"resultType": "input_required"}},
        {"taskId": "t-1", "status": "completed", "result": {"task": {"taskId": "t-2"}}},
        {"taskId": "t-1", "status": "failed"},
        {"taskId": "t-1", "status": "failed", "error": "text"},
        {"taskId": "t-1", "status": "input_required"},
        {"taskId": "t-1"},
        {"status": "completed", "result": DONE},
        {},
    ],
)
async def test_an_answer_that_is_no_task_ends_the_call_in_doubt(answer: dict[str, Any]) -> None:
    peer = Worker()
    peer.on("tasks/get", lambda _: answer)
    async with connect(peer) as client:
        with pytest.raises(ProtocolError) as caught:
            await client.call_tool("work", task=True)
    assert (caught.value.outcome_unknown, caught.value.task_id) == (True, "t-1")
    assert "resume_task('t-1')" in str(caught.value)


@pytest.mark.parametrize(
    "created",
    [
        {"taskId": ""},
        {"taskId": 7},
        {"taskId": "x" * 1025},
        {"taskId": "t\nholdfast: approved"},
        {"taskId": "\x1b[2J"},
        {"status": "x"},
    ],
)
@FORMS
async def test_a_task_without_id_or_status_is_refused(version: str, created: Any) -> None:
    peer = Worker(version)
    peer.seed = created
    async with connect(peer) as client:
        with pytest.raises(ProtocolError):
            await client.call_tool("work", task=True)


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [(0, 0.05), (-1, 0.05), (0.5, 0.05), (1e9, 60), ("1", 1), (None, 1), (True, 1), (70, 0.07)],
)
@FORMS
async def test_intervals_are_held_between_bounds(
    version: str, interval: Any, seconds: float
) -> None:
    peer = Worker(version)
    key = "pollInterval" if peer.core else "pollIntervalMs"
    peer.script = [{"status": "working", key: interval}]
    async with connect(peer) as client:
        assert (await client.get_task("t-1")).poll_interval == int(seconds * 1000)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 400, "-0.0", '{"a":1}', "[]"])
@pytest.mark.parametrize("field", ["ttlMs", "pollIntervalMs"])
async def test_no_number_makes_a_task_unreadable(number: str, field: str) -> None:
    peer = Worker()

    def get(incoming: ServerRequest) -> Any:
        task = {"resultType": "complete", **peer.task(peer.script[0]), field: "?"}
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": incoming.id, "result": task})
        peer.write(line.replace(b'"?"', number.encode()) + b"\n")
        return SILENCE

    peer.on("tasks/get", get)
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"


@FORMS
async def test_fields_that_are_null_are_absent(version: str) -> None:
    peer = Worker(version)
    nothing = dict.fromkeys(("result", "inputRequests", "statusMessage", "ttl", "ttlMs"))
    peer.script = [
        {**nothing, "status": "working", "error": None},
        {**nothing, "status": "completed", "result": DONE},
    ]
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"


@pytest.mark.parametrize("task_id", ["", 7, None, "x" * 1025])
async def test_what_cannot_be_an_id_is_never_sent(task_id: Any) -> None:
    peer = Worker()
    async with connect(peer) as client:
        for verb in (client.get_task, client.cancel_task, client.resume_task):
            with pytest.raises(holdfast.ValidationError, match="not the id of a task"):
                await verb(task_id)
    assert not [one for one in peer.received if one.method.startswith("tasks/")]


async def test_nothing_is_asked_after_the_end() -> None:
    peer = Worker()
    peer.script = [{"status": "completed", "result": DONE}, {"status": "working"}]
    async with connect(peer) as client:
        await client.call_tool("work", task=True)
        assert peer.count("tasks/get") == 1


@FORMS
async def test_the_connection_may_be_lost_between_polls(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "working"}] * 4 + peer.script

    def get(incoming: ServerRequest) -> Any:
        polls = peer.count("tasks/get")
        if polls in (1, 3):
            peer.hang_up()
            return SILENCE
        return Worker.get(peer, incoming)

    peer.on("tasks/get", get)
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"
    assert peer.connections == 3
    assert peer.count("tools/call") == 1


@FORMS
async def test_a_server_that_forgot_the_task_leaves_the_outcome_unknown(version: str) -> None:
    peer = Worker(version)

    def get(incoming: ServerRequest) -> Any:
        raise RequestError(-32602, "Task not found")

    peer.on("tasks/get", get)
    async with connect(peer) as client:
        with pytest.raises(RpcError, match=r"no longer knows it: .*Task not found") as caught:
            await client.call_tool("work", task=True)
    assert (caught.value.code, caught.value.outcome_unknown) == (-32602, True)
    assert peer.count("tasks/get") == 1


async def test_internal_errors_of_polls_are_tried_again_a_few_times() -> None:
    peer = Worker()

    def get(failures: int) -> Callable[[ServerRequest], Any]:
        def answer(incoming: ServerRequest) -> Any:
            if peer.count("tasks/get") <= failures:
                raise RequestError(-32603, "busy")
            return Worker.get(peer, incoming)

        return answer

    async with connect(peer) as client:
        peer.on("tasks/get", get(2))
        assert (await client.call_tool("work", task=True)).text == "done"
        peer.on("tasks/get", get(99))
        with pytest.raises(RpcError, match="busy") as caught:
            await client.call_tool("work", task=True)
        assert caught.value.outcome_unknown


# Pushed


class Teller(Worker):
    """A server that wants to be polled seldom, and may say when a task changes."""

    def __init__(self, grants: list[str] | None, every: int = 60_000) -> None:
        super().__init__()
        self.seed = {"pollIntervalMs": every}
        self.grants = grants
        self.listeners: list[ServerRequest] = []
        self.most = 0
        self.on("subscriptions/listen", self.listen)

    def listen(self, incoming: ServerRequest) -> Any:
        if self.grants is None:
            raise RequestError(-32601, "method not found")
        self.listeners.append(incoming)
        self.most = max(self.most, sum(not one.cancelled for one in self.listeners))
        self.tell("subscriptions/acknowledged", {"notifications": {"taskIds": self.grants}})
        return SILENCE

    def tell(self, name: str, params: dict[str, Any]) -> None:
        listener = self.listeners[-1]
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": listener.id}}
        listener.session.notify(f"notifications/{name}", {**params, **meta})

    def get(self, incoming: ServerRequest) -> Any:
        for _ in range(50 if self.grants == ["t-1"] else 0):
            self.tell("tasks", self.task({"status": "working"}))
            self.tell("tasks", {"taskId": "t-2", "status": "completed"})
            self.tell("tasks", {"status": "odd"})
        return super().get(incoming)


async def test_a_change_that_the_server_tells_of_ends_the_pause() -> None:
    peer = Teller(["t-1"])
    slow = {"status": "working", "pollIntervalMs": 60_000}
    peer.script = [slow, slow, *peer.script]
    async with connect(peer) as client, asyncio.timeout(50):
        assert (await client.call_tool("work", task=True)).text == "done"
        assert peer.count("tasks/get") == 3, "told of without end, it polls no faster than it may"
        (listen,) = [one for one in peer.received if one.method == "subscriptions/listen"]
        assert listen.params["notifications"] == {"taskIds": ["t-1"]}
        assert TASKS in listen.meta[CAPABILITIES]["extensions"]
        await client.list_tools()
        assert peer.listeners[0].cancelled, "the stream ends with the task"


@pytest.mark.parametrize("grants", [None, [], ["t-2"]])
async def test_a_server_that_tells_nothing_is_polled(grants: list[str] | None) -> None:
    peer = Teller(grants, every=1_001)
    peer.script = [{"status": "working", **peer.seed}, *peer.script]
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"
        assert (peer.count("subscriptions/listen"), peer.count("tasks/get")) == (1, 2)


async def test_only_some_of_many_tasks_have_a_stream() -> None:
    peer = Teller([f"t-{number}" for number in range(20)])
    ids = iter(peer.grants or ())

    def call(incoming: ServerRequest) -> Any:
        made = peer.task({"status": "working", "pollIntervalMs": 1_001})
        return {"resultType": "task", **made, "taskId": next(ids)}

    peer.on("tools/call", call)
    peer.on(
        "tasks/get",
        lambda incoming: peer.task(peer.script[0]) | {"taskId": incoming.params["taskId"]},
    )
    async with connect(peer) as client:
        calls = [client.call_tool("work", task=True) for _ in range(20)]
        assert {one.text for one in await asyncio.gather(*calls)} == {"done"}
        assert 1 <= peer.most <= 8


@FORMS
async def test_at_the_end_of_its_time_a_task_is_cancelled(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "working"}]
    async with connect(peer) as client:
        with pytest.raises(RequestTimeout, match="total_timeout") as caught:
            await client.call_tool("work", task=True, total_timeout=0.1505)  # between two polls
        cancel = await peer.expect("tasks/cancel")
    assert cancel.params["taskId"] == "t-1"
    assert (caught.value.outcome_unknown, caught.value.task_id) == (True, "t-1")
    assert peer.count("notifications/cancelled") == 0


async def test_a_poll_without_an_answer_is_given_up_and_made_again() -> None:
    peer = Worker()

    def get(incoming: ServerRequest) -> Any:
        return SILENCE if peer.count("tasks/get") == 1 else Worker.get(peer, incoming)

    peer.on("tasks/get", get)
    async with connect(peer) as client:
        await client.list_tools()
        assert (await client.call_tool("work", task=True, timeout=0.1, total_timeout=20)).text


async def test_a_silent_server_is_left_at_the_end_of_the_time() -> None:
    peer = Worker()
    peer.on("tasks/get", lambda _: SILENCE)
    async with connect(peer) as client:
        with pytest.raises(RequestTimeout) as caught:
            await client.call_tool("work", task=True, timeout=0.05, total_timeout=0.3)
    assert caught.value.task_id == "t-1"


@FORMS
async def test_a_task_that_outlives_its_ttl_is_given_up(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "working", "ttl" if peer.core else "ttlMs": 60}]
    async with connect(peer) as client:
        with pytest.raises(RequestTimeout, match="time to live") as caught:
            await client.call_tool("work", task=True)
    assert caught.value.outcome_unknown


async def test_a_server_cannot_ask_without_end() -> None:
    peer = Worker()
    numbers: Iterator[int] = iter(range(10_000))

    def get(incoming: ServerRequest) -> Any:
        asked = {str(next(numbers)): {"method": "roots/list"} for _ in range(64)}
        return peer.task({"status": "input_required", "inputRequests": asked})

    peer.on("tasks/get", get)
    async with connect(peer, handlers=Handlers(roots=[])) as client:
        with pytest.raises(ProtocolError, match="more than 1000 questions"):
            await client.call_tool("work", task=True)


# Cancelled, detached, resumed


@FORMS
async def test_cancelling_the_caller_cancels_the_task(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "working"}]
    async with connect(peer) as client:
        running = client.start_tool("work", task=True)
        task = await running.wait_task()
        assert task is not None
        assert task.status == "working"
        running.cancel()
        with pytest.raises(CancelledCallError) as caught:
            await running
        await peer.expect("tasks/cancel")
    assert (caught.value.task_id, caught.value.outcome_unknown) == ("t-1", True)
    assert peer.count("notifications/cancelled") == 0


@FORMS
async def test_a_task_that_is_named_after_its_caller_gave_up_is_cancelled(version: str) -> None:
    peer, named = Worker(version), asyncio.Event()

    async def slow(incoming: ServerRequest) -> Any:
        await named.wait()
        return peer.call(incoming)

    peer.on("tools/call", slow)
    async with connect(peer) as client:
        running = client.start_tool("work", task=True)
        await peer.expect("tools/call")
        running.cancel()
        with pytest.raises(CancelledCallError) as caught:
            await running
        assert caught.value.outcome_unknown
        named.set()
        assert (await peer.expect("tasks/cancel")).params["taskId"] == "t-1"
    assert peer.count("notifications/cancelled") == 0


@FORMS
@pytest.mark.parametrize("turns", range(12))
async def test_a_call_that_was_cancelled_before_it_was_sent_is_never_sent(
    version: str, turns: int
) -> None:
    peer = Worker(version)
    async with connect(peer) as client:
        await client.list_tools()
        running = client.start_tool("work", task=True)
        for _ in range(turns):
            await asyncio.sleep(0)
        sent = client._requester.driver._waiters != {} or peer.count("tools/call") > 0
        if not running.cancel():
            return
        with pytest.raises(CancelledCallError) as caught:
            await running
        await client.list_tools(cache="bypass")
        assert (caught.value.outcome_unknown, peer.count("tools/call") > 0) == (sent, sent)


async def test_a_call_that_becomes_no_task_is_cancelled_as_a_call() -> None:
    peer = Worker()
    peer.on("tools/call", SILENCE)
    async with connect(peer) as client:
        running = client.start_tool("work", task=True)
        await peer.expect("tools/call")
        running.cancel()
        await peer.expect("notifications/cancelled")
        with pytest.raises(CancelledCallError):
            await running


async def test_a_server_without_cancellation_is_not_asked_for_it() -> None:
    peer = Worker(CORE)
    peer.capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    peer.script = [{"status": "working"}]
    async with connect(peer) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("work", task=True, total_timeout=0.1)
        with pytest.raises(StateError, match="tasks/cancel"):
            await client.cancel_task("t-1")
        with pytest.raises(StateError, match="tasks/list"):
            await client.list_tasks()
    assert peer.count("tasks/cancel") == 0


@FORMS
async def test_a_detached_task_goes_on_and_is_resumed_by_another_client(version: str) -> None:
    peer = Worker(version)
    finished, peer.script = peer.script, [{"status": "working"}]
    async with connect(peer) as client:
        running = client.start_tool("work", task=True)
        await running.wait_task()
        task_id = running.detach()
        with pytest.raises(CancelledCallError, match="goes on"):
            await running
    assert peer.count("tasks/cancel") == 0
    peer.script = finished
    async with connect(peer) as other:
        assert (await other.get_task(task_id)).done
        assert (await other.resume_task(task_id)).text == "done"
    assert peer.count("tools/call") == 1


async def test_a_call_that_is_no_task_cannot_be_detached() -> None:
    peer = Worker()
    async with connect(peer) as client:
        running = client.start_tool("work")
        assert await running.wait_task() is None
        with pytest.raises(StateError, match="not become a task"):
            running.detach()


async def test_cancelling_and_completing_may_meet() -> None:
    peer = Worker()
    states = iter([peer.task({"status": "working"}), peer.task(peer.script[0])])
    peer.on("tasks/get", lambda _: next(states))
    async with connect(peer) as client:
        await client.cancel_task("t-1")
        assert (await client.resume_task("t-1")).text == "done"


async def test_tasks_are_listed_where_the_server_has_a_list() -> None:
    peer = Worker(CORE)
    peer.on("tasks/list", lambda _: {"tasks": [peer.task({"status": "working"})]})
    async with connect(peer) as client:
        assert [task.task_id for task in await client.list_tasks()] == ["t-1"]


async def test_a_closed_client_ends_the_wait_and_names_the_task() -> None:
    peer = Worker()
    peer.script = [{"status": "working"}]
    peer.on("tasks/get", lambda _: SILENCE)
    client = connect(peer)
    running = client.start_tool("work", task=True)
    await peer.expect("tasks/get")
    await client.close()
    with pytest.raises(holdfast.errors.ShutdownError) as caught:
        await running
    assert (caught.value.task_id, caught.value.outcome_unknown) == ("t-1", True)


@FORMS
@pytest.mark.req("L7")
async def test_a_close_ends_the_pause_between_two_polls(version: str) -> None:
    peer = Worker(version)
    peer.seed = {"pollInterval": 50_000} if peer.core else {"pollIntervalMs": 50_000}
    client = connect(peer)
    running = client.start_tool("work", task=True)
    await running.wait_task()
    await client.close()
    with pytest.raises(
        holdfast.errors.ShutdownError, match="'t-1': the client was closed"
    ) as caught:
        await asyncio.wait_for(running, 5)
    assert (caught.value.task_id, caught.value.outcome_unknown) == ("t-1", True)


async def test_a_server_that_never_comes_back_is_given_up() -> None:
    peer = Worker()

    def get(incoming: ServerRequest) -> Any:
        peer.versions = ["2024-11-05"]
        peer.hang_up()
        return SILENCE

    peer.on("tasks/get", get)
    async with connect(peer, timeouts=Timeouts(handshake=0.2)) as client:
        with pytest.raises(holdfast.HoldfastError) as caught:
            await client.call_tool("work", task=True, total_timeout=3)
    assert (caught.value.task_id, caught.value.outcome_unknown) == ("t-1", True)


async def test_many_tasks_run_side_by_side() -> None:
    peer = Worker()
    polls: dict[str, int] = {}

    def call(incoming: ServerRequest) -> Any:
        made = peer.task({"status": "working"}) | {"taskId": f"t-{incoming.id}"}
        return {"resultType": "task", **made}

    def get(incoming: ServerRequest) -> Any:
        key = incoming.params["taskId"]
        polls[key] = polls.get(key, 0) + 1
        done = {"content": [{"type": "text", "text": key}]}
        state = {"status": "completed", "result": done} if polls[key] > 1 else {"status": "working"}
        return peer.task(state) | {"taskId": key}

    peer.on("tools/call", call)
    peer.on("tasks/get", get)
    async with connect(peer) as client:
        results = await asyncio.gather(*(client.call_tool("work", task=True) for _ in range(20)))
    assert len({result.text for result in results}) == 20


async def test_a_call_log_has_the_result_of_the_task(tmp_path: Path) -> None:
    peer = Worker()
    async with connect(peer, log=tmp_path / "calls.jsonl") as client:
        await client.call_tool("work", task=True)
        await client.resume_task("t-1")
    (entry,) = read_log(tmp_path / "calls.jsonl")
    assert (entry.name, entry.ok) == ("work", True)
    async with holdfast.connect(MockServer(tmp_path / "calls.jsonl")) as mock:
        assert (await mock.call_tool("work", task=True)).text == "done"


def test_the_synchronous_face_has_tasks_too() -> None:
    peer = Peer("worker")

    @peer.tool(task=True)
    async def build(target: str) -> str:
        return f"built {target}"

    with holdfast.sync.connect(peer) as client:
        running = client.start_tool("build", {"target": "all"}, task=True)
        task = running.wait_task()
        assert task is not None
        assert running.detach() == task.task_id
        assert client.resume_task(task.task_id).text == "built all"
        assert client.get_task(task.task_id).done


@FORMS
async def test_a_session_may_be_lost_between_polls(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "working"}] * 2 + peer.script
    served = HttpServer(peer._server)
    finished = peer.get

    def get(incoming: ServerRequest) -> Any:
        if peer.count("tasks/get") == 1:
            served._connections.clear()
        return finished(incoming)

    peer.on("tasks/get", get)
    port = await served.start()
    try:
        async with holdfast.connect(f"http://127.0.0.1:{port}/mcp") as client:
            assert (await client.call_tool("work", task=True)).text == "done"
    finally:
        await served.close()
    assert peer.count("tools/call") == 1
    assert peer.count("initialize") == (2 if peer.core else 0)


# Bounds of polling


@FORMS
async def test_a_server_that_fails_three_polls_in_a_row_is_given_up(version: str) -> None:
    peer = Worker(version)

    def fail(incoming: ServerRequest) -> Any:
        raise RequestError(-32603, "out of order")

    peer.on("tasks/get", fail)
    async with connect(peer) as client:
        with pytest.raises(RpcError, match="out of order") as caught:
            await client.call_tool("work", task=True)
        assert caught.value.outcome_unknown
        assert caught.value.task_id == "t-1"
    assert peer.count("tasks/get") == 3


@FORMS
async def test_polls_that_fail_now_and_then_do_not_end_a_task(version: str) -> None:
    peer = Worker(version)
    peer.script = [{"status": "working"}] * 9 + [{"status": "completed", "result": DONE}]
    polls = 0

    def fail_twice(incoming: ServerRequest) -> Any:
        nonlocal polls
        polls += 1
        if polls % 3:
            raise RequestError(-32603, "out of order")
        return peer.get(incoming)

    peer.on("tasks/get", fail_twice)
    async with connect(peer) as client:
        assert (await client.call_tool("work", task=True)).text == "done"


@FORMS
async def test_the_end_of_a_tasks_life_shortens_the_pause_before_it(version: str) -> None:
    peer = Worker(version)
    life = {"ttl": 5000} if peer.core else {"ttlMs": 5000}
    slow = {"pollInterval": 50_000} if peer.core else {"pollIntervalMs": 50_000}
    peer.seed = life | slow
    peer.script = [{"status": "working"} | life | slow]
    async with connect(peer) as client:
        with ends_within(6), pytest.raises(RequestTimeout, match="time to live is over"):
            await client.call_tool("work", task=True)
