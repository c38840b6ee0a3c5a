"""Stored sequences, and their arguments renamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Timeouts, ValidationError
from holdfast.calllog.entries import read_log
from holdfast.calllog.replay import run_sequence
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
        whole = await run_sequence(client, str(path), stop=False)
    assert [one.verdict for one in stopped] == ["unrecorded", "unrecorded", "unsent"]
    assert [one.ok for one in whole] == [True, False, True]


async def test_a_bad_line_is_found_before_anything_is_sent(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text('{"name":"health"}\n{"name":"hea')
    async with holdfast.connect(peer) as client:
        with pytest.raises(ValidationError, match="line 2: not JSON"):
            await run_sequence(client, path)
    assert peer.received == []


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
