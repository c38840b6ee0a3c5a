"""The parameters of what a client asks, one type per request."""

from __future__ import annotations

from typing import Any

from msgspec import field

from holdfast.types.base import Meta
from holdfast.types.completion import CompletionArgument, CompletionContext, Reference
from holdfast.types.lifecycle import ClientCapabilities, Implementation
from holdfast.types.logging import LogLevel
from holdfast.types.subscriptions import SubscriptionFilter
from holdfast.types.tasks import TaskMetadata


class RequestParams(Meta, kw_only=True):
    """Parameters that are nothing but ``_meta``."""


class PageParams(RequestParams, kw_only=True):
    """Which page of a list is wanted; the first, if no cursor is given."""

    cursor: str | None = None


class RetryParams(RequestParams, kw_only=True):
    """A request sent again with the answers that the server asked for."""

    input_responses: dict[str, Any] | None = None
    request_state: str | None = None


class InitializeParams(RequestParams, kw_only=True):
    """A client's side of the handshake."""

    protocol_version: str
    capabilities: ClientCapabilities = field(default_factory=ClientCapabilities)
    client_info: Implementation = field(default_factory=Implementation)


class CallToolParams(RetryParams, kw_only=True):
    """The tool to call, and with what."""

    name: str
    arguments: dict[str, Any] | None = None
    task: TaskMetadata | None = None


class GetPromptParams(RetryParams, kw_only=True):
    """The prompt to get, and the values to fill in."""

    name: str
    arguments: dict[str, str] | None = None


class ResourceParams(RequestParams, kw_only=True):
    """The resource to watch, or to watch no more."""

    uri: str


class ReadResourceParams(RetryParams, kw_only=True):
    """The resource to read."""

    uri: str


class CompleteParams(RequestParams, kw_only=True):
    """The argument to complete, and what it is an argument of."""

    ref: Reference
    argument: CompletionArgument
    context: CompletionContext | None = None


class SetLevelParams(RequestParams, kw_only=True):
    """The least severe level that the client wants to hear of."""

    level: LogLevel


class ListenParams(RequestParams, kw_only=True):
    """The news that the client wants to hear of."""

    notifications: SubscriptionFilter
