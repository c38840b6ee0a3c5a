"""What is tried with bytes of any kind. A target takes the bytes and raises if a promise breaks.

The first byte says how often the rest is cut, the bytes after it where: so one file of the
corpus tells both what came and how it was cut into reads. Each reading is compared with a
second one that is slow and plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import UNSET

from holdfast._core.boundary import Delivered
from holdfast._core.text import has_unseen
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.framing import FrameTooLarge, Lines
from holdfast._core.wire.jsonrpc import Envelope, Junk
from holdfast._core.wire.sse import ServerSentEvent, SseParser
from tests.engine.rig import ready

Target: TypeAlias = Callable[[bytes], None]

MOST_CUTS: Final = 8
LIMITS: Final = (16, 64, 100_000)


def cut(data: bytes) -> list[bytes]:
    """The reads that some bytes stand for."""
    if not data:
        return []
    count = data[0] % (MOST_CUTS + 1)
    places, stream = data[1 : count + 1], data[count + 1 :]
    ends = sorted({place * len(stream) // 255 for place in places} | {len(stream)})
    return [stream[start:end] for start, end in zip([0, *ends], ends, strict=False)]


# Lines


def lines(data: bytes) -> None:
    """However a stream is cut, its lines come out whole; only one over the limit is refused."""
    reads = cut(data)
    stream = b"".join(reads)
    longest = max(map(len, stream.split(b"\n")))
    for limit in LIMITS:
        reader, found = Lines(limit), list[bytes]()
        refused = _refusal(lambda: found.extend(map(reader.feed, reads)), limit)  # noqa: B023
        assert refused == (longest > limit), "refused without need, or not refused"
        assert all(whole.endswith(b"\n") for whole in found if whole)
        left = reader.rest()
        if refused:
            assert not left, "kept what was refused"
        else:
            assert b"".join(found) + left == stream


def _refusal(read: Callable[[], None], limit: int) -> bool:
    """Whether reading ends in a refusal, which names the limit."""
    try:
        read()
    except FrameTooLarge as error:
        return error.size > error.limit == limit
    return False


# SseParser


def events(data: bytes) -> None:
    """Server-sent events are read as the standard has it, within the limit."""
    reads = cut(data)
    stream = b"".join(reads)
    expected = list(plain_events(stream))
    for limit in LIMITS:
        reader, found = SseParser(limit), list[list[ServerSentEvent]]()
        refused = _refusal(lambda: found.extend(map(reader.feed, reads)), limit)  # noqa: B023
        assert refused == too_large(stream, limit), "refused without need, or not refused"
        events = [event for some in found for event in some]
        assert events == (expected[: len(events)] if refused else expected)
        assert all(event.line.count(b"\n") == bool(event.line) for event in events)


def plain_lines(stream: bytes) -> list[bytes]:
    """The lines of a stream, and what comes after the last line end."""
    text = stream.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return text.split(b"\n")


def plain_events(stream: bytes) -> Iterator[ServerSentEvent]:
    """The standard's own steps, one after the other."""
    data, name = list[bytes](), b""
    for number, line in enumerate(plain_lines(stream)[:-1]):
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
        if not line:
            if data:
                yield ServerSentEvent(
                    b"\n".join(data), name.decode("utf-8", "replace") or "message"
                )
            data, name = [], b""
            continue
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value


def too_large(stream: bytes, limit: int) -> bool:
    """Whether a line, or the data of an event that may be unfinished, passes the limit."""
    lines = plain_lines(stream)
    if any(len(line) > limit + len("data: ") for line in lines):
        return True
    ended = b"\n".join([*lines[:-1], b"", b""])
    return any(len(event.data) > limit for event in plain_events(ended))


# Messages


def messages(data: bytes) -> None:
    """Junk is named and never raised, and takes none of its neighbours with it."""
    stream = b"".join(cut(data))
    jsonrpc.decode_lines(stream)  # a last line may lack its end
    stream += b"" if stream.endswith(b"\n") else b"\n"
    for batches in (False, True):
        together = jsonrpc.decode_lines(stream, batches=batches)
        alone = [
            item
            for line in stream[:-1].split(b"\n")
            for item in jsonrpc.decode_lines(line + b"\n", batches=batches)
        ]
        assert told(together) == told(alone)
        assert counted(together) == counted(alone)
        for item in together:
            again(item)


def told(items: list[Envelope | Junk]) -> list[bytes]:
    return [jsonrpc.encode(item) for item in items if type(item) is Envelope]


def counted(items: list[Envelope | Junk]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in items:
        if type(item) is Junk:
            counts[item.reason] = counts.get(item.reason, 0) + item.count
            assert len(item.snippet) <= 121
            assert not has_unseen(item.snippet)
    return counts


def again(item: Envelope | Junk) -> None:
    """What is read can be written, and read again as the same."""
    if type(item) is not Envelope:
        return
    (copy,) = jsonrpc.decode_lines(jsonrpc.encode(item).replace(b"\n", b" ") + b"\n")
    assert type(copy) is Envelope
    assert (copy.id, copy.method) == (item.id, item.method) or item.id != item.id
    if item.error is not UNSET:
        jsonrpc.decode_error_object(item.error)


# The engine behind them


def talk(data: bytes) -> None:
    """Whatever a server says, the engine stands, and each call has one outcome at most.

    The rig itself looks for second outcomes and for timers that lie behind.
    """
    rig = ready()
    for method in ("tools/call", "tools/list", "ping"):
        rig.request(method)
    reader = Lines(LIMITS[-1])
    for read in cut(data):
        whole = reader.feed(read)
        if whole:
            rig.report(Delivered(rig.engine.link.generation, whole))
    rig.at(10_000)
    assert not rig.open_tickets(), "a call without an outcome"


TARGETS: Final[dict[str, Target]] = {
    "lines": lines,
    "events": events,
    "messages": messages,
    "talk": talk,
}
