"""Prompts that a server prepares for a model, and completion of their arguments."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

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


class PromptReference(Wire, tag_field="type", tag="ref/prompt", kw_only=True):
    """The prompt whose argument is to be completed."""

    type: ClassVar[Literal["ref/prompt"]] = "ref/prompt"

    name: str
    title: str | None = None


class ResourceReference(Wire, tag_field="type", tag="ref/resource", kw_only=True):
    """The resource template whose variable is to be completed."""

    type: ClassVar[Literal["ref/resource"]] = "ref/resource"

    uri: str


Reference: TypeAlias = PromptReference | ResourceReference


class Completion(Wire, kw_only=True):
    """Suggestions: up to a hundred, of ``total`` if the server counts them."""

    values: list[str]
    total: int | None = None
    has_more: bool = False


class CompleteResult(Result, kw_only=True):
    """The answer to a completion request."""

    completion: Completion
