"""A busy server is not a dead one: what waits for room is sent when there is some."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import Limits, Stdio, Timeouts

SERVER = """
import json, sys
GATE = sys.argv[1]
opened = False
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = {"content": []}
    if request["method"] == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "busy", "version": "1"},
        }
    elif request["method"] == "tools/list":
        result = {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}
    elif request["method"] == "tools/call":
        if not opened:
            with open(GATE) as gate:
                gate.read()
            opened = True
        size = len(request["params"]["arguments"].get("x", ""))
        result["structuredContent"] = {"size": size}
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    print(json.dumps(answer), flush=True)
"""


def server(folder: Path) -> tuple[Stdio, Path]:
    """A server that reads nothing more from its first call until its gate is opened."""
    import os

    gate = folder / "gate"
    os.mkfifo(gate)
    program = folder / "server.py"
    program.write_text(SERVER)
    return Stdio([sys.executable, str(program), str(gate)]), gate


async def open_gate(gate: Path) -> None:
    await asyncio.to_thread(gate.write_text, "go")


@pytest.mark.req("R7", "R9")
@pytest.mark.parametrize(("calls", "size"), [(50, 1024 * 1024), (1000, 10), (1000, 5_000)])
async def test_calls_wait_for_a_server_that_is_at_work(
    tmp_path: Path, calls: int, size: int
) -> None:
    target, gate = server(tmp_path)
    async with holdfast.connect(target, protocol="2025-11-25") as client:
        await client.list_tools()
        waiting = [
            asyncio.ensure_future(client.call_tool("x", {"x": "." * size})) for _ in range(calls)
        ]
        done, _ = await asyncio.wait(waiting, timeout=0.3, return_when="FIRST_COMPLETED")
        assert not done, "the server reads nothing, and nobody is turned away"
        await open_gate(gate)
        results = await asyncio.gather(*waiting)
    assert [result.structured for result in results] == [{"size": size}] * calls


@pytest.mark.req("R7", "R9")
async def test_what_never_finds_room_ends_at_its_own_deadline_and_was_not_sent(
    tmp_path: Path,
) -> None:
    target, gate = server(tmp_path)
    limits = Limits(backlog_bytes=64 * 1024)
    timeouts = Timeouts(request=100)
    async with holdfast.connect(
        target, protocol="2025-11-25", limits=limits, timeouts=timeouts
    ) as client:
        await client.list_tools()
        first = asyncio.ensure_future(client.call_tool("x", {"x": "."}))
        filler = asyncio.ensure_future(client.call_tool("x", {"x": "." * 300_000}))
        second = asyncio.ensure_future(client.call_tool("x", {"x": "."}, timeout=0.2))
        with pytest.raises(holdfast.errors.BackpressureError, match="within 200 ms") as failure:
            await second
        assert not failure.value.outcome_unknown
        await open_gate(gate)
        assert (await first).structured == {"size": 1}
        assert (await filler).structured == {"size": 300_000}
