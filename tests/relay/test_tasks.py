"""Tasks through a relay, in each pair of eras: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Backoff, Handlers, RpcError
from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, TASKS
from holdfast.errors import CancelledCallError
from holdfast.relay.sharing import SharedRelay
from holdfast.relay.tasks.kept import ID
from holdfast.testing import RequestError
from holdfast.types import RELATED_TASK, Task
from tests.relay.rig import Pair, RelayServer
from tests.relay.test_wire import PAIRS, RawHost, raw_host
from tests.relay.worker import DONE, MADE, Worker

pytestmark = pytest.mark.req("Y1")

OTHER_ERAS = [("handshake", "stateless"), ("stateless", "handshake")]
QUICK: dict[str, Any] = {"backoff": Backoff(first=0.001, max=0.001)}
REFUSED = {"error": {"code": -32050, "message": "no luck", "data": [None]}, "status": "failed"}


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(*request.param)


@pytest.fixture
def core() -> Pair:
    """A host of 2025-11-25, a server with the extension."""
    return Pair("handshake", "stateless")


@pytest.fixture
def extension() -> Pair:
    """A host with the extension, a server of 2025-11-25."""
    return Pair("stateless", "handshake")


class TaskHost(RawHost):
    """A raw host that declares tasks, where they have to be declared."""

    is_declaring = True

    def meta(self) -> dict[str, Any]:
        meta = super().meta()
        if meta:
            meta[CLIENT_CAPABILITIES] = {
                **meta[CLIENT_CAPABILITIES],
                "extensions": {TASKS: {}} if self.is_declaring else {},
            }
        return meta

    async def ask(self, method: str, **params: Any) -> Any:
        """Return the answer to a request, whatever comes before it."""
        self.request(method, method, **params)
        while (message := await self.read()).get("id") != method:
            pass
        return message

    async def result(self, method: str, **params: Any) -> Any:
        return (await self.ask(method, **params))["result"]

    async def error(self, method: str, **params: Any) -> Any:
        return (await self.ask(method, **params))["error"]

    async def start(self, **task: Any) -> Any:
        """Call the tool as a task; return the task."""
        wish = {} if self.pair.is_host_stateless else {"task": task}
        created = await self.result("tools/call", name="work", **wish)
        if self.pair.is_host_stateless:
            assert created["resultType"] == "task"
            return created
        assert created.keys() == {"task"}
        return created["task"]


@asynccontextmanager
async def task_host(pair: Pair, worker: Worker) -> AsyncIterator[TaskHost]:
    async with raw_host(pair, worker.peer) as host:
        yield TaskHost(pair, host.session, host._written)


async def begun(host: holdfast.Client) -> str:
    """Begin a task, and leave it running."""
    running = host.start_tool("work", task=True)
    await running.wait_task()
    return running.detach()


# Driven by a client, in each pair


async def test_a_task_passes_from_its_call_to_its_result(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script.insert(0, {"status": "working", "statusMessage": "half"})
    states: list[Task] = []
    async with pair.connect(worker.peer) as host:
        result = await host.call_tool("work", task=True, on_task=states.append)
    assert result.text == "done"
    assert [(task.task_id, task.status, task.status_message) for task in states] == [
        ("task-1", "working", None),
        ("task-1", "working", "half"),
        ("task-1", "completed", None),
    ]
    assert {(task.created_at, task.ttl, task.poll_interval) for task in states} == {
        (MADE, 60_000, 50)
    }
    assert worker.runs == 1


async def test_what_a_task_asks_is_answered_and_nothing_runs_again(pair: Pair) -> None:
    worker = Worker(pair)
    worker.asks = 2
    questions = []

    def answer(question: Any) -> Any:
        questions.append(question.message)
        return {"action": "accept", "content": {"n": len(questions)}}

    async with pair.connect(worker.peer, handlers=Handlers(elicitation=answer)) as host:
        result = await host.call_tool("work", task=True)
    assert (result.text, questions, worker.runs) == ("done", ["Who?"] * 2, 1)
    assert [answer["content"] for answer in worker.answers] == [{"n": 1}, {"n": 2}]


async def test_a_task_that_failed_has_the_server_s_error(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script = [REFUSED]
    async with pair.connect(worker.peer) as host:
        with pytest.raises(RpcError) as caught:
            await host.call_tool("work", task=True)
    assert (caught.value.code, caught.value.server_message) == (-32050, "no luck")
    assert caught.value.data == [None]


async def test_a_tool_that_failed_has_a_result(pair: Pair) -> None:
    worker = Worker(pair)
    status = "failed" if worker.core else "completed"
    worker.script = [{"status": status, "result": {**DONE, "isError": True}}]
    async with pair.connect(worker.peer) as host:
        result = await host.call_tool("work", task=True)
    assert (result.is_error, result.text) == (True, "done")


async def test_a_task_that_the_server_cancelled_says_so(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script = [{"status": "cancelled", "statusMessage": "enough"}]
    async with pair.connect(worker.peer) as host:
        with pytest.raises(CancelledCallError, match="enough"):
            await host.call_tool("work", task=True)


async def test_a_task_is_taken_up_by_another_host_when_its_own_is_gone(pair: Pair) -> None:
    worker = Worker(pair)
    async with pair.connect(worker.peer) as host:
        task_id = await begun(host)
    async with pair.connect(worker.peer) as host:
        assert (await host.resume_task(task_id)).text == "done"
    assert (task_id, worker.runs, worker.cancelled) == ("task-1", 1, [])


async def test_a_task_outlives_a_server_that_keeps_it(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script.insert(0, {"status": "working"})
    async with pair.connect(worker.peer, upstream=QUICK) as host:
        running = host.start_tool("work", task=True)
        await worker.peer.expect("tasks/get")
        worker.peer.hang_up()
        assert (await running).text == "done"
    assert (worker.runs, worker.peer.connections) == (1, 2)


async def test_a_task_that_the_server_has_forgotten_is_a_clear_error(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script = [{"status": "working"}]
    async with pair.connect(worker.peer, upstream=QUICK) as host:
        running = host.start_tool("work", task=True)
        await worker.peer.expect("tasks/get")
        worker.tasks.clear()
        worker.peer.hang_up()
        with pytest.raises(RpcError, match="no longer knows it") as caught:
            await running
    assert (caught.value.code, caught.value.task_id) == (-32602, "task-1")
    assert caught.value.outcome_unknown
    assert worker.runs == 1


async def test_a_host_cancels_its_task(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script = [{"status": "working"}]
    async with pair.connect(worker.peer) as host:
        running = host.start_tool("work", task=True)
        await worker.peer.expect("tasks/get")
        running.cancel()
        await worker.peer.expect("tasks/cancel")
    assert worker.cancelled == ["task-1"]


async def test_tasks_are_promised_in_the_form_of_the_host(pair: Pair) -> None:
    worker = Worker(pair)
    async with pair.connect(worker.peer) as host:
        await host.open()
        assert host._facts is not None
        declared = msgspec.json.decode(host._facts.capabilities)
    vendor: dict[str, Any] = {} if worker.core else {"vendor/x": {}}
    if pair.is_host_stateless:
        assert declared == {"tools": {}, "extensions": {**vendor, TASKS: {}}}
    elif worker.core:
        assert declared == worker.peer.capabilities
    else:
        core: dict[str, Any] = {"requests": {"tools": {"call": {}}}, "cancel": {}}
        assert declared == {"tools": {}, "extensions": vendor, "tasks": core}


@pytest.mark.parametrize(("host", "server"), OTHER_ERAS)
async def test_nothing_is_promised_for_a_server_without_tasks(host: str, server: str) -> None:
    pair = Pair(host, server)
    peer = pair.peer(capabilities={"tools": {}})
    peer.on("tools/call", DONE)
    async with raw_host(pair, peer) as raw:
        tasks = TaskHost(pair, raw.session, raw._written)
        wish: dict[str, Any] = {} if pair.is_host_stateless else {"task": {}}
        assert (await tasks.result("tools/call", name="x", **wish))["later"] == 1
        assert (await tasks.error("tasks/get", taskId="a"))["code"] == -32601


# Tools that can only be called as tasks


@pytest.mark.parametrize(
    ("host", "version", "server"),
    [
        ("stateless", "2026-07-28", "handshake"),
        ("handshake", "2025-06-18", "handshake"),
        ("handshake", "2024-11-05", "handshake"),
        ("handshake", "2025-11-25", "stateless"),
        ("handshake", "2025-03-26", "stateless"),
    ],
)
@pytest.mark.parametrize("asks", [0, 1])
async def test_a_tool_that_needs_a_task_is_called_by_hosts_without(
    host: str, version: str, server: str, asks: int
) -> None:
    pair = Pair(host, server)
    pair.host = version
    worker = Worker(pair, support="required")
    worker.asks = asks

    def answer(question: Any) -> Any:
        return {"action": "accept", "content": {"n": 1}}

    options: dict[str, Any] = {"tools": holdfast.ToolPolicy(validate="off")}
    async with pair.connect(worker.peer, handlers=Handlers(elicitation=answer), **options) as host_:
        for runs in (1, 2):
            assert (await host_.call_tool("work", task=False)).text == "done"
            assert worker.runs == runs
    assert len(worker.answers) == asks


async def test_a_call_without_a_task_cancels_the_one_that_was_made_for_it() -> None:
    pair = Pair("stateless", "handshake")
    worker = Worker(pair, support="required")
    worker.script = [{"status": "working"}]
    async with task_host(pair, worker) as host:
        host.is_declaring = False
        host.request(1, "tools/call", name="work")
        await worker.peer.expect("tasks/get")
        host.notify("notifications/cancelled", requestId=1)
        await worker.peer.expect("tasks/cancel")
    assert worker.cancelled == ["task-1"]


async def test_an_older_host_gets_plain_calls(core: Pair) -> None:
    core.host = "2025-06-18"
    worker = Worker(core)
    async with task_host(core, worker) as host:
        result = await host.result("tools/call", name="work", task={})
        assert result == DONE
        error = await host.error("tasks/get", taskId="task-1")
    assert (error["code"], "2025-06-18" in error["message"]) == (-32601, True)


async def test_a_stateless_host_has_to_declare_tasks(extension: Pair) -> None:
    worker = Worker(extension)
    async with task_host(extension, worker) as host:
        host.is_declaring = False
        assert (await host.result("tools/call", name="work"))["later"] == 1
        error = await host.error("tasks/get", taskId="task-1")
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


# On the wire: a host of 2025-11-25, a server with the extension


async def test_a_task_of_the_extension_as_the_core_has_it(core: Pair) -> None:
    worker = Worker(core)
    fields = {"createdAt": MADE, "lastUpdatedAt": MADE, "ttl": 60_000, "pollInterval": 50}
    task = {"taskId": "task-1", "status": "working", "vendor": 1, **fields}
    async with task_host(core, worker) as host:
        (tool,) = (await host.result("tools/list"))["tools"]
        assert tool["execution"] == {"taskSupport": "optional"}
        assert await host.start(ttl=1) == task
        assert await host.result("tasks/get", taskId="task-1") == {**task, "status": "completed"}
        result = await host.result("tasks/result", taskId="task-1")
        assert result == {**DONE, "_meta": {RELATED_TASK: {"taskId": "task-1"}}}
        error = await host.error("tasks/cancel", taskId="task-1")
        assert (error["code"], "already completed" in error["message"]) == (-32602, True)
        assert (await host.error("tasks/list"))["code"] == -32601
        sent = await worker.peer.expect("tools/call")
        assert "task" not in sent.params


async def test_a_tool_that_failed_is_a_failed_task_of_the_core(core: Pair) -> None:
    worker = Worker(core)
    worker.script = [{"status": "completed", "result": {**DONE, "isError": True}}]
    async with task_host(core, worker) as host:
        await host.start()
        assert (await host.result("tasks/get", taskId="task-1"))["status"] == "failed"
        assert (await host.result("tasks/result", taskId="task-1"))["isError"] is True


async def test_a_cancelled_task_is_shown(core: Pair) -> None:
    worker = Worker(core)
    worker.script = [{"status": "working"}]
    async with task_host(core, worker) as host:
        await host.start()
        cancelled = await host.result("tasks/cancel", taskId="task-1")
        assert (cancelled["taskId"], cancelled["status"]) == ("task-1", "cancelled")
        assert worker.cancelled == ["task-1"]
        assert "cancelled" in (await host.error("tasks/result", taskId="task-1"))["message"]


async def test_a_question_names_its_task_and_is_asked_once(core: Pair) -> None:
    worker = Worker(core)
    worker.asks = 1
    async with task_host(core, worker) as host:
        await host.start()
        for wire_id in (1, 2):
            host.request(wire_id, "tasks/result", taskId="task-1")
        question = await host.read()
        assert question["method"] == "elicitation/create"
        assert question["params"]["_meta"] == {RELATED_TASK: {"taskId": "task-1"}}
        assert (await host.result("tasks/get", taskId="task-1"))["status"] == "input_required"
        answer = {"action": "accept", "content": {}}
        host.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        results = [await host.read() for _ in range(2)]
    assert {result["id"] for result in results} == {1, 2}
    assert all(result["result"]["later"] == 1 for result in results)
    assert worker.answers == [answer]


async def test_a_host_that_waits_no_more_leaves_the_task_running(core: Pair) -> None:
    worker = Worker(core)
    worker.asks = 1
    async with task_host(core, worker) as host:
        await host.start()
        host.request(1, "tasks/result", taskId="task-1")
        question = await host.read()
        host.notify("notifications/cancelled", requestId=1)
        withdrawn = await host.read()
        assert withdrawn["method"] == "notifications/cancelled"
        assert withdrawn["params"]["requestId"] == question["id"]
        host.request(2, "tasks/result", taskId="task-1")
        again = await host.read()
        assert again["params"] == question["params"]
        host.send({"jsonrpc": "2.0", "id": again["id"], "result": {"action": "decline"}})
        assert (await host.read())["result"]["later"] == 1
    assert worker.cancelled == []


async def test_a_task_that_never_ends_costs_the_host_its_patience_alone(core: Pair) -> None:
    worker = Worker(core)
    worker.script = [{"status": "working"}]
    async with holdfast.connect(
        worker.peer, timeouts=holdfast.Timeouts(request=0.2, total=0.2)
    ) as client:
        server: Any = RelayServer(SharedRelay(client).join())
        async with holdfast.connect(server, protocol=core.host) as host:
            task_id = await begun(host)
            with pytest.raises(RpcError, match="it goes on") as caught:
                await host.request("tasks/result", {"taskId": task_id})
    assert caught.value.code == -32001
    assert caught.value.data == {"kind": "timeout", "outcomeUnknown": True, "taskId": "task-1"}
    assert worker.cancelled == []


async def test_a_call_that_is_answered_at_once_is_a_task_that_has_ended(core: Pair) -> None:
    worker = Worker(core)
    worker.makes_tasks = False
    async with task_host(core, worker) as host:
        task = await host.start(ttl=5_000)
        task_id = task["taskId"]
        assert (task["status"], task["ttl"]) == ("completed", 5_000)
        assert task_id.startswith(ID)
        assert await host.result("tasks/get", taskId=task_id) == task
        for _ in range(2):
            result = await host.result("tasks/result", taskId=task_id)
            assert result == {**DONE, "_meta": {RELATED_TASK: {"taskId": task_id}}}
        assert (await host.error("tasks/cancel", taskId=task_id))["code"] == -32602
        gone = await host.error("tasks/get", taskId=f"{ID}guessed")
    assert (gone["code"], "task not found" in gone["message"]) == (-32602, True)
    assert (worker.runs, worker.count("tasks/get")) == (1, 0)


@pytest.mark.parametrize(
    ("ttl", "kept"),
    [(-1, 300_000), (0, 300_000), (1e300, 3_600_000), ("x", 300_000), (True, 300_000), (0.5, 1)],
)
async def test_wishes_for_the_life_of_a_result_are_bounded(core: Pair, ttl: Any, kept: int) -> None:
    worker = Worker(core)
    worker.makes_tasks = False
    async with task_host(core, worker) as host:
        assert (await host.start(ttl=ttl))["ttl"] == kept


async def test_results_that_nobody_fetches_are_bounded(
    core: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.relay.tasks.kept.MOST_KEPT", 2)
    worker = Worker(core)
    worker.makes_tasks = False
    async with task_host(core, worker) as host:
        first, second = await host.start(), await host.start()
        error = await host.error("tools/call", name="work", task={})
        assert "nothing was called" in error["message"]
        assert error["data"] == {"kind": "state", "outcomeUnknown": False}
        assert worker.runs == 2
        await host.result("tasks/result", taskId=first["taskId"])
        third = await host.start()
        assert (await host.error("tasks/get", taskId=first["taskId"]))["code"] == -32602
        for task in (second, third):
            assert await host.result("tasks/get", taskId=task["taskId"]) == task


async def test_results_that_are_waited_for_are_bounded(
    core: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.relay.tasks.core.MOST_FOLLOWED", 1)
    worker = Worker(core)
    worker.script = [{"status": "working"}]
    async with task_host(core, worker) as host:
        await host.start()
        await host.start()
        host.request(1, "tasks/result", taskId="task-1")
        await worker.peer.expect("tasks/get")
        error = await host.error("tasks/result", taskId="task-2")
    assert "use tasks/get" in error["message"]


# On the wire: a stateless host, a server of 2025-11-25


async def test_a_task_of_the_core_as_the_extension_has_it(extension: Pair) -> None:
    worker = Worker(extension)
    worker.script.insert(0, {"status": "working"})
    fields = {"createdAt": MADE, "lastUpdatedAt": MADE, "ttlMs": 60_000, "pollIntervalMs": 50}
    task = {"taskId": "task-1", "status": "working", "vendor": 1, **fields}

    def without_meta(result: Any) -> Any:
        return {name: value for name, value in result.items() if name != "_meta"}

    async with task_host(extension, worker) as host:
        assert without_meta(await host.start()) == {**task, "resultType": "task"}
        polled = await host.result("tasks/get", taskId="task-1")
        assert without_meta(polled) == {**task, "resultType": "complete"}
        for _ in range(2):
            polled = await host.result("tasks/get", taskId="task-1")
            assert polled["status"] == "completed"
            assert without_meta(polled["result"]) == {**DONE, "resultType": "complete"}
        assert without_meta(await host.result("tasks/cancel", taskId="task-1")) == {
            "resultType": "complete"
        }
        for method in ("tasks/list", "tasks/result"):
            assert (await host.error(method, taskId="task-1"))["code"] == -32601


async def test_questions_come_with_polls_and_answers_by_updates(extension: Pair) -> None:
    worker = Worker(extension)
    worker.asks = 1
    answer = {"action": "accept", "content": {}}
    async with task_host(extension, worker) as host:
        await host.start()
        polls = [await host.result("tasks/get", taskId="task-1") for _ in range(2)]
        assert [poll["status"] for poll in polls] == ["input_required"] * 2
        assert polls[0]["inputRequests"] == polls[1]["inputRequests"]
        ((key, question),) = polls[0]["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        for answers in ({}, {"other": answer}):
            await host.result("tasks/update", taskId="task-1", inputResponses=answers)
            assert worker.answers == []
        error = await host.error("tasks/update", taskId="task-1", inputResponses=[1])
        assert error["code"] == -32602
        await host.result("tasks/update", taskId="task-1", inputResponses={key: answer})
        assert (await host.result("tasks/get", taskId="task-1"))["status"] == "completed"
    assert (worker.answers, worker.count("tasks/result")) == ([answer], 1)


async def test_a_task_that_failed_has_its_error_in_the_poll(extension: Pair) -> None:
    worker = Worker(extension)
    worker.script = [REFUSED]
    async with task_host(extension, worker) as host:
        await host.start()
        polled = await host.result("tasks/get", taskId="task-1")
    assert (polled["status"], polled["error"]) == ("failed", REFUSED["error"])


async def test_a_server_that_cannot_cancel_is_not_asked_to(extension: Pair) -> None:
    worker = Worker(extension)
    assert worker.peer.capabilities is not None
    del worker.peer.capabilities["tasks"]["cancel"]
    async with task_host(extension, worker) as host:
        await host.start()
        await host.result("tasks/cancel", taskId="task-1")
        assert (await host.error("tasks/cancel", taskId="none"))["code"] == -32602
    assert worker.cancelled == []


# Hostile servers


@pytest.mark.parametrize(("host", "server"), OTHER_ERAS)
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({"taskId": "other"}, "about the task 'other'"),
        ({"taskId": 5}, "no usable id"),
        ({"taskId": "\x07"}, "no usable id"),
        ({"taskId": "x" * 2000}, "no usable id"),
        ({"status": "sleeping"}, "cannot be 'sleeping'"),
        ({"status": None}, "cannot be ''"),
    ],
)
async def test_an_answer_that_is_no_task_is_an_error_that_says_so(
    host: str, server: str, shape: dict[str, Any], words: str
) -> None:
    pair = Pair(host, server)
    worker = Worker(pair)
    async with task_host(pair, worker) as tasks:
        await tasks.start()
        worker.shape = shape
        error = await tasks.error("tasks/get", taskId="task-1")
    assert words in error["message"]
    assert error["data"] == {"kind": "protocol", "outcomeUnknown": True}


@pytest.mark.parametrize(("host", "server"), OTHER_ERAS)
@pytest.mark.parametrize(
    ("life", "pause", "expected"),
    [
        (0, 0, (None, 50)),
        (-5, -1, (None, 50)),
        (1e300, 3.2e10, (10**15, 60_000)),
        ("1", "1", (None, 1000)),
        (None, 0.5, (None, 50)),
        ([], {}, (None, 1000)),
    ],
)
async def test_times_of_a_task_are_bounded(
    host: str, server: str, life: Any, pause: Any, expected: tuple[Any, Any]
) -> None:
    pair = Pair(host, server)
    worker = Worker(pair)
    names = ("ttl", "pollInterval") if worker.core else ("ttlMs", "pollIntervalMs")
    theirs = ("ttlMs", "pollIntervalMs") if worker.core else ("ttl", "pollInterval")
    worker.shape = dict(zip(names, (life, pause), strict=True)) | {"createdAt": ...}
    async with task_host(pair, worker) as tasks:
        task = await tasks.start()
    assert tuple(task[name] for name in theirs) == expected
    assert isinstance(task["createdAt"], str)


@pytest.mark.parametrize(("host", "server"), OTHER_ERAS)
async def test_a_result_that_is_none_is_an_error_that_says_so(host: str, server: str) -> None:
    pair = Pair(host, server)
    worker = Worker(pair)
    worker.script = [{"status": "completed", "result": 5}]
    if worker.core:
        worker.peer.on("tasks/result", lambda request: 5)
    method = "tasks/get" if pair.is_host_stateless else "tasks/result"
    async with task_host(pair, worker) as tasks:
        await tasks.start()
        error = await tasks.error(method, taskId="task-1")
    assert error["data"]["kind"] == "protocol"


# Several hosts, and hostile ones


async def test_a_task_is_of_its_host_while_that_is_there(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script = [{"status": "working"}]
    async with pair.share(worker.peer, {}, {}) as (shared, (first, second)):
        task_id = await begun(first)
        for ask in (second.get_task, second.cancel_task):
            with pytest.raises(RpcError, match="task not found") as caught:
                await ask(task_id)
            assert caught.value.code == -32602
        polls = worker.count("tasks/get")
        with pytest.raises(RpcError, match="task not found"):
            await second.resume_task(task_id)
        assert (worker.count("tasks/get"), worker.cancelled) == (polls, [])
        await shared.hosts[0].leave()
        assert (await second.get_task(task_id)).status == "working"


async def test_a_list_has_no_tasks_of_other_hosts() -> None:
    pair = Pair("handshake", "handshake")
    worker = Worker(pair)
    async with pair.share(worker.peer, {}, {}) as (_, (first, second)):
        task_id = await begun(first)
        assert [task.task_id for task in await first.list_tasks()] == [task_id]
        assert await second.list_tasks() == []
        other_id = await begun(second)
        assert [task.task_id for task in await second.list_tasks()] == [other_id]


@pytest.mark.parametrize("server", ["handshake", "stateless"])
async def test_changes_of_a_task_are_told_its_host_alone(server: str) -> None:
    pair = Pair("handshake", server)
    worker = Worker(pair)
    notes: list[asyncio.Queue[Any]] = [asyncio.Queue(), asyncio.Queue()]
    async with pair.share(worker.peer, {}, {}) as (_, hosts):
        for host, queue in zip(hosts, notes, strict=True):
            host.on_notification(queue.put_nowait)
        task_id = await begun(hosts[0])
        await hosts[1].open()
        method = "notifications/tasks/status" if worker.core else "notifications/tasks"
        worker.peer.notify(method, worker.show(task_id, {"status": "working"}))
        worker.peer.notify(method, worker.show("unknown", {"status": "working"}))
        worker.peer.notify("notifications/vendor")
        status = await notes[0].get()
        assert status.method == "notifications/tasks/status"
        for queue in notes:
            assert (await queue.get()).method == "notifications/vendor"
    params = status.params
    assert (params["taskId"], params["ttl"], params["pollInterval"]) == (task_id, 60_000, 50)


async def test_a_server_cannot_name_one_task_to_two_hosts(pair: Pair) -> None:
    worker = Worker(pair)
    worker.script = [{"status": "working"}]
    worker.shape = {"taskId": "the same"}
    async with pair.share(worker.peer, {}, {}) as (_, (first, second)):
        await begun(first)
        with pytest.raises(RpcError, match="named to another host") as caught:
            await second.call_tool("work", task=True)
    assert caught.value.data == {"kind": "protocol", "outcomeUnknown": True}


@pytest.mark.parametrize("task_id", [5, None, ["a"], {"a": 1}, True, "", "x" * 5000])
async def test_ids_of_wrong_kinds_are_refused(pair: Pair, task_id: Any) -> None:
    worker = Worker(pair)
    async with task_host(pair, worker) as host:
        await host.result("tools/list")
        for method in ("tasks/get", "tasks/cancel"):
            assert (await host.error(method, taskId=task_id))["code"] == -32602
    assert worker.count("tasks/get") == worker.count("tasks/cancel") == 0


async def test_unknown_ids_are_the_server_s_error(pair: Pair) -> None:
    worker = Worker(pair)
    async with task_host(pair, worker) as host:
        for _ in range(2):
            error = await host.error("tasks/get", taskId="none")
            assert error["code"] == -32602
            assert error["data"] == {"taskId": "none"}


async def test_the_tasks_of_a_host_are_remembered_within_bounds(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.relay.tasks.host.MOST_NAMED", 10)
    worker = Worker(pair)
    async with holdfast.connect(worker.peer) as client:
        relay = SharedRelay(client).join()
        server: Any = RelayServer(relay)
        async with holdfast.connect(server, protocol=pair.host) as host:
            ids = [await begun(host) for _ in range(30)]
            assert len(relay.tasks._named) == 10
            for task_id in ids:
                assert (await host.resume_task(task_id)).text == "done"
    assert worker.runs == 30


async def test_progress_of_a_task_has_the_token_of_its_call() -> None:
    """2025-11-25 basic/utilities/tasks: the token lives as long as the task."""
    pair = Pair("handshake", "handshake")
    worker = Worker(pair)
    async with task_host(pair, worker) as host:
        host.request(1, "tools/call", name="work", task={}, _meta={"progressToken": "mine"})
        await host.read()
        call = await worker.peer.expect("tools/call")
        call.progress(1, total=2)
        step = await host.read()
        assert step["params"] == {"progressToken": "mine", "progress": 1, "total": 2}
        await host.result("tasks/result", taskId="task-1")
        call.progress(2, total=2)
        worker.peer.notify("notifications/vendor")
        assert (await host.read())["method"] == "notifications/vendor"


async def test_a_refusal_that_is_not_about_tasks_passes(core: Pair) -> None:
    worker = Worker(core)

    def refuse(request: Any) -> Any:
        worker.runs += 1
        raise RequestError(-32021, "no sampling", {"requiredCapabilities": {"sampling": {}}})

    worker.peer.on("tools/call", refuse)
    async with task_host(core, worker) as host:
        error = await host.error("tools/call", name="work")
    assert (error["code"], error["message"], worker.runs) == (-32021, "no sampling", 1)
