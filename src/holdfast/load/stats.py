"""Durations and failures of many calls, by tool and over time, in bounded memory. Pure."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, Final

from holdfast._core.bulk.outcomes import RowOutcome

STEP: Final = 1.05
"""Each class of durations is so many times the one before: a percentile is right to 5 %."""
SMALLEST: Final = 0.001
"""Milliseconds of the first class."""
SLICES: Final = 240
"""Most points of the plot."""
PERCENTILES: Final = (50, 90, 95, 99)


class Durations:
    """A histogram of milliseconds."""

    def __init__(self) -> None:
        self._classes: Counter[int] = Counter()
        self.count = 0
        self.largest = 0.0

    def add(self, ms: float) -> None:
        """Count a duration."""
        self._classes[max(0, math.ceil(math.log(max(ms, SMALLEST) / SMALLEST, STEP)))] += 1
        self.count += 1
        self.largest = max(self.largest, ms)

    def percentile(self, percent: float) -> float | None:
        """Return the milliseconds that so many percent of the calls did not exceed."""
        rank = max(1, math.ceil(self.count * percent / 100))
        for number in sorted(self._classes):
            rank -= self._classes[number]
            if rank <= 0:
                return min(SMALLEST * STEP**number, self.largest)
        return None


class Tally:
    """How the calls of one tool, or of one stretch of time, went."""

    def __init__(self) -> None:
        self.durations = Durations()
        """Of calls that were answered."""
        self.outcomes: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        """By kind: ``tool``, ``timeout``, ``transport`` and the others; unknown ones too."""

    def add(self, outcome: RowOutcome) -> None:
        """Count a call."""
        self.outcomes[outcome.outcome] += 1
        if isinstance(outcome.error, dict):
            self.failures[str(outcome.error.get("kind"))] += 1
        if outcome.ok or (isinstance(outcome.error, dict) and outcome.error.get("kind") == "tool"):
            self.durations.add(outcome.ms)

    @property
    def calls(self) -> int:
        return sum(self.outcomes.values())

    def facts(self) -> dict[str, Any]:
        """Return the numbers, for JSON."""
        spread = {f"p{number}": self.rounded(number) for number in PERCENTILES}
        return {
            "calls": self.calls,
            **{name: self.outcomes[name] for name in ("ok", "error", "unknown")},
            **spread,
            "max": round(self.durations.largest, 3) if self.durations.count else None,
            "failures": dict(self.failures.most_common()),
        }

    def rounded(self, percent: int) -> float | None:
        """Return a percentile, rounded."""
        value = self.durations.percentile(percent)
        return None if value is None else round(value, 3)


class LoadStats:
    """How a load test went.

    Args:
        seconds: How long it is to take: that decides the stretches of the plot.
    """

    def __init__(self, seconds: float) -> None:
        self.width = max(1.0, math.ceil(seconds / SLICES))
        """Seconds of one stretch."""
        self.tools: dict[str, Tally] = {}
        self.slices: dict[int, Tally] = {}
        self.total = Tally()
        self.elapsed = 0.0
        self.reconnects = 0

    def add(self, tool: str, outcome: RowOutcome, at: float) -> None:
        """Count a call that ended ``at`` seconds after the beginning."""
        slice_number = min(int(at / self.width), SLICES * 2)
        for tally in (
            self.total,
            self.tools.setdefault(tool, Tally()),
            self.slices.setdefault(slice_number, Tally()),
        ):
            tally.add(outcome)

    @property
    def rate(self) -> float:
        """Calls in a second."""
        return self.total.calls / self.elapsed if self.elapsed else 0.0

    def facts(self) -> dict[str, Any]:
        """Return everything, for JSON."""
        return {
            "seconds": round(self.elapsed, 3),
            "calls_per_second": round(self.rate, 1),
            "reconnects": self.reconnects,
            "total": self.total.facts(),
            "tools": {name: self.tools[name].facts() for name in sorted(self.tools)},
            "width": self.width,
            "slices": [
                {"at": number * self.width, **self.slices[number].facts()}
                for number in sorted(self.slices)
            ],
        }
