"""Resources and prompts that a server offers, and the roots that a client lets it work in."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, TypeAlias

from msgspec import Struct

from holdfast.types.base import Cacheable, Meta, Result, Wire
from holdfast.types.content import (
    Annotations,
    AnyResourceContents,
    Content,
    EitherContents,
    Icon,
    Role,
    joined_text,
)


class Resource(Meta, kw_only=True):
    """Something that can be read at a URI."""

    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None


class ResourceTemplate(Meta, kw_only=True):
    """A family of resources: a URI with places to fill in (RFC 6570)."""

    uri_template: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    icons: list[Icon] | None = None
    annotations: Annotations | None = None


class ReadNotes(Struct, frozen=True, kw_only=True):
    """What a client notes of a read: nothing of it comes from the wire or goes there."""

    cached: bool = False
    """It was in the cache."""
    stale: bool = False
    """It is an old answer, given because the server is down."""


_NO_NOTES: Final = ReadNotes()


class ReadResult(Cacheable, kw_only=True):
    """The contents of a resource: one, or several where the URI names a collection."""

    contents: list[AnyResourceContents]

    def __post_init__(self) -> None:
        self.contents = [
            item.settle() if isinstance(item, EitherContents) else item for item in self.contents
        ]

    @property
    def text(self) -> str:
        """All text contents, joined by newlines."""
        return joined_text(self.contents)

    @property
    def _notes(self) -> ReadNotes:
        """What the client notes of it; in __dict__, so neither on the wire nor compared."""
        notes: ReadNotes = self.__dict__.get("_read_notes", _NO_NOTES)
        return notes

    @_notes.setter
    def _notes(self, notes: ReadNotes) -> None:
        self.__dict__["_read_notes"] = notes

    @property
    def stale(self) -> bool:
        """True if this is an old answer, given because the server is down."""
        return self._notes.stale


class Root(Meta, kw_only=True):
    """A place, named by a ``file://`` URI."""

    uri: str
    name: str | None = None


class RootsResult(Meta, kw_only=True):
    """A client's answer to the question for its roots."""

    roots: list[Root]


# Prompts


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
