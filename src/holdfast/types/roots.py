"""Roots: the places that a client lets a server work in."""

from __future__ import annotations

from holdfast.types.base import Meta


class Root(Meta, kw_only=True):
    """A place, named by a ``file://`` URI."""

    uri: str
    name: str | None = None


class RootsResult(Meta, kw_only=True):
    """A client's answer to the question for its roots."""

    roots: list[Root]
