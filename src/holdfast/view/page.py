"""Build the page: one HTML file with an index of all rows, and their bodies packed in blocks.

The index is columns of 32-bit integers, so that the first paint has nothing to parse; strings are
numbered. Bodies are in gzip blocks of `BLOCK` rows, which the page opens when a row is looked at.
What the index has already is not packed a second time: `_without_envelope` says how.
Everything that came from a server is inside of text without markup (`holdfast.view.dense`): none of
it can become a part of the page itself.
"""

from __future__ import annotations

import gzip
from array import array
from base64 import b64encode
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import sha256
from importlib.resources import files
from sys import byteorder
from typing import Any, Final

import msgspec
from msgspec import UNSET

from holdfast.trace.format import Line, Reading
from holdfast.view.dense import dense
from holdfast.view.index import OUTCOMES, Index, Row

MOST_ROWS: Final = 2_500_000
"""Rows of a page: as many as all files of a rotated trace have, about 1 GB while it is built."""
BLOCK: Final = 512
"""Rows whose bodies are packed together."""
LEVEL: Final = 8
"""How hard gzip tries: beyond it a page takes longer to build and is hardly smaller."""
SCRIPTS: Final = (
    *("dom", "format", "model", "filter", "search", "lanes", "list", "tree", "detail", "stats"),
    "strip",
)
"""The modules of the page, in the order in which they are joined; `FILE` or `LIVE` follow."""
FILE: Final = ("app", "start")
LIVE: Final = ("schema", "fields", "groups", "form", "call", "questions", "app", "live")
KINDS: Final = (
    *("request", "result", "error", "notification", "outcome", "state", "stderr", "http", "junk"),
    *("login", "dropped", "check"),
)
_DIRECTIONS: Final = ("", ">", "<")
_LATE: Final = "late"


class Packer:
    """Collects the bodies of rows and packs them in blocks, while the next are collected."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        # zlib lets other threads run: rows are read on one core while two others pack.
        self._threads = ThreadPoolExecutor(2)
        self._packed: list[Future[bytes]] = []

    def add(self, line: Line) -> None:
        """Take the body of the next row."""
        self._bodies.append(_without_envelope(line))
        if len(self._bodies) == BLOCK:
            self._pack()

    def blocks(self) -> list[bytes]:
        """Pack what is left; return all blocks."""
        if self._bodies:
            self._pack()
        self._threads.shutdown()
        return [block.result() for block in self._packed]

    def _pack(self) -> None:
        joined = b"[" + b",".join(self._bodies) + b"]"
        self._packed.append(self._threads.submit(_gzipped, joined))
        self._bodies = []


def _gzipped(data: bytes) -> bytes:
    # Without a time in its header the same trace gives the same page.
    return gzip.compress(data, LEVEL, mtime=0)


def body_of(line: Line) -> bytes:
    """Return what the page shows of a line, as JSON: its message, or its other facts."""
    body = line.body  # A live page may forget it meanwhile, in another thread.
    if body is not UNSET:
        return bytes(body)
    facts: dict[str, Any] = {
        "text": line.text,
        "sidecar": line.sidecar,
        "status": line.status,
        "headers": line.headers,
        "count": line.count,
    }
    present = {name: value for name, value in facts.items() if value}
    return msgspec.json.encode(present) if present else b"null"


_MESSAGES: Final = frozenset({"request", "result", "error", "notification"})
_LARGEST: Final = 2**31
_EXACT: Final = 2**53
"""Integers up to here are exact in JavaScript."""


def _without_envelope(line: Line) -> bytes:
    """Return the body of a row without ``jsonrpc``, ``id`` and ``method``, which the index has.

    The page puts them back in front. Whatever does not begin by exactly these is packed as it is,
    inside a list, so that the page cannot take the one for the other.
    """
    body = body_of(line)
    if line.kind not in _MESSAGES or body == b"null":
        return body
    envelope = f'{{"jsonrpc":"2.0","id":{line.id},'.encode()
    if line.kind == "request":
        envelope += b'"method":' + msgspec.json.encode(line.method) + b","
    if isinstance(line.id, int) and 0 <= line.id < _LARGEST and body.startswith(envelope):
        return b"{" + body[len(envelope) :]
    return b"[" + body + b"]"


class Strings:
    """Numbers for strings; the page has each of them once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {"": 0}

    def __getitem__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def columns(rows: Sequence[Row], strings: Strings) -> dict[str, list[int]]:
    """Return the rows as columns of integers; the page has room for 32 bits of each.

    Times are in microseconds since the row before, other rows are given by their distance: small
    numbers pack well. `_SAME` stands for what the page finds in the row of the request or answer.
    """
    made: dict[str, list[int]] = {name: [] for name in COLUMNS}
    before = 0
    for number, row in enumerate(rows):
        at = round(row.t * 1e6)
        values = (
            at - before,
            _span(row, at, rows),
            strings[row.server],
            row.link,
            _DIRECTIONS.index(row.dir),
            KINDS.index(row.kind) if row.kind in KINDS else len(KINDS),
            strings[row.name],
            strings[row.method],
            _SAME if row.of >= 0 and row.id == rows[row.of].id else _id_number(row.id, strings),
            row.bytes,
            0 if row.of < 0 else number - row.of,
            0 if row.answer < 0 else row.answer - number,
            0 if row.late < 0 else row.late - number,
            len(OUTCOMES) if row.outcome == _LATE else OUTCOMES.index(row.outcome),
            strings[row.note],
        )
        before = at
        for column, value in zip(made.values(), values, strict=True):
            column.append(max(-_LARGEST, value))
    return made


