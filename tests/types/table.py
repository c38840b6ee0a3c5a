"""Which type of ours stands for which definition of the protocol's schemas.

Every definition of every revision has a row; a row says what the definition is to us.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from holdfast import types as t
from holdfast.types.base import Wire
from holdfast.types.content import EitherContents
from holdfast.types.rpc import Message


@dataclass(frozen=True)
class Struct:
    """An object that we read into a type; ``read`` where the type depends on what is read."""

    type: type[Wire]
    read: Callable[[bytes], Any] | None = None


@dataclass(frozen=True)
class Asks:
    """A request or notification: its method, and the type of its parameters."""

    method: str
    params: type[Wire]
    read: Callable[[bytes], Any] | None = None


@dataclass(frozen=True)
class Page:
    """A list result, read by `decode_page`."""

    item: type[Wire]
    key: str


@dataclass(frozen=True)
class Enum:
    """Some words."""

    words: tuple[str, ...]


@dataclass(frozen=True)
class Union:
    """A choice among definitions with rows of their own."""


@dataclass(frozen=True)
class Fails:
    """An error response with this code, and data of this type."""

    code: int
    data: type[Wire] | None = None


@dataclass(frozen=True)
class Code:
    """An error object with this code."""

    code: int


@dataclass(frozen=True)
class Plain:
    """No type of its own, and why not."""

    reason: str


def _read_field(raw: bytes) -> Any:
    return t.read_field(msgspec.json.decode(raw))


def _read_response(raw: bytes) -> Any:
    kind: type[Wire] = t.ErrorResponse if b'"error"' in raw else t.Response
    return t.decode(raw, kind)


Row: TypeAlias = Struct | Asks | Page | Enum | Union | Fails | Code | Plain

_PARENT = "a base of other definitions, never a message"
_JSON = "any JSON of that shape"
_SCALAR = "a plain value"
_ANSWER = Struct(t.Response)

ROWS: dict[str, Row] = {
    # contents
    "Annotated": Plain("an older base of what carries annotations"),
    "Annotations": Struct(t.Annotations),
    "AudioContent": Struct(t.AudioContent),
    "BlobResourceContents": Struct(t.BlobResourceContents),
    "ContentBlock": Union(),
    "EmbeddedResource": Struct(t.EmbeddedResource),
    "Icon": Struct(t.Icon),
    "Icons": Plain(_PARENT),
    "ImageContent": Struct(t.ImageContent),
    "ResourceContents": Struct(t.ResourceContents),
    "ResourceLink": Struct(t.ResourceLink),
    "Role": Enum(t.ROLES),
    "SamplingMessageContentBlock": Union(),
    "TextContent": Struct(t.TextContent),
    "TextResourceContents": Struct(t.TextResourceContents),
    "ToolResultContent": Struct(t.ToolResultContent),
    "ToolUseContent": Struct(t.ToolUseContent),
    # lifecycle
    "BaseMetadata": Plain(_PARENT),
    "ClientCapabilities": Struct(t.ClientCapabilities),
    "DiscoverRequest": Asks("server/discover", t.RequestParams),
    "DiscoverResult": Struct(t.DiscoverResult),
    "DiscoverResultResponse": _ANSWER,
    "Implementation": Struct(t.Implementation),
    "InitializeRequest": Asks("initialize", t.InitializeParams),
    "InitializeRequestParams": Struct(t.InitializeParams),
    "InitializeResult": Struct(t.InitializeResult),
    "InitializedNotification": Asks("notifications/initialized", t.NotificationParams),
    "PingRequest": Asks("ping", t.RequestParams),
    "ServerCapabilities": Struct(t.ServerCapabilities),
    # tools
    "CallToolRequest": Asks("tools/call", t.CallToolParams),
    "CallToolRequestParams": Struct(t.CallToolParams),
    "CallToolResult": Struct(t.ToolResult),
    "CallToolResultResponse": _ANSWER,
    "ListToolsRequest": Asks("tools/list", t.PageParams),
    "ListToolsResult": Page(t.Tool, "tools"),
    "ListToolsResultResponse": _ANSWER,
    "Tool": Struct(t.Tool),
    "ToolAnnotations": Struct(t.ToolAnnotations),
    "ToolExecution": Struct(t.ToolExecution),
    "ToolListChangedNotification": Asks("notifications/tools/list_changed", t.NotificationParams),
    # resources
    "ListResourceTemplatesRequest": Asks("resources/templates/list", t.PageParams),
    "ListResourceTemplatesResult": Page(t.ResourceTemplate, "resourceTemplates"),
    "ListResourceTemplatesResultResponse": _ANSWER,
    "ListResourcesRequest": Asks("resources/list", t.PageParams),
    "ListResourcesResult": Page(t.Resource, "resources"),
    "ListResourcesResultResponse": _ANSWER,
    "ReadResourceRequest": Asks("resources/read", t.ReadResourceParams),
    "ReadResourceRequestParams": Struct(t.ReadResourceParams),
    "ReadResourceResult": Struct(t.ReadResult),
    "ReadResourceResultResponse": _ANSWER,
    "Resource": Struct(t.Resource),
    "ResourceListChangedNotification": Asks(
        "notifications/resources/list_changed", t.NotificationParams
    ),
    "ResourceRequestParams": Struct(t.ResourceParams),
    "ResourceTemplate": Struct(t.ResourceTemplate),
    "ResourceUpdatedNotification": Asks("notifications/resources/updated", t.ResourceUpdated),
    "ResourceUpdatedNotificationParams": Struct(t.ResourceUpdated),
    # prompts
    "GetPromptRequest": Asks("prompts/get", t.GetPromptParams),
    "GetPromptRequestParams": Struct(t.GetPromptParams),
    "GetPromptResult": Struct(t.PromptResult),
    "GetPromptResultResponse": _ANSWER,
    "ListPromptsRequest": Asks("prompts/list", t.PageParams),
    "ListPromptsResult": Page(t.Prompt, "prompts"),
    "ListPromptsResultResponse": _ANSWER,
    "Prompt": Struct(t.Prompt),
    "PromptArgument": Struct(t.PromptArgument),
    "PromptListChangedNotification": Asks(
        "notifications/prompts/list_changed", t.NotificationParams
    ),
    "PromptMessage": Struct(t.PromptMessage),
    # completion
    "CompleteRequest": Asks("completion/complete", t.CompleteParams),
    "CompleteRequestParams": Struct(t.CompleteParams),
    "CompleteResult": Struct(t.CompleteResult),
    "CompleteResultResponse": _ANSWER,
    "PromptReference": Struct(t.PromptReference),
    "ResourceReference": Struct(t.ResourceReference),
    "ResourceTemplateReference": Struct(t.ResourceReference),
    # logging and progress
    "LoggingLevel": Enum(t.LOG_LEVELS),
    "LoggingMessageNotification": Asks("notifications/message", t.LogMessage),
    "LoggingMessageNotificationParams": Struct(t.LogMessage),
    "ProgressNotification": Asks("notifications/progress", t.Progress),
    "ProgressNotificationParams": Struct(t.Progress),
    "ProgressToken": Plain(_SCALAR),
    "SetLevelRequest": Asks("logging/setLevel", t.SetLevelParams),
    "SetLevelRequestParams": Struct(t.SetLevelParams),
    # sampling
    "CreateMessageRequest": Asks("sampling/createMessage", t.SamplingRequest),
    "CreateMessageRequestParams": Struct(t.SamplingRequest),
    "CreateMessageResult": Struct(t.SamplingResult),
    "ModelHint": Struct(t.ModelHint),
    "ModelPreferences": Struct(t.ModelPreferences),
    "SamplingMessage": Struct(t.SamplingMessage),
    "ToolChoice": Struct(t.ToolChoice),
    # elicitation
    "BooleanSchema": Struct(t.BooleanSchema),
    "ElicitRequest": Asks("elicitation/create", t.Elicitation, t.read_elicitation),
    "ElicitRequestFormParams": Struct(t.FormElicitation),
    "ElicitRequestParams": Union(),
    "ElicitRequestURLParams": Struct(t.UrlElicitation),
    "ElicitResult": Struct(t.ElicitResult),
    "ElicitationCompleteNotification": Asks(
        "notifications/elicitation/complete", t.ElicitationComplete
    ),
    "EnumSchema": Struct(t.EnumSchema, _read_field),
    "LegacyTitledEnumSchema": Struct(t.EnumSchema),
    "MultiSelectEnumSchema": Union(),
    "NumberSchema": Struct(t.NumberSchema),
    "PrimitiveSchemaDefinition": Union(),
    "SingleSelectEnumSchema": Union(),
    "StringSchema": Struct(t.StringSchema),
    "TitledMultiSelectEnumSchema": Struct(t.TitledMultiEnumSchema),
    "TitledSingleSelectEnumSchema": Struct(t.TitledEnumSchema),
    "UntitledMultiSelectEnumSchema": Struct(t.MultiEnumSchema),
    "UntitledSingleSelectEnumSchema": Struct(t.EnumSchema),
    # roots
    "ListRootsRequest": Asks("roots/list", t.RequestParams),
    "ListRootsResult": Struct(t.RootsResult),
    "Root": Struct(t.Root),
    "RootsListChangedNotification": Asks("notifications/roots/list_changed", t.NotificationParams),
    # subscriptions
    "SubscribeRequest": Asks("resources/subscribe", t.ResourceParams),
    "SubscribeRequestParams": Struct(t.ResourceParams),
    "SubscriptionFilter": Struct(t.SubscriptionFilter),
    "SubscriptionsAcknowledgedNotification": Asks(
        "notifications/subscriptions/acknowledged", t.SubscriptionAcknowledged
    ),
    "SubscriptionsAcknowledgedNotificationParams": Struct(t.SubscriptionAcknowledged),
    "SubscriptionsListenRequest": Asks("subscriptions/listen", t.ListenParams),
    "SubscriptionsListenRequestParams": Struct(t.ListenParams),
    "SubscriptionsListenResult": Struct(t.SubscriptionEnded),
    "SubscriptionsListenResultMetaObject": Struct(t.ResultMeta),
    "SubscriptionsListenResultResponse": _ANSWER,
    "UnsubscribeRequest": Asks("resources/unsubscribe", t.ResourceParams),
    "UnsubscribeRequestParams": Struct(t.ResourceParams),
    # tasks
    "CancelTaskRequest": Asks("tasks/cancel", t.TaskParams),
    "CancelTaskResult": Struct(t.Task),
    "CreateTaskResult": Struct(t.TaskCreated),
    "GetTaskPayloadRequest": Asks("tasks/result", t.TaskParams),
    "GetTaskPayloadResult": Plain("the result of the request that the task ran, whichever it is"),
    "GetTaskRequest": Asks("tasks/get", t.TaskParams),
    "GetTaskResult": Struct(t.Task),
    "ListTasksRequest": Asks("tasks/list", t.PageParams),
    "ListTasksResult": Page(t.Task, "tasks"),
    "RelatedTaskMetadata": Struct(t.RelatedTask),
    "Task": Struct(t.Task),
    "TaskAugmentedRequestParams": Plain(_PARENT),
    "TaskMetadata": Struct(t.TaskMetadata),
    "TaskStatus": Enum(t.TASK_STATUSES),
    "TaskStatusNotification": Asks("notifications/tasks/status", t.Task),
    "TaskStatusNotificationParams": Struct(t.Task),
    # messages
    "CancelledNotification": Asks("notifications/cancelled", t.Cancelled),
    "CancelledNotificationParams": Struct(t.Cancelled),
    "ClientNotification": Union(),
    "ClientRequest": Union(),
    "ClientResult": Union(),
    "Cursor": Plain(_SCALAR),
    "EmptyResult": Struct(t.Result),
    "Error": Struct(t.RpcErrorObject),
    "HeaderMismatchError": Fails(t.HEADER_MISMATCH),
    "InputRequest": Union(),
    "InputRequests": Plain("a dictionary of `InputRequest`, a field of `InputRequired`"),
    "InputRequiredResult": Struct(t.InputRequired),
    "InputResponse": Union(),
    "InputResponseRequestParams": Struct(t.RetryParams),
    "InputResponses": Plain("a dictionary of results, a field of `RetryParams`"),
    "InternalError": Code(t.INTERNAL_ERROR),
    "InvalidParamsError": Code(t.INVALID_PARAMS),
    "InvalidRequestError": Code(t.INVALID_REQUEST),
    "JSONArray": Plain(_JSON),
    "JSONObject": Plain(_JSON),
    "JSONRPCBatchRequest": Plain("a list of messages, taken apart by the codec"),
    "JSONRPCBatchResponse": Plain("a list of messages, taken apart by the codec"),
    "JSONRPCError": Struct(t.ErrorResponse),
    "JSONRPCErrorResponse": Struct(t.ErrorResponse),
    "JSONRPCMessage": Plain("any message: which one it is shows in its fields"),
    "JSONRPCNotification": Struct(t.Notification),
    "JSONRPCRequest": Struct(t.Request),
    "JSONRPCResponse": Struct(t.Response, _read_response),
    "JSONRPCResultResponse": Struct(t.Response),
    "JSONValue": Plain(_JSON),
    "MetaObject": Plain(_JSON),
    "MethodNotFoundError": Code(t.METHOD_NOT_FOUND),
    "MissingRequiredClientCapabilityError": Fails(t.MISSING_CAPABILITY, t.MissingCapabilityData),
    "Notification": Plain(_PARENT),
    "NotificationMetaObject": Struct(t.NotificationMeta),
    "NotificationParams": Struct(t.NotificationParams),
    "PaginatedRequest": Plain(_PARENT),
    "PaginatedRequestParams": Struct(t.PageParams),
    "PaginatedResult": Plain(_PARENT),
    "CacheableResult": Struct(t.Cacheable),
    "ParseError": Code(t.PARSE_ERROR),
    "Request": Plain(_PARENT),
    "RequestId": Plain(_SCALAR),
    "RequestMetaObject": Struct(t.RequestMeta),
    "RequestParams": Struct(t.RequestParams),
    "Result": Struct(t.Result),
    "ResultMetaObject": Struct(t.ResultMeta),
    "ResultType": Plain(_SCALAR),
    "ServerNotification": Union(),
    "ServerRequest": Union(),
    "ServerResult": Union(),
    "URLElicitationRequiredError": Fails(t.URL_ELICITATION_REQUIRED, t.UrlElicitationRequiredData),
    "UnsupportedProtocolVersionError": Fails(t.UNSUPPORTED_VERSION, t.UnsupportedVersionData),
}

OURS: dict[type[Wire], str] = {
    t.Wire: "the base of all",
    t.Meta: "a base",
    t.ContentBlock: "a base",
    t.FieldSchema: "a base",
    EitherContents: "a state of being read",
    Message: "a base",
    t.UnknownSchema: "what the protocol does not have",
}
"""Types that stand for no definition, and why."""

WORDS: dict[str, tuple[str, ...]] = {
    "action": t.ACTIONS,
    "cacheScope": t.CACHE_SCOPES,
    "format": t.FORMATS,
    "includeContext": t.CONTEXTS,
    "mode": t.TOOL_CHOICES,
    "taskSupport": t.TASK_SUPPORT,
    "theme": t.ICON_THEMES,
    "type": ("integer", "number"),
}
"""The words that a field may hold, where the field itself lists them."""

SINCE: dict[str, str] = {
    "_meta": "required from clients where there is no handshake; the era adds it",
    "resultType": "required of results where there is no handshake",
    "ttlMs": "required of results where there is no handshake",
    "cacheScope": "required of results where there is no handshake",
    "UrlElicitation.elicitationId": "required in one revision only",
    "Cancelled.requestId": "not required in one revision, where a task may be meant instead",
    "ErrorResponse.id": "not required in newer revisions, and never known for a parse error",
    "io.modelcontextprotocol/clientCapabilities": "one type for both eras",
    "io.modelcontextprotocol/protocolVersion": "one type for both eras",
    "io.modelcontextprotocol/subscriptionId": "one type for all results",
}
"""Fields (of a type, or of all) that some revision requires and our types do not, and why."""
