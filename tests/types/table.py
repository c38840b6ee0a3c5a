"""The types that stand for definitions of the protocol's schemas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast import types as t
from holdfast.types.base import Wire
from holdfast.types.content import EitherContents, MediaContent


@dataclass(frozen=True)
class Struct:
    """An object that is read into a type; ``read`` where the type depends on the content."""

    type: type[Wire]
    read: Callable[[bytes], Any] | None = None


@dataclass(frozen=True)
class Page:
    """A list result, read by `decode_page`."""

    item: type[Wire]
    key: str


@dataclass(frozen=True)
class Enum:
    """A set of words."""

    words: tuple[str, ...]


Row: TypeAlias = Struct | Page | Enum

ROWS: dict[str, Row] = {
    "Annotations": Struct(t.Annotations),
    "AudioContent": Struct(t.AudioContent),
    "BlobResourceContents": Struct(t.BlobResourceContents),
    "EmbeddedResource": Struct(t.EmbeddedResource),
    "Icon": Struct(t.Icon),
    "ImageContent": Struct(t.ImageContent),
    "ResourceContents": Struct(t.ResourceContents),
    "ResourceLink": Struct(t.ResourceLink),
    "TextContent": Struct(t.TextContent),
    "TextResourceContents": Struct(t.TextResourceContents),
    "ToolResultContent": Struct(t.ToolResultContent),
    "ToolUseContent": Struct(t.ToolUseContent),
    "Implementation": Struct(t.Implementation),
    "ServerCapabilities": Struct(t.ServerCapabilities),
    "CallToolResult": Struct(t.ToolResult),
    "ListToolsResult": Page(t.Tool, "tools"),
    "Tool": Struct(t.Tool),
    "ToolAnnotations": Struct(t.ToolAnnotations),
    "ToolExecution": Struct(t.ToolExecution),
    "ListResourceTemplatesResult": Page(t.ResourceTemplate, "resourceTemplates"),
    "ListResourcesResult": Page(t.Resource, "resources"),
    "ReadResourceResult": Struct(t.ReadResult),
    "Resource": Struct(t.Resource),
    "ResourceTemplate": Struct(t.ResourceTemplate),
    "GetPromptResult": Struct(t.PromptResult),
    "ListPromptsResult": Page(t.Prompt, "prompts"),
    "Prompt": Struct(t.Prompt),
    "PromptArgument": Struct(t.PromptArgument),
    "PromptMessage": Struct(t.PromptMessage),
    "CompleteResult": Struct(t.CompleteResult),
    "PromptReference": Struct(t.PromptReference),
    "ResourceReference": Struct(t.ResourceReference),
    "ResourceTemplateReference": Struct(t.ResourceReference),
    "LoggingLevel": Enum(t.LOG_LEVELS),
    "LoggingMessageNotificationParams": Struct(t.LogMessage),
    "ProgressNotificationParams": Struct(t.Progress),
    "CreateMessageRequestParams": Struct(t.SamplingRequest),
    "CreateMessageResult": Struct(t.SamplingResult),
    "ModelHint": Struct(t.ModelHint),
    "ModelPreferences": Struct(t.ModelPreferences),
    "SamplingMessage": Struct(t.SamplingMessage),
    "ToolChoice": Struct(t.ToolChoice),
    "ElicitRequestFormParams": Struct(t.FormElicitation),
    "ElicitRequestURLParams": Struct(t.UrlElicitation),
    "ElicitResult": Struct(t.ElicitResult),
    "ListRootsResult": Struct(t.RootsResult),
    "Root": Struct(t.Root),
    "CancelTaskResult": Struct(t.Task),
    "GetTaskResult": Struct(t.Task),
    "ListTasksResult": Page(t.Task, "tasks"),
    "Task": Struct(t.Task),
    "TaskMetadata": Struct(t.TaskMetadata),
    "TaskStatusNotificationParams": Struct(t.Task),
    "EmptyResult": Struct(t.Result),
    "CacheableResult": Struct(t.Cacheable),
    "Result": Struct(t.Result),
}
"""By the definition's name. Requests that a client sends, and bases of others, have none."""

OURS: dict[type[Wire], str] = {
    t.Wire: "the base of all",
    t.Meta: "a base",
    t.ContentBlock: "a base",
    MediaContent: "a base",
    EitherContents: "a state of being read",
    t.Skill: "of an extension",
    t.SkillResource: "of an extension",
    t.LogMessage: "the parameters of a notification",
    t.Progress: "the parameters of a notification",
    t.Elicitation: "the parameters of a request",
    t.SamplingRequest: "the parameters of a request",
}
"""Types that stand for no definition of their own in some revisions, and why."""

SINCE: dict[str, str] = {
    "_meta": "required from clients where there is no handshake; the era adds it",
    "resultType": "required of results where there is no handshake",
    "ttlMs": "required of results where there is no handshake",
    "cacheScope": "required of results where there is no handshake",
    "UrlElicitation.elicitationId": "required in one revision only",
}
"""Fields (of a type, or of all) that some revision requires and our types do not, and why."""
