"""Skills in the lock file: every file by digest, and a changed skill is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import holdfast
from holdfast import DriftError
from holdfast.lock import Lock
from holdfast.lock import guard as locks
from holdfast.testing import Peer

ROOT = "skill://refunds"
MAIN = "---\nname: refunds\ndescription: Process refunds\n---\n"

pytestmark = pytest.mark.req("K2")


def shop(guide: str = "Be kind.\n", **more: str) -> Peer:
    peer = Peer("shop")
    peer.skill(ROOT, {"SKILL.md": MAIN, "guide.md": guide, **more})
    return peer


async def locked(path: Path, peer: Peer) -> locks.LockedServer:
    async with holdfast.connect(peer) as client:
        found = locks.LockedServer.of([], skills=await client.list_skills())
    locks.write(path, locks.LockFile({"shop": found}))
    return locks.read(path).servers["shop"]


async def test_a_lock_file_has_every_file_with_its_digest(tmp_path: Path) -> None:
    entry = await locked(tmp_path / "l", shop())
    (pinned,) = entry.skills.values()
    assert pinned["frontmatter"]["name"] == "refunds"
    assert set(pinned["resources"]) == {f"{ROOT}/SKILL.md", f"{ROOT}/guide.md"}


async def test_a_skill_as_locked_is_read(tmp_path: Path) -> None:
    await locked(tmp_path / "l", shop())
    async with holdfast.connect(shop(), lock=tmp_path / "l") as client:
        (skill,) = await client.list_skills()
        assert (await client.read_skill(skill, "guide.md")).text == "Be kind.\n"


@pytest.mark.parametrize("peer", [shop("Be mean.\n"), shop(more="x")])
async def test_a_changed_skill_is_refused(tmp_path: Path, peer: Peer) -> None:
    await locked(tmp_path / "l", shop())
    async with holdfast.connect(peer, lock=tmp_path / "l") as client:
        with pytest.raises(DriftError, match=r"skill .*refunds.*changed") as caught:
            await client.list_skills()
        assert "holdfast lock" in str(caught.value)
        with pytest.raises(DriftError):
            await client.get_skill(f"{ROOT}/SKILL.md")
    async with holdfast.connect(peer, lock=Lock(tmp_path / "l", "warn")) as client:
        (skill,) = await client.list_skills()
        await client.read_skill(skill)


async def test_a_skill_that_was_not_locked_is_refused(tmp_path: Path) -> None:
    await locked(tmp_path / "l", shop())
    peer = shop()
    peer.skill("skill://new", {"SKILL.md": "---\nname: new\ndescription: x\n---\n"})
    async with holdfast.connect(peer, lock=tmp_path / "l") as client:
        with pytest.raises(DriftError, match="added"):
            await client.get_skill("skill://new/SKILL.md")


async def test_changes_name_the_files(tmp_path: Path) -> None:
    entry = await locked(tmp_path / "l", shop())
    async with holdfast.connect(shop("Be mean.\n", more="x")) as client:
        changes = locks.compare_locked(entry, [], None, await client.list_skills())
    (change,) = changes
    assert change.impact == "breaking"
    assert change.details == (f"{ROOT}/guide.md: changed", f"{ROOT}/more: added")
    (gone,) = locks.compare_locked(entry, [], None, [])
    assert (gone.kind, gone.subject) == ("removed", "skill")


async def test_an_edited_digest_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "l"
    await locked(path, shop())
    path.write_text(path.read_text().replace('"size": 9', '"size": 10'))
    with pytest.raises(holdfast.ValidationError, match="edited by hand"):
        locks.read(path)


async def test_a_skill_without_digests_is_not_covered_by_a_lock(tmp_path: Path) -> None:
    def dynamic() -> Peer:
        peer = Peer("shop")
        peer.skill(ROOT, {"SKILL.md": MAIN}, resources="dynamic")
        return peer

    await locked(tmp_path / "l", dynamic())
    async with holdfast.connect(dynamic()) as client:
        skill = await client.get_skill(f"{ROOT}/SKILL.md")
    async with holdfast.connect(dynamic(), lock=tmp_path / "l") as client:
        with pytest.raises(DriftError, match="no digests"):
            await client.list_skills()
        with pytest.raises(DriftError, match="no digests"):
            await client.read_skill(skill, dynamic=True)
    async with holdfast.connect(dynamic(), lock=Lock(tmp_path / "l", "off")) as client:
        (skill,) = await client.list_skills()
        await client.read_skill(skill, dynamic=True)
