"""``holdfast load``: recorded calls, so many at once for so long, and how they went."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast._core import files
from holdfast.cli.app import YES, option, pairs
from holdfast.cli.approvals import approve_calls
from holdfast.cli.bulk_display import display
from holdfast.cli.output import Exit, Output
from holdfast.cli.progress import status
from holdfast.cli.target import ServerTarget, ServerVerb
from holdfast.cli.verbs.logs import FILL, path_of, value_of
from holdfast.cli.views import table
from holdfast.errors import ValidationError

if TYPE_CHECKING:
    from holdfast._core.bulk.outcomes import RowOutcome
    from holdfast.load.stats import LoadStats

UNITS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST: Final = 7 * 86_400.0


@click.command("load", cls=ServerVerb, takes="LOG")
@option("-j --jobs N", "Calls at once.", type=click.IntRange(1, 10_000), default=50)
@option("--for TIME", "How long: 30s, 2m, 1h.", "span", default="30s")
@option("--html FILE", "Write a page with a plot.")
@FILL
@YES
async def load(
    target: ServerTarget,
    log: str,
    *,
    jobs: int,
    span: str,
    html: str | None,
    fill: tuple[str, ...],
    yes: bool,
) -> int:
    """Make the calls of a log, or of a sequence, again and again, and measure.

    Every call is repeated as long as the test lasts. Before calls of tools that the server does not
    declare read-only it asks, or wants -y. Ctrl-C ends it with the report so far. Exits with 1 if
    any call failed.

    \b
    holdfast load git calls.jsonl -j 50 --for 2m --html load.html
    holdfast load calls.jsonl --rate 100/s --for 30s -- python server.py
    """
    from holdfast.calllog.replay import planned_calls
    from holdfast.load.run import run_load
    from holdfast.load.stats import LoadStats

    seconds = _seconds(span)
    path = path_of(log)
    values = {name: value_of(text) for name, text in pairs("--fill", fill).items()}
    confirm = None if yes else partial(approve_calls, file=str(path))
    target.options.setdefault("when_down", "wait")
    _check_page(html)
    rate = target.limits.get("rate")
    if rate is not None:
        target.limits["rate"] = None  # calls are begun at that rate, in the place of a limit
    async with target.client() as client:
        await client.open()
        calls = await planned_calls(client, path, fill=values, confirm=confirm)
        status.end()
        clock, stats = _Clock(seconds), LoadStats(seconds)
        title = f"{client.name}: {path.name}, {jobs} at once"
        try:
            with display(target.output, clock.counts, clock, client) as screen:

                def advance(stats: LoadStats, outcome: RowOutcome) -> None:
                    clock.counts[outcome.outcome] += 1
                    screen.advance()

                await run_load(
                    client,
                    calls,
                    jobs=jobs,
                    seconds=seconds,
                    on_outcome=advance,
                    stats=stats,
                    rate=rate,
                )
        except asyncio.CancelledError:
            _report(target.output, stats.facts(), html, title)
            raise
    facts = stats.facts()
    _report(target.output, facts, html, title)
    return Exit.OK if facts["total"]["ok"] == facts["total"]["calls"] else Exit.TOOL


def _report(output: Output, facts: dict[str, Any], html: str | None, title: str) -> None:
    """Show how the calls went. The page comes last: it may not be writable any more."""
    from holdfast.load.report import HEAD, rows_of, summary

    table(output, facts, HEAD, rows_of(facts), "The test", labelled=True)
    output.note(summary(facts))
    if html is not None:
        _write_page(html, facts, title)


class _Clock:
    """How much of the time is over."""

    def __init__(self, seconds: float) -> None:
        self.size: float | None = seconds
        self.counts = {"ok": 0, "error": 0, "unknown": 0}
        self._began = time.monotonic()

    @property
    def read(self) -> float:
        """Seconds that are over."""
        assert self.size is not None
        return min(time.monotonic() - self._began, self.size)


def _seconds(text: str) -> float:
    number, unit = (text[:-1], text[-1:]) if text[-1:].isalpha() else (text, "")
    try:
        seconds = float(number) * UNITS[unit]
    except (KeyError, ValueError):
        seconds = 0.0
    if not 0 < seconds <= LONGEST:
        raise click.UsageError(f"--for {text}: must be a time such as 30s, 2m or 1h.")
    return seconds


def _check_page(path: str | None) -> None:
    """Refuse a page that cannot be written before the test runs for its whole time."""
    if path is not None and os.path.isdir(path):
        raise ValidationError(f"--html {path}: is a folder")
    if path is not None and not os.path.isdir(os.path.dirname(path) or "."):
        raise ValidationError(f"--html {path}: there is no such folder")


def _write_page(path: str, facts: Mapping[str, Any], title: str) -> None:
    from holdfast.load.page import page

    try:
        files.write_atomic(path, page(dict(facts), title).encode())
    except OSError as error:
        raise ValidationError(f"{path}: {files.reason(error)}") from None
