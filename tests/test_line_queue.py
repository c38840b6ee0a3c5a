"""The queue of lines: bounded, in order, written by a thread that comes and goes."""

from __future__ import annotations

import threading

import pytest

from holdfast._core import line_queue
from holdfast._core.line_queue import LineQueue

NAME = "a queue of a test"


def queue_of(written: list[int], **bounds: int) -> LineQueue[int]:
    sizes = {"most_items": 1000, "most_bytes": 1000, "batch": 10, **bounds}
    return LineQueue(written.extend, NAME, **sizes)  # type: ignore[arg-type]


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == NAME]


def end_threads() -> None:
    for thread in threads():
        thread.join(300)
        assert not thread.is_alive()


@pytest.mark.req("G1")
def test_what_is_put_is_written_in_order_without_a_flush() -> None:
    written: list[int] = []
    done = threading.Event()

    def write(items: list[int]) -> None:
        written.extend(items)
        if written[-1] == 499:
            done.set()

    queue: LineQueue[int] = LineQueue(write, NAME, most_items=1000, most_bytes=1000, batch=7)
    for number in range(500):
        assert queue.put(number, 1)
    assert done.wait(300)
    assert written == list(range(500))
    queue.close()
    end_threads()


@pytest.mark.req("G1")
def test_a_closed_queue_has_no_thread_and_goes_on_with_another() -> None:
    written: list[int] = []
    queue = queue_of(written)
    for number in range(3):
        queue.put(number, 1)
        assert threads()
        queue.close()
        assert written[-1] == number
        end_threads()


@pytest.mark.req("G1")
def test_a_thread_that_has_nothing_to_do_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_queue, "LINGER", 2)
    written: list[int] = []
    queue = queue_of(written)
    for number in range(2):
        queue.put(number, 1)
        end_threads()
    assert written == [0, 1]


@pytest.mark.req("G1")
def test_items_and_bytes_that_wait_are_bounded() -> None:
    written: list[int] = []
    queue = queue_of(written, most_items=3, most_bytes=100)
    with queue.lock:  # the thread takes nothing
        assert [queue.put(number, 1) for number in range(5)] == [True, True, True, False, False]
        queue.flush()
        assert [queue.put(number, 60) for number in (5, 6)] == [True, False]
        queue.flush()
        assert queue.put(7, 1000), "one that is larger than the bound goes alone"
        queue.flush()
        assert queue.put(8, 60), "what was written does not count any more"
    queue.close()
    assert written == [0, 1, 2, 5, 7, 8]
    end_threads()


@pytest.mark.req("G1")
def test_where_no_thread_can_be_started_it_is_written_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    written: list[int] = []
    queue = queue_of(written)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for number in range(3):
        queue.put(number, 1)
        assert written[-1] == number


@pytest.mark.req("G1")
def test_puts_of_many_threads_are_all_written_once() -> None:
    written: list[int] = []
    queue = queue_of(written, most_items=100_000, most_bytes=100_000)

    def put(first: int) -> None:
        for number in range(first, first + 1000):
            assert queue.put(number, 1)
            if number % 100 == 0:
                queue.close()

    workers = [threading.Thread(target=put, args=(first,)) for first in range(0, 8000, 1000)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    end_threads()
    assert sorted(written) == list(range(8000))
    for first in range(0, 8000, 1000):
        own = [number for number in written if first <= number < first + 1000]
        assert own == sorted(own)
