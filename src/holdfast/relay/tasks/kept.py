"""Calls that a host wanted as tasks and a server answered at once: tasks that have ended.

A server of the extension decides itself which call becomes a task. A host of 2025-11-25 that asked
for one gets one: it is made here, and its result is kept for a while.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Raw, Struct

from holdfast._core.eras.serving import Json
from holdfast._core.wire.codes import INVALID_PARAMS, RequestError
from holdfast.relay.envelope import full
from holdfast.relay.tasks.shapes import is_failure

MOST_KEPT: Final = 100
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of the results of one host. One more call is begun below that, however large its result."""
USUAL_TTL: Final = 300_000
"""Milliseconds for which a result is kept, if the host does not say."""
LONGEST_TTL: Final = 3_600_000
ID: Final = "holdfast-task-"
"""The beginning of every id that is made here."""


class KeptTask(Struct, eq=False):
    """One call that has ended."""

    fields: Json
    """The task, as the host is shown it."""
    result: Raw
    until: float
    is_fetched: bool = False


class KeptTasks:
    """The tasks of one host that have ended before they could begin."""

    def __init__(self) -> None:
        self._tasks: dict[str, KeptTask] = {}
        self._begun = 0

    def __repr__(self) -> str:
        return f"<KeptTasks {len(self._tasks)} kept, {self._begun} begun>"

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place for the result of a call that is made inside.

        Raises:
            RequestError: There is none. It comes before the call: one that has run has a result.
        """
        self._make_room()
        if self._is_full():
            raise full(
                f"{len(self._tasks) + self._begun} results of tasks with {self._size():,} bytes "
                f"wait for this host, of at most {MOST_KEPT} and {MOST_BYTES:,}: nothing was "
                "called; fetch them by tasks/result, or call without a task"
            )
        self._begun += 1
        try:
            yield
        finally:
            self._begun -= 1

    def keep(self, result: Raw, wish: Any) -> Json:
        """Keep the result of a call; return its task. ``wish`` is the host's ``task``."""
        ttl = _life(wish)
        now = datetime.now(UTC).isoformat()
        task_id = ID + secrets.token_urlsafe(24)
        status = "failed" if is_failure(result) else "completed"
        fields: Json = {"taskId": task_id, "status": status, "createdAt": now}
        fields |= {"lastUpdatedAt": now, "ttl": ttl}
        until = asyncio.get_running_loop().time() + ttl / 1000
        # A copy: the result keeps everything that was read with it in memory.
        self._tasks[task_id] = KeptTask(fields, result.copy(), until)
        return fields

    def find(self, task_id: str) -> KeptTask | None:
        """Return a task; None if its id is not of those that are made here.

        Raises:
            RequestError: It is, and the task is not kept any more.
        """
        if not task_id.startswith(ID):
            return None
        self._drop_expired()
        task = self._tasks.get(task_id)
        if task is None:
            text = f"task not found: {task_id!r} has expired, or is not of this connection"
            raise RequestError(INVALID_PARAMS, text)
        return task

    def clear(self) -> None:
        """Forget everything: the host is gone."""
        self._tasks.clear()

    def _drop_expired(self) -> None:
        now = asyncio.get_running_loop().time()
        for task_id in [task_id for task_id, task in self._tasks.items() if task.until <= now]:
            del self._tasks[task_id]

    def _make_room(self) -> None:
        """Forget what has expired; if there are many, the oldest that the host has fetched."""
        self._drop_expired()
        for task_id in [task_id for task_id, task in self._tasks.items() if task.is_fetched]:
            if self._is_full():
                del self._tasks[task_id]

    def _is_full(self) -> bool:
        return len(self._tasks) + self._begun >= MOST_KEPT or self._size() >= MOST_BYTES

    def _size(self) -> int:
        return sum(len(task.result) for task in self._tasks.values())


def _life(wish: Any) -> int:
    """Return the milliseconds for which a result is kept, of those that the host wants."""
    ttl = wish.get("ttl") if isinstance(wish, dict) else None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl <= 0:
        return USUAL_TTL
    return int(min(ttl, LONGEST_TTL)) or 1
