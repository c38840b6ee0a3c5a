"""What came of it, in words: for the terminal, and as a page of the documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from benchmarks.relay_peers.relays import RELAYS, Relay
from benchmarks.relay_peers.things import THINGS

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "relay-peers.md"
REVISIONS: Final = {"handshake": "2025-11-25", "stateless": "2026-07-28"}

Outcomes = dict[str, Any]
"""By the key of a relay: what was lost of each thing, or nothing; or None: not tried."""


def key(relay: Relay) -> str:
    return f"{relay.title} {relay.host} {relay.server}"


def passed(lost: dict[str, str]) -> int:
    return sum(not reason for reason in lost.values())


def line(relay: Relay, lost: dict[str, str]) -> str:
    """Return one row of the table."""
    eras = f"{REVISIONS[relay.host]} | {REVISIONS[relay.server]}"
    names = [title for title, reason in lost.items() if reason]
    shown = "everything" if len(names) == len(THINGS) else ", ".join(names)
    return f"| {relay.title} | {eras} | {passed(lost)} | {shown} |"


def table(results: Outcomes) -> str:
    rows = ["| between them | host | server | pass | lost |", "|---|---|---|---:|---|"]
    rows += [line(relay, results[key(relay)]) for relay in RELAYS if results.get(key(relay))]
    return "\n".join(rows)


def reasons(results: Outcomes) -> str:
    """Return, for each relay that lost something, what came instead."""
    parts: list[str] = []
    for relay in RELAYS:
        lost = results.get(key(relay)) or {}
        entries = [f"| {title} | {_cell(reason)} |" for title, reason in lost.items() if reason]
        if entries:
            eras = f"host {REVISIONS[relay.host]}, server {REVISIONS[relay.server]}"
            head = [f"### {relay.title}, {eras}", "", "| thing | what came |", "|---|---|"]
            parts.append("\n".join([*head, *entries]))
    return "\n\n".join(parts)


def _cell(reason: str) -> str:
    text = reason.replace("|", "\\|").replace("`", "'").replace("\n", " ")
    return f"`{text}`"


def page(results: Outcomes) -> str:
    return _PAGE.format(
        count=len(THINGS),
        things=", ".join(THINGS),
        table=table(results),
        reasons=reasons(results),
    )


_PAGE: Final = """\
# Relays side by side

One host and one server, {count} things that pass between them, and each relay in the middle.
This page is written by

```console
make relay-peers
```

which installs the relays of others at pinned versions into `.cache/relay-peers` (with `pip` and
`npm`, over the network) and takes a few minutes. It fails if a thing is lost through Holdfast.

{table}

The {count} things: {things}.

The host and the server are scripts of plain JSON-RPC (`benchmarks/relay_peers/`), of one era each;
neither uses Holdfast. The things are tried in this order on one connection, once, with ten seconds
for each: not a statistic. What a relay adds is no loss; what it leaves out or changes is. A host
cancels a call by saying so and, over HTTP, by closing the response too; `supergateway --stateful`
passes 22 where the host only says so. A question counts only if the tool ran once. A death may be
told by any error, also of the tool, or by the end of the host's own connection; the host then
starts again what it had started, but not a relay that is reached over HTTP. mcp-proxy and
supergateway serve HTTP, FastMCP's proxy stdio, Holdfast both.

The things, and what counts as lost, were chosen by the makers of one of the relays.

## What came instead

{reasons}
"""


def write(results: Outcomes) -> None:
    PAGE.write_text(page(results), encoding="utf-8")
