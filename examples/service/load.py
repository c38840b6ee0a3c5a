"""The load test: callers, and somebody who kills the servers meanwhile.

    python -m examples.service.load --seconds 15

It starts everything on loopback and ends with 1 if a promise was not kept: no hung request, no
write that ran twice, full recovery, no process left over.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp

from examples.service.ledger import Book
from examples.service.processes import GLANCE, Ledger, Run, Web
from examples.service.report import report
from examples.service.settings import Settings
from examples.service.traffic import Traffic
from examples.service.verdict import Evidence, violations

ROUNDS: Final = 3
"""Rounds of each caller that must go well for all to be well."""
DOWN: Final = 0.3
"""Seconds for which a killed ledger stays away."""
PAUSE: Final = 0.3
"""Seconds between two blows."""
INVENTORY: Final = "examples.service.inventory"


@dataclass(frozen=True)
class Options:
    seconds: float = 15.0
    callers: int = 12
    workers: int = 2
    timeout: float = Settings.timeout

    @property
    def patience(self) -> float:
        """A call may need the list of tools first; what takes longer than both has hung."""
        return 2 * self.timeout + 5

    @property
    def bound(self) -> float:
        """The longest pause of the backoff with its jitter, and one connection."""
        return 1.2 * Settings.longest_pause + self.timeout


@dataclass
class Chaos:
    """Kills: one inventory, the ledger, every inventory, all of them, and again."""

    run: Run
    ledger: Ledger
    kills: Counter[str] = field(default_factory=Counter)

    async def rage(self, seconds: float) -> None:
        """For so long, but each kind of blow at least once.

        At the end the ledger is up, and every inventory has just been killed.
        """
        until = time.monotonic() + seconds
        blows = (self._one, self._ledger, self._every, self._all)
        for number, blow in enumerate(itertools.cycle(blows)):
            if number >= len(blows) and time.monotonic() >= until:
                break
            await asyncio.sleep(PAUSE)
            await blow()
        await asyncio.sleep(PAUSE)
        await self._every()

    async def _one(self) -> None:
        self._inventory(1)

    async def _every(self) -> None:
        self._inventory(None)

    async def _all(self) -> None:
        self._inventory(None)
        await self._ledger()

    def _inventory(self, most: int | None) -> None:
        self.kills["inventory"] += self.run.kill(INVENTORY, most)

    async def _ledger(self) -> None:
        await self.ledger.stop(signal.SIGKILL)
        self.kills["ledger"] += 1
        await asyncio.sleep(DOWN)
        await self.ledger.start()


async def perform(options: Options, folder: Path) -> int:
    """One run; the exit code."""
    run = Run(folder)
    ledger = Ledger(run)
    web = Web(run, ledger.url, options.workers, options.timeout)
    chaos = Chaos(run, ledger)
    traffic = Traffic(web.url, options.callers, options.patience)
    try:
        await ledger.start()
        await web.start()
        struck, steady = await _under_load(traffic, chaos, options)
        metrics = await _metrics(web.url, options.workers)
        await web.stop()
        await ledger.stop()
        left_over = await run.left_over()
    finally:
        run.kill()
    evidence = Evidence(
        traffic.records,
        _executions(ledger.database),
        _lines(folder, "audit-*.jsonl"),
        _lines(folder, "spans-*.jsonl"),
        struck,
        steady,
        options.bound,
        left_over,
    )
    faults = violations(evidence)
    print(
        report(
            evidence,
            faults,
            metrics=metrics,
            kills=chaos.kills,
            workers=options.workers,
            callers=options.callers,
        )
    )
    if faults and run.output.stat().st_size:
        print("\nwhat the processes said:\n" + run.output.read_text(errors="replace")[-4000:])
    return 1 if faults else 0


async def _under_load(
    traffic: Traffic, chaos: Chaos, options: Options
) -> tuple[float, float | None]:
    """Callers before, during and after. When the last blow fell, and when all was well again."""
    calling = asyncio.create_task(traffic.run())
    try:
        if not await traffic.steady(1, options.patience):
            raise RuntimeError(f"the service does not work: {traffic.records[-1:]}")
        await chaos.rage(options.seconds)
        struck = time.monotonic()
        well = await traffic.steady(ROUNDS, options.patience + options.bound)
        steady = time.monotonic() if well else None
        if well:
            await traffic.steady(ROUNDS, options.patience)
    finally:
        traffic.stop()
        await calling
    return struck, steady


async def _metrics(url: str, workers: int) -> str:
    """The numbers of each worker: asked for until all have answered, or it takes too long."""
    found: dict[str, str] = {}
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(url, connector=connector) as http:

        async def ask() -> None:
            async with http.get("/metrics") as response:
                found[response.headers["X-Worker"]] = await response.text()

        for _ in range(50):
            await asyncio.gather(*(ask() for _ in range(4 * workers)))
            if len(found) >= workers:
                break
            await asyncio.sleep(GLANCE)
    return "".join(found.values())


def _executions(database: Path) -> dict[str, int]:
    book = Book(database)
    try:
        return book.count()
    finally:
        book.close()


def _lines(folder: Path, pattern: str) -> list[str]:
    return [line for path in folder.glob(pattern) for line in path.read_text().splitlines()]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=Options.seconds, help="of killing")
    parser.add_argument("--callers", type=int, default=Options.callers, help="at once")
    parser.add_argument("--workers", type=int, default=Options.workers, help="of the service")
    parser.add_argument(
        "--timeout", type=float, default=Options.timeout, help="seconds for a call of the service"
    )
    options = Options(**vars(parser.parse_args(arguments)))
    with tempfile.TemporaryDirectory(prefix="service-") as folder:
        return asyncio.run(perform(options, Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
