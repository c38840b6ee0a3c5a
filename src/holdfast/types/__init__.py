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
    from holdfast.types.base import (
        Cacheable, Fault, Meta, Page, Result, Wire, decode, decode_page, encode,
    )
    from holdfast.types.content import (
        Annotations, AnyResourceContents, AudioContent, BlobResourceContents, Content, ContentBlock,
        EmbeddedResource, Icon, ImageContent, ResourceContents, ResourceLink, Role, SamplingContent,
        TextContent, TextResourceContents, ToolResultContent, ToolUseContent, UnknownContent,
    )
    from holdfast.types.inputs import (
        AnyElicitation, ElicitResult, Elicitation, FormElicitation, ModelHint, ModelPreferences,
        SamplingMessage, SamplingRequest, SamplingResult, ToolChoice, UrlElicitation,
        read_elicitation,
    )
    from holdfast.types.lifecycle import (
        LOG_LEVELS, RELATED_TASK, Implementation, ListCapability, LogMessage, Progress,
        ResourcesCapability, ServerCapabilities, Task, TaskMetadata, TasksCapability,
    )
    from holdfast.types.resources import (
        CompleteResult, Completion, Prompt, PromptArgument, PromptMessage, PromptReference,
        PromptResult, ReadResult, Reference, Resource, ResourceReference, ResourceTemplate, Root,
        RootsResult,
    )
    from holdfast.types.skills import Skill, SkillFile, SkillResource
    from holdfast.types.tools import Tool, ToolAnnotations, ToolExecution, ToolResult

_HOMES = {
    "base": (
        "Cacheable", "Fault", "Meta", "Page", "Result", "Wire", "decode", "decode_page", "encode",
    ),
    "content": (
        "Annotations", "AnyResourceContents", "AudioContent", "BlobResourceContents", "Content",
        "ContentBlock", "EmbeddedResource", "Icon", "ImageContent", "ResourceContents",
        "ResourceLink", "Role", "SamplingContent", "TextContent", "TextResourceContents",
        "ToolResultContent", "ToolUseContent", "UnknownContent",
    ),
    "inputs": (
        "AnyElicitation", "ElicitResult", "Elicitation", "FormElicitation", "ModelHint",
        "ModelPreferences", "SamplingMessage", "SamplingRequest", "SamplingResult", "ToolChoice",
        "UrlElicitation", "read_elicitation",
    ),
    "lifecycle": (
        "LOG_LEVELS", "RELATED_TASK", "Implementation", "ListCapability", "LogMessage", "Progress",
        "ResourcesCapability", "ServerCapabilities", "Task", "TaskMetadata", "TasksCapability",
    ),
    "resources": (
        "CompleteResult", "Completion", "Prompt", "PromptArgument", "PromptMessage",
        "PromptReference", "PromptResult", "ReadResult", "Reference", "Resource",
        "ResourceReference", "ResourceTemplate", "Root", "RootsResult",
    ),
    "skills": ("Skill", "SkillFile", "SkillResource"),
    "tools": ("Tool", "ToolAnnotations", "ToolExecution", "ToolResult"),
}

__all__ = [
    "LOG_LEVELS", "RELATED_TASK", "Annotations", "AnyElicitation", "AnyResourceContents",
    "AudioContent", "BlobResourceContents", "Cacheable", "CompleteResult", "Completion", "Content",
    "ContentBlock", "ElicitResult", "Elicitation", "EmbeddedResource", "Fault", "FormElicitation",
    "Icon", "ImageContent", "Implementation", "ListCapability", "LogMessage", "Meta", "ModelHint",
    "ModelPreferences", "Page", "Progress", "Prompt", "PromptArgument", "PromptMessage",
    "PromptReference", "PromptResult", "ReadResult", "Reference", "Resource", "ResourceContents",
    "ResourceLink", "ResourceReference", "ResourceTemplate", "ResourcesCapability", "Result",
    "Role", "Root", "RootsResult", "SamplingContent", "SamplingMessage", "SamplingRequest",
    "SamplingResult", "ServerCapabilities", "Skill", "SkillFile", "SkillResource", "Task",
    "TaskMetadata", "TasksCapability", "TextContent", "TextResourceContents", "Tool",
    "ToolAnnotations", "ToolChoice", "ToolExecution", "ToolResult", "ToolResultContent",
    "ToolUseContent", "UnknownContent", "UrlElicitation", "Wire", "decode", "decode_page", "encode",
    "read_elicitation",
]
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
