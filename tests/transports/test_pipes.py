"""The pipes: written at once or kept bounded, read one turn at a time."""

from __future__ import annotations

import asyncio
import os
import select
import sys

import pytest

from holdfast._core.boundary import WireId
from holdfast._core.transports import pipes
from holdfast._core.transports.pipe_threads import AHEAD, ThreadReader
from holdfast._core.transports.pipes import CHUNK, LEAST, TURN, TURNS, PipeReader, Writer


def pipe_writer(limit: int = 100) -> tuple[int, Writer, list[OSError]]:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    broken: list[OSError] = []
    loop = asyncio.get_running_loop()
    return reading, Writer(writing, loop, limit, broken.append, lambda: None), broken


@pytest.mark.req("R7")
async def test_a_full_pipe_fills_the_backlog_and_then_refuses() -> None:
    reading, writer, _ = pipe_writer()
    assert writer.send(b"x" * 100_000, None)
    assert not writer.send(b"y" * 200, WireId(1))
    assert writer.unread()
    os.close(reading)
    writer.close()


@pytest.mark.req("R7")
async def test_room_is_reported_once_after_a_refusal_and_only_then() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    room: list[None] = []
    loop = asyncio.get_running_loop()
    writer = Writer(writing, loop, 100_000, lambda _: None, lambda: room.append(None))
    wire_id, other = WireId(1), WireId(2)
    assert writer.send(b"x" * 150_000, wire_id)
    assert writer.send(b"y" * 1000, other)
    assert not writer.send(b"z" * 50_000, WireId(3))
    assert writer.send(b"a message without an answer has a reserve" * 1000, None)
    assert not room
    while not room:
        await asyncio.to_thread(os.read, reading, 65536)
        await asyncio.sleep(0)
    assert writer.send(b"z", WireId(3))
    writer.close()
    os.close(reading)
    assert len(room) == 1


@pytest.mark.req("R7")
async def test_a_frame_of_any_size_is_taken_when_nothing_waits() -> None:
    reading, writer, _ = pipe_writer(limit=10)
    assert writer.send(b"z" * 1_000_000, None)
    read = 0
    while read < 1_000_000:
        read += len(await asyncio.to_thread(os.read, reading, 65536))
    os.close(reading)
    writer.close()


@pytest.mark.req("R7", "R11")
async def test_what_has_not_left_can_be_withdrawn() -> None:
    first, second = WireId(1), WireId(2)
    reading, writer, _ = pipe_writer(limit=10_000)
    assert writer.send(b"a" * 100_000, first)
    assert writer.send(b"b" * 10, second) is False or second in writer.unsent()
    os.close(reading)
    writer.close()
    reading, writer, _ = pipe_writer(limit=1_000_000)
    assert writer.send(b"a" * 100_000, first)
    assert writer.send(b"b" * 10, second)
    assert writer.unsent() == {second}
    assert not writer.withdraw(first)
    assert writer.withdraw(second)
    assert writer.unsent() == frozenset()
    os.close(reading)
    writer.close()


@pytest.mark.req("R6", "R11")
async def test_what_nobody_waits_for_leaves_before_the_end_and_a_request_does_not() -> None:
    reading, writer, _ = pipe_writer(limit=10_000)
    for frame, wire_id in ((b"1", 1), (b"2", 2), (b"request", 3), (b"cancelled", None)):
        assert writer.send(frame, None if wire_id is None else WireId(wire_id))
    assert writer.unsent() == {3}
    writer.close()
    assert os.read(reading, 100) == b"12cancelled"
    assert os.read(reading, 100) == b"", "it is closed"
    os.close(reading)


