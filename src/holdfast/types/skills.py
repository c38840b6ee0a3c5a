"""Skills: directories of instructions that a server publishes as resources, with digests."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from msgspec import Struct, field

from holdfast._core.text import has_unseen, truncate
from holdfast.types.base import Wire

SKILL_FILE: Final = "SKILL.md"
SKILL_FILES: Final = 512
"""The most files of one skill (Skills extension, Limits)."""
SKILL_BYTES: Final = 16 * 2**20
"""The most bytes of one skill, all files together."""

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{0,3}")
_DRIVE: Final = re.compile(r"[A-Za-z]:")
MOST_ENCODINGS: Final = 4
"""Times that a path may be percent-encoded."""


class SkillResource(Wire, kw_only=True):
    """A file of a skill: its URI, and the SHA-256 digest and size of its bytes."""

    uri: str
    digest: str
    size: int


class SkillNotes(Struct, kw_only=True):
    """What a client notes of a skill: nothing of it comes from the wire or goes there."""

    server: str = ""
    """The client's name for the server that it came from; empty if made by hand."""
    is_verified: bool = False
    """Its SKILL.md was read, and is as the entry says."""
    sizes: dict[str, int] = field(default_factory=dict)
    """The bytes of each file that was read, by URI, of a skill without digests."""


class Skill(Wire, kw_only=True):
    """The entry of one skill; reading one that breaks the extension's rules fails.

    Attributes:
        uri: The URI of its SKILL.md.
        frontmatter: The YAML at the head of SKILL.md; ``name`` and ``description`` are there.
        resources: Every file of the skill; or ``"dynamic"`` where no digests can be given.
    """

    uri: str
    frontmatter: dict[str, Any]
    resources: list[SkillResource] | Literal["dynamic"]

    def __post_init__(self) -> None:
        if (fault := _fault(self)) is not None:
            raise ValueError(f"skill {truncate(self.uri, 200)!r}: {fault}")

    @property
    def name(self) -> str:
        """A label, which another skill may have too: the identity is ``(server, uri)``."""
        return str(self.frontmatter["name"])

    @property
    def description(self) -> str:
        """The purpose of the skill, in the server's words."""
        return str(self.frontmatter["description"])

    @property
    def _notes(self) -> SkillNotes:
        """What the client notes of it; in __dict__, so neither on the wire nor compared."""
        notes: SkillNotes | None = self.__dict__.get("_skill_notes")
        if notes is None:
            notes = self.__dict__["_skill_notes"] = SkillNotes()
        return notes

    @_notes.setter
    def _notes(self, notes: SkillNotes) -> None:
        self.__dict__["_skill_notes"] = notes

    @property
    def server(self) -> str:
        """The client's name for the server that it came from; empty if made by hand."""
        return self._notes.server

    @property
    def root(self) -> str:
        """The URI of the skill's directory, without a slash at its end."""
        return self.uri[: -len(SKILL_FILE) - 1]

    @property
    def dynamic(self) -> bool:
        """True if the server gives no digests: nothing of the content can be verified."""
        return self.resources == "dynamic"

    @property
    def files(self) -> dict[str, SkillResource]:
        """The listed files by path in the skill's directory, such as ``scripts/run.py``."""
        if isinstance(self.resources, str):
            return {}
        return {file.uri[len(self.root) + 1 :]: file for file in self.resources}


class SkillFile(Struct, frozen=True, kw_only=True):
    """A verified file of a skill.

    Attributes:
        server: The client's name for the server that it came from.
        uri: The file's URI.
        data: Its bytes.
    """

    server: str
    uri: str
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as UTF-8 text."""
        return self.data.decode()


def _fault(skill: Skill) -> str | None:
    """Return what makes an entry invalid (Skills extension, Skill Entries and Limits)."""
    if (fault := _uri_fault(skill.uri)) is not None:
        return fault
    directory = skill.uri.rsplit("/", 2)[1]
    name, described = skill.frontmatter.get("name"), skill.frontmatter.get("description")
    if not isinstance(name, str) or not isinstance(described, str) or not described:
        return "its frontmatter lacks a name or a description"
    if name != directory:
        return f"its directory is {truncate(directory, 80)!r}, and its name {truncate(name, 80)!r}"
    # Agent Skills, name: words of lower-case letters and digits, joined by single hyphens.
    if len(name) > 64 or name != name.lower() or not all(map(str.isalnum, name.split("-"))):
        return "its name is not made of lower-case letters, digits and single hyphens"
    return None if isinstance(skill.resources, str) else _manifest_fault(skill, skill.resources)


def _uri_fault(uri: str) -> str | None:
    parts = uri.rsplit("/", 2)
    scheme = _SCHEME.match(uri)
    if len(parts) != 3 or parts[2] != SKILL_FILE:
        return f"its URI does not end with /{SKILL_FILE}"
    if scheme is None or not _is_plain(uri[scheme.end() :]):
        return "its URI is not a plain one, with a scheme and a path"
    return None


def _manifest_fault(skill: Skill, files: list[SkillResource]) -> str | None:
    uris = {file.uri for file in files}
    if skill.uri not in uris:
        return f"its files do not include {SKILL_FILE}"
    if len(uris) < len(files):
        return "a file is listed twice"
    if len(files) > SKILL_FILES:
        return f"it has {len(files)} files, more than {SKILL_FILES}"
    for file in files:
        if (fault := _file_fault(skill, file)) is not None:
            return fault
    total = sum(file.size for file in files)
    return None if total <= SKILL_BYTES else f"it has {total} bytes, more than {SKILL_BYTES}"


def _file_fault(skill: Skill, file: SkillResource) -> str | None:
    if not is_inside(skill, file.uri):
        return f"{truncate(file.uri, 200)!r} is not in its directory"
    if not _DIGEST.fullmatch(file.digest) or file.size < 0:
        return f"{truncate(file.uri, 200)!r} has no usable digest or size"
    return None


def is_inside(skill: Skill, uri: str) -> bool:
    """Return True if a URI is one of a file in a skill's directory, by its text alone."""
    path = uri.removeprefix(skill.root + "/")
    return path != uri and _is_plain(path) and not _DRIVE.match(path)


def _is_ambiguous(path: str) -> bool:
    steps = path.split("/")
    return has_unseen(path) or "\\" in path or any(step in ("", ".", "..") for step in steps)


def _is_plain(path: str) -> bool:
    """Return True for a path that means the same to everyone who decodes, joins or shows it.

    It may be decoded more than once before it reaches a file system: every form is checked.
    """
    from urllib.parse import unquote

    if "?" in path or "#" in path:
        return False
    for _ in range(MOST_ENCODINGS):
        if _is_ambiguous(path):
            return False
        try:
            decoded = unquote(path, errors="strict")
        except UnicodeDecodeError:
            return False
        if decoded == path:
            return True
        if decoded.count("/") != path.count("/"):
            return False
        path = decoded
    return False
