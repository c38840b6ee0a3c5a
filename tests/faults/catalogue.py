"""Every misbehaviour of a stdio server that the client is tried against, as data.

    python -m tests.faults.catalogue          print the table
    python -m tests.faults.catalogue NAME     be that server

A row says what the server does (``does`` for people, ``rules`` for ``rogue.py``), how the
request that meets it may end (``ends``, the first being the best) and what the client is
good for afterwards (``after``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.faults.families.answers import answers, concurrency
from tests.faults.families.asks import asks
from tests.faults.families.content import lists, resources, results
from tests.faults.families.death import deaths
from tests.faults.families.encoding import batches, encodings, junk, notes
from tests.faults.families.handshake import handshakes
from tests.faults.families.pipes import writing
from tests.faults.families.probe import banners, probes
from tests.faults.families.progress import progressing
from tests.faults.families.sizes import sizes
from tests.faults.families.start import programs, starts
from tests.faults.families.stateless import stateless
from tests.faults.families.teardown import teardowns
from tests.faults.rows import Fault, in_folder

FAMILIES = (
    programs,
    starts,
    handshakes,
    probes,
    banners,
    answers,
    encodings,
    batches,
    junk,
    notes,
    results,
    sizes,
    progressing,
    writing,
    deaths,
    teardowns,
    asks,
    lists,
    stateless,
    resources,
    concurrency,
)


def catalogue() -> list[Fault]:
    """Every misbehaviour, in the order of its family."""
    return [fault for family in FAMILIES for fault in family()]


def table(faults: Iterable[Fault]) -> str:
    """The catalogue as Markdown."""
    head = "| misbehaviour | the server … | expected | requirements |\n|---|---|---|---|\n"
    rows = (
        f"| {fault.name} | {fault.does.replace('|', '/')} | {fault.expected} "
        f"| {', '.join(fault.reqs)} |\n"
        for fault in faults
    )
    return head + "".join(rows)


def main(arguments: list[str]) -> None:
    faults = catalogue()
    if not arguments:
        print(table(faults), end="")
        return
    chosen = next((fault for fault in faults if fault.name == arguments[0]), None)
    if chosen is None:
        sys.exit(f"no such misbehaviour: {arguments[0]}")
    argv = in_folder(chosen, Path.cwd()).argv()
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main(sys.argv[1:])
