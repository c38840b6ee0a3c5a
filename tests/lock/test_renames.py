"""Tools under another name."""

from __future__ import annotations

import time
from typing import Any

import pytest

from holdfast.lock import renames
from holdfast.lock.changes import ALL


def tool(name: str, about: str | None = None, *parameters: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in parameters}}
    found: dict[str, Any] = {"name": name, "inputSchema": schema}
    return found if about is None else {**found, "description": about}


def find(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> dict[str, str]:
    return renames.find({t["name"]: t for t in old}, {t["name"]: t for t in new}, ALL)


@pytest.mark.req("H8")
@pytest.mark.parametrize(
    ("old", "new", "renamed"),
    [
        (tool("rm", "Deletes a file.", "path"), tool("erase", "Deletes a file.", "path"), True),
        (tool("rm", None, "path"), tool("erase", None, "path"), True),
        (tool("rm"), tool("erase"), False),  # alike only in saying nothing
        (tool("get_file"), tool("getFile"), True),
        (
            tool("read_file", "Reads a whole text file from the disk.", "path"),
            tool("readFile", "Reads a whole text file from disk.", "path"),
            True,
        ),
        (
            tool("read_file", "Reads a whole text file from the disk.", "path"),
            tool("send_mail", "Sends a message to somebody.", "to", "body"),
            False,
        ),
        (
            tool("read_file", "Reads a file.", "path"),
            tool("read_file_2", "Opens a browser at some place.", "url", "size"),
            False,
        ),
    ],
)
def test_a_rename_is_spotted(old: dict[str, Any], new: dict[str, Any], renamed: bool) -> None:
    assert find([old], [new]) == ({old["name"]: new["name"]} if renamed else {})


@pytest.mark.req("H8")
def test_each_tool_gets_the_name_most_like_its_own() -> None:
    old = [tool(f"file.{verb}", "Does something to a file.", "path") for verb in ("copy", "move")]
    new = [
        tool(f"fs.{verb}_file", "Does something to a file.", "path") for verb in ("move", "copy")
    ]
    expected = {"file.copy": "fs.copy_file", "file.move": "fs.move_file"}
    assert find(old, new) == find(old[::-1], new[::-1]) == expected


@pytest.mark.req("H8")
def test_what_does_not_count_does_not_tell_tools_apart() -> None:
    old, new = tool("rm", "Deletes.", "path"), tool("erase", "Wipes it all out.", "path")
    assert renames.find({"rm": old}, {"erase": new}, ("inputSchema",)) == {"rm": "erase"}
    assert renames.find({"rm": old}, {"erase": new}, ALL) == {}


@pytest.mark.req("H8")
def test_a_thousand_tools_are_compared_soon() -> None:
    old = [tool(f"old_{at}", "the same words " * 200, "a") for at in range(1000)]
    new = [tool(f"new_{at}", "the same words " * 200, "a") for at in range(1000)]
    started = time.monotonic()
    assert len(find(old, new)) <= 1000
    assert time.monotonic() - started < 20, "a guard against hanging, not a measurement"


def test_odd_definitions_are_no_trouble() -> None:
    deep: Any = {}
    for _ in range(5_000):
        deep = {"properties": deep}
    odd = {"name": "a", "inputSchema": deep, "description": 7}
    assert renames.find({"a": odd}, {"b": {"inputSchema": None}}, ALL) == {}
