"""The processes of a server, whatever it starts: found by a mark in their environment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable
from pathlib import Path

MARK = "HOLDFAST_INTEROP_MARK"
PATIENCE = 60.0
"""Seconds for the kernel to carry out a signal."""


def family(mark: str) -> set[int]:
    """Everything alive that carries this mark, in whichever group it hides."""
    wanted = f"{MARK}={mark}".encode()
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
    return found


def outermost(pids: Iterable[int]) -> int:
    """The one that we started."""
    (first,) = (pid for pid in pids if _stat(pid)[1] == os.getpid())
    return first


def child_of(parent: int, pids: Iterable[int]) -> int:
    """The only child of a process."""
    (child,) = (pid for pid in pids if _stat(pid)[1] == parent)
    return child


def children_that_ended() -> list[int]:
    """Zombies: children of ours that nobody has waited for."""
    tasks = Path("/proc/self/task").iterdir()
    children = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    return [pid for pid in children if _stat(pid)[0] == "Z"]


def connections_to(port: int) -> int:
    """How many TCP connections of our own lead to a port."""
    own = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            own.add(os.readlink(entry))
    count = 0
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]:
            _, _, remote, _, _, _, _, _, _, inode, *_ = line.split()
            leads_there = int(remote.rpartition(":")[2], 16) == port
            count += leads_there and f"socket:[{inode}]" in own
    return count


async def freeze(pids: Iterable[int]) -> None:
    """Stop them; from here on nothing is read or answered."""
    pids = list(pids)
    _tell(pids, signal.SIGSTOP)
    async with asyncio.timeout(PATIENCE):
        while any(_stat(pid)[0] not in "TZX" for pid in pids):  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0)


def thaw(pids: Iterable[int]) -> None:
    _tell(pids, signal.SIGCONT)


def _tell(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


async def ended(pid: int) -> None:
    """Wait until a process has ended, whosever child it is."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, news.set)
    try:
        await news.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def gone(mark: str) -> bool:
    """Whether nothing is left, given a moment for the kernel to clear up what was killed."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            for pid in family(mark):
                await ended(pid)
    return not family(mark)


def _stat(pid: int) -> tuple[str, int]:
    """State and parent. The name before them is in brackets, and may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "X", 0
    state, parent, *_ = text.rpartition(")")[2].split()
    return state, int(parent)
