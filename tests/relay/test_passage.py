"""What goes straight through a relay: what it costs, and that nothing else is different."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast._core.eras.revisions import STATELESS
from holdfast._core.server.request import ServerRequest, text_result
from holdfast.relay.finding import Finder
from holdfast.relay.sharing import SharedRelay
from tests.relay import peak
from tests.relay.rig import Pair, RelayServer

pytestmark = pytest.mark.req("Y1")

ERAS = ("handshake", "stateless")
SLACK = 1024 * 1024
"""Bytes that a relay needs beside what it passes."""


@pytest.mark.parametrize("server_era", ERAS)
@pytest.mark.parametrize("host_era", ERAS)
async def test_a_large_result_needs_twice_its_size(
    host_era: str, server_era: str, tmp_path: Path
) -> None:
    note = tmp_path / "peak"
    command = [sys.executable, peak.__file__, server_era, str(note)]
    async with holdfast.connect(command, protocol=Pair(host_era, server_era).host) as host:
        assert len((await host.call_tool("large")).text) == peak.SIZE
    assert int(note.read_text()) <= 2 * peak.SIZE + SLACK


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read as Linux shows it")
@pytest.mark.parametrize("what", ["result", "arguments"])
@pytest.mark.parametrize("server_era", ERAS)
@pytest.mark.parametrize("host_era", ERAS)
async def test_what_is_large_takes_twice_its_size_of_the_machine(
    host_era: str, server_era: str, what: str, tmp_path: Path
) -> None:
    """Also the second time: what the allocator keeps for itself counts."""
    note = tmp_path / "peak"
    command = [sys.executable, peak.__file__, server_era, str(note), "--resident"]
    text = "x" * peak.SIZE if what == "arguments" else ""
    async with holdfast.connect(command, protocol=Pair(host_era, server_era).host) as host:
        for _ in range(2):
            if text:
                answer = await host.call_tool("measure", {"text": text})
                assert answer.text == str(peak.SIZE)
            else:
                assert len((await host.call_tool("large")).text) == peak.SIZE
    assert int(note.read_text()) <= 2 * peak.SIZE + 4 * SLACK


@pytest.mark.parametrize("server_era", ERAS)
@pytest.mark.parametrize("host_era", ERAS)
async def test_a_call_needs_no_task(host_era: str, server_era: str) -> None:
    pair = Pair(host_era, server_era)
    peer, tasks = pair.peer(), list[int]()

    def count(request: ServerRequest) -> Any:
        tasks.append(len(asyncio.all_tasks()))
        return text_result("counted")

    peer.on("tools/call", count)
    async with pair.connect(peer) as host:
        await host.call_tool("count")  # the first one lists the tools
        before = len(asyncio.all_tasks())
        assert (await host.call_tool("count")).text == "counted"
        assert tasks[1] <= before


@pytest.mark.parametrize("server_era", ERAS)
@pytest.mark.parametrize("host_era", ERAS)
async def test_who_makes_another_request_of_one_gets_its_answer(
    host_era: str, server_era: str
) -> None:
    """A finder calls a tool for the host, and returns what that returns."""
    pair = Pair(host_era, server_era)
    peer = pair.peer()
    peer.on("tools/call", lambda request: text_result(request.params["name"]))
    async with holdfast.connect(peer) as client:
        await client.open()
        relay = SharedRelay(client).join()
        Finder(relay.server)
        server: Any = RelayServer(relay)
        async with holdfast.connect(server, protocol=pair.host) as host:
            assert (await host.call_tool("call_tool", {"name": "inner"})).text == "inner"


async def test_capabilities_that_the_connection_declares_are_not_declared_again() -> None:
    pair = Pair("stateless", "stateless")
    peer = pair.peer()
    peer.on("tools/call", lambda request: text_result("hello"))
    async with pair.share(peer, {}) as (shared, (host,)):
        assert (await host.call_tool("echo")).text == "hello"
        (relay,) = shared.hosts
        assert shared.declaring(relay.capabilities or {}) is None
        assert shared.declaring({"roots": {}}) == {"roots": {}}


@pytest.mark.parametrize("limited", [{"limits": holdfast.Limits(concurrent=1)}, {"log": "calls"}])
async def test_what_is_limited_or_watched_goes_the_other_way(
    limited: dict[str, Any], tmp_path: Path
) -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    peer.on("tools/call", lambda request: text_result("hello"))
    if "log" in limited:
        limited = {"log": tmp_path / "calls.jsonl"}
    async with pair.connect(peer, upstream=limited) as host:
        assert (await host.call_tool("echo")).text == "hello"
    if "log" in limited:
        assert '"echo"' in (tmp_path / "calls.jsonl").read_text()


async def test_an_answer_is_of_the_era_that_the_server_speaks_now() -> None:
    pair = Pair("handshake", "handshake")
    peer = pair.peer()
    peer.on("tools/call", lambda request: text_result("hello"))
    backoff = holdfast.Backoff(first=0.001)
    async with holdfast.connect(peer, when_down="wait", backoff=backoff) as client:
        relay = SharedRelay(client).join()
        hear = relay.server.heard

        def replace_server(request: ServerRequest) -> None:
            """Have the link end after the call was given to it, and before the server has it."""
            if request.method == "tools/call":
                peer.versions = STATELESS
                peer.hang_up()
            hear(request)

        relay.server.heard = replace_server
        server: Any = RelayServer(relay)
        async with holdfast.connect(server, protocol=pair.host) as host:
            result = await host.request("tools/call", {"name": "echo"})
            assert client.protocol_version == STATELESS[0]
            assert result == {"content": [{"type": "text", "text": "hello"}]}
