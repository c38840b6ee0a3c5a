"""The identity and capabilities of both sides, exchanged when they connect."""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import field

from holdfast.types.base import Wire, empty_text
from holdfast.types.content import Icon

Settings: TypeAlias = dict[str, Any]
"""A capability without settings that this version knows: being there is what counts."""


class Implementation(Wire, kw_only=True):
    """The name and version of a program."""

    name: str = field(default_factory=empty_text)
    version: str = field(default_factory=empty_text)
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
