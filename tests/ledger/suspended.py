"""A worker that stops itself in the middle of a call: ``suspended.py PLACE MOMENT RUNS``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import holdfast
from holdfast.stores import RedisStore, SqliteStore

LEASE = 0.5
SERVER = Path(__file__).resolve().parents[2] / "tools" / "ledger.py"


def open_store(place: str) -> Any:
    return RedisStore(place, patience=60) if "://" in place else SqliteStore(place)


def connect(place: str, runs: str) -> tuple[Any, Any]:
    store = open_store(place)
    ledger = holdfast.Ledger(store, lease=LEASE)
    command = [sys.executable, str(SERVER), "--serve", runs, "seed"]
    return store, holdfast.connect(command, name="counting", ledger=ledger)


async def call(client: Any) -> str:
    meta = {"pid": 0, "kill": False}
    arguments = {"key": "key-1"}
    result = await client.call_tool("run", arguments, once="key-1", meta=meta, timeout=60)
    return str(result.text)


async def main(place: str, moment: str, runs: str) -> None:
    store, client = connect(place, runs)
    original, swaps = store.swap, 0

    async def swap(*words: Any) -> Any:
        nonlocal swaps
        swaps += 1
        if (moment, swaps) == ("before settling", 2):
            os.kill(os.getpid(), signal.SIGSTOP)
        answer = await original(*words)
        if (moment, swaps) == ("after claiming", 1):
            os.kill(os.getpid(), signal.SIGSTOP)
        return answer

    async with client:
        await client.open()
        store.swap = swap
        print(await call(client))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
