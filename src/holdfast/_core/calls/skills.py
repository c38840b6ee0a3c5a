"""Skills of one server: listed, and read file by file with every byte verified.

No file is read before it is needed. The `Skill` that a caller holds is the manifest: each read
checks size, digest and frontmatter, and no file is read that the manifest does not list
(Skills extension, Integrity and Verification).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, TypeAlias

from msgspec import structs

from holdfast._core.boundary import Call
from holdfast._core.calls.cached_reads import CachedReads, Listing, not_found
from holdfast._core.calls.deadline import Deadline
from holdfast._core.calls.options import require_type
from holdfast._core.calls.requester import Requester
from holdfast._core.eras.revisions import SKILLS
from holdfast._core.text import join_words, label, show_json, truncate
from holdfast._core.yaml_reader import YamlFault, read_yaml
from holdfast.errors import DriftError, Hint, RpcError, StateError, ValidationError
from holdfast.policies import CacheMode
from holdfast.types.base import Cacheable
from holdfast.types.content import BlobResourceContents, TextResourceContents
from holdfast.types.resources import ReadResult, Resource
from holdfast.types.skills import SKILL_BYTES, SKILL_FILE, Skill, SkillFile, SkillNotes, is_inside

LIST: Final = "skills/list"
GET: Final = "skills/get"
READ: Final = "resources/read"
DIRECTORY: Final = "resources/directory/read"
FRONTMATTER_BYTES: Final = 1 << 16

SkillGuard: TypeAlias = Callable[[Sequence[Skill]], None]
"""Sees skills before they are used; refuses them by raising."""

_UPDATED: Final = Hint("client.get_skill", "returns what it is now, if it was updated")
_FRONTMATTER: Final = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)


class _Entry(Cacheable, kw_only=True):
    skill: Skill


class Skills:
    """The skills of one client."""

    def __init__(self, requester: Requester, cached: CachedReads) -> None:
        self._requester = requester
        self._cached = cached
        self.guards: list[SkillGuard] = []

    async def list(self, mode: CacheMode | None, timeout: float | None) -> Listing[Skill]:
        deadline = await self._declared(LIST, timeout)
        skills = await self._cached.listing(LIST, "skills", Skill, deadline, mode)
        skills[:] = [self._with_origin(skill) for skill in skills]
        self._guard(skills)
        return skills

    async def get(self, uri: str, timeout: float | None) -> Skill:
        deadline = await self._declared(GET, timeout)
        try:
            answer = await self._requester.read(GET, {"uri": uri}, deadline, _Entry, about=uri)
        except RpcError as error:
            raise not_found(error) from None
        skill = self._with_origin(answer.skill)
        if skill.uri != uri:
            call = Call(GET, about=uri)
            raise self._requester.broken(call, f"it is about {truncate(skill.uri, 200)!r}")
        self._guard([skill])
        return skill

    async def directory(self, uri: str, timeout: float | None) -> Listing[Resource]:
        deadline = await self._declared(DIRECTORY, timeout, "directoryRead")
        return await self._cached.listing(
            DIRECTORY, "resources", Resource, deadline, "bypass", params={"uri": uri}
        )

    async def read(
        self, skill: Skill, file: str, timeout: float | None, *, dynamic: bool
    ) -> SkillFile:
        """Return a file of a skill, once SKILL.md and the file itself are verified."""
        require_type("skill", skill, Skill, "a Skill, from list_skills() or get_skill()")
        uri = self._listed(skill, file, dynamic=dynamic)
        self._guard([skill])
        deadline = self._requester.deadline(READ, timeout)
        if uri == skill.uri or not skill._notes.is_verified:
            main = await self._verified(skill, skill.uri, deadline)
            self._compare_frontmatter(skill, main)
            skill._notes.is_verified = True
            if uri == skill.uri:
                return main
        return await self._verified(skill, uri, deadline)

    async def _declared(self, method: str, timeout: float | None, setting: str = "") -> Deadline:
        """Connect, and refuse a method that the server has not declared."""
        deadline = self._requester.deadline(method, timeout)
        await self._requester.opener.connected(deadline)
        facts = self._requester.driver.facts
        extensions = None if facts is None else facts.server_capabilities.extensions
        settings = (extensions or {}).get(SKILLS)
        if settings is None or "revision" in settings:
            raise StateError(f"{self._requester.name}: the server does not offer skills")
        if setting and settings.get(setting) is not True:
            raise StateError(f"{self._requester.name}: the server does not offer {method}")
        return deadline.after_connecting(self._requester.driver.loop.time())

    def _with_origin(self, skill: Skill) -> Skill:
        """Return a skill with its origin; a copy, because pages are shared by a cache."""
        copy = structs.replace(skill)
        copy.__dict__.update(skill.__dict__)
        copy._notes = SkillNotes(server=self._requester.name)
        return copy

    def _guard(self, skills: Sequence[Skill]) -> None:
        for guard in tuple(self.guards):
            guard(skills)

    def _listed(self, skill: Skill, file: str, *, dynamic: bool) -> str:
        """Return the URI of a file, if it is one that may be read."""
        if skill.server not in ("", self._requester.name):
            # Skills extension, Security Considerations: origin-scoped resource reads.
            text = f"the skill {skill.uri!r} is one of the server {skill.server!r}"
            raise ValidationError(f"{self._requester.name}: {text}; nothing was sent")
        uri = file if file.startswith(skill.root + "/") else f"{skill.root}/{file}"
        if skill.dynamic:
            if not dynamic:
                hint = Hint("dynamic", "reads it without", True)
                raise self._refused(skill, "it has no digests to verify", hint)
            if not is_inside(skill, uri):
                raise self._refused(skill, f"{truncate(file, 200)!r} is not in its directory")
        elif all(entry.uri != uri for entry in skill.files.values()):
            listed = join_words([label(name) for name in skill.files])
            raise self._refused(
                skill, f"its manifest does not list {truncate(file, 200)!r}, but {listed}"
            )
        return uri

    async def _verified(self, skill: Skill, uri: str, deadline: Deadline) -> SkillFile:
        """Read one file; a cached one that does not match is read again."""
        result = await self._cached.read(uri, deadline)
        try:
            return self._verify(skill, uri, result)
        except DriftError:
            if not result._notes.cached:
                raise
        return self._verify(skill, uri, await self._cached.read(uri, deadline, "refresh"))

    def _verify(self, skill: Skill, uri: str, result: ReadResult) -> SkillFile:
        data = _bytes(result, uri)
        if data is None:
            raise self._refused(skill, f"{uri!r} was not answered with that one file")
        if isinstance(skill.resources, str):
            sizes = skill._notes.sizes
            sizes[uri] = len(data)
            if sum(sizes.values()) > SKILL_BYTES:
                raise self._refused(skill, f"more than {SKILL_BYTES} bytes in all")
        else:
            (entry,) = (entry for entry in skill.resources if entry.uri == uri)
            if len(data) != entry.size:
                raise self._refused(skill, f"{uri!r} has {len(data)} bytes, not {entry.size}")
            if f"sha256:{sha256(data).hexdigest()}" != entry.digest:
                raise self._refused(skill, f"{uri!r} does not have the digest of the manifest")
        return SkillFile(server=self._requester.name, uri=uri, data=data)

    def _compare_frontmatter(self, skill: Skill, main: SkillFile) -> None:
        try:
            match = _FRONTMATTER.match(main.text)
            if match is None:
                raise self._refused(skill, f"{SKILL_FILE} does not begin with frontmatter")
            if len(match[1]) > FRONTMATTER_BYTES:
                raise self._refused(skill, f"its frontmatter has over {FRONTMATTER_BYTES} bytes")
            frontmatter = read_yaml(match[1])
        except (UnicodeDecodeError, YamlFault) as error:
            why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise self._refused(skill, f"the frontmatter of {SKILL_FILE} {why}") from None
        if (difference := field_difference(skill.frontmatter, frontmatter)) is not None:
            raise self._refused(skill, f"the frontmatter of {SKILL_FILE} differs: {difference}")

    def _refused(self, skill: Skill, why: str, hint: Hint = _UPDATED) -> DriftError:
        text = f"{self._requester.name}: drift: skill {skill.uri!r}: {why}; not used"
        return DriftError(text, hints=(hint,))


def _bytes(result: ReadResult, uri: str) -> bytes | None:
    """Return the bytes of the one content of a read; None if it is not that."""
    content = result.contents[0] if len(result.contents) == 1 else None
    if isinstance(content, TextResourceContents) and content.uri == uri:
        return content.text.encode("utf-8", "surrogatepass")
    if isinstance(content, BlobResourceContents) and content.uri == uri:
        with suppress(ValueError):
            return content.bytes
    return None


def field_difference(entry: Any, read: Any, path: str = "") -> str | None:
    """Return the first field in which two values differ, with both; None if there is none."""
    parts = _parts(entry, read, path)
    if parts is not None:
        return next(filter(None, (field_difference(*part) for part in parts)), None)
    # As JSON does: ``1`` is ``1.0``, and no boolean.
    if isinstance(entry, bool) == isinstance(read, bool) and bool(entry == read):
        return None
    return f"{path or 'the whole'} is {_shown(read)}, and {_shown(entry)} in the manifest"


def _parts(entry: Any, read: Any, path: str) -> list[tuple[Any, Any, str]] | None:
    """Return the parts of two objects or lists in pairs, with their paths; None for the rest."""
    if isinstance(entry, dict) and isinstance(read, dict):
        inside = f"{path}." if path else ""
        keys = [*entry, *(key for key in read if key not in entry)]
        return [(entry.get(key, _ABSENT), read.get(key, _ABSENT), f"{inside}{key}") for key in keys]
    if isinstance(entry, list) and isinstance(read, list) and len(entry) == len(read):
        numbered = enumerate(zip(entry, read, strict=True))
        return [(*pair, f"{path}[{index}]") for index, pair in numbered]
    return None


_ABSENT: Final = object()


def _shown(value: Any) -> str:
    return "absent" if value is _ABSENT else show_json(value, 60)
