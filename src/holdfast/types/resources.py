"""Resources that a server offers, and the roots that a client lets a server work in."""

from __future__ import annotations

from holdfast.types.base import Cacheable, Meta
from holdfast.types.content import (
    Annotations,
    AnyResourceContents,
    EitherContents,
    Icon,
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
    def stale(self) -> bool:
        """True if this is an old answer, given because the server is down."""
        return bool(self.__dict__.get("_stale", False))


class ResourceUpdated(Meta, kw_only=True):
    """The news that a resource has changed."""

    uri: str


class Root(Meta, kw_only=True):
    """A place, named by a ``file://`` URI."""

    uri: str
    name: str | None = None


class RootsResult(Meta, kw_only=True):
    """A client's answer to the question for its roots."""

    roots: list[Root]
