"""A run, for people."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from examples.service.verdict import Evidence


def report(
    seen: Evidence,
    faults: Sequence[str],
    *,
    metrics: str,
    kills: Mapping[str, int],
    workers: int,
    callers: int,
) -> str:
    answered = {record.worker for record in seen.records if record.worker}
    rows = {
        "service": f"{workers} workers ({len(answered)} of them answered), {callers} callers",
        "killed": ", ".join(f"{name} {times} times" for name, times in kills.items()),
        "requests": _requests(seen),
        "orders": _orders(seen),
        "ledger": _ledger(seen),
        "cache": _cache(seen, metrics),
        "recovery": _recovery(seen),
        "written down": f"{len(seen.audit)} audit records, {len(seen.spans)} spans",
        "left over": f"{len(seen.left_over)} processes" if seen.left_over else "nothing",
    }
    table = [f"{name:13} {text}" for name, text in rows.items()]
    verdict = [f"VIOLATION: {fault}" for fault in faults] or ["every promise was kept"]
    return "\n".join([*table, "", *verdict])


def _requests(seen: Evidence) -> str:
    counts = Counter(record.outcome for record in seen.records)
    times = sorted(record.ended - record.began for record in seen.records) or [0.0]
    middle, slowest = times[len(times) // 2], times[-1]
    return (
        f"{len(seen.records)}: {counts['ok']} ok, {counts['refused']} refused, "
        f"{counts['unknown']} unknown, {counts['hung']} hung, {counts['broken']} broken; "
        f"median {middle * 1000:.0f} ms, slowest {slowest:.2f} s"
    )


def _orders(seen: Evidence) -> str:
    good, refused, unknown = (seen.orders(one) for one in ("ok", "refused", "unknown"))
    ran = sum(one in seen.executions for one in unknown)
    return (
        f"{len(good)} acknowledged, {len(refused)} refused, "
        f"{len(unknown)} unknown ({ran} had run, {len(unknown) - ran} had not)"
    )


def _ledger(seen: Evidence) -> str:
    rows, most = sum(seen.executions.values()), max(seen.executions.values(), default=0)
    return f"{rows} rows, no operation more than {most} time{'' if most == 1 else 's'}"


def _cache(seen: Evidence, metrics: str) -> str:
    items = [one for one in seen.records if one.kind == "item" and one.outcome == "ok"]
    stale = sum(record.stale for record in items)
    reads = sum(_values(metrics, "mcp_requests_total", 'method="resources/read"'))
    return f"{len(items)} items shown, {reads:.0f} reads asked for, {stale} shown as they were"


def _recovery(seen: Evidence) -> str:
    later = seen.afterwards
    good = sum(record.outcome == "ok" for record in later)
    return (
        f"{seen.recovery:.2f} s after the last blow ({seen.bound:.1f} s at most); "
        f"from then on {good} of {len(later)} ok"
    )


def _values(metrics: str, name: str, label: str) -> Iterator[float]:
    for labels, value in re.findall(rf"^{name}{{(.*)}} (\S+)$", metrics, re.M):
        if label in labels:
            yield float(value)
