"""Skills: listed without a read, and read with size, digest and frontmatter verified."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

import holdfast
from holdfast import Cache, DriftError, StateError, ValidationError
from holdfast._core.eras.revisions import SKILLS
from holdfast.errors import ResourceNotFoundError
from holdfast.testing import Peer
from holdfast.types.skills import SKILL_BYTES, Skill
from tests.rows import rows

ROOT = "skill://acme/refunds"
URI = f"{ROOT}/SKILL.md"
MAIN = """---
name: refunds
description: Process refunds
metadata:
  version: 1.0
  since: 2026-01-02
  eu: no
tags: [a, 1_000]
---

# Refunds
"""
GUIDE = "Be kind.\n"
FILES: dict[str, str | bytes] = {
    "SKILL.md": MAIN,
    "references/guide.md": GUIDE,
    "logo.png": b"\x89PNG\x00\xff",
}

pytestmark = pytest.mark.req("K2")


def shop(**entry: Any) -> Peer:
    peer = Peer("shop")
    peer.skill(ROOT, FILES, **entry)
    return peer


def reads(peer: Peer) -> list[str]:
    return [one.params["uri"] for one in peer.received if one.method == "resources/read"]


def serve(peer: Peer, uri: str, content: str | bytes) -> None:
    """Have the peer answer other bytes than its manifest says."""
    peer.resource(uri, content)


def manifest(**changes: Any) -> list[dict[str, Any]]:
    found = []
    for path, content in FILES.items():
        data = content.encode() if isinstance(content, str) else content
        entry = {
            "uri": f"{ROOT}/{path}",
            "digest": f"sha256:{sha256(data).hexdigest()}",
            "size": len(data),
        }
        found.append(entry | (changes if path == "SKILL.md" else {}))
    return found


async def test_listing_and_getting_read_no_file() -> None:
    peer = shop()
    async with holdfast.connect(peer) as client:
        (skill,) = await client.list_skills()
        assert (skill.server, skill.uri, skill.name) == ("shop", URI, "refunds")
        assert skill.description == "Process refunds"
        assert [*skill.files] == ["SKILL.md", "references/guide.md", "logo.png"]
        assert (await client.get_skill(URI)).frontmatter == skill.frontmatter
    assert reads(peer) == []


async def test_files_are_read_on_need_by_path_or_uri() -> None:
    peer = shop()
    async with holdfast.connect(peer) as client:
        (skill,) = await client.list_skills()
        main = await client.read_skill(skill)
        assert (main.server, main.uri, main.text) == ("shop", URI, MAIN)
        assert (await client.read_skill(skill, "references/guide.md")).text == GUIDE
        assert (await client.read_skill(skill, f"{ROOT}/logo.png")).data == FILES["logo.png"]
    assert reads(peer) == [URI, f"{ROOT}/references/guide.md", f"{ROOT}/logo.png"]


async def test_a_file_is_read_only_after_skill_md_is_verified() -> None:
    peer = shop()
    serve(peer, URI, MAIN + "tampered")
    async with holdfast.connect(peer) as client:
        skill = await client.get_skill(URI)
        with pytest.raises(DriftError):
            await client.read_skill(skill, "references/guide.md")
    assert reads(peer) == [URI]


@rows(
    ("path", "served", "why"),
    [
        ("SKILL.md", MAIN.replace("Refunds", "Refuses"), "digest"),
        ("SKILL.md", MAIN + " ", "has .* bytes, not"),
        ("SKILL.md", MAIN.replace("\n", "\r\n"), "bytes"),
        ("references/guide.md", "Be mean.\n", "digest"),
        ("references/guide.md", b"Be kind.\r", "digest"),
    ],
)
async def test_a_file_that_is_not_as_listed_is_refused(
    path: str, served: str | bytes, why: str
) -> None:
    peer = shop()
    serve(peer, f"{ROOT}/{path}", served)
    async with holdfast.connect(peer) as client:
        (skill,) = await client.list_skills()
        with pytest.raises(DriftError, match=why) as caught:
            await client.read_skill(skill, path)
        assert not caught.value.outcome_unknown


@rows(
    ("frontmatter", "why"),
    [
        ({"description": "Steal"}, 'description is "Process refunds", and "Steal"'),
        ({"allowed-tools": "Bash"}, "allowed-tools is absent"),
        ({"metadata": {"version": 1, "since": "2026-01-02", "eu": False}}, 'eu is "no"'),
        ({"metadata": {"version": True, "since": "2026-01-02", "eu": "no"}}, "metadata.version"),
        ({"tags": ["a", 1000]}, r"tags\[1\]"),
        ({"tags": ["a"]}, "tags is"),
    ],
)
async def test_frontmatter_is_compared_field_by_field(frontmatter: Any, why: str) -> None:
    true = {
        "name": "refunds",
        "description": "Process refunds",
        "metadata": {"version": 1, "since": "2026-01-02", "eu": "no"},
        "tags": ["a", "1_000"],
    }
    async with holdfast.connect(shop(frontmatter=true)) as client:
        await client.read_skill(await client.get_skill(URI))
    async with holdfast.connect(shop(frontmatter=true | frontmatter)) as client:
        with pytest.raises(DriftError, match=why):
            await client.read_skill(await client.get_skill(URI))


@rows(
    "file",
    ["other.md", "../other/SKILL.md", "skill://other/SKILL.md", "references", "", "/etc/passwd"],
)
async def test_a_file_that_is_not_listed_is_never_asked_for(file: str) -> None:
    peer = shop()
    async with holdfast.connect(peer) as client:
        (skill,) = await client.list_skills()
        with pytest.raises(DriftError, match="does not list"):
            await client.read_skill(skill, file)
    assert reads(peer) == []


@pytest.mark.parametrize(
    "entry",
    [
        {"resources": None},
        {"resources": "static"},
        {"resources": []},
        {"resources": manifest()[1:]},
        {"resources": [*manifest(), manifest()[0]]},
        {"resources": manifest(digest="sha256:abc")},
        {"resources": manifest(digest="md5:" + "0" * 64)},
        {"resources": manifest(size=-1)},
        {"resources": manifest(size=SKILL_BYTES)},
        {"resources": [*manifest(), manifest(uri="skill://other/x")[0]]},
        {"resources": [*manifest(), manifest(uri=f"{ROOT}/../x")[0]]},
        {"resources": [*manifest(), manifest(uri=f"{ROOT}/%2E%2e/x")[0]]},
        *(
            {"resources": [*manifest(), manifest(uri=f"{ROOT}/{path}")[0]]}
            for path in ("a%5cb", "a%00b", "a\nb", "a\u202eb", "C:/x", "%252e%252e/x", "a%c0%ae/x")
        ),
        {"uri": "skill://a/../refunds/SKILL.md"},
        {"uri": "skill://a?b/refunds/SKILL.md"},
        {"uri": "/refunds/SKILL.md"},
        {"resources": [*manifest(), *(manifest(uri=f"{ROOT}/{i}")[0] for i in range(510))]},
        {"frontmatter": {"name": "other", "description": "x"}},
        {"frontmatter": {"name": "refunds"}},
        {"uri": "skill://refunds"},
        {"uri": "skill://Big/SKILL.md", "frontmatter": {"name": "Big", "description": "x"}},
    ],
)
async def test_an_invalid_entry_is_left_out_and_cannot_be_got(entry: Any) -> None:
    peer = shop(**entry)
    peer.skill("skill://good", {"SKILL.md": "---\nname: good\ndescription: x\n---\n"})
    async with holdfast.connect(peer) as client:
        assert [skill.name for skill in await client.list_skills()] == ["good"]
        with pytest.raises(holdfast.ProtocolError):
            await client.get_skill(URI)


async def test_a_skill_at_the_limits_is_taken() -> None:
    files: dict[str, str | bytes] = {"SKILL.md": "---\nname: big\ndescription: x\n---\n"}
    files |= {f"{number}.md": str(number) for number in range(511)}
    peer = Peer()
    peer.skill("skill://big", files)
    async with holdfast.connect(peer) as client:
        (skill,) = await client.list_skills()
        assert len(skill.files) == 512
        assert (await client.read_skill(skill, "510.md")).text == "510"


async def test_a_dynamic_skill_is_read_only_when_asked_for() -> None:
    peer = shop(resources="dynamic")
    async with holdfast.connect(peer) as client:
        (skill,) = await client.list_skills()
        with pytest.raises(DriftError, match="no digests"):
            await client.read_skill(skill)
        with pytest.raises(DriftError, match="not in its directory"):
            await client.read_skill(skill, "../x", dynamic=True)
        assert reads(peer) == []
        assert (await client.read_skill(skill, dynamic=True)).text == MAIN
        assert (await client.read_skill(skill, "references/guide.md", dynamic=True)).text == GUIDE
        for name in ("one", "two"):
            serve(peer, f"{ROOT}/{name}", "x" * (SKILL_BYTES // 2))
        await client.read_skill(skill, "one", dynamic=True)
        with pytest.raises(DriftError, match="in all"):
            await client.read_skill(skill, "two", dynamic=True)


async def test_a_skill_of_one_server_is_not_read_from_another() -> None:
    async with holdfast.connect(shop(), name="one") as one, holdfast.connect(shop()) as other:
        (skill,) = await one.list_skills()
        with pytest.raises(ValidationError, match="'one'"):
            await other.read_skill(skill)


async def test_an_unknown_skill_is_not_found() -> None:
    async with holdfast.connect(shop()) as client:
        with pytest.raises(ResourceNotFoundError):
            await client.get_skill("skill://none/SKILL.md")


async def test_nothing_is_sent_to_a_server_that_does_not_declare_it() -> None:
    plain = Peer()
    later = Peer(capabilities={"resources": {}, "extensions": {SKILLS: {"revision": "9"}}})
    for peer in (plain, later):
        async with holdfast.connect(peer) as client:
            with pytest.raises(StateError, match="does not offer skills"):
                await client.list_skills()
        assert not [one for one in peer.received if one.method.startswith("skills/")]


async def test_a_directory_is_listed_where_that_is_declared() -> None:
    peer = shop()
    peer.on(
        "resources/directory/read",
        lambda one: {"resources": [{"uri": one.params["uri"] + "/a", "name": "a"}]},
    )
    async with holdfast.connect(peer) as client:
        with pytest.raises(StateError, match="directory"):
            await client.list_directory(ROOT)
    peer.capabilities = {"resources": {}, "extensions": {SKILLS: {"directoryRead": True}}}
    async with holdfast.connect(peer) as client:
        (child,) = await client.list_directory(ROOT)
        assert child.uri == f"{ROOT}/a"


async def test_cached_bytes_that_do_not_fit_are_read_again() -> None:
    peer = shop()
    peer.hints["resources/read"] = {"ttlMs": 60_000, "cacheScope": "private"}
    new = MAIN.replace("# Refunds", "# Refunds!")
    async with holdfast.connect(peer, cache=Cache(ttl=60)) as client:
        await client.read_skill(await client.get_skill(URI))
        await client.read_skill(await client.get_skill(URI))
        assert reads(peer) == [URI]
        peer.skill(ROOT, {"SKILL.md": new})
        assert (await client.read_skill(await client.get_skill(URI))).text == new


async def test_a_guard_sees_skills_before_they_are_used() -> None:
    peer = shop()
    seen: list[str] = []

    def check(skills: Any) -> None:
        seen.extend(skill.uri for skill in skills)
        if len(seen) > 2:
            raise DriftError("refused")

    async with holdfast.connect(peer) as client:
        remove = client.guard_skills(check)
        (skill,) = await client.list_skills()
        await client.read_skill(skill)
        with pytest.raises(DriftError, match="refused"):
            await client.read_skill(skill)
        remove()
        await client.read_skill(skill)
    assert seen == [URI] * 3


def test_an_entry_made_by_hand_is_checked_too() -> None:
    with pytest.raises(ValueError, match="does not end with"):
        Skill(uri="skill://x", frontmatter={"name": "x", "description": "x"}, resources="dynamic")


async def test_the_entry_of_another_skill_is_not_accepted() -> None:
    peer = shop()
    async with holdfast.connect(peer) as client:
        (skill,) = await client.list_skills()
        entry = {"frontmatter": skill.frontmatter, "resources": manifest()}
        peer.on("skills/get", {"skill": {"uri": URI, **entry}})
        assert (await client.get_skill(URI)).uri == URI
        for place in ("skill://rival/refunds", "skill://acme/new/refunds"):
            with pytest.raises(holdfast.ProtocolError, match="it is about"):
                await client.get_skill(f"{place}/SKILL.md")