def large_values(made: dict[str, list[int]]) -> dict[str, dict[str, int]]:
    """Cut what has no room in a column; return what it was, by column and row.

    A pause of 36 minutes has more microseconds than that.
    """
    large: dict[str, dict[str, int]] = {}
    for name, column in made.items():
        if column and max(column) >= _LARGEST - 1:
            beyond = {number: value for number, value in enumerate(column) if value >= _LARGEST - 1}
            large[name] = {str(number): min(value, _EXACT) for number, value in beyond.items()}
            for number in beyond:
                column[number] = _LARGEST - 1
    return large


COLUMNS: Final = (
    *("dt", "took", "server", "link", "dir", "kind", "name", "method", "id", "bytes", "of"),
    *("answer", "late", "outcome", "note"),
)


_SAME: Final = -_LARGEST


def _span(row: Row, at: int, rows: Sequence[Row]) -> int:
    """Return how long a request took; most end with their answer."""
    if row.end < 0:
        return -1
    if row.answer >= 0 and rows[row.answer].t == row.end:
        return _SAME
    return max(0, round(row.end * 1e6) - at)


def _id_number(wire_id: int | str | None, strings: Strings) -> int:
    """Return an id as a number: small integers as they are, others as strings, below zero."""
    if isinstance(wire_id, int) and 0 <= wire_id < _LARGEST:
        return wire_id
    return -1 if wire_id is None else -2 - strings[str(wire_id)]


def header(
    reading: Reading, index: Index, strings: Strings, large: dict[str, dict[str, int]]
) -> dict[str, Any]:
    """Return the facts of the whole trace that the page shows."""
    rows = index.rows
    return {
        "title": reading.name,
        "started": reading.header.started,
        "servers": _servers(reading, rows),
        "count": len(rows),
        "cut": reading.is_cut,
        "unclosed": len(reading.unclosed),
        "dropped": index.dropped,
        "skipped": reading.skipped,
        "unreadable": reading.unreadable,
        "leftOut": reading.left_out,
        "faults": {str(number): row.faults for number, row in enumerate(rows) if row.faults},
        "strings": list(strings.numbers),
        "columns": COLUMNS,
        "large": large,
        "kinds": KINDS,
        "outcomes": [*OUTCOMES, _LATE],
        "block": BLOCK,
    }


def _servers(reading: Reading, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return the servers in the order in which they appear, with what the header says of each."""
    names = dict.fromkeys([*reading.header.servers, *(row.server for row in rows if row.server)])
    return [server_facts(name, reading.header.servers.get(name, {})) for name in names]


def server_facts(name: str, facts: dict[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a server; whatever else a header has is left out."""
    return {"name": name, **{key: facts[key] for key in ("transport", "target") if key in facts}}


def build_page(reading: Reading, lines: Iterable[Line], most_rows: int = MOST_ROWS) -> str:
    """Return the page of a whole trace; it says how many lines it has no room for."""
    index, packer = Index(), Packer()
    for line in lines:
        if len(index.rows) == most_rows:
            reading.left_out += 1
            continue
        index.add(line)
        packer.add(line)
    blocks = packer.blocks()
    index.close()
    strings = Strings()
    made = columns(index.rows, strings)
    large = large_values(made)
    integers = array("i")
    for column in made.values():
        integers.extend(column)
    if byteorder == "big":
        integers.byteswap()
    data = {
        "facts": msgspec.json.encode(header(reading, index, strings, large)),
        "index": integers.tobytes(),
    }
    packed = {name: _gzipped(value) for name, value in data.items()}
    return render(packed, blocks)


def render(packed: dict[str, bytes], blocks: Sequence[bytes]) -> str:
    """Return the HTML of a page from a file."""
    data = [
        f'<script type="text/plain" id="{name}">{dense(value)}</script>'
        for name, value in packed.items()
    ]
    data += [f'<script type="text/plain" class="block">{dense(value)}</script>' for value in blocks]
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
        .replace("{{script}}", script)
        .replace("{{data}}", data)
    )


def policy_of(page: str) -> str:
    """Return the policy that a page has in its head."""
    return page.partition('Content-Security-Policy" content="')[2].partition('"')[0]


def asset(name: str) -> str:
    """Return one file of the page."""
    return files("holdfast.view").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}"
