"""Known vulnerabilities in what an installation brings along, by ``pip-audit``.

What is asked about is what is installed here for Holdfast and its extras, nothing of the tools.
A package that no service knows about is never taken for a clean one, although pip-audit itself
would: the exit status is 0 if all are clean, 1 if one is vulnerable, 2 if one was not audited.
``--if-reachable`` makes that last a warning, for machines that cannot reach the services.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeAlias

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.wheel import EXTRAS

INSTALLED: Final = EXTRAS - {"load"}
"""Extras that are installed here. Locust is not: whoever tests with it brings it along."""

SERVICES: Final = ("pypi", "osv")
"""Who is asked, in this order; the next is asked about what the last did not know."""
LONGEST: Final = 120.0

Pins: TypeAlias = dict[str, str]
Ask: TypeAlias = Callable[[str, Mapping[str, str]], dict[str, Any] | None]


@dataclass
class Verdict:
    """What came of an audit: vulnerabilities by package, and the packages nobody knew."""

    audited: int = 0
    vulnerable: dict[str, list[str]] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return 1 if self.vulnerable else 2 if self.unknown else 0


def installed(root: str = "holdfast", extras: Iterable[str] = INSTALLED) -> Pins:
    """What an installation of ``root`` brings along, with the versions that are here."""
    found: Pins = {}
    waiting = [(root, tuple(extras))]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        name, wanted = entry = waiting.pop()
        if entry in seen:
            continue
        seen.add(entry)
        distribution = metadata.distribution(name)
        found[canonicalize_name(name)] = distribution.version
        for text in distribution.requires or ():
            need = Requirement(text)
            if _applies(need, wanted):
                waiting.append((need.name, tuple(sorted(need.extras))))
    found.pop(canonicalize_name(root))
    return dict(sorted(found.items()))


def _applies(need: Requirement, extras: Iterable[str]) -> bool:
    marker = need.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def ask(service: str, pins: Mapping[str, str]) -> dict[str, Any] | None:
    """pip-audit's own report on some pins; None if the service cannot be reached."""
    with tempfile.TemporaryDirectory(prefix="holdfast-audit-") as folder:
        pinned = Path(folder) / "requirements.txt"
        pinned.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", service]
        command += ["--requirement", str(pinned), "--no-deps", "--disable-pip"]
        command += ["--format", "json", "--progress-spinner", "off"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            return None
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None
    return report


def audit(pins: Mapping[str, str], ask: Ask = ask) -> Verdict:
    """Ask one service after the other until every package is known."""
    verdict = Verdict()
    waiting = dict(pins)
    for service in SERVICES:
        report = ask(service, waiting) if waiting else None
        if report is not None:
            _take(report, waiting, verdict)
    for name, version in waiting.items():
        verdict.unknown[name] = version
    return verdict


def _take(report: dict[str, Any], waiting: Pins, verdict: Verdict) -> None:
    for entry in report["dependencies"]:
        name = canonicalize_name(entry["name"])
        if "skip_reason" in entry or waiting.pop(name, None) is None:
            continue
        verdict.audited += 1
        if entry["vulns"]:
            verdict.vulnerable[f"{name} {entry['version']}"] = [
                f"{one['id']} (fixed in: {', '.join(one['fix_versions']) or 'nothing yet'})"
                for one in entry["vulns"]
            ]


def told(verdict: Verdict) -> str:
    lines = [f"vulnerable: {name}: {'; '.join(ids)}" for name, ids in verdict.vulnerable.items()]
    if verdict.unknown:
        names = ", ".join(f"{name} {version}" for name, version in verdict.unknown.items())
        lines.append(f"NOT AUDITED: neither {' nor '.join(SERVICES)} answered for {names}")
    lines.append(f"{verdict.audited} audited, {len(verdict.vulnerable)} vulnerable")
    return "\n".join(lines)


def main(argv: list[str] | None = None, ask: Ask = ask) -> int:
    parser = argparse.ArgumentParser(prog="audit", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--if-reachable", action="store_true", help="what cannot be audited is only a warning"
    )
    options = parser.parse_args(argv)
    verdict = audit(installed(), ask)
    print(told(verdict))
    return 0 if verdict.status == 2 and options.if_reachable else verdict.status


if __name__ == "__main__":
    sys.exit(main())
