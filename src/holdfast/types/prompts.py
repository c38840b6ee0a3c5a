"""Prompts: texts that a server prepares for a model."""

from __future__ import annotations

from holdfast.types.base import Meta, Result, Wire
from holdfast.types.content import Content, Icon, Role


class PromptArgument(Wire, kw_only=True):
    """A value to fill into a prompt."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


class Prompt(Meta, kw_only=True):
    """A prompt that can be got by name."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: list[PromptArgument] | None = None
    icons: list[Icon] | None = None


class PromptMessage(Wire, kw_only=True):
    """One message of a prompt."""

    role: Role
    content: Content


class PromptResult(Result, kw_only=True):
    """A prompt with its values filled in."""

    messages: list[PromptMessage]
    description: str | None = None
