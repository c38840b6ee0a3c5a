"""A traced client for a long time: ``make trace-soak``.

A thousand messages a second to and from a real server process. What matters is that the trace drops
none of them, and that the memory of the process does not grow.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec

import holdfast
from benchmarks import server
from holdfast.trace.format import rotated
from holdfast.trace.writer import TraceFile

RATE: Final = 1000
"""Messages a second: half as many calls."""
TICK: Final = 0.02
"""Seconds between two bursts of calls."""
LOOKS: Final = 20
"""How often the memory is looked at."""
MOST_GROWTH: Final = 8.0
"""Megabytes: what a queue that was empty may hold at the end."""
WARM: Final = 5
"""Looks before the memory counts as settled."""


def resident() -> int:
    """Return the bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def steady(seconds: float) -> dict[str, float]:
    """Make calls at an even rate; return what was sent, recorded, dropped and held."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        trace = TraceFile(path)
        async with holdfast.connect(server.find().listing(8), trace=trace) as client:
            calls, looks = await _call(client, seconds)
        trace.close()
        kinds = recorded(path)
    settled = looks[WARM:]
    print("memory, MB:", *(f"{look / 1e6:.1f}" for look in looks))
    return {
        "calls": calls,
        "calls in the trace": kinds["tools/call"],
        "dropped": kinds["dropped"],
        "lines lost": trace.lost,
        "memory when settled, MB": settled[0] / 1e6,
        "memory at the end, MB": settled[-1] / 1e6,
        "memory at most, MB": max(settled) / 1e6,
        "memory in the median, MB": statistics.median(settled) / 1e6,
    }


def faults(figures: dict[str, float]) -> list[str]:
    """Return what must not be: messages that are missing, or memory that grows."""
    growth = figures["memory at the end, MB"] - figures["memory when settled, MB"]
    missing = figures["calls"] - figures["calls in the trace"]
    return [
        *([f"{missing:g} calls are not in the trace"] if missing else []),
        *(f"{figures[name]:g} {name}" for name in ("dropped", "lines lost") if figures[name]),
        *([f"the memory grew by {growth:.1f} MB"] if growth > MOST_GROWTH else []),
    ]


async def _call(client: holdfast.Client, seconds: float) -> tuple[int, list[int]]:
    began, calls = time.perf_counter(), 0
    looks: list[int] = []
    while (passed := time.perf_counter() - began) < seconds:
        due = int(passed * RATE / 2) - calls
        text = {"text": "hello, world"}
        await asyncio.gather(*(client.call_tool("echo", text) for _ in range(due)))
        calls += due
        if passed >= len(looks) * seconds / LOOKS:
            looks.append(resident())
        await asyncio.sleep(TICK)
    return calls, looks


class _Line(msgspec.Struct):
    kind: str = ""
    method: str = ""
    count: int = 0


def recorded(path: Path) -> Counter[str]:
    """Count the requests of a trace by their methods, and what it dropped."""
    kinds: Counter[str] = Counter()
    decode = msgspec.json.Decoder(_Line).decode
    for file in rotated(path):
        with file.open("rb") as rows:
            for row in rows:
                line = decode(row)
                kinds[line.method] += line.kind == "request"
                kinds["dropped"] += line.count if line.kind == "dropped" else 0
    return kinds
