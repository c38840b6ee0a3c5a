"""The figures of the page *Evidence*: read from the pages that their commands write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"


def figures(docs: Path = DOCS) -> dict[str, str]:
    """Return each figure by the name that the page asks for it with.

    A page that no longer has its figure is an error here, so that the site is not built without.
    """
    (runs,) = re.findall(r"All (\d+) runs pass", _read(docs, "reference/conformance.md"))
    finished, others = _frameworks(_read(docs, "reference/frameworks.md"))
    speed = _read(docs, "reference/speed.md")
    return {
        "conformance-runs": runs,
        "real-servers": str(len(_rows(_read(docs, "reference/real-servers.md"))) - 1),
        "frameworks-finished": finished,
        "frameworks-others": others,
        "cost-stdio": _measured(speed, "sequential"),
        "cost-http": _measured(speed, "http-json"),
        "cost-help": _measured(speed, "help"),
        "promises": str(len(re.findall(r"^\| \w+ \| ✓ \|", _read(docs, "requirements.md"), re.M))),
        "rough-edges": str(len(re.findall(r"^- ", _read(docs, "rough-edges.md"), re.M))),
        "decisions": str(len(list((docs / "design").glob("*.md"))) - 1),
    }


def _read(docs: Path, page: str) -> str:
    return (docs / page).read_text(encoding="utf-8")


def _rows(text: str) -> list[str]:
    """Return the rows of the first table, its head included."""
    table = re.findall(r"(?:^\|.*\n)+", text, re.M)[0]
    return [row for row in table.splitlines() if not row.startswith("|---")]


def _frameworks(text: str) -> tuple[str, str]:
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in _rows(text)[1:]]
    ours = [run for _, client, run, *_ in cells if client == "Holdfast"]
    theirs = [run for _, client, run, *_ in cells if client != "Holdfast"]
    first, second = (f"{runs.count('finished')} of {len(runs)}" for runs in (ours, theirs))
    return first, second


def _measured(text: str, row: str) -> str:
    """Return what was measured in a row, in the handshake era where there are two."""
    ((figure, _),) = re.findall(rf"^\| `{row}` \|[^|]*\|[^|]*\|[^|]*\| ([\d.]+)( /|) ", text, re.M)
    return str(figure)
