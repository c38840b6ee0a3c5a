"""The keys of ``_meta`` that the protocol itself gives a meaning.

Everywhere else ``_meta`` is a plain dictionary, because most of its keys are other people's.
"""

from __future__ import annotations

from msgspec import UNSET, UnsetType, field

from holdfast.types.base import Wire
from holdfast.types.lifecycle import SERVER_INFO, ClientCapabilities, Implementation
from holdfast.types.logging import LogLevel
from holdfast.types.progress import ProgressToken

_PREFIX = "io.modelcontextprotocol/"


class RequestMeta(Wire, kw_only=True):
    """What a request may say of itself and, where there is no handshake, of its sender."""

    progress_token: ProgressToken | UnsetType = UNSET
    protocol_version: str | None = field(name=_PREFIX + "protocolVersion", default=None)
    client_capabilities: ClientCapabilities | None = field(
        name=_PREFIX + "clientCapabilities", default=None
    )
    client_info: Implementation | None = field(name=_PREFIX + "clientInfo", default=None)
    log_level: LogLevel | None = field(name=_PREFIX + "logLevel", default=None)


class NotificationMeta(Wire, kw_only=True):
    """The subscription that a notification belongs to."""

    subscription_id: int | str | UnsetType = field(name=_PREFIX + "subscriptionId", default=UNSET)


class ResultMeta(NotificationMeta, kw_only=True):
    """The server that a result comes from, and the subscription that it ends."""

    server_info: Implementation | None = field(name=SERVER_INFO, default=None)
