"""Sampling: a server asks its client for a model's words."""

from __future__ import annotations

from typing import Any, ClassVar

from holdfast.types.base import Meta, Wire
from holdfast.types.content import Role, SamplingContent, joined_text
from holdfast.types.lifecycle import TaskMetadata
from holdfast.types.tools import Tool


class ModelHint(Wire, kw_only=True):
    """A part of the name of a model that would do."""

    name: str | None = None


class ModelPreferences(Wire, kw_only=True):
    """The priorities in the choice of a model, each from 0 to 1."""

    hints: list[ModelHint] | None = None
    cost_priority: int | float | None = None
    speed_priority: int | float | None = None
    intelligence_priority: int | float | None = None


class ToolChoice(Wire, kw_only=True):
    """The model may (``auto``), must (``required``) or must not (``none``) use tools."""

    mode: str | None = None


class SamplingMessage(Meta, kw_only=True):
    """One message of the conversation; ``content`` is one content or a list of them."""

    role: Role
    content: SamplingContent | list[SamplingContent]

    @property
    def contents(self) -> list[SamplingContent]:
        """The contents as a list, whichever way they came."""
        return self.content if isinstance(self.content, list) else [self.content]

    @property
    def text(self) -> str:
        """All text contents, joined by newlines."""
        return joined_text(self.contents)


class SamplingRequest(Meta, kw_only=True):
    """A server's request to sample a model. ``include_context``: allServers, thisServer or none."""

    vital: ClassVar[frozenset[str]] = frozenset({"system_prompt", "tools", "tool_choice"})

    messages: list[SamplingMessage]
    max_tokens: int
    system_prompt: str | None = None
    model_preferences: ModelPreferences | None = None
    include_context: str | None = None
    temperature: int | float | None = None
    stop_sequences: list[str] | None = None
    metadata: dict[str, Any] | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    task: TaskMetadata | None = None


class SamplingResult(SamplingMessage, kw_only=True):
    """The model's message. ``stop_reason`` is ``endTurn``, ``stopSequence``, ``maxTokens``,
    ``toolUse`` or a word of the client's own."""

    model: str
    stop_reason: str | None = None
