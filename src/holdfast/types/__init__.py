"""The types of the protocol: read from servers, written by handlers.

Names are loaded when first used: making a hundred and more types takes longer than most
programs want to wait for an import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast.types.base import Cacheable, Meta, Result, Wire, decode, encode
    from holdfast.types.content import (
        Annotations, AnyResourceContents, AudioContent, BlobResourceContents, Content, ContentBlock,
        EmbeddedResource, Icon, ImageContent, ResourceContents, ResourceLink, Role, SamplingContent,
        TextContent, TextResourceContents, ToolResultContent, ToolUseContent, UnknownContent,
    )
    from holdfast.types.elicitation import (
        AnyElicitation, ElicitResult, Elicitation, FormElicitation, UrlElicitation,
        read_elicitation,
    )
    from holdfast.types.lifecycle import (
        Implementation, ListCapability, ResourcesCapability, ServerCapabilities, TasksCapability,
    )
    from holdfast.types.lifecycle import LOG_LEVELS, LogLevel, LogMessage, Progress, ProgressToken
    from holdfast.types.page import Fault, Page, decode_page
    from holdfast.types.prompts import (
        CompleteResult, Completion, Prompt, PromptArgument, PromptMessage, PromptReference,
        PromptResult, Reference, ResourceReference,
    )
    from holdfast.types.resources import (
        ReadResult, Resource, ResourceTemplate, ResourceUpdated, Root, RootsResult,
    )
    from holdfast.types.sampling import (
        ModelHint, ModelPreferences, SamplingMessage, SamplingRequest, SamplingResult, ToolChoice,
    )
    from holdfast.types.skills import Skill, SkillFile, SkillResource
    from holdfast.types.lifecycle import (
        RELATED_TASK, TASK_STATUSES, Task, TaskCreated, TaskMetadata, TaskStatus,
    )
    from holdfast.types.tools import TASK_SUPPORT, Tool, ToolAnnotations, ToolExecution, ToolResult

_HOMES = {
    "base": ("Cacheable", "Meta", "Result", "Wire", "decode", "encode"),
    "content": (
        "Annotations", "AnyResourceContents", "AudioContent", "BlobResourceContents", "Content",
        "ContentBlock", "EmbeddedResource", "Icon", "ImageContent", "ResourceContents",
        "ResourceLink", "Role", "SamplingContent", "TextContent", "TextResourceContents",
        "ToolResultContent", "ToolUseContent", "UnknownContent",
    ),
    "elicitation": (
        "AnyElicitation", "ElicitResult", "Elicitation", "FormElicitation", "UrlElicitation",
        "read_elicitation",
    ),
    "lifecycle": (
        "RELATED_TASK", "TASK_STATUSES", "Task", "TaskCreated", "TaskMetadata", "TaskStatus",
        "Implementation", "ListCapability", "ResourcesCapability", "ServerCapabilities",
        "TasksCapability", "LOG_LEVELS", "LogLevel", "LogMessage", "Progress", "ProgressToken",
    ),
    "page": ("Fault", "Page", "decode_page"),
    "prompts": (
        "CompleteResult", "Completion", "Prompt", "PromptArgument", "PromptMessage",
        "PromptReference", "PromptResult", "Reference", "ResourceReference",
    ),
    "resources": (
        "ReadResult", "Resource", "ResourceTemplate", "ResourceUpdated", "Root", "RootsResult",
    ),
    "sampling": (
        "ModelHint", "ModelPreferences", "SamplingMessage", "SamplingRequest", "SamplingResult",
        "ToolChoice",
    ),
    "skills": ("Skill", "SkillFile", "SkillResource"),
    "tools": ("TASK_SUPPORT", "Tool", "ToolAnnotations", "ToolExecution", "ToolResult"),
}

__all__ = [
    "LOG_LEVELS", "RELATED_TASK", "TASK_STATUSES", "TASK_SUPPORT", "Annotations", "AnyElicitation",
    "AnyResourceContents", "AudioContent", "BlobResourceContents", "Cacheable", "CompleteResult",
    "Completion", "Content", "ContentBlock", "ElicitResult", "Elicitation", "EmbeddedResource",
    "Fault", "FormElicitation", "Icon", "ImageContent", "Implementation", "ListCapability",
    "LogLevel", "LogMessage", "Meta", "ModelHint", "ModelPreferences", "Page", "Progress",
    "ProgressToken", "Prompt", "PromptArgument", "PromptMessage", "PromptReference", "PromptResult",
    "ReadResult", "Reference", "Resource", "ResourceContents", "ResourceLink", "ResourceReference",
    "ResourceTemplate", "ResourceUpdated", "ResourcesCapability", "Result", "Role", "Root",
    "RootsResult", "SamplingContent", "SamplingMessage", "SamplingRequest", "SamplingResult",
    "ServerCapabilities", "Skill", "SkillFile", "SkillResource", "Task", "TaskCreated",
    "TaskMetadata", "TaskStatus", "TasksCapability", "TextContent", "TextResourceContents", "Tool",
    "ToolAnnotations", "ToolChoice", "ToolExecution", "ToolResult", "ToolResultContent",
    "ToolUseContent", "UnknownContent", "UrlElicitation", "Wire", "decode", "decode_page", "encode",
    "read_elicitation",
]
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
