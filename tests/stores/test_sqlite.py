"""One SQLite file: its permissions, what is deleted, leases, and what goes wrong."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from holdfast.stores import SqliteStore, StoreError
from holdfast.stores.sqlite import SWEEP


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(path) as database:
        return list(database.execute(query))


@pytest.mark.req("B15")
async def test_the_file_is_private(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "entries.db")
    await store.put("a", b"x")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert set(modes.values()) == {0o600}
    assert len(modes) == 3, "the file, its log and its shared memory"
    store.close()


@pytest.mark.req("S1")
@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_was_deleted_while_it_was_open_is_not_written_to(
    tmp_path: Path, is_replaced: bool
) -> None:
    """Two processes would claim one key, each in a file of its own."""
    path = tmp_path / "entries.db"
    store = SqliteStore(path)
    assert await store.swap("a", None, b"x")
    for file in list(tmp_path.iterdir()):
        file.unlink()
    other = SqliteStore(path)
    if is_replaced:
        assert await other.swap("a", None, b"y")
    for attempt in (store.swap("b", None, b"x"), store.get("a"), store.put("a", b"x")):
        with pytest.raises(StoreError, match="was deleted or replaced while it was open"):
            await attempt
    if is_replaced:
        assert await other.get("a") == b"y"
    store.close()
    other.close()


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "entries.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="symbolic link"):
        await SqliteStore(tmp_path / "entries.db").put("a", b"x")
    assert not (tmp_path / "elsewhere").read_bytes()


async def test_entries_past_their_time_are_deleted(tmp_path: Path) -> None:
    clock = Clock()
    store = SqliteStore(tmp_path / "entries.db", clock=clock)
    await store.put("lasting", b"x")
    for number in range(SWEEP - 2):
        await store.put(f"{number}", b"x", ttl=5)
    clock.now += 5
    await store.put("last", b"x", ttl=5)
    store.close()
    assert rows(tmp_path / "entries.db", "SELECT key FROM entries ORDER BY key") == [
        ("last",),
        ("lasting",),
    ]


async def test_entries_are_there_after_closing_and_opening(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "entries.db")
    await store.put("a", b"x")
    store.close()
    store.close()
    assert await store.get("a") == b"x"
    store.close()
    again = SqliteStore(tmp_path / "entries.db")
    assert await again.get("a") == b"x"
    again.close()


@pytest.mark.parametrize("problem", ["no folder", "no database", "a folder"])
async def test_a_file_that_cannot_be_used_is_told(tmp_path: Path, problem: str) -> None:
    path = tmp_path / "entries.db"
    if problem == "no folder":
        path = tmp_path / "missing" / "entries.db"
    elif problem == "no database":
        path.write_bytes(b"something else entirely" * 100)
    else:
        path.mkdir()
    store = SqliteStore(path)
    for attempt in (store.get("a"), store.put("a", b"x"), store.keys(), store.delete("a")):
        with pytest.raises(StoreError, match=r"entries\.db: "):
            await attempt
    with pytest.raises(StoreError, match=r"entries\.db: "):
        async with store.lock("a"):
            pass
    store.close()


async def test_a_store_that_failed_works_when_its_reason_is_gone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "later" / "entries.db")
    with pytest.raises(StoreError):
        await store.get("a")
    (tmp_path / "later").mkdir()
    assert await store.get("a") is None
    store.close()


@pytest.mark.req("B15")
async def test_a_failure_after_a_cancellation_leaves_no_traceback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    is_cancelled = threading.Event()

    def broken_clock() -> float:
        is_cancelled.wait()
        raise OSError("the clock is broken")

    store = SqliteStore(tmp_path / "entries.db", clock=broken_clock)
    reading = asyncio.create_task(store.get("a"))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    is_cancelled.set()
    with pytest.raises(StoreError):
        await store.get("a")
    del reading
    gc.collect()
    assert caplog.text == ""
    store.close()


async def test_a_lease_is_renewed_while_it_is_held(tmp_path: Path) -> None:
    path, clock, renewed = tmp_path / "entries.db", Clock(), asyncio.Event()

    def read_clock() -> float:
        renewed.set()
        return clock.now

    store = SqliteStore(path, clock=read_clock)
    async with store.lock("a", ttl=0.03):
        for _ in range(3):
            clock.now += 0.02
            renewed.clear()
            await renewed.wait()
        await store.delete("x")  # comes after what the renewal has submitted
        ((until,),) = rows(path, "SELECT until FROM leases")
        assert until == pytest.approx(clock.now + 0.03)
    assert rows(path, "SELECT * FROM leases") == []
    store.close()


async def test_a_lease_past_its_time_is_taken_over_and_its_old_holder_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, clock, told = tmp_path / "entries.db", Clock(), asyncio.Event()

    def notice(record: logging.LogRecord) -> bool:
        told.set()
        return True

    caplog.handler.addFilter(notice)
    suspended, other = SqliteStore(path, clock=clock), SqliteStore(path, clock=clock)
    async with suspended.lock("a", ttl=0.3):
        # As if this process had been stopped: its renewal comes too late.
        rows(path, "UPDATE leases SET until = 0")
        async with asyncio.timeout(30), other.lock("a", ttl=600):
            await told.wait()
        async with asyncio.timeout(30), other.lock("a", ttl=600):
            pass
    assert "the lock 'a' was taken over after 0.3 s" in caplog.text
    suspended.close()
    other.close()


async def test_whoever_lost_a_lease_does_not_free_that_of_the_next(tmp_path: Path) -> None:
    path, clock = tmp_path / "entries.db", Clock()
    first, second = SqliteStore(path, clock=clock), SqliteStore(path, clock=clock)
    async with second.lock("b"):
        pass
    holder = first.lock("a", ttl=600)
    await holder.__aenter__()
    clock.now += 601
    async with second.lock("a", ttl=600):
        await holder.__aexit__(None, None, None)
        assert len(rows(path, "SELECT * FROM leases")) == 1
    first.close()
    second.close()


@pytest.mark.req("S1")
async def test_a_lock_is_given_back_though_its_holder_is_cancelled_as_others_write(
    tmp_path: Path,
) -> None:
    path = tmp_path / "entries.db"
    store = SqliteStore(path)
    entered, left = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with store.lock("a", ttl=600):
            entered.set()
            await left.wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")  # what the store writes has to wait
        writing = asyncio.create_task(store.put("b", b"1"))
        left.set()
        for _ in range(3):
            await asyncio.sleep(0)  # the release stands in line behind the entry
        holder.cancel()
        await asyncio.gather(holder, return_exceptions=True)
        other.execute("ROLLBACK")
    other.close()
    await writing
    assert await store.get("b") == b"1"  # comes after the release
    assert rows(path, "SELECT * FROM leases") == []
    store.close()


@pytest.mark.req("S1")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_shares_the_file_and_neither_thread_nor_connection(tmp_path: Path) -> None:
    """Celery and gunicorn fork; SQLite's notes of its locks are copied, and the locks are not."""
    path = tmp_path / "entries.db"
    store = SqliteStore(path)
    asyncio.run(store.put("of parent", b"x"))
    ready, go_on = os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        signal.alarm(60)  # it waited for a thread of its parent
        try:
            asyncio.run(store.put("before", b"y"))
            os.write(ready[1], b".")
            os.read(go_on[0], 1)
            asyncio.run(store.put("after", b"z"))
        finally:
            os._exit(0)
    os.read(ready[0], 1)
    asyncio.run(store.get("of parent"))
    store.close()  # the last connection deletes the log; this is not the last
    os.write(go_on[1], b".")
    os.waitpid(child, 0)
    assert rows(path, "SELECT key FROM entries ORDER BY key") == [
        ("after",),
        ("before",),
        ("of parent",),
    ]
    for descriptor in (*ready, *go_on):
        os.close(descriptor)
