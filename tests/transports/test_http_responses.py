"""Compressed bodies: every cut, every format that servers send, a bounded piece at a time."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.transports.http_responses import PIECE, BadBody, Inflater
from tests.wire.test_framing import cut


def bare(data: bytes) -> bytes:
    deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflate.compress(data) + deflate.flush()


def gunzipped(*pieces: bytes, coding: str = "gzip") -> bytes:
    inflater = Inflater(coding)
    found = b"".join(part for piece in pieces for part in inflater.feed(piece))
    inflater.close()
    return found


FORMS = [
    ("gzip", gzip.compress),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", bare),
]


@pytest.mark.req("X2", "V1")
@given(
    st.binary(max_size=2000),
    st.sampled_from(FORMS),
    st.lists(st.integers(0, 10_000), max_size=20),
)
def test_any_cut_of_any_form_gives_the_same_body(
    data: bytes, form: tuple[str, object], places: list[int]
) -> None:
    coding, compress = form
    packed = compress(data)  # type: ignore[operator]
    assert gunzipped(*cut(packed, places), coding=coding) == data


@pytest.mark.req("X2")
def test_several_gzip_bodies_in_a_row_are_one() -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"") + gzip.compress(b"two")
    assert gunzipped(packed) == b"one two"
    assert gunzipped(*(packed[at : at + 1] for at in range(len(packed)))) == b"one two"


@pytest.mark.req("R9")
def test_a_little_that_becomes_very_much_comes_in_pieces() -> None:
    inflater = Inflater("gzip")
    sizes = [len(piece) for piece in inflater.feed(gzip.compress(bytes(10 * PIECE)))]
    assert sum(sizes) == 10 * PIECE
    assert max(sizes) <= PIECE


@pytest.mark.req("X2")
def test_what_was_flushed_is_there_before_the_end() -> None:
    deflate = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    inflater = Inflater("gzip")
    for word in (b"one", b"two"):
        packed = deflate.compress(word) + deflate.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(inflater.feed(packed)) == word


@pytest.mark.req("X2")
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_not_what_it_says_is_refused(coding: str) -> None:
    with pytest.raises(BadBody):
        gunzipped(b"\xffthis is not compressed", coding=coding)


@pytest.mark.req("X2")
def test_a_body_that_ends_too_early_is_refused() -> None:
    with pytest.raises(BadBody, match="too early"):
        gunzipped(gzip.compress(b"hello")[:-4])


@pytest.mark.req("X2")
def test_no_body_is_an_empty_one() -> None:
    assert gunzipped() == b""


EMPTY_BLOCK = b"\x00\x00\x00\xff\xff"
"""A stored deflate block without data."""


def tiny(number: int) -> bytes:
    return gzip.compress(bytes([number % 256]), 1)


ATTACKS: list[tuple[str, str, bytes, Callable[[int], bytes]]] = [
    ("data after a deflate stream", "deflate", zlib.compress(b"{}"), lambda _: bytes(65536)),
    ("data after a bare stream", "deflate", bare(b"{}"), lambda _: b"\x03" * 65536),
    ("empty gzip members", "gzip", b"", lambda _: gzip.compress(b"") * 3000),
    ("tiny gzip members", "gzip", b"", lambda number: tiny(number) * 3000),
    ("empty blocks", "deflate", b"", lambda _: EMPTY_BLOCK * 13_000),
    ("a header that never ends", "gzip", b"\x1f\x8b\x08\x08" + bytes(6), lambda _: b"a" * 65536),
]


@pytest.mark.req("R9")
@pytest.mark.parametrize(
    ("coding", "start", "more"),
    [pytest.param(*case[1:], id=case[0]) for case in ATTACKS],
)
def test_input_that_only_costs_work_is_refused(
    coding: str, start: bytes, more: Callable[[int], bytes]
) -> None:
    inflater = Inflater(coding)
    produced = 0
    with pytest.raises(BadBody):
        for number in range(100):
            chunk = start + more(number) if number == 0 else more(number)
            produced += sum(map(len, inflater.feed(chunk)))
    assert produced < 20_000


@pytest.mark.req("R9", "X2")
@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 40 * PIECE])
def test_members_that_expand_to_many_pieces_follow_each_other(size: int) -> None:
    body = gzip.compress(b" " * size) * 3
    assert sum(len(data) for data in Inflater("gzip").feed(body)) == 3 * size
