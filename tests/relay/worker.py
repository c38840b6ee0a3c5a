"""A server of either era whose tools become tasks, and which does as its script says."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, TASKS
from holdfast.testing import RequestError, ServerRequest
from holdfast.types import RELATED_TASK
from tests.relay.rig import FORM, Pair

DONE: dict[str, Any] = {"content": [{"type": "text", "text": "done"}], "later": 1}
MADE = "2026-01-01T00:00:00Z"
_NEEDED: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS: {}}}}


class Worker:
    """Makes a task of each call that may become one.

    Attributes:
        runs: The number of calls that were begun.
        script: The fields of each poll in turn; the last stays.
        shape: Fields of every answer that shows a task, instead of the usual ones.
        asks: The number of questions of each task before its end.
        answers: What they were answered.
    """

    def __init__(self, pair: Pair, *, support: str = "optional") -> None:
        core: dict[str, Any] = {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}
        capabilities: dict[str, Any] = {"tools": {}}
        self.core = not pair.is_server_stateless
        if self.core:
            capabilities["tasks"] = core
        else:
            capabilities["extensions"] = {TASKS: {}, "vendor/x": {}}
        self.peer = pair.peer(capabilities=capabilities)
        self.runs = 0
        self.script: list[dict[str, Any]] = [{"status": "completed", "result": DONE}]
        self.shape: dict[str, Any] = {}
        self.asks = 0
        self.answers: list[Any] = []
        self.support = support
        self.makes_tasks = True
        self.tasks: dict[str, int] = {}
        """The number of polls of each task."""
        self.cancelled: list[str] = []
        self.is_answered = asyncio.Event()
        execution: dict[str, Any] = {"execution": {"taskSupport": support}} if self.core else {}
        self.peer.tool("work", **execution)(lambda: "never")
        self.peer.on("tools/call", self.call)
        self.peer.on("tasks/get", self.get)
        self.peer.on("tasks/result", self.result)
        self.peer.on("tasks/cancel", self.cancel)
        self.peer.on("tasks/update", self.update)
        self.peer.on("tasks/list", self.list)

    def count(self, method: str) -> int:
        return sum(request.method == method for request in self.peer.received)

    def call(self, request: ServerRequest) -> Any:
        if self.core:
            may = "task" in request.params
        else:
            may = TASKS in request.meta[CLIENT_CAPABILITIES].get("extensions", {})
        if not may and self.support == "required":
            # Nothing has run.
            if self.core:
                raise RequestError(-32601, "only as a task")
            raise RequestError(-32021, "only as a task", _NEEDED)
        self.runs += 1
        if not may or not self.makes_tasks:
            return DONE
        task_id = f"task-{self.runs}"
        self.tasks[task_id] = 0
        seed = self.show(task_id, {"status": "working"})
        return {"task": seed} if self.core else {"resultType": "task", **seed}

    def show(self, task_id: str, state: dict[str, Any]) -> dict[str, Any]:
        times = {"ttl": 60_000, "pollInterval": 50}
        if not self.core:
            times = {"ttlMs": 60_000, "pollIntervalMs": 50}
        fields = {"taskId": task_id, "createdAt": MADE, "lastUpdatedAt": MADE, "vendor": 1}
        shown = {**fields, **times, **state, **self.shape}
        return {name: value for name, value in shown.items() if value is not ...}

    def find(self, request: ServerRequest) -> str:
        task_id = request.params["taskId"]
        if task_id not in self.tasks:
            raise RequestError(-32602, "Task not found", {"taskId": task_id})
        assert isinstance(task_id, str)
        return task_id

    def get(self, request: ServerRequest) -> Any:
        task_id = self.find(request)
        self.tasks[task_id] += 1
        if task_id in self.cancelled:
            return self.show(task_id, {"status": "cancelled"})
        if len(self.answers) < self.asks:
            key = f"q{len(self.answers)}"
            requests = {key: {"method": "elicitation/create", "params": FORM}}
            asking = {} if self.core else {"inputRequests": requests}
            return self.show(task_id, {"status": "input_required", **asking})
        state = self.script[min(self.tasks[task_id], len(self.script)) - 1]
        if self.core:
            state = {name: state[name] for name in state if name not in ("result", "error")}
        return self.show(task_id, state)

    async def result(self, request: ServerRequest) -> Any:
        task_id = self.find(request)
        while len(self.answers) < self.asks:
            params = {**FORM, "_meta": {RELATED_TASK: {"taskId": task_id}}}
            self.answers.append(await request.session.ask("elicitation/create", params))
        state = self.script[-1]
        if "error" in state:
            raise RequestError(*state["error"].values())
        return {**state["result"], "_meta": {RELATED_TASK: {"taskId": task_id}}}

    def update(self, request: ServerRequest) -> Any:
        self.find(request)
        self.answers += request.params["inputResponses"].values()
        return {}

    def cancel(self, request: ServerRequest) -> Any:
        task_id = self.find(request)
        self.cancelled.append(task_id)
        return self.show(task_id, {"status": "cancelled"}) if self.core else {}

    def list(self, request: ServerRequest) -> Any:
        tasks = [self.show(task_id, {"status": "working"}) for task_id in self.tasks]
        return {"tasks": tasks, "later": 1}
