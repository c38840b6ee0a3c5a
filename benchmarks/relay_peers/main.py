"""Tries each relay between the same host and server, and writes the page.

``python -m benchmarks.relay_peers.main [--only TEXT] [--patience SECONDS]``; only a run of all
writes ``docs/reference/relay-peers.md``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from benchmarks.relay_peers import report
from benchmarks.relay_peers.relays import RELAYS, Relay, install
from benchmarks.relay_peers.things import THINGS
from tests.interop.install import Broken, NotHere

PATIENCE = 10.0
LONGEST = 600.0
"""Seconds for one relay; more than all things can take."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="relays whose title contains this")
    parser.add_argument("--patience", type=float, default=PATIENCE, help="seconds for each thing")
    return parser.parse_args()


def attempt(relay: Relay, patience: float) -> dict[str, str] | None:
    """Return what was lost of each thing; None: the relay cannot be had."""
    try:
        install(relay)
    except (NotHere, Broken) as reason:
        print(f"not tried: {relay.title}: {reason}", file=sys.stderr)
        return None
    try:
        return asyncio.run(asyncio.wait_for(relay.trial(patience), LONGEST))
    except TimeoutError:
        return dict.fromkeys(THINGS, "no connection in time")


def main() -> int:
    chosen = arguments()
    results: report.Outcomes = {}
    relays = [relay for relay in RELAYS if chosen.only in relay.title]
    for relay in relays:
        lost = attempt(relay, chosen.patience)
        results[report.key(relay)] = lost
        if lost is not None:
            print(report.line(relay, lost), flush=True)
    if not chosen.only and None not in results.values():
        report.write(results)
        print(f"written: {report.PAGE.name}")
    ours = [results[report.key(relay)] or {} for relay in relays if relay.is_ours]
    is_whole = all(report.passed(lost) == len(THINGS) for lost in ours)
    return 0 if is_whole and None not in results.values() else 1


if __name__ == "__main__":
    sys.exit(main())
