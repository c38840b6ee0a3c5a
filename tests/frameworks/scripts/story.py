"""The run that every framework is put through, once on Holdfast and once on its own client."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import holdfast
from tests.frameworks.server import NAMES

LAST = 5
MOST = 15
CALLS = 20
NAMED = dict.fromkeys(NAMES, "here")
SERVER = Path(__file__).resolve().parents[1] / "server.py"


class Script:
    """A model that records steps 1 to 5, and looks before it repeats one that failed."""

    def __init__(self) -> None:
        self.step = 1
        self.looked = False
        self.asked = 0
        self.gave_up = False
        self.read: list[str] = []

    def next(self, answer: str | None) -> tuple[str, dict[str, Any]] | None:
        """Return the next call; None at the end. ``answer`` is what the last one gave."""
        self.asked += 1
        if answer is not None:
            self.read.append(answer)
            self._learn(answer)
        if self.step > LAST:
            return None
        if self.asked > MOST:
            self.gave_up = True
            return None
        return ("recorded", {}) if self.looked else ("record", {"step": self.step})

    def _learn(self, answer: str) -> None:
        if not self.looked:
            if f"recorded {self.step}" in answer:
                self.step += 1
            else:
                self.looked = True
            return
        begin, end = answer.find("{"), answer.rfind("}")
        try:
            steps = json.loads(answer[begin : end + 1])["steps"]
        except (ValueError, KeyError):
            return
        self.looked = False
        if self.step in steps:
            self.step += 1


class Once:
    """A model that asks for one call."""

    def __init__(self, tool: str, /, **arguments: Any) -> None:
        self.calls = [(tool, arguments)]

    def next(self, answer: str | None) -> Any:
        return self.calls.pop() if self.calls else None


def server(ledger: Path) -> list[str]:
    return [sys.executable, str(SERVER), str(ledger)]


def connect(ledger: Path) -> holdfast.Client:
    backoff = holdfast.Backoff(first=0.05)
    return holdfast.connect(server(ledger), name="ledger", backoff=backoff)


async def tell(run: Callable[[Script], Awaitable[Any]], ledger: Path) -> dict[str, Any]:
    """Make one run; return how it ended and what it did."""
    script, error = Script(), ""
    try:
        async with asyncio.timeout(20):
            await run(script)
    except Exception as failure:
        while isinstance(failure, ExceptionGroup):
            failure = failure.exceptions[0]
        error = f"{type(failure).__name__}: {failure}".splitlines()[0]
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    return {
        "finished": not error and not script.gave_up,
        "error": error or ("the server stayed dead" if script.gave_up else ""),
        "steps": [int(one.split()[1]) for one in lines if one.startswith("record")],
        "read": script.read,
    }


async def measure(call: Callable[[], Awaitable[Any]]) -> float:
    """Return the seconds that twenty calls take, the first one before them not counted."""
    await call()
    began = time.perf_counter()
    for _ in range(CALLS):
        await call()
    return time.perf_counter() - began


async def cancelled(run: Callable[[], Awaitable[Any]], ledger: Path) -> bool:
    """Cancel a run that waits for a tool; return True if the server was told."""
    task = asyncio.ensure_future(run())
    await _until(ledger, "waiting")
    task.cancel()
    await asyncio.wait([task])
    await _until(ledger, "cancelled")
    return task.cancelled()


async def _until(ledger: Path, line: str) -> None:
    async with asyncio.timeout(20):
        while line not in (ledger.read_text(encoding="utf-8") if ledger.exists() else ""):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def snippet(page: str, folder: Path, names: dict[str, Any]) -> Any:
    """Run the code of a how-to page in a folder that has its ``server.py``; return its result."""
    text = (SERVER.parents[2] / "docs" / "how-to" / page).read_text(encoding="utf-8")
    code = text.partition("```py\n")[2].partition("```")[0]
    shutil.copy(SERVER, folder)
    os.chdir(folder)
    compiled = compile(code, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    namespace = {"holdfast": holdfast, **names}
    await eval(compiled, namespace)
    return namespace["result"]


def main(parts: Callable[[Path], Coroutine[Any, Any, dict[str, Any]]]) -> None:
    """Run a script's parts in the folder that is its argument, and print what came of them."""
    print(json.dumps(asyncio.run(parts(Path(sys.argv[1]))), default=str))
