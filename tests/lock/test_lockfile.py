"""The lock file: the same bytes for the same tools, nothing hidden in it, nothing edited."""

from __future__ import annotations

import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from holdfast.errors import ValidationError
from holdfast.lock.fingerprint import fingerprint
from holdfast.lock.lockfile import (
    MOST_BYTES,
    LockedServer,
    LockFile,
    definitions,
    lock_command,
    read,
    render,
    write,
)
from holdfast.types.tools import Tool, ToolAnnotations

ADD = Tool.make(
    "add",
    description="Adds two numbers.",
    input_schema={"type": "object", "properties": {"a": {"type": "number"}}},
    output_schema={"type": "object"},
    title="Add",
    annotations=ToolAnnotations(read_only_hint=True),
)
PING = Tool.make("ping")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.lock"


def locked(*tools: Tool, instructions: str | None = None, name: str = "demo") -> LockFile:
    return LockFile({name: LockedServer.of(tools, instructions)})


@pytest.mark.req("H8")
def test_a_lock_file_is_json_for_reviewers(path: Path) -> None:
    write(path, locked(PING, instructions="Be kind."))
    ping = {"inputSchema": {"type": "object"}, "name": "ping"}
    assert path.read_text(encoding="utf-8") == (
        f"""{{
  "servers": {{
    "demo": {{
      "fingerprint": "{fingerprint("Be kind.")}",
      "instructions": "Be kind.",
      "tools": {{
        "ping": {{
          "definition": {{
            "inputSchema": {{
              "type": "object"
            }},
            "name": "ping"
          }},
          "fingerprint": "{fingerprint(ping)}"
        }}
      }}
    }}
  }},
  "version": 1
}}
"""
    )


@pytest.mark.req("H8")
def test_all_of_a_tool_is_in_the_file_and_in_its_fingerprint(path: Path) -> None:
    write(path, locked(ADD))
    tool = json.loads(path.read_text())["servers"]["demo"]["tools"]["add"]
    assert tool["definition"] == {
        "name": "add",
        "title": "Add",
        "description": "Adds two numbers.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    }
    assert tool["fingerprint"] == fingerprint(tool["definition"])
    assert read(path).servers["demo"].definitions == {"add": tool["definition"]}


@pytest.mark.req("H8")
def test_the_order_of_a_list_does_not_change_the_file(path: Path) -> None:
    assert write(path, locked(ADD, PING)) is True
    before = path.stat()
    assert write(path, locked(PING, ADD)) is False
    assert path.stat().st_mtime_ns == before.st_mtime_ns, "what is the same is not written"


@pytest.mark.req("H8")
def test_other_servers_stay_as_they_are(path: Path) -> None:
    write(path, locked(ADD, name="one"))
    write(path, locked(PING, name="two"))
    write(path, locked(PING, name="one"))
    servers = read(path).servers
    assert (list(servers["one"].definitions), list(servers["two"].definitions)) == (
        ["ping"],
        ["ping"],
    )
    write(path, locked(ADD, name="three"), keep_others=False)
    assert list(read(path).servers) == ["three"]


@pytest.mark.req("H8")
def test_writers_at_the_same_time_keep_each_others_servers(path: Path) -> None:
    names = [f"server-{number}" for number in range(24)]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: write(path, locked(ADD, name=name)), names))
    assert sorted(read(path).servers) == sorted(names)


@pytest.mark.req("H8")
def test_an_edited_entry_is_neither_blessed_nor_in_the_way(path: Path) -> None:
    """Locking one server again must work, and must not make another one's edit look sound."""
    write(path, locked(ADD, name="one"))
    write(path, locked(ADD, name="two"))
    path.write_text(path.read_text().replace("Adds two", "Sends two"))
    assert write(path, locked(ADD, name="one"))
    with pytest.raises(ValidationError, match=r"servers\.two\.tools\.add\.definition: does not"):
        read(path)
    assert write(path, locked(ADD, name="two"))
    assert set(read(path).servers) == {"one", "two"}


@pytest.mark.req("H8")
def test_what_a_reviewer_would_not_see_is_written_by_its_number(path: Path) -> None:
    tricky = Tool.make("t", description="a\u202eb\u200bc\U000e0041d\x9be é😀")
    write(path, locked(tricky))
    text = path.read_text(encoding="utf-8")
    assert r"a\u202eb\u200bc\udb40\udc41d\u009be é😀" in text
    found = read(path).servers["demo"].definitions["t"]
    assert found["description"] == tricky.description


@pytest.mark.req("H8")
def test_a_name_listed_twice_is_locked_twice() -> None:
    other = Tool.make("add", description="Sends two numbers away.")
    both = definitions([ADD, other])
    assert list(both) == ["add", "add (2)"]
    assert both == definitions([other, ADD]), "in whichever order"
    assert definitions([ADD, ADD]) == definitions([ADD])
    third = Tool.make("add (2)")
    assert set(definitions([ADD, other, third])) == {"add", "add (2)", "add (3)"}


