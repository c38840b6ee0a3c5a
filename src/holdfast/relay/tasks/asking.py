"""Tasks of a handshake server that ask a stateless host something."""

# In 2025-11-25 a task asks by requests of the server, marked with its id, while ``tasks/result`` is
# open; in the extension by what the host's next poll returns:
#
#   host                       relay                             server
#   tasks/get ───────────────▶ ────────────────────────────────▶ input_required
#                              tasks/result ───────────────────▶ (held open)
#                                                              ◀ elicitation/create, marked
#   input_required, question ◀ notes it under a key              (waits)
#   tasks/update, answer ────▶ ────────────────────────────────▶ the answer
#   tasks/get ───────────────▶ ────────────────────────────────▶ completed
#   completed, result ◀─────── of the tasks/result that is open ◀ the result
#
# A task is shown as ``input_required`` while there is a question, whatever its server says: a host
# could do nothing with that status alone.

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from msgspec import Raw, Struct, field

from holdfast._core.eras.serving import Json
from holdfast._core.wire.codes import INTERNAL_ERROR
from holdfast.errors import RequestTimeout, RpcError, TransportError
from holdfast.relay.envelope import full
from holdfast.relay.questions import Question

MOST_ASKING: Final = 100
"""Tasks of one host that ask, and questions of all of them."""
FIRST_QUESTION: Final = 0.5
"""Seconds for which a poll waits for the question that the server says it has."""


class AskingTask(Struct, eq=False):
    """One task that asks."""

    questions: dict[str, Question] = {}
    """Unanswered questions, by key."""
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    result: asyncio.Task[Raw] | None = None
    """The request for its result, on which the server may ask."""


class AskingTasks:
    """The tasks of one host that ask."""

    def __init__(self) -> None:
        self._tasks: dict[str, AskingTask] = {}

    def __repr__(self) -> str:
        return f"<AskingTasks {len(self._tasks)}>"

    def listen(self, task_id: str, fetch: Callable[[], Coroutine[Any, Any, Raw]]) -> None:
        """Hold the request for a task's result open, if it is not: the server asks then.

        Raises:
            RequestError: Too many are.
        """
        task = self._tasks.get(task_id)
        if task is not None and task.result is not None and not task.result.done():
            return
        if task is None and len(self._tasks) >= MOST_ASKING:
            raise full(f"{MOST_ASKING} tasks of this host ask already: answer or cancel some")
        task = self._tasks.setdefault(task_id, AskingTask())
        task.result = asyncio.get_running_loop().create_task(fetch())
        task.result.add_done_callback(_seen)

    async def wait(self, task_id: str) -> None:
        """Wait a moment for a question of a task."""
        task = self._tasks.get(task_id)
        if task is not None and not task.questions:
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_QUESTION):
                    await task.is_asked.wait()

    async def ask(self, task_id: str, method: str, params: Raw) -> Raw:
        """Ask the host with its next poll.

        Raises:
            RpcError: Too many questions wait, or the task has ended.
        """
        if sum(len(task.questions) for task in self._tasks.values()) >= MOST_ASKING:
            text = f"{method}: {MOST_ASKING} questions wait for the client's answers already"
            raise RpcError(text, code=INTERNAL_ERROR)
        task = self._tasks.setdefault(task_id, AskingTask())
        # Tasks extension, Task Update Requests: a key is unique over the lifetime of a task, which
        # may be longer than that of this relay.
        key = f"question-{secrets.token_hex(8)}"
        question = Question(method, params, asyncio.get_running_loop().create_future())
        task.questions[key] = question
        task.is_asked.set()
        try:
            return await question.answer
        finally:
            # Answered, or withdrawn by the server.
            task.questions.pop(key, None)
            if not task.questions:
                task.is_asked.clear()

    def requests(self, task_id: str) -> Json:
        """Return the questions of a task, as a poll shows them."""
        return {
            key: question.shown()
            for key, question in self._questions(task_id).items()
            if not question.answer.done()
        }

    def answer(self, task_id: str, answers: dict[str, Raw]) -> None:
        """Give the server the answers; those to no open question are ignored."""
        for key, question in self._questions(task_id).items():
            if key in answers:
                question.settle(answers[key])

    def _questions(self, task_id: str) -> dict[str, Question]:
        task = self._tasks.get(task_id)
        return {} if task is None else task.questions

    async def result(self, task_id: str) -> Raw | None:
        """Return the result of a task that has ended, if it is being waited for."""
        task = self._tasks.get(task_id)
        if task is None or task.result is None:
            return None
        try:
            return await asyncio.shield(task.result)
        except (TransportError, RequestTimeout):
            return None  # it can be asked for again

    def forget(self, task_id: str) -> None:
        """End what is left of a task."""
        task = self._tasks.pop(task_id, None)
        if task is None:
            return
        if task.result is not None:
            task.result.cancel()
        for question in task.questions.values():
            question.refuse(f"{question.method}: the task has ended, or its client is gone")

    def close(self) -> None:
        """End everything: the host is gone."""
        for task_id in list(self._tasks):
            self.forget(task_id)


def _seen(result: asyncio.Task[Raw]) -> None:
    """Look at an error that nobody may come for."""
    if not result.cancelled():
        result.exception()
