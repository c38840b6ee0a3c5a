"""A call that is under way, as a value."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from holdfast import types
from holdfast.errors import CancelledCallError, StateError

if TYPE_CHECKING:
    from holdfast._core.calls.handlers import ProgressHandler
    from holdfast._core.calls.task_poller import TaskView

R = TypeVar("R")

MOST_PROGRESS: Final = 1000
"""Reports of progress that wait to be taken; a server that sends more loses the oldest."""


class ProgressQueue:
    """The progress of one call that nobody has taken yet."""

    def __init__(self) -> None:
        self.values: deque[types.Progress] = deque(maxlen=MOST_PROGRESS)
        self.arrived: asyncio.Event = asyncio.Event()

    def handler(self, also: ProgressHandler | None) -> ProgressHandler:
        """Return a handler that keeps progress, and passes it on to another one."""

        def add(progress: types.Progress) -> Any:
            self.values.append(progress)
            self.arrived.set()
            return None if also is None else also(progress)

        return add


class RunningCall(Generic[R]):
    """A running call. Await it for its result; ``cancel()`` ends it and tells the server.

    ``async for`` gives its progress, until it ends; an error is raised by awaiting it.

    Example:
        running = client.start_tool("build", {"target": "all"})
        async for progress in running:
            print(progress.progress, progress.total)
        result = await running
    """

    def __init__(
        self,
        label: str,
        work: Coroutine[Any, Any, R],
        view: TaskView,
        client: object = None,
        progress: ProgressQueue | None = None,
    ) -> None:
        self._progress = progress or ProgressQueue()
        self._client = client
        """The client, which is to live as long as its call."""
        self._label = label
        self._view = view
        self._cancelled = False
        self._task: asyncio.Future[R] = asyncio.ensure_future(self._run(work))

        def ended(task: asyncio.Future[R]) -> None:
            work.close()  # it may never have started
            self._progress.arrived.set()
            if not task.cancelled():
                # A failure that nobody awaits is not an unhandled one.
                task.exception()

        self._task.add_done_callback(ended)

    def __repr__(self) -> str:
        return f"<RunningCall {self._label} {'done' if self.done else 'under way'}>"

    @property
    def done(self) -> bool:
        """True once there is a result or an error."""
        return self._task.done()

    def cancel(self) -> bool:
        """End the call and tell the server to stop.

        Returns:
            True if this ended it; False if it had ended already.
        """
        if self._task.done() or self._cancelled:
            return False
        self._cancelled = True
        return self._task.cancel()

    @property
    def task(self) -> types.Task | None:
        """The task that the server has made of the call, as it was last seen."""
        return self._view.task

    async def wait_task(self) -> types.Task | None:
        """Wait until the call has become a task; return None if it ended without one."""
        created = asyncio.ensure_future(self._view.created.wait())
        either: list[asyncio.Future[Any]] = [created, self._task]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            created.cancel()
        return self.task

    def detach(self) -> str:
        """Stop waiting for the task, and leave it running on the server.

        Returns:
            Its id, for ``resume_task`` of this or another client of the server.

        Raises:
            StateError: The call is not a task, or not yet: see `wait_task`.
        """
        if self.task is None:
            raise StateError(f"{self._label}: it has not become a task")
        self._view.detached = True
        self.cancel()
        return self.task.task_id

    async def __aiter__(self) -> AsyncIterator[types.Progress]:
        while (progress := await self._next_progress()) is not None:
            yield progress

    async def _next_progress(self) -> types.Progress | None:
        """Wait for progress; return None once the call has ended and all of it was taken."""
        queue = self._progress
        while not queue.values:
            if self._task.done():
                return None
            queue.arrived.clear()
            await queue.arrived.wait()
        return queue.values.popleft()

    def __await__(self) -> Generator[Any, None, R]:
        return self._wait().__await__()

    async def _run(self, work: Awaitable[R]) -> R:
        try:
            return await work
        except asyncio.CancelledError as error:
            if not self._cancelled:
                raise
            # The driver notes in the cause whether the request had left for the server.
            if isinstance(error.__cause__, CancelledCallError):
                raise error.__cause__ from None
            raise self._unsent() from None

    async def _wait(self) -> R:
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._cancelled and self._task.cancelled():
                # Cancelled before its first step.
                raise self._unsent() from None
            raise

    def _unsent(self) -> CancelledCallError:
        return CancelledCallError(f"{self._label}: cancelled by its owner; nothing was sent")
