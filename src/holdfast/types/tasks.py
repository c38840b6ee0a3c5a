"""Tasks: requests that a peer works on while its answer is fetched later."""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import field

from holdfast.types.base import Meta, Wire, no_value

TaskStatus: TypeAlias = str
"""One of `TASK_STATUSES`; others are read as they come."""
TASK_STATUSES: Final = ("cancelled", "completed", "failed", "input_required", "working")

RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The key of ``_meta`` under which a message names its task."""


class TaskMetadata(Wire, kw_only=True):
    """The wish to have a request run as a task, kept for ``ttl`` milliseconds."""

    ttl: int | None = None


class Task(Meta, kw_only=True):
    """A task and how it is doing. ``ttl`` None: kept for as long as the peer lives.

    ``ttl`` and ``poll_interval`` are milliseconds.
    """

    task_id: str
    status: TaskStatus
    created_at: str
    last_updated_at: str
    ttl: int | None = field(default_factory=no_value)
    poll_interval: int | None = None
    status_message: str | None = None

    @property
    def done(self) -> bool:
        """True once the task is completed, failed or cancelled."""
        return self.status in ("cancelled", "completed", "failed")


class TaskCreated(Meta, kw_only=True):
    """The immediate answer to a request that runs as a task."""

    task: Task
