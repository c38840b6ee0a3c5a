"""A call under way, seen from a thread.

Written by tools/sync_face.py from _core/calls/running.py: change that, and run it again.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from holdfast._core.calls.running import RunningCall as AsyncRunningCall
from holdfast.sync.portal import Portal
from holdfast.types.lifecycle import Task

R = TypeVar("R")


class RunningCall(Generic[R]):
    """A call under way. ``result()`` waits for it; ``cancel()`` ends it and tells the server."""

    def __init__(self, portal: Portal, call: AsyncRunningCall[R]) -> None:
        self._portal = portal
        self._call = call

    def __repr__(self) -> str:
        return repr(self._call)

    @property
    def done(self) -> bool:
        """True once there is a result or an error."""
        return self._call.done

    def cancel(self) -> bool:
        """End the call and tell the server to stop.

        Returns:
            True if this ended it; False if it had ended already.
        """
        return self._portal.do(self._call.cancel)

    @property
    def task(self) -> Task | None:
        """The task that the server has made of the call, as it was last seen."""
        return self._call.task

    def wait_task(self) -> Task | None:
        """Wait until the call has become a task; return None if it ended without one."""
        return self._portal.run(self._call.wait_task())

    def detach(self) -> str:
        """Stop waiting for the task, and leave it running on the server.

        Returns:
            Its id, for ``resume_task`` of this or another client of the server.

        Raises:
            StateError: The call is not a task, or not yet: see `wait_task`.
        """
        return self._portal.do(self._call.detach)

    def result(self, timeout: float | None = None) -> R:
        """Wait for the result.

        Args:
            timeout: Seconds to wait; the call goes on if they pass: ask again, or cancel it.

        Raises:
            TimeoutError: There is no result yet.
        """
        return self._portal.run(self._wait(), timeout)

    async def _wait(self) -> R:
        return await self._call  # Shielded: a wait that is given up leaves the call alone.
