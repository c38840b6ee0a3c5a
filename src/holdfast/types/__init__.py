"""The types of the protocol: read from servers, written by handlers.

Names are loaded when first used: making a hundred and more types takes longer than most
programs want to wait for an import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast.types.base import CACHE_SCOPES, Cacheable, Meta, Result, Wire, decode, encode
    from holdfast.types.content import (
        Annotations, AnyResourceContents, AudioContent, BlobResourceContents, Content, ContentBlock,
        EmbeddedResource, ICON_THEMES, Icon, ImageContent, ROLES, ResourceContents, ResourceLink,
        Role, SamplingContent, TextContent, TextResourceContents, ToolResultContent, ToolUseContent,
        UnknownContent,
    )
    from holdfast.types.elicitation import (
        ACTIONS, AnyElicitation, BooleanSchema, ElicitResult, Elicitation, EnumItems, EnumSchema,
        FORMATS, FieldSchema, FormElicitation, MultiEnumSchema, NumberSchema, Option,
        PrimitiveSchema, StringSchema, TitledEnumSchema, TitledItems, TitledMultiEnumSchema,
        UnknownSchema, UrlElicitation, read_elicitation, read_field,
    )
    from holdfast.types.lifecycle import (
        ClientCapabilities, DiscoverResult, ElicitationCapability, Implementation, InitializeResult,
        ListCapability, ResourcesCapability, SamplingCapability, ServerCapabilities,
        TasksCapability,
    )
    from holdfast.types.notifications import (
        LOG_LEVELS, LogLevel, LogMessage, Progress, ProgressToken,
    )
    from holdfast.types.page import Fault, Page, decode_page
    from holdfast.types.prompts import (
        CompleteResult, Completion, Prompt, PromptArgument, PromptMessage, PromptReference,
        PromptResult, Reference, ResourceReference,
    )
    from holdfast.types.resources import (
        ReadResult, Resource, ResourceTemplate, ResourceUpdated, Root, RootsResult,
    )
    from holdfast.types.sampling import (
        CONTEXTS, ModelHint, ModelPreferences, SamplingMessage, SamplingRequest, SamplingResult,
        TOOL_CHOICES, ToolChoice,
    )
    from holdfast.types.skills import Skill, SkillFile, SkillResource
    from holdfast.types.tasks import (
        RELATED_TASK, TASK_STATUSES, Task, TaskCreated, TaskMetadata, TaskStatus,
    )
    from holdfast.types.tools import TASK_SUPPORT, Tool, ToolAnnotations, ToolExecution, ToolResult

_HOMES = {
    "base": ("CACHE_SCOPES", "Cacheable", "Meta", "Result", "Wire", "decode", "encode"),
    "content": (
        "Annotations", "AnyResourceContents", "AudioContent", "BlobResourceContents", "Content",
        "ContentBlock", "EmbeddedResource", "ICON_THEMES", "Icon", "ImageContent", "ROLES",
        "ResourceContents", "ResourceLink", "Role", "SamplingContent", "TextContent",
        "TextResourceContents", "ToolResultContent", "ToolUseContent", "UnknownContent",
    ),
    "elicitation": (
        "ACTIONS", "AnyElicitation", "BooleanSchema", "ElicitResult", "Elicitation", "EnumItems",
        "EnumSchema", "FORMATS", "FieldSchema", "FormElicitation", "MultiEnumSchema",
        "NumberSchema", "Option", "PrimitiveSchema", "StringSchema", "TitledEnumSchema",
        "TitledItems", "TitledMultiEnumSchema", "UnknownSchema", "UrlElicitation",
        "read_elicitation", "read_field",
    ),
    "lifecycle": (
        "ClientCapabilities", "DiscoverResult", "ElicitationCapability", "Implementation",
        "InitializeResult", "ListCapability", "ResourcesCapability", "SamplingCapability",
        "ServerCapabilities", "TasksCapability",
    ),
    "notifications": ("LOG_LEVELS", "LogLevel", "LogMessage", "Progress", "ProgressToken"),
    "page": ("Fault", "Page", "decode_page"),
    "prompts": (
        "CompleteResult", "Completion", "Prompt", "PromptArgument", "PromptMessage",
        "PromptReference", "PromptResult", "Reference", "ResourceReference",
    ),
    "resources": (
        "ReadResult", "Resource", "ResourceTemplate", "ResourceUpdated", "Root", "RootsResult",
    ),
    "sampling": (
        "CONTEXTS", "ModelHint", "ModelPreferences", "SamplingMessage", "SamplingRequest",
        "SamplingResult", "TOOL_CHOICES", "ToolChoice",
    ),
    "skills": ("Skill", "SkillFile", "SkillResource"),
    "tasks": ("RELATED_TASK", "TASK_STATUSES", "Task", "TaskCreated", "TaskMetadata", "TaskStatus"),
    "tools": ("TASK_SUPPORT", "Tool", "ToolAnnotations", "ToolExecution", "ToolResult"),
}

__all__ = [
    "ACTIONS", "CACHE_SCOPES", "CONTEXTS", "FORMATS", "ICON_THEMES", "LOG_LEVELS", "RELATED_TASK",
    "ROLES", "TASK_STATUSES", "TASK_SUPPORT", "TOOL_CHOICES", "Annotations", "AnyElicitation",
    "AnyResourceContents", "AudioContent", "BlobResourceContents", "BooleanSchema", "Cacheable",
    "ClientCapabilities", "CompleteResult", "Completion", "Content", "ContentBlock",
    "DiscoverResult", "ElicitResult", "Elicitation", "ElicitationCapability", "EmbeddedResource",
    "EnumItems", "EnumSchema", "Fault", "FieldSchema", "FormElicitation", "Icon", "ImageContent",
    "Implementation", "InitializeResult", "ListCapability", "LogLevel", "LogMessage", "Meta",
    "ModelHint", "ModelPreferences", "MultiEnumSchema", "NumberSchema", "Option", "Page",
    "PrimitiveSchema", "Progress", "ProgressToken", "Prompt", "PromptArgument", "PromptMessage",
    "PromptReference", "PromptResult", "ReadResult", "Reference", "Resource", "ResourceContents",
    "ResourceLink", "ResourceReference", "ResourceTemplate", "ResourceUpdated",
    "ResourcesCapability", "Result", "Role", "Root", "RootsResult", "SamplingCapability",
    "SamplingContent", "SamplingMessage", "SamplingRequest", "SamplingResult", "ServerCapabilities",
    "Skill", "SkillFile", "SkillResource", "StringSchema", "Task", "TaskCreated", "TaskMetadata",
    "TaskStatus", "TasksCapability", "TextContent", "TextResourceContents", "TitledEnumSchema",
    "TitledItems", "TitledMultiEnumSchema", "Tool", "ToolAnnotations", "ToolChoice",
    "ToolExecution", "ToolResult", "ToolResultContent", "ToolUseContent", "UnknownContent",
    "UnknownSchema", "UrlElicitation", "Wire", "decode", "decode_page", "encode",
    "read_elicitation", "read_field",
]
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
