"""Limits that are met in one place each, and what a reader shows of itself."""

from __future__ import annotations

import pytest

from holdfast._core.wire.framing import FrameTooLarge, Lines, SseParser


def test_an_event_of_many_short_lines_meets_the_limit_of_one() -> None:
    events = SseParser(10)
    events.feed(b"data: 12345\n")
    with pytest.raises(FrameTooLarge, match="more than 10 bytes") as caught:
        events.feed(b"data: 12345\n")
    assert (caught.value.size, caught.value.limit) == (11, 10)


def test_an_event_of_many_short_lines_may_fill_the_limit() -> None:
    events = SseParser(11)
    (event,) = events.feed(b"data: 12345\ndata: 12345\n\n")
    assert event.data == b"12345\n12345"


def test_what_is_unfinished_shows() -> None:
    lines, events = Lines(100), SseParser(100)
    lines.feed(b"one\ntwo")
    events.feed(b"data: one\n")
    assert repr(lines) == "<Lines 3 bytes of an unfinished line>"
    assert repr(events) == "<SseParser 3 bytes of an unfinished event>"


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        pytest.param((b"data: {1}\n\ndata: {2}\n\n",), b"{1}\n{2}\n", id="whole"),
        pytest.param((b"data: {1", b"2}\n", b"\n"), b"{12}\n", id="an event in three pieces"),
        pytest.param(
            (b"data: {1}\n\nda", b"ta: {2}\n\ndata: {3}\n\n"), b"{1}\n{2}\n{3}\n", id="cut"
        ),
        pytest.param((b"data: {1}\n\ndata: {\ndata: }\n\n",), b"{1}\n{ }\n", id="of two lines"),
        pytest.param((b"id: 7\ndata: {1}\n\n",), b"{1}\n", id="another beginning"),
    ],
)
def test_messages_are_lines_however_their_events_come(
    chunks: tuple[bytes, ...], lines: bytes
) -> None:
    events = SseParser(100)
    assert b"".join(events.messages(chunk) for chunk in chunks) == lines
