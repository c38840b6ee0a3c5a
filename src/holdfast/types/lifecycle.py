"""The identity and capabilities of both sides, exchanged when they connect."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import field

from holdfast.types.base import Cacheable, Meta, Wire, empty_text
from holdfast.types.content import Icon

Settings: TypeAlias = dict[str, Any]
"""A capability without settings that this version knows: being there is what counts."""

SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"


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


class SamplingCapability(Wire, kw_only=True):
    """Sampling, with a choice of context and with tools where those are there."""

    context: Settings | None = None
    tools: Settings | None = None


class ElicitationCapability(Wire, kw_only=True):
    """Elicitation by form, by URL or both. Neither said means by form."""

    form: Settings | None = None
    url: Settings | None = None


class TasksCapability(Wire, kw_only=True):
    """Tasks: what can be done with them, and which requests may become one."""

    list: Settings | None = None
    cancel: Settings | None = None
    requests: dict[str, Settings] | None = None


class ClientCapabilities(Wire, kw_only=True):
    """The capabilities of a client."""

    experimental: dict[str, Settings] | None = None
    extensions: dict[str, Settings] | None = None
    roots: ListCapability | None = None
    sampling: SamplingCapability | None = None
    elicitation: ElicitationCapability | None = None
    tasks: TasksCapability | None = None


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


class InitializeResult(Meta, kw_only=True):
    """A server's side of the handshake."""

    protocol_version: str
    capabilities: ServerCapabilities = field(default_factory=ServerCapabilities)
    server_info: Implementation = field(default_factory=Implementation)
    instructions: str | None = None


class DiscoverResult(Cacheable, kw_only=True):
    """The server's description of itself, requested without a handshake."""

    supported_versions: list[str]
    capabilities: ServerCapabilities = field(default_factory=ServerCapabilities)
    instructions: str | None = None

    @property
    def server_info(self) -> Implementation:
        """The program behind the server; nameless if it does not say."""
        try:
            return msgspec.convert((self.meta or {}).get(SERVER_INFO), Implementation)
        except msgspec.ValidationError:
            return Implementation()
