"""Where bytes to try come from: the corpus, pieces of real traffic in any order, and chance."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hypothesis import strategies as st

CORPUS: Final = Path(__file__).parent / "corpus"

PIECES: Final = (
    b'{"jsonrpc":"2.0",',
    b'"id":1,',
    b'"id":2}',
    b'"id":"1",',
    b'"id":null,',
    b'"id":1.0,',
    b'"id":18446744073709551616,',
    b'"result":{}}',
    b'"result":{"content":[]}}',
    b'"result":null}',
    b'"error":{"code":-32601,"message":"no"}}',
    b'"error":null,',
    b'"method":"notifications/progress","params":{"progressToken":1,"progress":1}}',
    b'"method":"notifications/cancelled","params":{"requestId":1}}',
    b'"method":"ping"}',
    b'"method":"tools/list_changed"',
    b'"params":[1,2]}',
    b'{"jsonrpc":"2.0","id":3,"result":{}}',
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b'"\\ud800"',
    b"1e999",
    b"NaN",
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"data: ",
    b"data:",
    b"data",
    b"event: message\n",
    b"event: ping\n",
    b"id: 7\n",
    b"id: a\0b\n",
    b"retry: 100\n",
    b": comment\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b" ",
    b"x" * 20,
    b"[" * 200,
)

_heads = st.integers(0, 8).flatmap(
    lambda count: st.binary(min_size=count, max_size=count).map(bytes([count]).__add__)
)
_traffic = st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=24).map(b"".join)


def corpus(target: str) -> list[Path]:
    return sorted(path for path in (CORPUS / target).iterdir() if path.is_file())


def inputs(target: str) -> st.SearchStrategy[bytes]:
    """Traffic in pieces, chance, and the corpus with something put in, left out or put after."""
    known = st.sampled_from([path.read_bytes() for path in corpus(target)])
    fresh = st.tuples(_heads, _traffic).map(b"".join)
    return fresh | st.tuples(known, st.integers(0, 400), _traffic, st.integers(0, 8)).map(_changed)


def _changed(parts: tuple[bytes, int, bytes, int]) -> bytes:
    known, place, put, left_out = parts
    return known[:place] + put + known[place + left_out :]
