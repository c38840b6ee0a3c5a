"""Lines out of a byte stream: however it is cut, and never more than the limit."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.wire.framing import FrameTooLarge, Lines, longest_line
from tests.rows import rows

LIMIT = 64

plain = st.binary(max_size=LIMIT).map(lambda data: data.replace(b"\n", b" "))


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """``data`` in pieces, cut at the given places (and none of them lost)."""
    places = sorted({place % (len(data) + 1) for place in at} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def feed_all(lines: Lines, pieces: list[bytes]) -> bytes:
    return b"".join(lines.feed(piece) for piece in pieces)


@pytest.mark.req("V1", "X1")
@given(st.lists(plain, max_size=20), plain, st.lists(st.integers(0, 10_000), max_size=30))
def test_any_cut_of_any_lines_gives_the_same_lines(
    whole: list[bytes], rest: bytes, places: list[int]
) -> None:
    complete = b"".join(one + b"\n" for one in whole)
    lines = Lines(LIMIT)
    assert feed_all(lines, cut(complete + rest, places)) == complete
    assert lines.rest() == rest
    assert lines.rest() == b"", "it is handed out once"


@pytest.mark.req("R9", "V1")
@given(
    st.lists(st.binary(max_size=2 * LIMIT), max_size=10),
    st.lists(st.integers(0, 10_000), max_size=30),
)
def test_a_line_passes_if_and_only_if_it_is_within_the_limit(
    whole: list[bytes], places: list[int]
) -> None:
    data = b"\n".join(whole)
    lines = Lines(LIMIT)
    pieces = cut(data, places)
    if longest_line(data) <= LIMIT:
        feed_all(lines, pieces)
        return
    with pytest.raises(FrameTooLarge) as found:
        feed_all(lines, pieces)
    assert found.value.size > LIMIT
    assert found.value.limit == LIMIT
    assert lines.rest() == b"", "nothing of it is kept"


@pytest.mark.req("R9")
@given(st.lists(st.binary(min_size=1, max_size=LIMIT), min_size=1, max_size=50))
def test_a_line_that_never_ends_is_never_kept_past_the_limit(pieces: list[bytes]) -> None:
    lines = Lines(LIMIT)
    kept = 0
    for piece in pieces:
        endless = piece.replace(b"\n", b" ")
        kept += len(endless)
        if kept > LIMIT:
            with pytest.raises(FrameTooLarge):
                lines.feed(endless)
            assert repr(lines) == "<Lines 0 bytes of an unfinished line>"
            return
        assert lines.feed(endless) == b""
        assert repr(lines) == f"<Lines {kept} bytes of an unfinished line>"


@pytest.mark.req("R9")
def test_the_limit_is_the_longest_line_without_its_newline() -> None:
    at_limit = b"x" * LIMIT + b"\n"
    assert Lines(LIMIT).feed(at_limit) == at_limit
    with pytest.raises(FrameTooLarge, match="more than 64 bytes"):
        Lines(LIMIT).feed(b"x" + at_limit)


@pytest.mark.req("R9")
@rows(
    "pieces",
    [
        [b"x" * 65],
        [b"x" * 64, b"x"],
        [b"x" * 64, b"x\n"],
        [b"ok\n" + b"x" * 65],
        [b"ok\n" + b"x" * 65 + b"\nok\n"],
        [b"ok\nx", b"x" * 64 + b"\n"],
    ],
    ids=["alone", "grown", "ended", "after a line", "between lines", "spanning reads"],
)
def test_a_long_line_is_found_wherever_it_stands(pieces: list[bytes]) -> None:
    lines = Lines(LIMIT)
    with pytest.raises(FrameTooLarge):
        feed_all(lines, pieces)
    assert lines.rest() == b""


def test_many_lines_in_one_read_may_be_longer_together_than_the_limit() -> None:
    data = b"0123456789\n" * 100
    assert Lines(LIMIT).feed(data) == data


def test_a_read_of_whole_lines_is_passed_on_without_a_copy() -> None:
    data = b'{"id":1}\n{"id":2}\n'
    assert Lines(LIMIT).feed(data) is data


def test_a_piece_is_copied_once_however_many_there_are() -> None:
    """The unfinished line is a list of pieces; joining at every read would be quadratic."""
    lines = Lines(1_000_000)
    piece = b"x" * 1000
    for _ in range(200):
        lines.feed(piece)
    assert all(kept is piece for kept in lines.pieces)
    assert lines.feed(b"\n") == piece * 200 + b"\n"


@pytest.mark.req("R9")
def test_a_large_line_is_not_in_memory_twice() -> None:
    """Joining the pieces of a large line would need twice its size."""
    size = 8 * 1024 * 1024
    lines = Lines(2 * size)
    piece = b"x" * 65536
    tracemalloc.start()
    try:
        for _ in range(size // len(piece)):
            lines.feed(piece)
        whole = lines.feed(b"\nnext")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * size
    assert whole == b"x" * size + b"\n"
    assert lines.feed(b"\n") == b"next\n"


@pytest.mark.req("R9")
def test_a_large_line_that_is_cut_off_is_returned_at_the_end() -> None:
    lines = Lines(2_000_000)
    lines.feed(b"x" * 300_000)
    lines.feed(b"yz")
    assert lines.rest() == b"x" * 300_000 + b"yz"
    assert lines.rest() == b""


@pytest.mark.req("R8")
def test_pieces_of_a_few_bytes_cost_no_more_than_a_few_objects() -> None:
    lines = Lines(1_000_000)
    for _ in range(100_000):
        lines.feed(b"xy")
    assert len(lines.pieces) < 1000
    assert lines.feed(b"\n") == b"xy" * 100_000 + b"\n"


def test_the_longest_line_is_measured_without_newlines() -> None:
    assert longest_line(b"") == 0
    assert longest_line(b"a\nbcd\nef") == 3
