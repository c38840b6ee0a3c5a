"""One run as a page of the documentation, and as text for the person who ran it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.peers import faults, plot
from benchmarks.peers.clients import CLIENTS, OURS, ROOT, Client
from benchmarks.peers.faults import FAULTS, Fault, Outcome
from benchmarks.peers.results import Measured, Results

PAGE: Final = ROOT / "docs" / "reference" / "peers.md"
PLOT: Final = PAGE.with_suffix(".svg")
FACTOR: Final = {"µs": 1e6, "ms": 1e3, "kB": 1e-3}

INTRODUCTION: Final = """\
# Peers side by side

The same work through Holdfast and through other clients of the protocol, in turns, in one run; and
what each of them does when a server misbehaves.
"""

MEASURED_BY: Final = """\
× is the time as a multiple of Holdfast's. This page and its plot are written by

```console
make bench-peers
```

which installs the others at pinned versions into `.cache/peers` (with `pip` and `npm`, over the
network) and takes under ten minutes; `make bench-peers ARGS=--quick` takes two and writes nothing
here. Every number behind this page is in `benchmarks/peers/results.json`.
"""

SPEED: Final = """\
## Speed and memory

Holdfast's column is its median. The others are ratios: 3.0 means that a client takes three times
as long as Holdfast, or three times the memory; below 1 it takes less. A ratio is the median over
the rounds of what was measured against Holdfast in the same round; in brackets are the lowest and
the highest round. **Ratios compare within this run alone, and the absolute numbers only show the
order of magnitude**: both change with the machine, the versions and the hour.
"""

HOW: Final = """\
## How it was measured

- Every measurement has a client process of its own, which warms up, then works for a fixed time.
  Within a round all clients do a row's work one after the other, each round in another order. A
  wrong answer makes the measurement fail.
- FastMCP is installed as `fastmcp-slim[client]`: the package that `fastmcp` of the same version is
  made of, without what only its server needs.
- Every client is used through its public names with its defaults, on the loop it comes with. Python
  clients have an environment of their own with what they depend on and nothing else, except
  Holdfast, which runs from this project's own.
- All rows are in the handshake era (2025-11-25): it is the one that every client here speaks.
  Holdfast, Python SDK 2 and FastMCP ask first whether a server knows the newer one, which is part
  of connecting. Holdfast remembers the answer within a process, so it asks once; that is a part of
  its lead in the row about connecting.
- On stdio the server is `benchmarks/echo.c`, over HTTP `benchmarks/http_server.py`: both do little,
  so that a row shows the client. With a server that works for a living all ratios are nearer 1.
- `as events` means that the server answers each call with an event stream instead of plain JSON.
- Import is timed inside a fresh process and ends when the class that makes a client is there;
  starting a process is timed from outside it. Python's bytecode was compiled before.
- Memory is what a process grows by, resident, from 20 open connections to 80, divided by 60; the
  servers' own memory is not in it. It is coarse: pages are counted, and what a runtime gives back
  in the meantime is taken off. 0 means that it could not be seen.
- The TypeScript client runs on another runtime. Its ratios say what a user gets, not what its code
  would do in Python; and the threads that help Node.js share the one CPU here, so that it would do
  better with several.
"""

FAULTS_INTRODUCTION: Final = """\
## Faults

One trial each, unless it says otherwise: not a statistic. The faults, and what counts as a
shortcoming, were chosen here, by the makers of one of the clients, after what users complain of.

