"""A folder that somebody else prepared decides neither what is read nor where a log is written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast import ValidationError, connect
from holdfast.calllog.entries import read_log
from holdfast.calllog.log import CallLog
from holdfast.calllog.results import NotRecorded
from holdfast.testing import Peer

SECRET = "the secret of another file"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the user's own, with a file that nobody else may read or write."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "1-say.txt").write_text(SECRET)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def log_naming(project: Path, sidecar: str) -> Path:
    call = {"name": "say", "arguments": {}, "_seq": 1}
    size = len(SECRET)
    after = {**call, "_phase": "after", "_ok": True, "_result": f"[text {size} chars → {sidecar}]"}
    path = project / "calls.jsonl"
    path.write_text(json.dumps({**call, "_phase": "before"}) + "\n" + json.dumps(after) + "\n")
    return path


def link_folder(project: Path, outside: Path) -> str:
    (project / ".mcp-log").symlink_to(outside)
    return ".mcp-log/1-say.txt"


def link_file(project: Path, outside: Path) -> str:
    (project / ".mcp-log").mkdir()
    (project / ".mcp-log" / "1-say.txt").symlink_to(outside / "1-say.txt")
    return ".mcp-log/1-say.txt"


def link_in_the_middle(project: Path, outside: Path) -> str:
    (project / "a").mkdir()
    (project / "a" / "b").symlink_to(outside)
    return "a/b/1-say.txt"


def hard_link(project: Path, outside: Path) -> str:
    (project / ".mcp-log").mkdir()
    os.link(outside / "1-say.txt", project / ".mcp-log" / "1-say.txt")
    return ".mcp-log/1-say.txt"


def climb(project: Path, outside: Path) -> str:
    return "../home/1-say.txt"


def climb_through_a_link(project: Path, outside: Path) -> str:
    (project / "a").symlink_to(outside)
    return "a/../a/1-say.txt"


def absolute(project: Path, outside: Path) -> str:
    return str(outside / "1-say.txt")


def pipe(project: Path, outside: Path) -> str:
    os.mkfifo(project / "1-say.txt")
    return "1-say.txt"


def beside(project: Path, outside: Path) -> str:
    """A private file in the folder that the log was saved to, such as a home folder."""
    (project / ".ssh").mkdir()
    (project / ".ssh" / "id_rsa").write_text(SECRET)
    return ".ssh/id_rsa"


ATTACKS = [
    *(link_folder, link_file, link_in_the_middle, hard_link),
    *(climb, climb_through_a_link, absolute, pipe, beside),
]


@pytest.mark.req("G5")
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_log_reads_no_file_but_its_own_sidecars(
    project: Path, outside: Path, attack: object
) -> None:
    assert callable(attack)
    log = read_log(log_naming(project, attack(project, outside)))
    with pytest.raises(NotRecorded):
        log.value(log[0])


@pytest.mark.req("G5")
def test_a_log_and_its_sidecars_may_lie_behind_a_link_that_the_user_names(
    project: Path, tmp_path: Path
) -> None:
    (project / ".mcp-log").mkdir()
    (project / ".mcp-log" / "1-say.txt").write_text(SECRET)
    log_naming(project, ".mcp-log/1-say.txt")
    (tmp_path / "link").symlink_to(project)
    log = read_log(tmp_path / "link" / "calls.jsonl")
    assert log.value(log[0]) == SECRET


def test_a_log_that_is_a_link_out_of_its_folder_is_not_read(project: Path, outside: Path) -> None:
    (project / "calls.jsonl").symlink_to(outside / "1-say.txt")
    with pytest.raises(ValidationError, match="leads out of the project"):
        read_log(project / "calls.jsonl")


@pytest.mark.req("G5")
@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "hard link", "pipe"])
def test_a_log_is_never_written_through_a_link(project: Path, outside: Path, kind: str) -> None:
    victim = outside / "1-say.txt"
    path = project / "calls.jsonl"
    if kind == "link":
        path.symlink_to(victim)
    elif kind == "dangling":
        path.symlink_to(outside / "new")
    elif kind == "folder":
        (project / "logs").symlink_to(outside)
        path = project / "logs" / "calls.jsonl"
    elif kind == "hard link":
        os.link(victim, path)
    else:
        os.mkfifo(path)
    with pytest.raises(ValidationError, match=r"link|regular"):
        CallLog(path)
    assert victim.read_text() == SECRET
    assert os.listdir(outside) == ["1-say.txt"]


@pytest.mark.req("G5")
async def test_a_log_that_becomes_a_link_is_not_followed(project: Path, outside: Path) -> None:
    path = project / "calls.jsonl"
    log = CallLog(path)
    async with connect(talking(), log=log) as client:
        await client.call_tool("say", {})
        log.flush()
        path.unlink()
        path.symlink_to(outside / "1-say.txt")
        await client.call_tool("say", {})
    assert log.lost == 2
    assert (outside / "1-say.txt").read_text() == SECRET


def talking() -> Peer:
    peer = Peer()

    @peer.tool()
    def say() -> str:
        return "y" * 500

    return peer


@pytest.mark.req("G2")
@pytest.mark.parametrize("place", [".mcp-log", "a/.mcp-log"])
async def test_sidecars_are_never_written_through_a_link(
    project: Path, outside: Path, place: str
) -> None:
    if place.startswith("a/"):
        (project / "a").symlink_to(outside)
    else:
        (project / ".mcp-log").symlink_to(outside)
    log = CallLog(project / "calls.jsonl", sidecars=place)
    async with connect(talking(), log=log) as client:
        await client.call_tool("say", {})
    log.close()
    assert os.listdir(outside) == ["1-say.txt"]
    assert "[text 500 chars]" in (project / "calls.jsonl").read_text()


@pytest.mark.req("G5")
@pytest.mark.parametrize("field", ["arguments", "_result"])
def test_a_line_that_is_nested_too_deep_is_no_call(project: Path, field: str) -> None:
    nested: object = {}
    for _ in range(300):
        nested = {"a": nested}
    path = project / "calls.jsonl"
    path.write_text(json.dumps({"name": "say", "arguments": {}, "_ok": True, field: nested}) + "\n")
    with pytest.raises(ValidationError, match="line 1: not JSON: more than 100 levels deep"):
        read_log(path)


@pytest.mark.req("G5")
def test_a_sidecar_that_is_nested_too_deep_is_not_used(project: Path) -> None:
    path = log_naming(project, ".mcp-log/1-say.json")
    (project / ".mcp-log").mkdir()
    deep = "[" * 300 + "]" * 300
    (project / ".mcp-log/1-say.json").write_text(f'{{"content": [], "structuredContent": {deep}}}')
    with pytest.raises(NotRecorded, match="more than 100 levels deep"):
        log = read_log(path)
        log.value(log[0])
