"""The numbers and outcomes of one run, as they are kept in results.json."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from benchmarks.peers.clients import OURS
from benchmarks.peers.faults import Outcome

KEPT: Final = Path(__file__).resolve().with_name("results.json")


@dataclass(frozen=True)
class Ratio:
    """How a client's time compares with ours: the median of the rounds, and the outermost two."""

    middle: float
    low: float
    high: float


@dataclass
class Measured:
    """One row: for each client its value of each round, in seconds or bytes."""

    key: str
    title: str
    unit: str
    values: dict[str, list[float | None]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, client: str, value: float | None) -> None:
        self.values.setdefault(client, []).append(value)

    def of(self, client: str) -> list[float]:
        return [value for value in self.values.get(client, []) if value is not None]

    def middle(self, client: str) -> float | None:
        values = self.of(client)
        return statistics.median(values) if values else None

    def ratio(self, client: str) -> Ratio | None:
        """Each round's own ratio: a machine that slows down slows both sides of it."""
        pairs = zip(self.values.get(client, []), self.values.get(OURS.name, []), strict=False)
        # Memory is counted in pages: over few connections the growth can be none.
        ratios = [theirs / ours for theirs, ours in pairs if theirs is not None and ours]
        if not ratios:
            return None
        return Ratio(statistics.median(ratios), min(ratios), max(ratios))


@dataclass
class Results:
    """One run."""

    about: dict[str, Any]
    versions: dict[str, str]
    missing: dict[str, str] = field(default_factory=dict)
    rows: list[Measured] = field(default_factory=list)
    faults: dict[str, dict[str, Outcome]] = field(default_factory=dict)

    def write(self, path: Path = KEPT) -> None:
        path.write_text(json.dumps(rounded(asdict(self)), indent=1) + "\n", encoding="utf-8")


def read(path: Path = KEPT) -> Results:
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Results(
        about=kept["about"],
        versions=kept["versions"],
        missing=kept["missing"],
        rows=[Measured(**row) for row in kept["rows"]],
        faults={
            key: {name: Outcome(**known(outcome)) for name, outcome in outcomes.items()}
            for key, outcomes in kept["faults"].items()
        },
    )


def known(kept: dict[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(Outcome)}
    return {name: value for name, value in kept.items() if name in names}


def rounded(value: Any) -> Any:
    """Six digits of each number are more than it is worth."""
    match value:
        case float():
            return float(f"{value:.6g}")
        case dict():
            return {key: rounded(one) for key, one in value.items()}
        case list():
            return [rounded(one) for one in value]
    return value
