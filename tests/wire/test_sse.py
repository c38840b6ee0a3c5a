"""Server-sent events: however the bytes are cut, whatever ends the lines, within the limit."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast._core.wire.framing import FrameTooLarge, Lines
from holdfast._core.wire.sse import ServerSentEvent, SseParser
from tests.rows import rows
from tests.wire.test_framing import cut

LIMIT = 100
ENDS = (b"\n", b"\r", b"\r\n")

text = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
field = st.one_of(
    text.map(lambda value: f"data: {value}"),
    text.map(lambda value: f"data:{value}"),
    text.map(lambda value: f"data: {{{value}}}"),
    st.just("event: message"),
    text.map(lambda value: f"event: {value}"),
    text.map(lambda value: f"id: {value}"),
    text.map(lambda value: f": {value}"),
    st.integers(0, 10**12).map(lambda value: f"retry: {value}"),
    st.sampled_from(
        ["data", "id", "event", "retry: soon", "retry:", ":", "unknown: x", "nonsense"]
    ),
    st.just(""),
)


def read(*pieces: bytes, limit: int = LIMIT) -> list[ServerSentEvent]:
    events = SseParser(limit)
    return [event for piece in pieces for event in events.feed(piece)]


def datas(*pieces: bytes) -> list[bytes]:
    return [event.data for event in read(*pieces)]


@pytest.mark.req("X2", "X3", "V1")
@given(
    st.lists(st.tuples(field, st.sampled_from(ENDS)), max_size=30),
    st.lists(st.integers(0, 10_000), max_size=30),
    st.booleans(),
)
def test_any_cut_of_any_stream_gives_the_same_events(
    lines: list[tuple[str, bytes]], places: list[int], bom: bool
) -> None:
    stream = b"".join(line.encode() + end for line, end in lines)
    stream = b"\xef\xbb\xbf" * bom + stream
    whole, pieces, quick = SseParser(10_000), SseParser(10_000), SseParser(10_000)
    expected = whole.feed(stream)
    found = [event for piece in cut(stream, places) for event in pieces.feed(piece)]
    assert found == expected
    assert (pieces.last_id, pieces.retry) == (whole.last_id, whole.retry)
    messages = [quick.messages(piece) for piece in cut(stream, places)]
    assert b"".join(messages) == b"".join(event.line for event in expected)
    assert (quick.last_id, quick.retry) == (whole.last_id, whole.retry)


usual = st.one_of(
    text.map(lambda value: f"event: message\ndata: {{{value}}}\n\n"),
    text.map(lambda value: f"data: {{{value}}}\n\n"),
)
unusual = st.sampled_from(
    ["\n", "data: \n\n", "data: {}\ndata: {}\n\n", "id: 1\n\n", "event: other\ndata: {}\n\n"]
)


@pytest.mark.req("X2", "X3", "V1")
@given(
    st.lists(st.one_of(usual, usual, usual, unusual), max_size=12),
    st.lists(st.integers(0, 10_000), max_size=8),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_events_of_the_usual_form_are_read_like_all_others(
    events: list[str], places: list[int], end: bytes
) -> None:
    stream = "".join(events).encode().replace(b"\n", end)
    quick = SseParser(10_000)
    lines = [quick.messages(piece) for piece in cut(stream, places)]
    assert b"".join(lines) == b"".join(event.line for event in read(stream, limit=10_000))


@pytest.mark.req("X2", "V1")
@pytest.mark.parametrize("start", [b"data: ", b"event: message\ndata: "])
def test_events_of_the_usual_form_have_the_same_limit(start: bytes) -> None:
    largest = start + b"{%b}\n\n" % (b"x" * (LIMIT - 2))
    assert SseParser(LIMIT).messages(largest * 3) == (largest[len(start) : -1]) * 3
    with pytest.raises(FrameTooLarge) as caught:
        SseParser(LIMIT).messages(largest + start + b"{%b}\n\n" % (b"x" * (LIMIT - 1)))
    assert (caught.value.size, caught.value.limit) == (LIMIT + 1, LIMIT)


@pytest.mark.req("X2", "V1")
@given(st.lists(st.lists(text, min_size=1, max_size=4), max_size=6), st.sampled_from(ENDS))
def test_every_line_end_means_the_same(events: list[list[str]], end: bytes) -> None:
    stream = b"".join(
        b"".join(b"data: " + line.encode() + end for line in lines) + end for lines in events
    )
    assert read(stream, limit=10_000) == [
        ServerSentEvent("\n".join(lines).encode()) for lines in events
    ]


@pytest.mark.req("X2")
def test_line_ends_may_be_mixed_and_cut_in_two() -> None:
    assert datas(b"data: a\r", b"\ndata: b\n", b"\r", b"\n", b"data: c\r\r") == [b"a\nb", b"c"]


@pytest.mark.req("X2")
def test_a_blank_line_is_found_across_a_cut_crlf() -> None:
    assert datas(b"data: a\r\n\r", b"\ndata: b\r\n\r\n") == [b"a", b"b"]


@pytest.mark.req("X2")
def test_one_space_after_the_colon_is_not_part_of_the_value() -> None:
    assert datas(b"data:a\n\n", b"data: a\n\n", b"data:  a\n\n", b"data\n\n") == [
        b"a",
        b"a",
        b" a",
        b"",
    ]


@pytest.mark.req("X2")
def test_comments_and_unknown_fields_are_passed_over() -> None:
    assert datas(b": ping\n:\nfoo: bar\nbar\ndata: a\n: more\n\n") == [b"a"]


@pytest.mark.req("X2")
def test_a_bom_is_passed_over_at_the_start_only() -> None:
    assert datas(b"\xef\xbb", b"\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n") == [b"a"]


@pytest.mark.req("X3")
def test_an_event_has_a_name_and_the_next_one_has_its_own() -> None:
    assert read(b"event: endpoint\ndata: /x\n\ndata: {}\n\n") == [
        ServerSentEvent(b"/x", "endpoint"),
        ServerSentEvent(b"{}", "message"),
    ]


@pytest.mark.req("X2")
def test_an_event_without_data_is_none_but_its_id_counts() -> None:
    events = SseParser(LIMIT)
    assert events.feed(b"id: 7\nevent: x\n\n") == []
    assert events.last_id == "7"
    assert events.feed(b"data: a\n\n") == [ServerSentEvent(b"a")]
    assert events.last_id == "7", "it stays until there is another"


@pytest.mark.req("X2")
def test_a_priming_event_has_empty_data() -> None:
    events = SseParser(LIMIT)
    assert events.feed(b"id: 1\ndata:\n\n") == [ServerSentEvent(b"")]
    assert events.last_id == "1"


def test_an_id_that_fits_into_no_header_does_not_count() -> None:
    events = SseParser(10**6)
    events.feed(b"id: 1\ndata: a\n\nid: " + b"x" * 10_000 + b"\ndata: b\n\n")
    assert events.last_id == "1"


@pytest.mark.req("X2")
def test_the_id_of_an_unfinished_event_does_not_count() -> None:
    events = SseParser(LIMIT)
    events.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert events.last_id == "1"


@pytest.mark.req("X2")
def test_an_id_with_a_null_is_passed_over_and_an_empty_one_takes_it_back() -> None:
    events = SseParser(LIMIT)
    events.feed(b"id: 1\n\nid: a\0b\n\n")
    assert events.last_id == "1"
    events.feed(b"id\n\n")
    assert events.last_id is None


@pytest.mark.req("X2")
@rows(
    ("said", "meant"),
    [(b"1500", 1.5), (b"0", 0.0), (b"-1", None), (b"1.5", None), (b"", None), (b"soon", None)],
)
def test_retry_is_milliseconds_in_digits(said: bytes, meant: float | None) -> None:
    events = SseParser(LIMIT)
    events.feed(b"retry: " + said + b"\n\n")
    assert events.retry == meant


@pytest.mark.req("X2")
def test_retry_however_large_stays_a_number() -> None:
    events = SseParser(10_000)
    events.feed(b"retry: " + b"9" * 5000 + b"\n")
    assert events.retry is not None
    assert events.retry < 10**7


@pytest.mark.req("X2")
def test_a_new_connection_drops_what_the_last_left_unfinished() -> None:
    events = SseParser(LIMIT)
    events.feed(b"retry: 5\nid: 1\ndata: a\n\nid: 2\ndata: half of a mess")
    events.restart()
    assert events.feed(b"\xef\xbb\xbfdata: b\n\n") == [ServerSentEvent(b"b")]
    assert (events.last_id, events.retry) == ("1", 0.005)


@pytest.mark.req("X2")
def test_a_line_feed_after_a_reconnect_is_no_half_of_an_older_crlf() -> None:
    events = SseParser(LIMIT)
    events.feed(b"data: a\r")
    events.restart()
    assert events.feed(b"data: b\r\n\r\n") == [ServerSentEvent(b"b")]


@pytest.mark.req("X2")
@rows(
    ("event", "line"),
    [
        (ServerSentEvent(b"{}"), b"{}\n"),
        (ServerSentEvent(b'{\n  "a": 1\r\n}'), b'{   "a": 1  }\n'),
        (ServerSentEvent(b""), b""),
        (ServerSentEvent(b" \n "), b""),
        (ServerSentEvent(b"{}", "ping"), b""),
        (ServerSentEvent(b"/messages", "endpoint"), b""),
    ],
)
def test_the_message_of_an_event_is_one_line_if_there_is_one(
    event: ServerSentEvent, line: bytes
) -> None:
    assert event.line == line


# The limit


@pytest.mark.req("R9", "V1")
@given(
    st.lists(st.binary(max_size=60).map(lambda data: data.translate(None, b"\r\n")), min_size=1),
    st.lists(st.integers(0, 10_000), max_size=30),
)
def test_an_event_passes_if_and_only_if_its_data_is_within_the_limit(
    lines: list[bytes], places: list[int]
) -> None:
    stream = b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
    data = b"\n".join(lines)
    pieces = cut(stream, places)
    if len(data) <= LIMIT:
        assert datas(*pieces) == [data]
    else:
        with pytest.raises(FrameTooLarge, match=str(LIMIT)):
            datas(*pieces)


@pytest.mark.req("R9")
@rows("start", [b"", b"data: ", b": ", b"id: ", b"event: "])
def test_a_line_that_never_ends_is_not_kept(start: bytes) -> None:
    events = SseParser(LIMIT)
    events.feed(start)
    with pytest.raises(FrameTooLarge) as found:
        for _ in range(LIMIT):
            events.feed(b"xx")
    assert found.value.limit == LIMIT


@pytest.mark.req("R9")
def test_many_small_events_are_no_large_one() -> None:
    assert len(read(b"data: abc\n\n" * 1000)) == 1000


def test_it_shows_what_it_keeps() -> None:
    events = SseParser(LIMIT)
    events.feed(b"data: abc\n")
    assert repr(events) == "<SseParser 3 bytes of an unfinished event>"


@pytest.mark.req("R8")
def test_an_event_of_many_short_lines_takes_hardly_more_memory_than_its_text() -> None:
    events = SseParser(1_000_000)
    lines = b"data: ab\n" * 100_000
    tracemalloc.start()
    try:
        events.feed(lines)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert taken < 600_000
    assert events.feed(b"data\n\n") == [ServerSentEvent(b"ab\n" * 100_000)]


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