@pytest.mark.req("R7")
async def test_a_burst_is_gathered_into_one_write_in_order() -> None:
    reading, writer, _ = pipe_writer(limit=100_000)
    for number in range(1000):
        assert writer.send(b"%d\n" % number, None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    got = os.read(reading, 65536)
    assert got == b"".join(b"%d\n" % number for number in range(1000))
    os.close(reading)
    writer.close()


@pytest.mark.req("R11")
async def test_a_broken_pipe_is_told_once_and_its_frame_counts_as_unsent() -> None:
    wire_id = WireId(4)
    reading, writer, broken = pipe_writer()
    os.close(reading)
    assert writer.send(b"hello\n", wire_id)
    assert writer.send(b"again\n", None)
    await asyncio.sleep(0)
    assert len(broken) == 1
    assert wire_id in writer.unsent()
    writer.close()
    writer.close()


def pipe_reader() -> tuple[int, PipeReader, list[bytes], asyncio.Event]:
    reading, writing = os.pipe()
    got: list[bytes] = []
    ended = asyncio.Event()
    return (
        writing,
        PipeReader(reading, asyncio.get_running_loop(), got.append, ended.set),
        got,
        ended,
    )


@pytest.mark.req("R8")
async def test_one_turn_reads_a_bounded_amount() -> None:
    """A writer that never stops cannot keep the loop from its other work."""
    writing, reader, got, _ = pipe_reader()
    filler = asyncio.create_task(asyncio.to_thread(keep_writing, writing, 4 * TURNS * CHUNK))
    sizes = []
    while sum(map(len, got)) < 4 * TURNS * CHUNK:
        before = sum(map(len, got))
        await asyncio.sleep(0)
        sizes.append(sum(map(len, got)) - before)
    await filler
    assert max(sizes) <= TURNS * CHUNK
    reader.close()
    os.close(writing)


@pytest.mark.req("R8")
async def test_what_took_long_is_the_last_of_a_turn_and_makes_the_next_reads_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """64 KiB of junk, line by line, take far longer than 64 KiB of a message."""
    reading, writing = os.pipe()
    now, cost, got = 0.0, 2 * TURN, list[int]()
    monkeypatch.setattr(pipes, "monotonic", lambda: now)

    def take(data: bytes) -> None:
        nonlocal now
        got.append(len(data))
        now += cost
        os.write(writing, data)

    reader = PipeReader(reading, asyncio.get_running_loop(), take, lambda: None)
    os.write(writing, b"x" * CHUNK)
    for _ in range(4):
        reader.read()
    assert got == [CHUNK, CHUNK // 4, LEAST, LEAST], "one read a turn, of less and less"
    cost = 0.0
    reader.read()
    assert got[4:] == [LEAST, 2 * LEAST, 4 * LEAST, 8 * LEAST]
    reader.close()
    os.close(writing)


def keep_writing(fd: int, size: int) -> None:
    while size > 0:
        size -= os.write(fd, b"x" * min(size, CHUNK))


async def test_the_end_is_told_once() -> None:
    writing, reader, got, ended = pipe_reader()
    os.write(writing, b"last words")
    os.close(writing)
    await ended.wait()
    assert got == [b"last words"]
    assert reader.ended
    reader.close()
    reader.close()


async def test_a_reader_closed_by_its_own_data_stops_reading() -> None:
    reading, writing = os.pipe()
    got: list[bytes] = []
    readers: list[PipeReader] = []

    def take(data: bytes) -> None:
        got.append(data)
        readers[0].close()

    readers.append(PipeReader(reading, asyncio.get_running_loop(), take, lambda: None))
    os.write(writing, b"x")
    readers[0].read()
    readers[0].drain()
    assert got == [b"x"]
    os.close(writing)


async def test_withdrawing_every_frame_of_a_full_queue_looks_at_each_once() -> None:
    """A server that stops reading lets all calls in the queue time out in the same moment."""
    compared = 0

    class Number(int):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return int(self) == other

        __hash__ = int.__hash__

    reading, writer, _ = pipe_writer(limit=1_000_000)
    numbers = [Number(number) for number in range(1000)]
    assert writer.send(b"x" * 200_000, None)
    for number in numbers:
        assert writer.send(b"y" * 10, WireId(number))
    assert all(writer.withdraw(WireId(Number(number))) for number in reversed(numbers))
    assert compared <= 3 * len(numbers)
    assert not writer.withdraw(WireId(5))
    assert writer.unsent() == frozenset()
    assert writer.send(b"z" * 10, WireId(2000))
    received = b""
    while not received.endswith(b"z"):
        received += await asyncio.to_thread(os.read, reading, 65536)
        await asyncio.sleep(0)
    assert received == b"x" * 200_000 + b"z" * 10
    writer.close()
    os.close(reading)


@pytest.mark.req("E2")
@pytest.mark.skipif(sys.platform == "win32", reason="reads of a pipe wait there")
async def test_a_drain_takes_what_the_thread_has_not_read_yet() -> None:
    """A thread may not have had its turn when the loop wants all that the server has written."""
    reading, writing = os.pipe()
    got: list[bytes] = []
    reader = ThreadReader(reading, asyncio.get_running_loop(), got.append, lambda: None)
    for number in range(AHEAD):
        os.write(writing, b"%d" % number)
        while select.select([reading], [], [], 0)[0]:
            pass  # until the thread has read it; then it waits for room
    os.write(writing, b"last")
    reader.drain()
    assert b"".join(got) == b"01last"
    os.close(writing)
    reader.close()
    reader.drain()
    assert b"".join(got) == b"01last"
