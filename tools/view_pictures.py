"""Make the pictures of the page that the documentation shows, from a real run.

``python -m tools.view_pictures`` calls the demo server, lets it crash and time out, makes the page
of that trace, and takes a picture of it in Chromium, light and dark.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Final

import holdfast
from holdfast.errors import HoldfastError
from holdfast.trace.format import Reading
from holdfast.view.page import build_page
from tools.chromium import browser, chromium

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "assets"
SIZE: Final = (1280, 760)


async def bad_day(path: Path) -> None:
    """Make a trace in which most of what can happen happens."""
    command = [sys.executable, "-m", "holdfast.demo.server"]
    backoff = holdfast.Backoff(first=0.6, max=0.6)

    def connect(name: str) -> holdfast.Client:
        return holdfast.connect(command, name=name, when_down="wait", backoff=backoff, trace=path)

    async with connect("demo") as demo, connect("notes") as notes:
        counting = asyncio.create_task(notes.call_tool("countdown", {"steps": 12, "seconds": 0.15}))
        for number in range(6):
            await demo.call_tool("add", {"a": number, "b": 40})
            await demo.call_tool("sleep", {"seconds": 0.12})
            await notes.call_tool("word_count", {"text": f"word {number}"})
        await demo.call_tool("fail", {"message": "the disk is full"})
        waiting = asyncio.create_task(demo.call_tool("sleep", {"seconds": 5}))
        await demo.call_tool("sleep", {"seconds": 0.4})
        with suppress(HoldfastError):
            await demo.call_tool("crash", {"code": 137})
        with suppress(HoldfastError):
            await waiting
        await demo.call_tool("echo", {"text": "back again"})
        with suppress(HoldfastError):
            await notes.call_tool("sleep", {"seconds": 2}, timeout=0.5)
        with suppress(HoldfastError):
            await counting
        for _ in range(4):
            await demo.call_tool("sleep", {"seconds": 0.1})


async def main() -> int:
    program = chromium()
    if program is None:
        print("view_pictures: there is no chromium on PATH", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        trace, page = Path(folder) / "run.jsonl", Path(folder) / "run.html"
        await bad_day(trace)
        reading = Reading(trace.name)
        with trace.open("rb") as rows:
            page.write_text(build_page(reading, reading.lines(rows)), encoding="utf-8")
        async with browser(program) as tab:
            await tab.resize(*SIZE)
            for theme in ("light", "dark"):
                await tab.open("about:blank")
                await tab.open(f"{page.as_uri()}#{theme}")
                await tab.until("document.body.dataset.ready === 'true'")
                await tab.until("document.querySelector('#detail .tree') !== null")
                picture = FOLDER / f"view-{theme}.webp"
                shot = await tab.send("Page.captureScreenshot", format="webp", quality=80)
                picture.write_bytes(b64decode(shot["data"]))
                print(picture)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
