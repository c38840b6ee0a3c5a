"""Writes docs/reference/real-servers.md from the catalogue and the names of the tests.

python -m tests.interop.page
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.interop.catalogue import SERVERS, Server
from tests.interop.install import PROJECT

HERE: Final = Path(__file__).parent
PAGE: Final = PROJECT / "docs" / "reference" / "real-servers.md"

INTRODUCTION: Final = """\
# Real servers

What Holdfast is tried against, besides servers of its own: programs that others wrote, installed
from the registries at exactly these versions. Each is started on stdio; some also behind a URL,
where `http` is Streamable HTTP and `sse` is HTTP+SSE of 2024-11-05. What is marked * is small
enough to be tried with every change; the second command tries all of it.

```console
make interop
make interop SERVERS=all
```

They are installed into `.cache/interop` when first needed, with `pip` and `npm`, which takes
the network; without it, or without Node.js, their tests are skipped and say so. The last five
are small scripts of ours, with one set of tools, on libraries that others wrote.

This page is written by `tests/interop/page.py` from what the tests check.
"""

CHAPTERS: Final = (
    ("test_every_server.py", "Tried with every server"),
    ("test_workshops.py", "Tried with every library"),
    ("test_remote.py", "Tried with every server behind a URL"),
    ("test_everything.py", "Tried with everything"),
    ("test_filesystem.py", "Tried with filesystem"),
    ("test_memory.py", "Tried with memory"),
    ("test_time.py", "Tried with time"),
    ("test_git.py", "Tried with git"),
    ("test_kubernetes.py", "Tried with kubernetes"),
    ("test_tasks.py", "Tried with servers that have tasks"),
    ("test_cold_start.py", "Tried with an empty cache"),
)

COLUMNS: Final = (
    "server",
    "package",
    "built with",
    "tried on",
    "agreed",
    "also taken, if pinned",
    "unknown tool",
)


def page() -> str:
    parts = [INTRODUCTION, table(), oddities()]
    parts += [chapter(title, HERE / name) for name, title in CHAPTERS]
    return "\n".join(parts)


def table() -> str:
    rule = "|---" * len(COLUMNS) + "|"
    return "\n".join([line(COLUMNS), rule, *map(_row, SERVERS)]) + "\n"


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _row(server: Server) -> str:
    agreed, *others = server.speaks
    refusal = "a result with `is_error`"
    if server.unknown_tool is not None:
        refusal = f"error {server.unknown_tool}"
    cells = [
        server.name,
        f"`{server.package}` {server.version}",
        server.built_with,
        ", ".join(way + ("*" if server.is_quick(way) else "") for way in server.ways),
        agreed,
        ", ".join(others) or "none",
        refusal,
    ]
    return line(cells)


def oddities() -> str:
    found = [f"- {server.name} {odd.text}." for server in SERVERS for odd in server.oddities]
    return "\n".join(["## Oddities met", "", *found]) + "\n"


def chapter(title: str, module: Path) -> str:
    """The tests' names are sentences."""
    sentences = [f"- {sentence(name)}" for name in names_in(module)]
    return "\n".join([f"## {title}", "", *sentences]) + "\n"


def names_in(module: Path) -> Iterator[str]:
    text = module.read_text(encoding="utf-8")
    yield from re.findall(r"^(?:async )?def test_(\w+)", text, re.M)


def sentence(name: str) -> str:
    words = re.sub("_s(?=_|$)", "'s", name).replace("_", " ")
    return f"{words[0].upper()}{words[1:]}."


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