@pytest.mark.req("H8")
def test_a_tool_keeps_its_name_when_another_of_its_name_comes() -> None:
    for other in (Tool.make("add", description=text) for text in ("", "zzz")):
        both = definitions([other, ADD], locked=definitions([ADD]))
        assert both["add"] == definitions([ADD])["add"]
        locked = definitions([ADD, other])
        assert definitions([other, ADD], locked=locked) == locked


@pytest.mark.req("H8")
def test_no_tool_is_covered_by_another_one_s_number() -> None:
    before = definitions([ADD, Tool.make("add")])
    named_so = Tool.make("add (2)", description="New.")
    for tools in ([ADD, Tool.make("add"), named_so], [named_so, Tool.make("add"), ADD]):
        found = definitions(tools, locked=before)
        assert len(found) == 3
        assert found["add (2)"]["description"] == "New."


@pytest.mark.req("H8")
def test_tools_of_one_name_can_be_read_back(path: Path) -> None:
    file = locked(ADD, Tool.make("add"))
    write(path, file)
    assert read(path) == file


@pytest.mark.req("H8")
def test_writing_is_all_or_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, locked(ADD))
    before = path.read_bytes()

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(ValidationError, match="cannot be written: No space left on device"):
        write(path, locked(PING))
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path], "nothing is left lying about"


@pytest.mark.req("H8")
def test_permissions_and_links_stay(path: Path, tmp_path: Path) -> None:
    write(path, locked(ADD))
    path.chmod(0o640)
    link = tmp_path / "link.lock"
    link.symlink_to(path)
    write(link, locked(PING))
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(read(path).servers["demo"].definitions) == ["ping"]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="cannot be written: No such file or directory"):
        write(tmp_path / "none" / "holdfast.lock", locked(ADD))


# What is wrong with a file


def edited(path: Path, **changes: Any) -> Path:
    """A sound file with one entry replaced, by its way from the top: ``servers__demo``."""
    write(path, locked(ADD, instructions="Be kind."))
    whole = json.loads(path.read_text())
    for way, value in changes.items():
        *folders, last = way.split("__")
        place = whole
        for step in folders:
            place = place[step]
        place[last] = value
    path.write_text(json.dumps(whole))
    return path


TOOL = "servers__demo__tools__add"


@pytest.mark.req("H8")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version: is 2, and only 1 is understood; a later Holdfast wrote it"),
        ({"version": 0}, "version: is 0, and only 1 is understood; restore it, or delete it"),
        ({"version": "1"}, "version: must be the number 1"),
        ({"version": True}, "version: must be the number 1"),
        ({"servers": []}, "servers: must be an object, not []"),
        ({"extra": 1}, 'the file: has "extra", which does not belong there'),
        ({"servers__demo": None}, "servers.demo: must be an object, not null"),
        ({"servers__demo__more": 1}, 'servers.demo: has "more", which does not belong there'),
        ({"servers__demo__instructions": 1}, "servers.demo.instructions: must be a text or null"),
        ({"servers__demo__instructions": "Be cruel."}, "servers.demo.instructions: does not fit"),
        ({"servers__demo__fingerprint": "sha256:0"}, "servers.demo.instructions: does not fit"),
        ({"servers__demo__tools": 1}, "servers.demo.tools: must be an object, not 1"),
        ({TOOL: 1}, "servers.demo.tools.add: must be an object, not 1"),
        ({f"{TOOL}__definition": 1}, "servers.demo.tools.add.definition: must be an object"),
        ({f"{TOOL}__fingerprint": 1}, "servers.demo.tools.add.definition: does not fit"),
        ({f"{TOOL}__fingerprint": "sha256:0"}, "definition: does not fit its fingerprint: it was"),
        ({f"{TOOL}__definition__description": "Sends."}, "add.definition: does not fit its finger"),
        ({f"{TOOL}__definition__name": "\ud800"}, "add.definition: does not fit its fingerprint"),
    ],
)
def test_a_fault_is_told_by_its_place_and_what_to_do(
    path: Path, change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        read(edited(path, **change))
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert words in text
    assert "holdfast lock" in text or "update" in text


@pytest.mark.req("H8")
@pytest.mark.parametrize(
    ("definition", "words"),
    [
        ({"name": "other"}, "definition.name: must be the name that it is listed under"),
        ({"name": 7}, "definition.name: must be the name"),
        ({"name": "add", "icons": []}, 'definition: has "icons", which does not belong there'),
    ],
)
def test_a_definition_with_a_fitting_fingerprint_must_still_be_one(
    path: Path, definition: dict[str, Any], words: str
) -> None:
    entry = {"definition": definition, "fingerprint": fingerprint(definition)}
    with pytest.raises(ValidationError) as caught:
        read(edited(path, **{TOOL: entry}))
    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["mul", "ad", "add (2)"])
