"""A folder of private files: modes, links, sizes, and what is written whole."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from holdfast.stores import FileStore, StoreError
from holdfast.stores.files import MAX_ENTRY

KEY = "login-0123456789abcdef"


@pytest.mark.req("B15", "A28")
async def test_files_are_private_and_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "auth"
    store = FileStore(folder)
    await store.put(KEY, b"one")
    file = folder / f"{KEY}.entry"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.stat().st_ino
    await store.put(KEY, b"two")
    assert file.stat().st_ino != before
    assert not list(folder.glob("*.tmp"))


@pytest.mark.req("B15")
@pytest.mark.parametrize("use", ["put", "lock"])
async def test_a_folder_that_others_can_read_is_closed_to_them(tmp_path: Path, use: str) -> None:
    tmp_path.chmod(0o755)
    store = FileStore(tmp_path)
    if use == "put":
        await store.put(KEY, b"x")
    else:
        async with store.lock(KEY):
            pass
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.req("B15")
async def test_a_file_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put(KEY, b"x")
    (tmp_path / f"{KEY}.entry").chmod(0o620)
    assert await store.get(KEY) is None
    assert await store.keys() == []


async def test_a_link_in_the_place_of_an_entry_is_not_followed(tmp_path: Path) -> None:
    elsewhere = FileStore(tmp_path / "elsewhere")
    await elsewhere.put(KEY, b"not yours")
    target = tmp_path / "elsewhere" / f"{KEY}.entry"
    folder = tmp_path / "auth"
    folder.mkdir()
    (folder / f"{KEY}.entry").symlink_to(target)
    (folder / f"{KEY}.lock").symlink_to(target)
    store = FileStore(folder)
    assert await store.get(KEY) is None
    with pytest.raises(StoreError, match="symbolic link"):
        async with store.lock(KEY):
            pass
    await store.put(KEY, b"mine")
    assert (await store.get(KEY), await elsewhere.get(KEY)) == (b"mine", b"not yours")


async def test_a_hard_link_is_not_read(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put(KEY, b"x")
    os.link(tmp_path / f"{KEY}.entry", tmp_path / "second-name")
    assert await store.get(KEY) is None


async def test_an_entry_in_the_place_of_another_is_not_that_one(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await store.put("login-a", b"of a")
    (tmp_path / "login-a.entry").rename(tmp_path / "login-b.entry")
    assert await store.get("login-b") is None
    assert await store.keys() == []


async def test_a_huge_entry_is_neither_written_nor_read(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    with pytest.raises(StoreError, match="16 MiB"):
        await store.put(KEY, b"x" * MAX_ENTRY)
    (tmp_path / f"{KEY}.entry").write_bytes(b"x" * (MAX_ENTRY + 1))
    assert await store.get(KEY) is None


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{", b"[]\nx", b"\xff\n", b"[" * 100_000, b'{"key":5}\nx']
)
async def test_what_is_no_entry_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / f"{KEY}.entry").write_bytes(content)
    store = FileStore(tmp_path)
    assert await store.get(KEY) is None
    assert await store.keys() == []
    await store.put(KEY, b"x")
    assert await store.get(KEY) == b"x"


async def test_nothing_is_written_outside_of_the_folder(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "auth")
    for key in ("../x", "/x", "a/b", "..", "", "a\\b", "CON", "x\0y"):
        await store.put(key, b"x")
        async with store.lock(key):
            pass
    assert {path.name for path in tmp_path.iterdir()} == {"auth"}
    assert all(path.is_file() for path in (tmp_path / "auth").iterdir())


@pytest.mark.parametrize("name", ["file", "x" * 300])
async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    store = FileStore(tmp_path / name)
    assert await store.get(KEY) is None
    with pytest.raises(StoreError, match=name[:10]):
        await store.put(KEY, b"x")
    with pytest.raises(StoreError, match=name[:10]):
        async with store.lock(KEY):
            pass


async def test_an_entry_past_its_time_leaves_no_file(tmp_path: Path) -> None:
    now = 0.0
    store = FileStore(tmp_path, clock=lambda: now)
    await store.put(KEY, b"x", ttl=5)
    now = 5.0
    assert await store.get(KEY) is None
    assert not (tmp_path / f"{KEY}.entry").exists()


@pytest.mark.req("S1")
async def test_whoever_is_cancelled_while_it_locks_leaves_no_file_open(tmp_path: Path) -> None:
    store = FileStore(tmp_path)

    async def hold() -> None:
        async with store.lock("a"):
            await asyncio.sleep(0)

    await hold()
    descriptors = len(os.listdir("/proc/self/fd"))
    for steps in range(8):
        task = asyncio.create_task(hold())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await hold()
    assert len(os.listdir("/proc/self/fd")) == descriptors
