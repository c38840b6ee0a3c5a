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
