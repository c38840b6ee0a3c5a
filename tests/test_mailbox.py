"""The mailbox: in order, bounded, and unharmed by what handlers do."""

from __future__ import annotations

import asyncio

import pytest

from holdfast._core.mailbox import MOST_BYTES, Mailbox


def make(limit: int = 100) -> Mailbox:
    return Mailbox(limit, asyncio.get_running_loop(), "test")


@pytest.mark.req("P6")
async def test_values_are_delivered_in_order_to_sync_and_async_handlers() -> None:
    heard: list[int] = []
    done = asyncio.Event()

    async def slow(value: int) -> None:
        await asyncio.sleep(0)
        heard.append(value)

    mailbox = make()
    for number in range(10):
        mailbox.post(slow if number % 2 else heard.append, number)
    mailbox.post(lambda _: done.set(), None)
    await done.wait()
    assert heard == list(range(10))


@pytest.mark.req("P6", "R8")
async def test_the_oldest_are_dropped_and_counted() -> None:
    heard: list[int] = []
    done = asyncio.Event()
    mailbox = make(limit=3)
    for number in range(10):
        mailbox.post(heard.append, number)
    mailbox.post(lambda _: done.set(), None)
    await done.wait()
    assert heard == [8, 9]
    assert mailbox.dropped == 8
    assert "8 dropped" in repr(mailbox)


@pytest.mark.req("P6", "R8")
async def test_what_waits_is_bounded_in_bytes_too() -> None:
    heard: list[int] = []
    done = asyncio.Event()
    mailbox = make()
    for number in range(4):
        mailbox.post(heard.append, number, MOST_BYTES // 2)
    mailbox.post(heard.append, 4, MOST_BYTES * 2)
    mailbox.post(lambda _: done.set(), None)
    await done.wait()
    assert heard == []
    for number in range(4):
        mailbox.post(heard.append, number, MOST_BYTES // 2)
    done.clear()
    mailbox.post(lambda _: done.set(), None)
    await done.wait()
    assert heard == [2, 3]


@pytest.mark.req("L8", "P6")
async def test_a_task_of_the_application_is_not_cancelled_with_the_mailbox() -> None:
    release, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await release.wait()
        done.set()

    mailbox = make()
    task = asyncio.create_task(work())
    mailbox.post(lambda _: task, None)
    await asyncio.sleep(0)
    mailbox.close()
    release.set()
    await task
    assert done.is_set()


@pytest.mark.req("P6")
async def test_a_crash_is_logged_and_the_next_still_runs(caplog: pytest.LogCaptureFixture) -> None:
    done = asyncio.Event()
    mailbox = make()
    mailbox.post(lambda _: 1 / 0, None)
    mailbox.post(lambda _: done.set(), None)
    await done.wait()
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.req("P6")
async def test_the_warning_comes_once_per_overflow(caplog: pytest.LogCaptureFixture) -> None:
    mailbox = make(limit=4)
    for _ in range(2):
        done = asyncio.Event()
        for _ in range(20):
            mailbox.post(lambda _: None, None)
        mailbox.post(lambda _, done=done: done.set(), None)  # type: ignore[misc]
        await done.wait()
        await asyncio.sleep(0)
    assert len(caplog.records) == 2


async def test_closing_drops_what_waits() -> None:
    heard: list[int] = []
    mailbox = make()
    mailbox.post(heard.append, 1)
    mailbox.close()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert heard == []
