"""Recording: what a suite leaves on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.lock.lockfile import read
from holdfast.testing.recording import folder_name
from tests.testing.suites import run, suite, try_out

pytest_plugins = ["pytester"]

RECORD = "--mcp-record=tape"


def manifests(pytester: pytest.Pytester) -> dict[str, Any]:
    """What was recorded, by test: the manifest and the folder."""
    found = {}
    for path in sorted(Path(pytester.path).glob("tape/*/recording.json")):
        said = json.loads(path.read_text())
        found[said["test"].partition("::")[2]] = (said, path.parent)
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@given(st.text(), st.text())
def test_names_of_folders_are_safe_and_never_shared(one: str, other: str) -> None:
    name = folder_name(f"tests/test_a.py::test_b[{one}]")
    assert name.isascii()
    assert name == Path(name).name
    assert len(name) < 120
    assert not set(name) & set('<>:"/\\|?*\0 ')
    assert name.startswith("test_a.py-test_b")
    if one != other:
        assert name != folder_name(f"tests/test_a.py::test_b[{other}]")


@pytest.mark.req("F4")
def test_each_test_has_a_folder_with_the_calls_of_each_client(pytester: pytest.Pytester) -> None:
    source = """
@pytest.mark.parametrize("n", ["a/b", "ü"])
async def test_one(mcp_client, n):
    client = mcp_client(server)
    await client.call_tool("add", {"a": 1, "b": 2})
    await client.call_tool("novel")

def test_two(mcp_client_sync):
    for n in range(2):
        mcp_client_sync(server, name=f"mine {n}").call_tool("add", {"a": n, "b": n})

def test_none():
    pass
"""
    try_out(pytester, source, RECORD, passed=4)
    found = manifests(pytester)
    assert len(found) == 3
    two, folder = found["test_two"]
    assert [part["client"] for part in two["clients"]] == ["mine 0", "mine 1"]
    assert {part["server"] for part in two["clients"]} == {"shop"}
    assert lines(folder / "2.jsonl")[0]["arguments"] == {"a": 1, "b": 1}
    _, folder = found["test_one[a/b]"]
    assert (folder / "1" / "2-novel.txt").read_text().startswith("chapter")
    before, after = lines(folder / "1.jsonl")[:2]
    assert (before["_phase"], after["_phase"], after["_result"]) == ("before", "after", 3)


@pytest.mark.req("F4")
def test_what_servers_list_is_kept_once(pytester: pytest.Pytester) -> None:
    source = """
async def test_one(mcp_client):
    await mcp_client(server).call_tool("add", {"a": 1, "b": 2})

def test_closed_by_itself(mcp_client_sync):
    with mcp_client_sync(server) as client:
        client.call_tool("add", {"a": 1, "b": 2})

def test_only_listed(mcp_client_sync):
    with mcp_client_sync(server) as client:
        client.list_tools()

def test_only_opened(mcp_client_sync):
    mcp_client_sync(server).open()

async def test_only_opened_async(mcp_client):
    await mcp_client(server).open()

def test_never_opened(mcp_client_sync):
    mcp_client_sync(server)
"""
    try_out(pytester, source, RECORD, passed=6)
    (path,) = Path(pytester.path).glob("tape/tools/*.lock")
    assert set(read(path).servers["shop"].tools) == {"add", "fail", "login", "novel"}
    found = manifests(pytester)
    told = {name: said["clients"][0]["tools"] for name, (said, _) in found.items()}
    assert told.pop("test_never_opened") is None
    assert set(told.values()) == {path.stem}, told


@pytest.mark.req("F4")
def test_secrets_are_not_written(pytester: pytest.Pytester) -> None:
    """Not even those of the first call that only the schema knows of, nor by a policy."""
    source = """
async def test_it(mcp_client):
    await mcp_client(server).call_tool("login", {"pin": "12-34", "password": "hunter2"})
    own = holdfast.Observability(redaction=holdfast.Redaction(keys=["a"]))
    await mcp_client(server, observability=own).call_tool("add", {"a": 99123, "b": 1})
