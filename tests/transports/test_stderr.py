"""The server's stderr, bounded however much it writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.transports.stderr import Stderr


@pytest.mark.req("X1")
@given(st.lists(st.binary(max_size=50)), st.integers(1, 100))
def test_the_tail_is_the_end_of_all_that_came(chunks: list[bytes], limit: int) -> None:
    stderr = Stderr("test", None, limit)
    for chunk in chunks:
        stderr.feed(chunk)
    whole = b"".join(chunks)[-limit:].decode("utf-8", "replace")
    assert stderr.tail(1000) == "\n".join(whole.rstrip().splitlines())


@pytest.mark.req("X1")
def test_the_tail_does_not_grow() -> None:
    stderr = Stderr("test", None, 1000)
    for _ in range(10_000):
        stderr.feed(b"x" * 999)
    assert len(stderr._tail) < 3000


def test_only_the_last_lines_are_shown() -> None:
    stderr = Stderr("test", None, 1000)
    stderr.feed(b"\n".join(b"%d" % number for number in range(100)))
    assert stderr.tail(3) == "97\n98\n99"


@pytest.mark.req("X1")
@given(st.lists(st.binary(max_size=30)))
def test_lines_are_passed_on_however_they_were_cut(chunks: list[bytes]) -> None:
    lines: list[str] = []
    stderr = Stderr("test", lines.append, 1000)
    for chunk in chunks:
        stderr.feed(chunk)
    stderr.end()
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert lines == [line.decode("utf-8", "replace").rstrip("\r") for line in expected]


@pytest.mark.req("X1")
def test_a_line_without_end_is_cut() -> None:
    lines: list[str] = []
    stderr = Stderr("test", lines.append, 1000)
    for _ in range(10):
        stderr.feed(b"x" * 5000)
    assert lines
    assert max(map(len, lines)) < 20_000