The client opens a session, makes the call that goes wrong, makes another call on the same open
client (for up to 5 s, as a pause before a restart is fair), and closes; then processes are counted
that are still there. Python clients open, call and close in one task, as `async with` in a program
does. ✓ means: the call ended in time with an answer or an error and without much memory, the next
call worked, the close succeeded, nothing was left. Otherwise it says what was not so. Where the
next call fails, a new client would work: making it is then up to the application.
"""


def page(results: Results) -> str:
    parts = [
        INTRODUCTION,
        scores(results) if results.faults else "",
        MEASURED_BY,
        measured_on(results),
        SPEED,
        speed_table(results),
        f"![Ratios to Holdfast, one dot for each client and row]({PLOT.name})\n",
        better(results),
        FAULTS_INTRODUCTION,
        fault_summary(results),
        *(fault_details(fault, results) for fault in tried(results)),
        HOW,
    ]
    return "\n".join(part for part in parts if part)


def table(head: Iterable[str], rows: Iterable[Iterable[str]], align: str = "") -> str:
    heads = list(head)
    marks = [{"r": "---:", "c": ":-:"}.get(one, "---") for one in align.ljust(len(heads))]
    lines = [heads, marks, *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def present(results: Results) -> list[Client]:
    return [client for client in CLIENTS if client.name in results.versions]


# -- what was measured ---------------------------------------------------------------------------


def measured_on(results: Results) -> str:
    about = results.about
    rows = [
        [client.title, packages(client), results.versions[client.name], runtime(client, about)]
        for client in present(results)
    ]
    lines = [
        table(["client", "package", "version", "runs on"], rows),
        f"Measured on {about['machine']}; client and server {about['pinned']}; "
        f"{rounds(about['rounds'])} of about {about['seconds_each']:g} s for each client and row; "
        f"servers {about['server']} and {about['http']}; load at the start {about['load']:g}"
        f"{', so not idle: expect noise' if about['load'] > 0.3 else ''}.\n",
    ]
    lines += [f"{name} is missing: {why}.\n" for name, why in results.missing.items()]
    return "\n".join(lines)


def rounds(count: int) -> str:
    return "one round" if count == 1 else f"{count} rounds"


def packages(client: Client) -> str:
    if client is OURS:
        return "this project"
    names = (pin.replace("==", "@").rpartition("@")[0] for pin in client.pins)
    return ", ".join(f"`{name}`" for name in names)


def runtime(client: Client, about: dict[str, object]) -> str:
    return str(about["node" if client.source == "npm" else "python"])


# -- speed ---------------------------------------------------------------------------------------


def speed_table(results: Results) -> str:
    clients = present(results)
    head = ["work", *(client.title for client in clients)]
    rows = [[row.title, *(cell(row, client) for client in clients)] for row in results.rows]
    return table(head, rows, " " + "r" * len(clients))


def cell(row: Measured, client: Client) -> str:
    if client.name in row.failures:
        return f"failed: {row.failures[client.name]}".replace("|", "/").replace("\n", " ")
    if client is OURS:
        middle = row.middle(client.name)
        return "—" if middle is None else quantity(middle, row.unit)
    ratio = row.ratio(client.name)
    if ratio is None:
        return "—"
    if ratio.low == ratio.high:
        return short(ratio.middle)
    return f"{short(ratio.middle)} ({short(ratio.low)}–{short(ratio.high)})"


def quantity(value: float, unit: str) -> str:
    return f"{short(value * FACTOR[unit])} {unit}"


def short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1.95 else f"{value:.2f}"


FIRST: Final = ("sequential", "http", "cold")
"""The rows that the front page shows."""


def scores(results: Results) -> str:
    """Return the short table of the front page: faults survived, and some rows of speed."""
    clients = present(results)
    rows = [["faults survived", *(survived(results, client) for client in clients)]]
    for row in results.rows:
        if row.key in FIRST:
            ratios = [row.ratio(client.name) for client in clients if client is not OURS]
            shown = [f"{short(one.middle)}×" if one else "—" for one in ratios]
            rows.append([row.title, cell(row, OURS), *shown])
    head = ["", *(client.title for client in clients)]
    return table(head, rows, " " + "r" * len(clients))


def survived(results: Results, client: Client) -> str:
    good = sum(
        not faults.shortcomings(fault, results.faults[fault.key][client.name])
        for fault in tried(results)
    )
    return f"**{good} of {len(tried(results))}**"


# -- where others do better ----------------------------------------------------------------------


BEYOND = """\
Not measured here: authorization with OAuth, which all five have. Not in Holdfast:
servers written with the same library and run in the same process, as FastMCP and the
SDKs offer."""


def better(results: Results) -> str:
    found = [*faster(results), *steadier(results)]
    lines = found or [
        "In this run none was faster than Holdfast in any row, or did better with any fault."
    ]
    return "\n".join(["## Where a peer does better", "", *lines, "", BEYOND]) + "\n"


def faster(results: Results) -> Iterator[str]:
    for row in results.rows:
        for client in present(results):
            ratio = row.ratio(client.name) if client is not OURS else None
            if ratio is None or ratio.low >= 1:
                continue
            middle = f"{short(ratio.middle)} of what Holdfast takes"
            if ratio.middle < 1:
                yield f"- {row.title}: {client.title} takes {middle}."
            else:
                yield f"- {row.title}: {client.title} was ahead in some rounds (median {middle})."


def steadier(results: Results) -> Iterator[str]:
    for fault in tried(results):
        outcomes = results.faults[fault.key]
        ours = faults.shortcomings(fault, outcomes[OURS.name])
        others = [
            client.title
            for client in present(results)
            if client is not OURS
            and len(faults.shortcomings(fault, outcomes[client.name])) < len(ours)
        ]
        if others:
            yield f"- {capital(fault.title)}: {', '.join(others)}; Holdfast: {', '.join(ours)}."


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# -- faults --------------------------------------------------------------------------------------


def tried(results: Results) -> list[Fault]:
    return [fault for fault in FAULTS if fault.key in results.faults]


def fault_summary(results: Results) -> str:
    if not results.faults:
        return "Not tried in this run.\n"
    clients = present(results)
    rows = [
        [
            capital(fault.title),
            *(verdict(fault, results.faults[fault.key][client.name]) for client in clients),
        ]
        for fault in tried(results)
    ]
    clean = ["**without fault**", *(survived(results, client) for client in clients)]
    return table(["fault", *(client.title for client in clients)], [*rows, clean])


def verdict(fault: Fault, outcome: Outcome) -> str:
    return ", ".join(faults.shortcomings(fault, outcome)) or "✓"


def fault_details(fault: Fault, results: Results) -> str:
    head = ["client", "the call", "the next call", "close", "processes left"]
    rows = [
        [
            client.title,
            faults.call_in_words(outcome),
            faults.next_in_words(outcome),
            faults.close_in_words(outcome),
            faults.left_in_words(outcome),
        ]
        for client in present(results)
        for outcome in [results.faults[fault.key][client.name]]
    ]
    return "\n".join([f"### {capital(fault.title)}", "", fault.about, "", table(head, rows)])


# -- writing it ----------------------------------------------------------------------------------


def write(results: Results, target: Path = PAGE) -> None:
    target.write_text(page(results), encoding="utf-8")
    target.with_suffix(".svg").write_text(plot.svg(results), encoding="utf-8")


def text(results: Results) -> str:
    """For a terminal: the tables as they are, without the prose around them."""
    parts = [measured_on(results), speed_table(results), better(results)]
    if results.faults:
        parts += [fault_summary(results), *(fault_details(one, results) for one in tried(results))]
    return "\n".join(parts)
