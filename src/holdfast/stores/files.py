"""Entries as private files in a folder, with locks between processes."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from holdfast._core import files
from holdfast.stores.base import LOCK_TTL, StoreError, TaskLocks, poll, require_entry, require_swap

MAX_ENTRY: Final = 16 * 1024 * 1024
_SAFE: Final = re.compile(r"(?!(con|prn|aux|nul|(com|lpt)[0-9])$)[a-z0-9][a-z0-9-]{0,99}")
"""Keys that are file names on every system, where upper and lower case are the same too.
Windows has names that are devices, whatever their ending."""


class _Header(Struct):
    """The first line of a file, before the data."""

    key: str
    until: float | None = None
    """The end of its time, in seconds since the epoch."""


class FileStore:
    """Keep entries as files that only their owner can read (0600 in a folder of 0700).

    Writing is atomic and synced; a lock file per name orders processes. A symbolic link in the
    place of an entry is not followed. For few entries that last, such as logins; what is past
    its time is deleted when it is asked for.

    Args:
        path: The folder. It is created when it is needed.
        clock: Returns the time in seconds since the epoch.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time
    ) -> None:
        self.path: Path = Path(path)
        self._clock = clock
        self._tasks = TaskLocks()

    def __repr__(self) -> str:
        return f"<FileStore {self.path}>"

    async def get(self, key: str) -> bytes | None:
        """Return an entry."""
        return None if self.lacks(key) else await asyncio.to_thread(self._get, key)

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        """Replace an entry; it is on the disk before this returns."""
        require_entry(key, data)
        await asyncio.to_thread(self._put, key, data, ttl)

    async def delete(self, key: str) -> None:
        """Delete an entry."""
        await asyncio.to_thread(self._delete, key)

    async def swap(
        self, key: str, old: bytes | None, new: bytes | None, ttl: float | None = None
    ) -> bool:
        """Replace an entry if it is still ``old``."""
        require_swap(key, old, new)
        return await asyncio.to_thread(self._swap, key, old, new, ttl)

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys that begin with a prefix."""
        return await asyncio.to_thread(self._keys, prefix)

    @asynccontextmanager
    async def lock(self, name: str, ttl: float = LOCK_TTL) -> AsyncIterator[int]:
        """Hold a lock between tasks and processes. The system frees it if the process ends."""
        async with self._tasks.hold(name):
            # Neither this nor the number is left to a thread: a cancelled one would go on with a
            # descriptor that is closed, and by then another file's.
            descriptor = self._open_lock(name)

            async def attempt() -> bool | None:
                return files.try_lock(descriptor) or None

            try:
                await poll(attempt)
                yield self._next_number(descriptor)
            finally:
                os.close(descriptor)  # which unlocks

    def _path(self, key: str, suffix: str = "entry") -> str:
        """Return the file of a key: its name, or for names that no file should have, a hash."""
        name = key
        if not _SAFE.fullmatch(key):
            from hashlib import sha256

            name = "+" + sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return os.path.join(self.path, f"{name}.{suffix}")

    def lacks(self, key: str) -> bool:
        """Return True if there is no such entry, without a thread: most servers have no login."""
        return not os.path.lexists(self._path(key))

    def _get(self, key: str) -> bytes | None:
        data, is_over = self._entry(key)
        if is_over:
            with self._changing():
                # It may have been replaced since it was read.
                data, is_over = self._entry(key)
                if is_over:
                    self._unlink(key)
        return data

    def _entry(self, key: str) -> tuple[bytes | None, bool]:
        """Return the data of an entry that is current, and whether there is one past its time."""
        content = self._read(self._path(key))
        # The name in the file counts: one that was moved to another's place is not that entry.
        if content is None or content[0].key != key:
            return None, False
        header, data = content
        is_over = header.until is not None and header.until <= self._clock()
        return (None if is_over else data), is_over

    def _read(self, path: str) -> tuple[_Header, bytes] | None:
        try:
            content = files.read_bytes(path, MAX_ENTRY, owned=True, links=False)
            line, _, data = content.partition(b"\n")
            return _header.decode(line), data
        except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
            return None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Order the writers of all processes: a swap reads before it writes."""
        try:
            files.make_private_folder(self.path)
            with files.locked(self.path / "change.lock"):
                yield
        except OSError as error:
            raise error if isinstance(error, StoreError) else self._unusable(error) from error

    def _put(self, key: str, data: bytes, ttl: float | None) -> None:
        with self._changing():
            self._write(key, data, ttl)

    def _swap(self, key: str, old: bytes | None, new: bytes | None, ttl: float | None) -> bool:
        with self._changing():
            if self._entry(key)[0] != old:
                return False
            if new is None:
                self._unlink(key)
            else:
                self._write(key, new, ttl)
            return True

    def _write(self, key: str, data: bytes, ttl: float | None) -> None:
        if ttl is not None and ttl <= 0:
            self._unlink(key)
            return
        header = _Header(key, None if ttl is None else self._clock() + ttl)
        content = msgspec.json.encode(header) + b"\n" + data
        if len(content) > MAX_ENTRY:
            raise StoreError(f"{self.path}: an entry of more than {MAX_ENTRY >> 20} MiB")
        files.write_atomic(self._path(key), content, private=True)

    def _delete(self, key: str) -> None:
        if not self.lacks(key):
            with self._changing():
                self._unlink(key)

    def _unlink(self, key: str) -> None:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(self._path(key))

    def _keys(self, prefix: str) -> list[str]:
        contents = (self._read(os.fspath(path)) for path in self.path.glob("*.entry"))
        keys = [content[0].key for content in contents if content is not None]
        return sorted(key for key in keys if key.startswith(prefix) and self._get(key) is not None)

    def _open_lock(self, name: str) -> int:
        try:
            files.make_private_folder(self.path)
            flags = os.O_RDWR | os.O_CREAT
            return files.open_without_links(self._path(name, "lock"), flags)
        except OSError as error:
            raise self._unusable(error) from error

    def _next_number(self, descriptor: int) -> int:
        """Return the next fencing number, which is kept in the lock's own file."""
        try:
            text = os.read(descriptor, 20)
            number = (int(text) if text.isdigit() else 0) + 1
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, b"%020d" % number)
        except OSError as error:
            raise self._unusable(error) from error
        return number

    def _unusable(self, error: OSError) -> StoreError:
        return StoreError(f"{self.path}: {files.reason(error)}")


_header: Final = msgspec.json.Decoder(_Header)