"""
    try_out(pytester, source, RECORD, passed=1)
    written = "".join(
        path.read_text() for path in Path(pytester.path).glob("tape/*/*") if path.is_file()
    )
    assert written.count("[redacted]") == 6
    for secret in ("12-34", "hunter2", '"a":99123'):
        assert secret not in written


def test_recording_does_not_change_what_a_test_sees(pytester: pytest.Pytester) -> None:
    """Neither the checks that follow a list, nor how a first call fails, nor what is sent."""
    source = """
async def test_unknown(mcp_client):
    client = mcp_client(server)
    for _ in range(2):
        with pytest.raises(holdfast.ValidationError):
            await client.call_tool("unheard of")

async def test_no_server(mcp_client):
    with pytest.raises(holdfast.TransportError, match="no-such-command"):
        await mcp_client("no-such-command").call_tool("add")

async def test_no_list(mcp_client):
    server = Peer("bare")
    server.tool("greet")(lambda: "hello")
    server.on("tools/list", broken)
    assert (await mcp_client(server).call_tool("greet")).text == "hello"

async def test_bad_list(mcp_client):
    server = Peer("bare")
    server.tool("greet")(lambda: "hello")
    server.on("tools/list", {"tools": "none"})
    assert (await mcp_client(server).call_tool("greet")).text == "hello"

async def test_cancelled(mcp_client):
    server = Peer("slow")
    server.tool("wait")(lambda: asyncio.Event().wait())
    client = mcp_client(server)
    call = client.start_tool("wait")
    await server.expect("tools/call")
    call.cancel()

def broken(incoming):
    from holdfast.testing import RequestError
    raise RequestError(-32601, "no lists here")
"""
    try_out(pytester, source, RECORD, passed=5)
    found = manifests(pytester)
    _, folder = found["test_cancelled"]
    assert [line.get("_error") for line in lines(folder / "1.jsonl")] == [None, "cancelled"]
    assert found["test_no_list"][0]["clients"][0]["tools"] is None


@pytest.mark.req("F4")
def test_recording_again_replaces_the_recording(pytester: pytest.Pytester) -> None:
    source = """
import os

def test_it(mcp_client_sync):
    for n in range(int(os.environ["CLIENTS"])):
        mcp_client_sync(server).call_tool("novel")

def test_other(mcp_client_sync):
    mcp_client_sync(server).call_tool("novel")
"""
    suite(pytester, source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLIENTS", "2")
        run(pytester, RECORD).assert_outcomes(passed=2)
        patch.setenv("CLIENTS", "1")
        run(pytester, RECORD, "test_it.py::test_it").assert_outcomes(passed=1)
    said, folder = manifests(pytester)["test_it"]
    assert len(said["clients"]) == 1
    assert sorted(path.name for path in folder.rglob("*")) == [
        *("1", "1-novel.txt", "1.jsonl", "recording.json")
    ]
    assert "test_other" in manifests(pytester)


def test_a_client_that_cannot_be_made_is_not_recorded(pytester: pytest.Pytester) -> None:
    source = """
def test_it(mcp_client_sync):
    with pytest.raises(holdfast.ValidationError):
        mcp_client_sync(server, headers={})
    mcp_client_sync(server).call_tool("add", {"a": 1, "b": 2})
"""
    try_out(pytester, source, RECORD, passed=1)
    said, folder = manifests(pytester)["test_it"]
    assert len(said["clients"]) == 1
    assert len(lines(folder / "1.jsonl")) == 2


def test_a_test_that_moves_elsewhere_is_recorded_in_the_same_place(
    pytester: pytest.Pytester,
) -> None:
    source = """
async def test_it(mcp_client, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    await mcp_client(server).call_tool("novel")
"""
    try_out(pytester, source, RECORD, passed=1)
    assert "test_it" in manifests(pytester)
