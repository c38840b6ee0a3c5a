"""Durations: seconds everywhere in Python, milliseconds in the call log."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

import holdfast
from holdfast.events import Event, RequestException, RequestStop
from holdfast.testing import Peer, RequestError, ServerRequest

DELAY = 0.05
"""Seconds for which the tool works."""


@pytest.mark.req("T3", "T8", "G1", "M1")
async def test_every_observer_measures_in_its_own_unit() -> None:
    peer = Peer()

    async def work(incoming: ServerRequest) -> object:
        await asyncio.to_thread(time.sleep, DELAY)  # the duration is what is tested, not waited for
        return {"content": [{"type": "text", "text": "done"}]}

    async def fail(incoming: ServerRequest) -> object:
        await work(incoming)
        raise RequestError(-32000, "not today")

    peer.tool("work")(lambda: "")
    peer.on("tools/call", work)
    records: list[holdfast.calls.AuditRecord] = []
    stops: list[RequestStop | RequestException] = []
    lines: list[str] = []
    observability = holdfast.Observability(audit=records.append)
    async with holdfast.connect(peer, observability=observability, log=lines.append) as client:

        def hear(event: Event) -> None:
            if isinstance(event, RequestStop | RequestException) and event.method == "tools/call":
                stops.append(event)

        client.events.subscribe(hear)
        await client.list_tools()
        began = time.perf_counter()
        invocation = await client.invoke_tool("work")
        longest = time.perf_counter() - began
        assert invocation.success
        peer.on("tools/call", fail)
        began = time.perf_counter()
        failed = await client.invoke_tool("work")
        longest_failed = time.perf_counter() - began
        assert not failed.success
    assert DELAY * 0.9 <= failed.duration <= longest_failed
    assert DELAY * 0.9 <= invocation.duration <= longest
    assert DELAY * 0.9 <= records[0].duration <= longest
    assert DELAY * 0.9 <= stops[0].duration <= longest
    assert DELAY * 0.9 <= stops[1].duration <= longest_failed
    assert DELAY * 900 <= json.loads(lines[1])["_ms"] <= longest * 1000 + 1
    assert DELAY * 900 <= json.loads(lines[3])["_ms"] <= longest_failed * 1000 + 1
