"""Stored sequences, and their arguments renamed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import Timeouts, ValidationError
from holdfast.calllog.entries import read_log
from holdfast.calllog.sequence import rename, rename_file, run_sequence
from holdfast.handles import Handle, ParameterSession
from holdfast.testing import Peer

SEQUENCE = """\
{"name":"nav.goto","arguments":{"url":"https://park4night.com/en"}}
{"name":"browser.snapshot","arguments":{}}
{"name":"interact.click","arguments":{"selector":".cc-btn.cc-btn-reject"}}
"""


@pytest.fixture
def peer() -> Peer:
    peer = Peer()
    for name in ("nav.goto", "browser.snapshot", "interact.click", "health"):
        peer.tool(name)(lambda **given: json.dumps(given))
    return peer


class Session:
    """What a handle does: it adds the session where the tool has one."""

    def __init__(self, client: holdfast.Client, session: str) -> None:
        self._client, self._session = client, session

    async def call_tool(self, name: str, arguments: dict[str, Any], **options: Any) -> Any:
        own = {} if name == "health" else {"sessionName": self._session}
        return await self._client.call_tool(name, {**own, **arguments}, **options)


@pytest.mark.req("G4")
async def test_a_sequence_runs_in_a_session_and_returns_the_results(
    peer: Peer, tmp_path: Path
) -> None:
    path = tmp_path / "cookies.jsonl"
    path.write_text(SEQUENCE + '{"name":"health"}\n')
    async with holdfast.connect(peer, timeouts=Timeouts(request=5)) as client:
        report = await run_sequence(Session(client, "p4n"), path)
    assert report.ok
    assert [json.loads(one.text) for one in report.results] == [
        {"sessionName": "p4n", "url": "https://park4night.com/en"},
        {"sessionName": "p4n"},
        {"sessionName": "p4n", "selector": ".cc-btn.cc-btn-reject"},
        {},
    ]


@pytest.mark.req("G4")
async def test_a_sequence_runs_on_a_client_and_stops_at_errors(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text('{"name":"nav.goto"}\n{"name":"none"}\n{"name":"health"}\n')
    async with holdfast.connect(peer, timeouts=Timeouts(request=5)) as client:
        stopped = await run_sequence(client, path)
        whole = await run_sequence(client, str(path), stop=False, timeout=3)
    assert [one.verdict for one in stopped] == ["unrecorded", "unrecorded", "unsent"]
    assert [one.ok for one in whole] == [True, False, True]


async def test_a_bad_line_is_found_before_anything_is_sent(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text('{"name":"health"}\n{"name":"hea')
    async with holdfast.connect(peer) as client:
        with pytest.raises(ValidationError, match="line 2: not JSON"):
            await run_sequence(client, path)
    assert peer.received == []


# Renaming


@pytest.mark.req("G4")
@pytest.mark.parametrize(
    ("line", "renamed"),
    [
        ('{"name":"t","arguments":{"id":"a"}}', '{"name":"t","arguments":{"sessionName":"a"}}'),
        (
            '{ "arguments" : { "x": {"id": 1}, "id" : [1.0, {"id":2}] } , "name": "i" }\r',
            '{ "arguments" : { "x": {"id": 1}, "sessionName" : [1.0, {"id":2}] } , "name": "i" }\r',
        ),
        (r'{"name":"t","arguments":{"\u0069d":1}}', '{"name":"t","arguments":{"sessionName":1}}'),
        ('{"name":"t","arguments":{"a":"\\"id\\":1"}}', None),
        ('{"name":"t"}', None),
        ('{"name":"t","arguments":null}', None),
        ('{"name":"t","arguments":{}}', None),
        ("", None),
        (
            '{"name":"t","arguments":{"id":1},"_phase":"before","_seq":1}',
            '{"name":"t","arguments":{"sessionName":1},"_phase":"before","_seq":1}',
        ),
    ],
)
def test_only_the_arguments_own_keys_are_renamed(line: str, renamed: str | None) -> None:
    found = rename([line], {"id": "sessionName"})
    assert found.lines == [line if renamed is None else renamed]
    assert (found.keys, found.changed) == ((0, 0) if renamed is None else (1, 1))


def test_a_line_that_has_the_new_key_already_is_refused() -> None:
    lines = ['{"name":"t"}', '{"name":"t","arguments":{"id":1,"sessionName":2}}']
    with pytest.raises(ValidationError, match="line 2: there is a 'sessionName' already"):
        rename(lines, {"id": "sessionName"})
    with pytest.raises(ValidationError, match="two arguments would have the same name"):
        rename(['{"name":"t","arguments":{"a":1,"b":2}}'], {"a": "c", "b": "c"})


def test_names_can_be_swapped() -> None:
    found = rename(['{"name":"t","arguments":{"a":1,"b":2}}'], {"a": "b", "b": "a"})
    assert found.lines == ['{"name":"t","arguments":{"b":1,"a":2}}']
    assert str(found) == "2 keys renamed on 1 of 1 lines"


@pytest.mark.parametrize("keys", [{}, {"a": "a"}, {"": "a"}, {"a": ""}])
def test_names_that_rename_nothing_are_refused(keys: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="id=sessionName"):
        rename([], keys)


KEYS = st.sampled_from(["id", "x", 'q"', "é"])


@given(st.dictionaries(KEYS, st.integers() | st.text(max_size=3)), st.sampled_from([None, 2]))
def test_a_renamed_line_says_the_same(arguments: dict[str, Any], indent: int | None) -> None:
    line = json.dumps({"name": "t", "arguments": arguments}, indent=indent).replace("\n", " ")
    found = rename([line], {"id": "new"})
    expected = {("new" if key == "id" else key): value for key, value in arguments.items()}
    assert json.loads(found.lines[0])["arguments"] == expected


@pytest.mark.req("G4")
def test_a_file_is_replaced_in_one_step_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"name":"t","arguments":{"id":1}}\n\n{"name":"t"}\n')
    path.chmod(0o640)
    link = tmp_path / "link"
    link.symlink_to(path)
    assert rename_file(link, {"id": "s"}).keys == 1
    assert '"id"' in path.read_text()
    found = rename_file(link, {"id": "s"}, write=True)
    assert str(found) == "1 key renamed on 1 of 3 lines"
    assert path.read_text() == '{"name":"t","arguments":{"s":1}}\n\n{"name":"t"}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["a.jsonl", "link"]


def test_a_file_that_does_not_fit_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"name":"t","arguments":{"id":1}}\nnonsense')
    with pytest.raises(ValidationError, match=r"a\.jsonl: line 2: not JSON.*nothing was changed"):
        rename_file(path, {"id": "s"}, write=True)
    assert '"id"' in path.read_text()


SESSION = {"type": "object", "properties": {"sessionName": {"type": "string"}}}


@pytest.mark.req("G4")
async def test_a_handle_adds_its_session_where_the_tool_has_one(tmp_path: Path) -> None:
    peer = Peer()
    for name in ("session.open", "session.close", "nav.goto"):
        peer.tool(name, input_schema=SESSION)(lambda **given: json.dumps(given))
    peer.tool("health")(lambda **given: json.dumps(given))
    path = tmp_path / "a.jsonl"
    path.write_text('{"name":"nav.goto","arguments":{"url":"x"}}\n{"name":"health"}\n')
    log = tmp_path / "calls.jsonl"
    adapter = ParameterSession(key="sessionName")
    async with Handle(peer, session="p4n", adapter=adapter, log=log) as handle:
        report = await run_sequence(handle, path)
    assert [json.loads(one.text) for one in report.results] == [
        {"sessionName": "p4n", "url": "x"},
        {},
    ]
    assert [entry.name for entry in read_log(log)] == [
        "session.open",
        "nav.goto",
        "health",
        "session.close",
    ]


def test_a_file_that_cannot_be_replaced_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"name":"t","arguments":{"id":1}}')

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ValidationError, match=r"a\.jsonl cannot be written: No space"):
        rename_file(path, {"id": "s"}, write=True)
    assert os.listdir(tmp_path) == ["a.jsonl"]
    assert '"id"' in path.read_text()
