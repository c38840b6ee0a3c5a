"""What must be true after a run, whatever was killed in it. Nothing here knows a process."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from examples.service.traffic import SECRET, Record

OUTCOMES: Final = ("ok", "refused", "unknown")
"""What a caller may be told."""


@dataclass
class Evidence:
    """All that was seen of a run."""

    records: Sequence[Record]
    executions: Mapping[str, int]
    """From the ledger's book itself: how often each operation ran."""
    audit: Sequence[str]
    """The lines of all workers."""
    spans: Sequence[str]
    struck: float
    """When the last blow fell, the ledger being up again, on the clock of the records."""
    steady: float | None
    """When every caller had got what it wanted for a while; None: never."""
    bound: float
    """Seconds that may lie between the two."""
    left_over: Mapping[int, str] = field(default_factory=dict)

    def orders(self, outcome: str) -> list[str]:
        return [
            record.operation
            for record in self.records
            if record.kind == "order" and record.outcome == outcome
        ]

    @property
    def recovery(self) -> float:
        """Seconds from the last blow to the end of the last request that failed."""
        failed = [one.ended for one in self.records if one.outcome != "ok"]
        return max(0.0, max(failed, default=0.0) - self.struck)

    @property
    def afterwards(self) -> list[Record]:
        """The requests that began when all was well again."""
        if self.steady is None:
            return []
        return [record for record in self.records if record.began > self.steady]


def violations(seen: Evidence) -> list[str]:
    """Each promise that was not kept, in words; the first few cases of each."""
    return [
        *_answers(seen),
        *_writes(seen),
        *_recovery(seen),
        *_audit(seen),
        *_cases("processes left over", (f"{pid}: {what}" for pid, what in seen.left_over.items())),
    ]


def _answers(seen: Evidence) -> Iterator[str]:
    for outcome, words in (("hung", "requests without an answer"), ("broken", "broken answers")):
        yield from _cases(words, (one.detail for one in seen.records if one.outcome == outcome))


def _writes(seen: Evidence) -> Iterator[str]:
    ran = seen.executions
    asked = {record.operation for record in seen.records if record.kind == "order"}
    twice = (one for one in ran if ran[one] > 1)
    missing = (one for one in seen.orders("ok") if one not in ran)
    yield from _cases("operations that ran twice", twice)
    yield from _cases("acknowledged and not written", missing)
    yield from _cases("refused and written all the same", ran.keys() & seen.orders("refused"))
    yield from _cases("written and never asked for", ran.keys() - asked)


def _recovery(seen: Evidence) -> Iterator[str]:
    if seen.steady is None:
        yield "no recovery: requests still failed when the run was ended"
    elif seen.recovery > seen.bound:
        yield f"recovery took {seen.recovery:.1f} s, {seen.bound:.1f} s at most"
    failed = (one.detail for one in seen.afterwards if one.outcome != "ok")
    yield from _cases("failures after the recovery", failed)


def _audit(seen: Evidence) -> Iterator[str]:
    """Every order has one record, it tells what the caller was told, and it tells no secret."""
    records: list[dict[str, Any]] = [json.loads(line) for line in seen.audit]
    orders = [one for one in records if one["tool"] == "record_order"]
    counts = Counter(one["arguments"]["operation"] for one in orders)
    told = {one["arguments"]["operation"]: _told(one) for one in orders}
    answered = [one for one in seen.records if one.kind == "order" and one.outcome in OUTCOMES]
    miscounted = (one for one in answered if counts[one.operation] != 1)
    yield from _cases(
        "orders without exactly one audit record",
        (f"{one.operation} has {counts[one.operation]}" for one in miscounted),
    )
    yield from _cases(
        "orders that ended otherwise in the audit",
        (
            f"{one.operation}: the caller was told {one.outcome}, the audit {said}"
            for one in answered
            if (said := told.get(one.operation, one.outcome)) != one.outcome
        ),
    )
    yield from _cases("secrets told", (one for one in (*seen.audit, *seen.spans) if SECRET in one))


def _told(record: Mapping[str, Any]) -> str:
    if record["outcome"] == "ok":
        return "ok"
    return "unknown" if record["outcome_unknown"] else "refused"


def _cases(what: str, found: Iterable[str], most: int = 3) -> Iterator[str]:
    cases = list(found)
    if cases:
        more = f" and {len(cases) - most} more" if len(cases) > most else ""
        yield f"{len(cases)} {what}: {'; '.join(cases[:most])}{more}"