def test_a_numbered_name_is_that_of_its_definition(path: Path, name: str) -> None:
    definition = {"name": name, "inputSchema": {"type": "object"}}
    entry = {"definition": definition, "fingerprint": fingerprint(definition)}
    place = "servers__demo__tools__"
    assert name in read(edited(path, **{f"{place}{name}": entry})).servers["demo"].definitions
    assert read(edited(path, **{f"{place}{name} (2)": entry})).servers["demo"].definitions
    with pytest.raises(ValidationError, match="must be the name that it is listed under"):
        read(edited(path, **{f"{place}{'x' * len(name)} (2)": entry}))


@pytest.mark.req("H8")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is not sound JSON: Expecting value (line 1, column 1)"),
        (b"{\n  'a': 1}", "(line 2, column 3)"),
        (b"\xff", "is not UTF-8 text"),
        (b'{"servers": {}, "servers": {}}', '"servers" stands twice in one object'),
        (b'{"version": NaN}', "NaN is no JSON number"),
        (b"<<<<<<< ours\n{}\n", "it has marks of a merge"),
        (b"[" * 200_000, "it is nested too deep"),
    ],
)
def test_a_file_that_is_no_json_says_where_and_what_to_do(
    path: Path, text: bytes, words: str
) -> None:
    path.write_bytes(text)
    for use in (lambda: read(path), lambda: write(path, locked(ADD))):
        with pytest.raises(ValidationError) as caught:
            use()
        assert words in str(caught.value)
        assert "restore it, or delete it and lock its servers again" in str(caught.value)
    assert path.read_bytes() == text


@pytest.mark.req("H8")
def test_a_missing_file_says_how_to_make_it(path: Path) -> None:
    with pytest.raises(ValidationError, match=r"no such lock file; make it with: holdfast lock "):
        read(path)


def test_a_folder_is_no_lock_file(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="is not a regular file"):
        read(tmp_path)


@pytest.mark.req("H8")
def test_what_is_no_file_or_has_no_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(MOST_BYTES + 1)
    faults: dict[str | Path, str] = {
        "/dev/zero": "is not a regular file",
        tmp_path / "pipe": "is not a regular file",
        tmp_path / "sparse": "is longer than 64 MiB",
        "a\0b": "a character in its name that no file can have",
    }
    for path, why in faults.items():
        with pytest.raises(ValidationError, match=why):
            read(path)


@pytest.mark.parametrize(
    "text",
    [
        b'{"not":' * 100_000 + b"{}" + b"}" * 100_000,
        b'{"maximum":1e400}',
        b'{"a":%s}' % (b"1" * 5000),
    ],
    ids=["deep", "1e400", "digits"],
)
def test_a_schema_that_cannot_be_read_is_locked_as_it_is_written(text: bytes) -> None:
    tool, other = Tool.make("well"), Tool.make("well")
    tool.input_schema_json = Raw(text)
    other.input_schema_json = Raw(text.replace(b"{", b"{ ", 1))
    assert locked(tool) == locked(tool)
    assert locked(tool) != locked(other)
    assert render(locked(tool, Tool.make("fine")))


@pytest.mark.parametrize(
    ("path", "server", "command"),
    [
        ("holdfast.lock", None, "holdfast lock TARGET"),
        ("holdfast.lock", "demo", "holdfast lock demo"),
        ("my locks/x", "a b", "holdfast lock --lock 'my locks/x' 'a b'"),
        ("x\ny", "a\tb", "holdfast lock --lock $'x\\ny' $'a\\tb'"),
    ],
)
def test_commands_can_be_pasted(path: str, server: str | None, command: str) -> None:
    assert lock_command(path, server) == command
    assert lock_command(path, server, verb="check") == command.replace("lock", "check", 1)


# Any tools

VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TOOLS = st.lists(
    st.builds(
        Tool.make,
        TEXT,
        description=st.none() | TEXT,
        input_schema=st.dictionaries(TEXT, VALUE, max_size=3),
        title=st.none() | TEXT,
    ),
    max_size=4,
)


@pytest.mark.req("H8")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tools=TOOLS, instructions=st.none() | TEXT, name=TEXT)
def test_what_is_written_is_read_and_written_the_same(
    path: Path, tools: list[Tool], instructions: str | None, name: str
) -> None:
    file = locked(*tools, instructions=instructions, name=name)
    write(path, file, keep_others=False)
    found = read(path)
    assert found == file
    assert render(found) == render(file) == path.read_bytes()
    assert write(path, found) is False
    again = locked(*tools[::-1], instructions=instructions, name=name)
    assert render(again) == render(file)
