"""The specs in a real browser, then what they did once more, then without any browser.

    python -m examples.browser.demo [options of pytest]

1. The specs run in Chromium, and every call is recorded.
2. Each recorded log is sent again to a fresh browser, and every outcome compared.
3. The specs run once more, answered from the recording: no Node, no browser, no page.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import holdfast
from examples.browser.browser import HOME, PROJECT, MissingError, chromium, command, install
from examples.browser.shop import open_shop
from holdfast.calllog.replay import ReplayReport, replay

HERE = Path(__file__).resolve().parent
TAPE = HOME / "tape"


def specs(*arguments: str, **environment: str) -> bool:
    """Run the specs; whether all of them passed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(HERE), *arguments],
        cwd=PROJECT,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode == 0


async def again(log: Path, port: int, folder: Path) -> ReplayReport:
    """Send the calls of a log to a browser of their own."""
    async with holdfast.connect(command(port, folder), cwd=folder) as client:
        return await replay(client, log, stop=False)


async def all_again() -> bool:
    """Every log of the recording; whether every call ended as it had."""
    well = True
    with open_shop() as port:
        for log in sorted(TAPE.glob("*/*.jsonl")):
            with tempfile.TemporaryDirectory() as folder:
                report = await again(log, port, Path(folder))
            print(f"{log.parent.name}: {report}", flush=True)
            well = well and report.ok and len(report) > 0
    return well


def headline(text: str) -> None:
    print(f"\n=== {text} ===\n", flush=True)


def main(arguments: list[str]) -> int:
    try:
        print(f"Chromium: {chromium()}")
        install()
    except MissingError as error:
        print(f"demo-browser: {error}", file=sys.stderr)
        return 1 if os.environ.get("HOLDFAST_REQUIRE_ALL") == "1" else 0
    shutil.rmtree(TAPE, ignore_errors=True)
    headline("1. The specs, in a real browser")
    if not specs("--mcp-record", str(TAPE), *arguments):
        return 1
    headline("2. What they did, sent to a fresh browser")
    if not asyncio.run(all_again()):
        return 1
    headline("3. The specs again, without a browser")
    nowhere = str(HOME / "nowhere")
    return 0 if specs("--mcp-replay", str(TAPE), *arguments, PATH=nowhere) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
