"""Run the activity of the guide in Temporal's own environment for activities."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

import holdfast


async def outcome(environment: Any, activity: Any, cents: Any) -> Any:
    try:
        return await environment.run(activity, cents)
    except ApplicationError as error:
        return {"type": error.type, "non_retryable": error.non_retryable, "text": str(error)}
    except asyncio.CancelledError:
        return "cancelled"


def attempt(activity_id: str, run: str = "run-1", number: int = 1) -> Any:
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info, activity_id=activity_id, workflow_run_id=run, attempt=number
    )
    return environment


async def cancelled(activity: Any, runs: Path) -> list[Any]:
    """Cancel an attempt while the server works; then try it again, as Temporal would."""
    environment = attempt("waits")
    before = len(runs.read_text().splitlines())
    running = asyncio.create_task(outcome(environment, activity, 17))
    while len(runs.read_text().splitlines()) == before and not running.done():  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    environment.cancel()
    return [await running, await outcome(attempt("waits", number=2), activity, 17)]


async def main(folder: str, code: str, runs: str) -> None:
    guide: dict[str, Any] = {}
    exec(compile(Path(code).read_text(encoding="utf-8"), code, "exec"), guide)
    store = holdfast.stores.SqliteStore(f"{folder}/ledger.db")
    shop = [sys.executable, str(Path(__file__).with_name("shop.py")), runs]
    options: dict[str, Any] = {
        "name": "shop",
        "ledger": holdfast.Ledger(store),
        "when_down": "wait",
    }
    async with holdfast.connect(shop, **options) as client:
        charge = guide["Payments"](client).charge
        report = {
            "paid": [await outcome(attempt("1", number=n), charge, 500) for n in (1, 2)],
            "another run": await outcome(attempt("1", run="run-2"), charge, 500),
            "refused": await outcome(attempt("2"), charge, "five"),
            "crashed": [await outcome(attempt("3", number=n), charge, 13) for n in (1, 2)],
            "cancelled": await cancelled(charge, Path(runs)),
        }
    print(json.dumps({**report, "runs": Path(runs).read_text().split()}))


asyncio.run(main(*sys.argv[1:4]))
