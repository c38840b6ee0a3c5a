"""Measure the page of a trace: ``make bench-view``. 100,000 messages, built and opened in Chromium.

The trace is made here: calls of three servers with arguments and results of varying words, 500
bytes in the median, as recorded traffic has. Figures of the browser are taken through the DevTools
protocol, on the page's own clock; that of the live page from before a call is made until its row
is in the document, on the clock of the caller. ``ARGS=--write`` puts them into the documentation.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import holdfast
from benchmarks.steady import faults, steady
from holdfast.testing import Peer
from holdfast.trace.format import Reading
from holdfast.view.feed import Feed, FeedRecorder
from holdfast.view.live import LiveServer
from holdfast.view.page import build_page
from tools.chromium import Tab, browser, chromium

MESSAGES: Final = 100_000
AIMS: Final = {
    "page, MB": 15.0,
    "built, s": 10.0,
    "first paint, ms": 1500.0,
    "longest frame while scrolling, ms": 50.0,
    "filter, ms": 200.0,
    "full text, first hit, ms": 300.0,
    "live: a message is shown after, ms": 200.0,
}
PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "reference" / "trace.md"
BEGIN: Final = "<!-- figures: make bench-view ARGS=--write -->\n"
END: Final = "<!-- end of figures -->\n"
LIVE_CALLS: Final = 21
WORDS: Final = [
    *("order", "invoice", "customer", "refund", "branch", "commit", "author", "message", "window"),
    *("element", "button", "checkout", "total", "price", "country", "status", "shipped", "page"),
]

NUMBERS: Final = ["", "", "", *map(str, range(0, 100, 7))]


def trace(messages: int, seed: int = 7) -> bytes:
    """Return a trace with as many messages: half of them requests, half of them answers."""
    chance = random.Random(seed)

    def sentence(size: int) -> str:
        return " ".join(f"{chance.choice(WORDS)}{chance.choice(NUMBERS)}" for _ in range(size))

    servers: dict[str, dict[str, str]] = {"git": {}, "browser": {}, "docs": {}}
    rows: list[dict[str, Any]] = [{"holdfast-trace": 1, "started": "", "servers": servers}]
    t = 0.0
    for number in range(1, messages // 2 + 1):
        t += chance.expovariate(100)
        server, tool = chance.choice(list(servers)), f"tool_{chance.randrange(40)}"
        arguments = {"query": sentence(chance.randrange(20, 62)), "limit": chance.randrange(100)}
        text = sentence(int(chance.lognormvariate(4.0, 0.8)))
        bodies: list[dict[str, Any]] = [
            {"method": "tools/call", "params": {"name": tool, "arguments": arguments}},
            {"result": {"content": [{"type": "text", "text": text}], "isError": number % 97 == 0}},
        ]
        span = chance.lognormvariate(-2, 1)
        for at, direction, kind, body in [
            (t, ">", "request", bodies[0]),
            (t + span, "<", "result", bodies[1]),
        ]:
            line = {"t": round(at, 6), "server": server, "link": 1, "dir": direction, "kind": kind}
            whole = {"jsonrpc": "2.0", "id": number, **body}
            size = len(_encoded(whole))
            method = {"method": "tools/call"} if kind == "request" else {"of": number}
            rows.append({**line, "id": number, "bytes": size, "body": whole, **method})
    rows[1:] = sorted(rows[1:], key=lambda row: row["t"])
    return b"".join(_encoded(row) + b"\n" for row in rows)


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


async def measure(messages: int) -> dict[str, float]:
    program = chromium()
    if program is None:
        raise SystemExit("bench-view: there is no chromium on PATH")
    data = trace(messages).splitlines(keepends=True)
    sizes = [json.loads(line)["bytes"] for line in data[1:]]
    median, mean = statistics.median(sizes), statistics.mean(sizes)
    print(f"{messages:,} messages, {median:.0f} bytes in the median, {mean:.0f} in the mean")
    began, reading = time.perf_counter(), Reading("bench.jsonl")
    page = build_page(reading, reading.lines(data))
    figures = {"page, MB": len(page) / 1e6, "built, s": time.perf_counter() - began}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.html"
        file.write_text(page, encoding="utf-8")
        async with browser(program) as tab:
            await tab.resize(1440, 900)
            figures |= await in_browser(tab, file.as_uri())
            figures["live: a message is shown after, ms"] = await shown_live(tab)
    return figures


async def shown_live(tab: Tab) -> float:
    """Return the median of how long a call takes to be seen in a live page."""
    peer = Peer()
    peer.tool("say")(lambda words: words)
    feed = Feed("bench", lambda: 0.0)
    client = holdfast.connect(peer, name="peer")
    recorder = FeedRecorder(feed, asyncio.get_running_loop())
    recorder.watch(client)
    server = LiveServer(feed)
    await server.start()
    try:
        async with client:
            await client.call_tool("say", {"words": "the first"})
            await tab.open(server.url)
            await tab.until("document.body.dataset.ready === 'true'")
            spans = [await _until_shown(tab, client, number) for number in range(LIVE_CALLS)]
    finally:
        await server.close()
        recorder.close()
    return statistics.median(spans) * 1000


async def _until_shown(tab: Tab, client: holdfast.Client, number: int) -> float:
    began = time.perf_counter()
    await client.call_tool("say", {"words": f"probe-{number}-"})
    await tab.until(f"document.getElementById('space').innerText.includes('probe-{number}-')")
    return time.perf_counter() - began


async def in_browser(tab: Tab, url: str) -> dict[str, float]:
    await tab.open(url)
    await tab.until("document.body.dataset.ready === 'true'")
    painted = await tab.until("performance.getEntriesByName('ready')[0]?.startTime")
    scrolled = await tab.ask(
        """
        new Promise(resolve => {
          const list = document.getElementById("list"), frames = [];
          let last = performance.now(), steps = 0;
          const step = () => {
            const now = performance.now();
            frames.push(now - last);
            last = now;
            list.scrollTop += steps % 10 ? 300 : 60000;
            ++steps < 120 ? requestAnimationFrame(step) : resolve(Math.max(...frames.slice(2)));
          };
          requestAnimationFrame(step);
        })
        """
    )
    typed = """
        (() => {
          const input = document.getElementById("query"), began = performance.now();
          input.value = WORDS;
          input.dispatchEvent(new Event("input"));
          return new Promise(resolve => requestAnimationFrame(() => setTimeout(
            () => resolve(performance.now() - began))));
        })()
    """
    filtered = await tab.ask(typed.replace("WORDS", '"tool:tool_7 slow:>100ms"'))
    found = await tab.ask(
        """
        (() => {
          const input = document.getElementById("query"), began = performance.now();
          input.value = "refund77 customer ";
          input.dispatchEvent(new Event("input"));
          const rows = () => document.querySelectorAll("#space .row").length;
          return new Promise(resolve => {
            const look = () => rows() ? resolve(performance.now() - began)
              : requestAnimationFrame(look);
            look();
          });
        })()
        """
    )
    return {
        "first paint, ms": painted,
        "longest frame while scrolling, ms": scrolled,
        "filter, ms": filtered,
        "full text, first hit, ms": found,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench-view", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--write", action="store_true", help="write the figures to the docs")
    parser.add_argument(
        "--steady", type=float, metavar="SECONDS", help="trace 1,000 messages a second instead"
    )
    options = parser.parse_args()
    if options.steady:
        held = asyncio.run(steady(options.steady))
        for name, value in held.items():
            print(f"{name:36} {value:12.1f}")
        for fault in faults(held):
            print(f"bench-view: {fault}", file=sys.stderr)
        return 1 if faults(held) else 0
    figures = asyncio.run(measure(options.messages))
    for name, value in figures.items():
        print(f"{name:36} {value:10.1f}   aim {AIMS[name]:g}, {verdict(name, value)}")
    if options.write:
        write(figures, options.messages)
    return 0


def verdict(name: str, value: float) -> str:
    return "met" if value <= AIMS[name] else "MISSED"


def write(figures: dict[str, float], messages: int) -> None:
    """Replace the figures of the page, and nothing else."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    rows = [
        f"| {name} | {AIMS[name]:g} | {value:.1f} | {verdict(name, value).lower()} |"
        for name, value in figures.items()
    ]
    about = f"{messages:,} messages, headless Chromium, {os.cpu_count()} cores.\n"
    table = ["| | aim | measured | |", "|---|---|---|---|", *rows, "", about]
    text = "\n".join(["", *table])
    PAGE.write_text(before + BEGIN + text + END + rest.split(END)[1], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
