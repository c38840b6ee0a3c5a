"""A server's identity and capabilities, what it reports while it works, and its tasks."""

from typing import Any, Final, TypeAlias

from msgspec import field

from holdfast.types.base import Meta, Wire
from holdfast.types.content import Icon

Settings: TypeAlias = dict[str, Any]
"""A capability without settings that this version knows: being there is what counts."""


class Implementation(Wire, kw_only=True):
    """The name and version of a program."""

    # Factories: what is at a default of its own is not sent, and peers require these.
    name: str = field(default_factory=lambda: "")
    version: str = field(default_factory=lambda: "")
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: list[Icon] | None = None


class ListCapability(Wire, kw_only=True):
    """Tools, prompts or roots: ``list_changed`` means that changes are announced."""

    list_changed: bool = False


class ResourcesCapability(ListCapability, kw_only=True):
    """Resources: ``subscribe`` means that single ones can be watched."""

    subscribe: bool = False


class TasksCapability(Wire, kw_only=True):
    """Tasks: what can be done with them, and which requests may become one."""

    list: Settings | None = None
    cancel: Settings | None = None
    requests: dict[str, Settings] | None = None


class ServerCapabilities(Wire, kw_only=True):
    """The capabilities of a server."""

    experimental: dict[str, Settings] | None = None
    extensions: dict[str, Settings] | None = None
    tools: ListCapability | None = None
    resources: ResourcesCapability | None = None
    prompts: ListCapability | None = None
    completions: Settings | None = None
    logging: Settings | None = None
    tasks: TasksCapability | None = None


LOG_LEVELS: Final = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
"""From the least to the most severe (RFC 5424)."""


class LogMessage(Meta, kw_only=True):
    """One message of a level of `LOG_LEVELS`; ``data`` is any JSON value, often text."""

    level: str
    data: Any
    logger: str | None = None


class Progress(Meta, kw_only=True):
    """The progress of a request: ``progress`` of ``total``, where the total is known."""

    progress_token: int | str
    progress: int | float
    total: int | float | None = None
    message: str | None = None


# Tasks


RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The key of ``_meta`` under which a message names its task."""


class TaskMetadata(Wire, kw_only=True):
    """A request to run as a task, which is kept for ``ttl`` milliseconds."""

    ttl: int | None = None


class Task(Meta, kw_only=True):
    """A task and how it is doing. ``ttl`` None: kept for as long as the peer lives.

    ``status`` is ``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``;
    others are read as they come. ``ttl`` and ``poll_interval`` are milliseconds.
    """

    task_id: str
    status: str
    created_at: str
    last_updated_at: str
    ttl: int | None = field(default_factory=lambda: None)  # sent, because it is required
    poll_interval: int | None = None
    status_message: str | None = None

    @property
    def done(self) -> bool:
        """True once the task is completed, failed or cancelled."""
        return self.status in ("cancelled", "completed", "failed")
