"""Build the page: one HTML file with an index of all rows, and their bodies packed in blocks.

The index is columns of 32-bit integers, so that the first paint has nothing to parse; strings are
numbered. Bodies are in gzip blocks of `BLOCK` rows, which the page opens when a row is looked at.
Everything that came from a server is inside base64: none of it can become markup of the page.
"""

from __future__ import annotations

import gzip
from array import array
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from sys import byteorder
from typing import Any, Final

import msgspec
from msgspec import UNSET

from holdfast.trace.format import Line, Reading
from holdfast.view.index import OUTCOMES, Index, Row

BLOCK: Final = 256
"""Rows whose bodies are packed together."""
LEVEL: Final = 8
"""How hard gzip tries: beyond it a page takes longer to build and is hardly smaller."""
SCRIPTS: Final = (
    *("dom", "format", "model", "filter", "search", "lanes", "list", "tree", "detail", "stats"),
    "strip",
)
"""The modules of the page, in the order in which they are joined; `FILE` or `LIVE` follow."""
FILE: Final = ("app", "start")
LIVE: Final = ("form", "call", "questions", "app", "live")
KINDS: Final = (
    *("request", "result", "error", "notification", "outcome", "state", "stderr", "http", "junk"),
    *("login", "dropped", "check"),
)
_DIRECTIONS: Final = ("", ">", "<")
_LATE: Final = "late"


class Packer:
    """Collects the bodies of rows and packs them in blocks."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self._bodies: list[bytes] = []

    def add(self, line: Line) -> None:
        """Take the body of the next row."""
        self._bodies.append(body_of(line))
        if len(self._bodies) == BLOCK:
            self.close()

    def close(self) -> None:
        """Pack what is left."""
        if self._bodies:
            # Without a time in its header the same trace gives the same page.
            joined = b"[" + b",".join(self._bodies) + b"]"
            self.blocks.append(gzip.compress(joined, LEVEL, mtime=0))
            self._bodies = []


def body_of(line: Line) -> bytes:
    """Return what the page shows of a line, as JSON: its message, or its other facts."""
    if line.body is not UNSET:
        return bytes(line.body)
    facts: dict[str, Any] = {
        "text": line.text,
        "sidecar": line.sidecar,
        "status": line.status,
        "headers": line.headers,
        "count": line.count,
    }
    present = {name: value for name, value in facts.items() if value}
    return msgspec.json.encode(present) if present else b"null"


class Strings:
    """Numbers for strings; the page has each of them once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def columns(rows: Sequence[Row], strings: Strings) -> dict[str, list[int]]:
    """Return the rows as columns of integers. Times are in microseconds since the row before."""
    made: dict[str, list[int]] = {name: [] for name in COLUMNS}
    before = 0
    for row in rows:
        at = round(row.t * 1e6)
        values = (
            at - before,
            -1 if row.end < 0 else round(row.end * 1e6) - at,
            strings[row.server],
            row.link,
            _DIRECTIONS.index(row.dir),
            KINDS.index(row.kind) if row.kind in KINDS else len(KINDS),
            strings[row.name],
            strings[row.method],
            _id_number(row.id, strings),
            row.bytes,
            row.of,
            row.answer,
            row.late,
            len(OUTCOMES) if row.outcome == _LATE else OUTCOMES.index(row.outcome),
            strings[row.note],
        )
        before = at
        for column, value in zip(made.values(), values, strict=True):
            column.append(max(-(2**31), min(value, 2**31 - 1)))
    return made


COLUMNS: Final = (
    *("dt", "took", "server", "link", "dir", "kind", "name", "method", "id", "bytes", "of"),
    *("answer", "late", "outcome", "note"),
)


def _id_number(wire_id: int | str | None, strings: Strings) -> int:
    """Return an id as a number: small integers as they are, others as strings, below zero."""
    if isinstance(wire_id, int) and 0 <= wire_id < 2**31:
        return wire_id
    return -1 if wire_id is None else -2 - strings[str(wire_id)]


def header(reading: Reading, index: Index, strings: Strings) -> dict[str, Any]:
    """Return the facts of the whole trace that the page shows."""
    rows = index.rows
    return {
        "title": reading.name,
        "started": reading.header.started,
        "servers": _servers(reading, rows),
        "count": len(rows),
        "cut": reading.is_cut,
        "dropped": index.dropped,
        "skipped": reading.skipped,
        "unreadable": reading.unreadable,
        "faults": {str(number): row.faults for number, row in enumerate(rows) if row.faults},
        "strings": list(strings.numbers),
        "columns": COLUMNS,
        "kinds": KINDS,
        "outcomes": [*OUTCOMES, _LATE],
        "block": BLOCK,
    }


def _servers(reading: Reading, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the servers in the order in which they appear, with what the header says of each."""
    names = dict.fromkeys([*reading.header.servers, *(row.server for row in rows if row.server)])
    return [{"name": name, **reading.header.servers.get(name, {})} for name in names]


def build_page(reading: Reading, lines: Iterable[Line]) -> str:
    """Return the page of a whole trace."""
    index, packer = Index(), Packer()
    for line in lines:
        index.add(line)
        packer.add(line)
    packer.close()
    index.close()
    strings = Strings()
    made = columns(index.rows, strings)
    integers = array("i")
    for column in made.values():
        integers.extend(column)
    if byteorder == "big":
        integers.byteswap()
    data = {
        "facts": msgspec.json.encode(header(reading, index, strings)),
        "index": integers.tobytes(),
    }
    packed = {name: gzip.compress(value, LEVEL, mtime=0) for name, value in data.items()}
    return render(packed, packer.blocks)


def render(packed: dict[str, bytes], blocks: Sequence[bytes]) -> str:
    """Return the HTML of a page from a file."""
    data = [
        f'<script type="text/plain" id="{name}">{_text(value)}</script>'
        for name, value in packed.items()
    ]
    data += [f'<script type="text/plain" class="block">{_text(value)}</script>' for value in blocks]
    return _joined((*SCRIPTS, *FILE), "\n".join(data))


def live_page() -> str:
    """Return the HTML of the page that follows a run: the same, and forms to call tools by."""
    return _joined((*SCRIPTS, *LIVE), "", connect="connect-src 'self'; ")


def _joined(names: Iterable[str], data: str, *, connect: str = "") -> str:
    """Return the parts of a page joined, with the hashes of its policy."""
    style = asset("page.css")
    script = "".join(
        ['"use strict";\n', *(f"/* {name} */\n{asset(f'{name}.js')}" for name in names)]
    )
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"img-src data: blob:; media-src blob:; {connect}base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return (
        asset("page.html")
        .replace("{{policy}}", policy)
        .replace("{{style}}", style)
        .replace("{{data}}", data)
        .replace("{{script}}", script)
    )


def policy_of(page: str) -> str:
    """Return the policy that a page has in its head."""
    return page.partition('Content-Security-Policy" content="')[2].partition('"')[0]


def asset(name: str) -> str:
    """Return one file of the page."""
    return files("holdfast.view").joinpath("assets", name).read_text(encoding="utf-8")


def _text(value: bytes) -> str:
    return b64encode(value).decode("ascii")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}"
