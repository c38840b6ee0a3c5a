"""Completion: suggestions for the value of an argument."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from holdfast.types.base import Result, Wire


class PromptReference(Wire, tag_field="type", tag="ref/prompt", kw_only=True):
    """The prompt whose argument is to be completed."""

    type: ClassVar[str] = "ref/prompt"

    name: str
    title: str | None = None


class ResourceReference(Wire, tag_field="type", tag="ref/resource", kw_only=True):
    """The resource template whose variable is to be completed."""

    type: ClassVar[str] = "ref/resource"

    uri: str


Reference: TypeAlias = PromptReference | ResourceReference


class CompletionArgument(Wire, kw_only=True):
    """The argument being typed, as far as it has been."""

    name: str
    value: str


class CompletionContext(Wire, kw_only=True):
    """The arguments already chosen."""

    arguments: dict[str, str] | None = None


class Completion(Wire, kw_only=True):
    """Suggestions: up to a hundred, of ``total`` if the server counts them."""

    values: list[str]
    total: int | None = None
    has_more: bool = False


class CompleteResult(Result, kw_only=True):
    """The answer to a completion request."""

    completion: Completion
