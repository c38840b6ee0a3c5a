"""What goes over the wire, as types: read from servers, written by handlers.

Names are loaded when first used: making a hundred and more types takes longer than most
programs want to wait for an import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast.types.base import (
        CACHE_SCOPES, Cacheable, Meta, Result, Wire, decode, encode,
    )
    from holdfast.types.completion import (
        CompleteResult, Completion, CompletionArgument, CompletionContext, PromptReference,
        Reference, ResourceReference,
    )
    from holdfast.types.content import (
        Annotations, AnyResourceContents, AudioContent, BlobResourceContents, Content, ContentBlock,
        EmbeddedResource, ICON_THEMES, Icon, ImageContent, ROLES, ResourceContents, ResourceLink,
        Role, SamplingContent, TextContent, TextResourceContents, ToolResultContent, ToolUseContent,
        UnknownContent,
    )
    from holdfast.types.elicitation import (
        ACTIONS, AnyElicitation, BooleanSchema, ElicitResult, Elicitation, ElicitationComplete,
        EnumItems, EnumSchema, FORMATS, FieldSchema, FormElicitation, MultiEnumSchema, NumberSchema,
        Option, PrimitiveSchema, StringSchema, TitledEnumSchema, TitledItems, TitledMultiEnumSchema,
        UnknownSchema, UrlElicitation, read_elicitation, read_field,
    )
    from holdfast.types.lifecycle import (
        ClientCapabilities, DiscoverResult, ElicitationCapability, Implementation, InitializeResult,
        ListCapability, ResourcesCapability, SamplingCapability, ServerCapabilities,
        TasksCapability,
    )
    from holdfast.types.logging import (
        LOG_LEVELS, LogLevel, LogMessage,
    )
    from holdfast.types.meta import (
        NotificationMeta, RequestMeta, ResultMeta,
    )
    from holdfast.types.page import (
        Fault, Page, decode_page,
    )
    from holdfast.types.progress import (
        Progress, ProgressToken,
    )
    from holdfast.types.prompts import (
        Prompt, PromptArgument, PromptMessage, PromptResult,
    )
    from holdfast.types.requests import (
        CallToolParams, CompleteParams, GetPromptParams, InitializeParams, ListenParams, PageParams,
        ReadResourceParams, RequestParams, ResourceParams, RetryParams, SetLevelParams,
    )
    from holdfast.types.resources import (
        ReadResult, Resource, ResourceTemplate, ResourceUpdated,
    )
    from holdfast.types.roots import (
        Root, RootsResult,
    )
    from holdfast.types.rpc import (
        Cancelled, ErrorResponse, HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST,
        InputRequest, InputRequired, METHOD_NOT_FOUND, MISSING_CAPABILITY, MissingCapabilityData,
        Notification, NotificationParams, PARSE_ERROR, Request, RequestId, Response, RpcErrorObject,
        UNSUPPORTED_VERSION, URL_ELICITATION_REQUIRED, UnsupportedVersionData,
        UrlElicitationRequiredData,
    )
    from holdfast.types.sampling import (
        CONTEXTS, ModelHint, ModelPreferences, SamplingMessage, SamplingRequest, SamplingResult,
        TOOL_CHOICES, ToolChoice,
    )
    from holdfast.types.subscriptions import (
        SubscriptionAcknowledged, SubscriptionEnded, SubscriptionFilter,
    )
    from holdfast.types.tasks import (
        RELATED_TASK, RelatedTask, TASK_STATUSES, Task, TaskCreated, TaskMetadata, TaskParams,
        TaskStatus,
    )
    from holdfast.types.tools import (
        TASK_SUPPORT, Tool, ToolAnnotations, ToolExecution, ToolResult,
    )

_HOMES = {
    "base": (
        "CACHE_SCOPES", "Cacheable", "Meta", "Result", "Wire", "decode", "encode",
    ),
    "completion": (
        "CompleteResult", "Completion", "CompletionArgument", "CompletionContext",
        "PromptReference", "Reference", "ResourceReference",
    ),
    "content": (
        "Annotations", "AnyResourceContents", "AudioContent", "BlobResourceContents", "Content",
        "ContentBlock", "EmbeddedResource", "ICON_THEMES", "Icon", "ImageContent", "ROLES",
        "ResourceContents", "ResourceLink", "Role", "SamplingContent", "TextContent",
        "TextResourceContents", "ToolResultContent", "ToolUseContent", "UnknownContent",
    ),
    "elicitation": (
        "ACTIONS", "AnyElicitation", "BooleanSchema", "ElicitResult", "Elicitation",
        "ElicitationComplete", "EnumItems", "EnumSchema", "FORMATS", "FieldSchema",
        "FormElicitation", "MultiEnumSchema", "NumberSchema", "Option", "PrimitiveSchema",
        "StringSchema", "TitledEnumSchema", "TitledItems", "TitledMultiEnumSchema", "UnknownSchema",
        "UrlElicitation", "read_elicitation", "read_field",
    ),
    "lifecycle": (
        "ClientCapabilities", "DiscoverResult", "ElicitationCapability", "Implementation",
        "InitializeResult", "ListCapability", "ResourcesCapability", "SamplingCapability",
        "ServerCapabilities", "TasksCapability",
    ),
    "logging": (
        "LOG_LEVELS", "LogLevel", "LogMessage",
    ),
    "meta": (
        "NotificationMeta", "RequestMeta", "ResultMeta",
    ),
    "page": (
        "Fault", "Page", "decode_page",
    ),
    "progress": (
        "Progress", "ProgressToken",
    ),
    "prompts": (
        "Prompt", "PromptArgument", "PromptMessage", "PromptResult",
    ),
    "requests": (
        "CallToolParams", "CompleteParams", "GetPromptParams", "InitializeParams", "ListenParams",
        "PageParams", "ReadResourceParams", "RequestParams", "ResourceParams", "RetryParams",
        "SetLevelParams",
    ),
    "resources": (
        "ReadResult", "Resource", "ResourceTemplate", "ResourceUpdated",
    ),
    "roots": (
        "Root", "RootsResult",
    ),
    "rpc": (
        "Cancelled", "ErrorResponse", "HEADER_MISMATCH", "INTERNAL_ERROR", "INVALID_PARAMS",
        "INVALID_REQUEST", "InputRequest", "InputRequired", "METHOD_NOT_FOUND",
        "MISSING_CAPABILITY", "MissingCapabilityData", "Notification", "NotificationParams",
        "PARSE_ERROR", "Request", "RequestId", "Response", "RpcErrorObject", "UNSUPPORTED_VERSION",
        "URL_ELICITATION_REQUIRED", "UnsupportedVersionData", "UrlElicitationRequiredData",
    ),
    "sampling": (
        "CONTEXTS", "ModelHint", "ModelPreferences", "SamplingMessage", "SamplingRequest",
        "SamplingResult", "TOOL_CHOICES", "ToolChoice",
    ),
    "subscriptions": (
        "SubscriptionAcknowledged", "SubscriptionEnded", "SubscriptionFilter",
    ),
    "tasks": (
        "RELATED_TASK", "RelatedTask", "TASK_STATUSES", "Task", "TaskCreated", "TaskMetadata",
        "TaskParams", "TaskStatus",
    ),
    "tools": (
        "TASK_SUPPORT", "Tool", "ToolAnnotations", "ToolExecution", "ToolResult",
    ),
}

__all__ = [
    "ACTIONS",
    "CACHE_SCOPES",
    "CONTEXTS",
    "FORMATS",
    "HEADER_MISMATCH",
    "ICON_THEMES",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LOG_LEVELS",
    "METHOD_NOT_FOUND",
    "MISSING_CAPABILITY",
    "PARSE_ERROR",
    "RELATED_TASK",
    "ROLES",
    "TASK_STATUSES",
    "TASK_SUPPORT",
    "TOOL_CHOICES",
    "UNSUPPORTED_VERSION",
    "URL_ELICITATION_REQUIRED",
    "Annotations",
    "AnyElicitation",
    "AnyResourceContents",
    "AudioContent",
    "BlobResourceContents",
    "BooleanSchema",
    "Cacheable",
    "CallToolParams",
    "Cancelled",
    "ClientCapabilities",
    "CompleteParams",
    "CompleteResult",
    "Completion",
    "CompletionArgument",
    "CompletionContext",
    "Content",
    "ContentBlock",
    "DiscoverResult",
    "ElicitResult",
    "Elicitation",
    "ElicitationCapability",
    "ElicitationComplete",
    "EmbeddedResource",
    "EnumItems",
    "EnumSchema",
    "ErrorResponse",
    "Fault",
    "FieldSchema",
    "FormElicitation",
    "GetPromptParams",
    "Icon",
    "ImageContent",
    "Implementation",
    "InitializeParams",
    "InitializeResult",
    "InputRequest",
    "InputRequired",
    "ListCapability",
    "ListenParams",
    "LogLevel",
    "LogMessage",
    "Meta",
    "MissingCapabilityData",
    "ModelHint",
    "ModelPreferences",
    "MultiEnumSchema",
    "Notification",
    "NotificationMeta",
    "NotificationParams",
    "NumberSchema",
    "Option",
    "Page",
    "PageParams",
    "PrimitiveSchema",
    "Progress",
    "ProgressToken",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "PromptResult",
    "ReadResourceParams",
    "ReadResult",
    "Reference",
    "RelatedTask",
    "Request",
    "RequestId",
    "RequestMeta",
    "RequestParams",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceParams",
    "ResourceReference",
    "ResourceTemplate",
    "ResourceUpdated",
    "ResourcesCapability",
    "Response",
    "Result",
    "ResultMeta",
    "RetryParams",
    "Role",
    "Root",
    "RootsResult",
    "RpcErrorObject",
    "SamplingCapability",
    "SamplingContent",
    "SamplingMessage",
    "SamplingRequest",
    "SamplingResult",
    "ServerCapabilities",
    "SetLevelParams",
    "StringSchema",
    "SubscriptionAcknowledged",
    "SubscriptionEnded",
    "SubscriptionFilter",
    "Task",
    "TaskCreated",
    "TaskMetadata",
    "TaskParams",
    "TaskStatus",
    "TasksCapability",
    "TextContent",
    "TextResourceContents",
    "TitledEnumSchema",
    "TitledItems",
    "TitledMultiEnumSchema",
    "Tool",
    "ToolAnnotations",
    "ToolChoice",
    "ToolExecution",
    "ToolResult",
    "ToolResultContent",
    "ToolUseContent",
    "UnknownContent",
    "UnknownSchema",
    "UnsupportedVersionData",
    "UrlElicitation",
    "UrlElicitationRequiredData",
    "Wire",
    "decode",
    "decode_page",
    "encode",
    "read_elicitation",
    "read_field",
]
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
