"""Messages as a whole: requests, notifications, answers, errors, and questions in answers."""

from __future__ import annotations

from typing import Any, ClassVar, Final, TypeAlias

from msgspec import UNSET, Raw, UnsetType

from holdfast.types.base import Meta, Result, Wire
from holdfast.types.elicitation import UrlElicitation
from holdfast.types.lifecycle import ClientCapabilities

RequestId: TypeAlias = int | str

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042


class Message(Wire, tag_field="jsonrpc", tag="2.0", kw_only=True):
    """The base of all messages."""

    jsonrpc: ClassVar[str] = "2.0"


class Request(Message, kw_only=True):
    """A question that wants an answer."""

    id: RequestId
    method: str
    params: Any = UNSET


class Notification(Message, kw_only=True):
    """News that want no answer."""

    method: str
    params: Any = UNSET


class Response(Message, kw_only=True):
    """A good answer."""

    id: RequestId
    result: Any


class RpcErrorObject(Wire, kw_only=True):
    """What went wrong; ``data`` is any JSON value, or unset."""

    code: int
    message: str
    data: Any = UNSET


class ErrorResponse(Message, kw_only=True):
    """A bad answer. A peer that could not read the question cannot say whose it is."""

    error: RpcErrorObject
    id: RequestId | UnsetType | None = UNSET


class MissingCapabilityData(Wire, kw_only=True):
    """The data of `MISSING_CAPABILITY`: what the client would have to be able to do."""

    required_capabilities: ClientCapabilities


class UnsupportedVersionData(Wire, kw_only=True):
    """The data of `UNSUPPORTED_VERSION`: what was wanted and what there is."""

    requested: str
    supported: list[str]


class UrlElicitationRequiredData(Wire, kw_only=True):
    """The data of `URL_ELICITATION_REQUIRED`: the pages to visit before trying again."""

    elicitations: list[UrlElicitation]


class NotificationParams(Meta, kw_only=True):
    """Parameters of a notification that has no more to say."""


class Cancelled(Meta, kw_only=True):
    """The news that a request is no longer wanted."""

    request_id: RequestId | None = None
    reason: str | None = None


class InputRequest(Wire, kw_only=True):
    """A question inside an answer: the same methods and parameters as a server's request."""

    method: str
    params: Raw | UnsetType = UNSET


class InputRequired(Result, kw_only=True):
    """An answer that asks back: send the request again with answers under the same keys."""

    vital: ClassVar[frozenset[str]] = frozenset({"input_requests", "request_state"})

    input_requests: dict[str, InputRequest] | None = None
    request_state: str | None = None
