"""What a registry says of a server (``server.json``), read leniently and within bounds.

Everything here was written by strangers. It is text: nothing of it is run, opened or expanded
before `recipe` has checked it, and whatever is shown is escaped and truncated by who shows it.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

LONGEST_NAME: Final = 200
MOST_PACKAGES: Final = 50
FULL_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9.-]*/[a-zA-Z0-9][a-zA-Z0-9._-]*")
"""A namespace in reverse DNS, one slash, and a name."""
OFFICIAL: Final = "io.modelcontextprotocol.registry/official"


class Input(Struct, kw_only=True, rename="camel"):
    """A value that the publisher sets, or that the user is asked for."""

    name: str = ""
    type: str = ""
    value: str | None = None
    default: str | None = None
    description: str = ""
    value_hint: str = ""
    is_required: bool = False
    is_secret: bool = False
    choices: list[str] = []
    variables: dict[str, Input] = {}


class RegistryTransport(Struct, kw_only=True):
    """How a server is reached."""

    type: str = "stdio"
    url: str = ""
    headers: list[Input] = []
    variables: dict[str, Input] = {}


class Package(Struct, kw_only=True, rename="camel"):
    """A package that contains the server."""

    registry_type: str = ""
    registry_base_url: str = ""
    identifier: str = ""
    version: str = ""
    runtime_hint: str = ""
    transport: RegistryTransport = msgspec.field(default_factory=RegistryTransport)
    runtime_arguments: list[Input] = []
    package_arguments: list[Input] = []
    environment_variables: list[Input] = []


class Repository(Struct, kw_only=True):
    """Where the source is said to be."""

    url: str = ""


class RegistryListing(Struct, kw_only=True):
    """One version of one server."""

    name: str
    version: str = ""
    description: str = ""
    title: str = ""
    repository: Repository = msgspec.field(default_factory=Repository)
    packages: list[Package] = []
    remotes: list[RegistryTransport] = []

    @property
    def kinds(self) -> list[str]:
        """What it comes as: npm, pypi, oci, remote."""
        kinds = [package.registry_type for package in self.packages[:MOST_PACKAGES]]
        return list(dict.fromkeys([*kinds, *["remote"] * bool(self.remotes)]))

    @property
    def publisher(self) -> str:
        """The namespace, which the registry has verified: ``io.github.owner``."""
        return self.name.partition("/")[0]


class RegistryEntry(Struct, kw_only=True):
    """A listing, and what the registry itself says of it."""

    server: RegistryListing
    meta: dict[str, Any] = msgspec.field(default_factory=dict, name="_meta")

    def fact(self, name: str) -> str:
        """Return what the registry says: ``status``, ``statusMessage``."""
        official = self.meta.get(OFFICIAL)
        value = official.get(name) if isinstance(official, dict) else None
        return value if isinstance(value, str) else ""


class RegistryPage(Struct, kw_only=True):
    """A page of a list."""

    servers: list[msgspec.Raw] = []
    metadata: dict[str, Any] = {}

    @property
    def cursor(self) -> str:
        """The cursor of the next page; empty if this is the last."""
        value = self.metadata.get("nextCursor")
        return value if isinstance(value, str) else ""


def read_entry(data: bytes | msgspec.Raw) -> RegistryEntry | None:
    """Return an entry; None if it has not the form of one, or no full name."""
    try:
        entry = msgspec.json.decode(data, type=RegistryEntry)
    except (msgspec.DecodeError, RecursionError):
        return None
    name = entry.server.name
    return entry if len(name) <= LONGEST_NAME and FULL_NAME.fullmatch(name) else None
