"""The contract of a child process: what every implementation does, over real programs.

Another system's implementation is another class at the foot of this file.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from holdfast._core.boundary import WireId
from holdfast._core.system import HAS_LINUX
from holdfast._core.transports.child import ChildProcess
from holdfast._core.transports.children import start_child
from holdfast._core.transports.orphans import guard
from holdfast._core.transports.pipe_threads import AHEAD, ThreadWriter
from holdfast._core.transports.pipes import CHUNK, TURNS
from holdfast._core.transports.portable_child import PortableChild
from holdfast._core.transports.spawn import SpawnRequest

PYTHON = sys.executable
BACKLOG = 256 * 1024


class Heard:
    """A listener that remembers, and lets a test wait for something."""

    def __init__(self) -> None:
        self.output = b""
        self.errors = b""
        self.calls: list[str] = []
        self.broken: OSError | None = None
        self._changed = asyncio.Event()

    def _note(self, name: str) -> None:
        self.calls.append(name)
        self._changed.set()

    def on_data(self, data: bytes) -> None:
        self.output += data
        self._note("data")

    def on_output_end(self) -> None:
        self._note("output end")

    def on_error_data(self, data: bytes) -> None:
        self.errors += data
        self._note("error data")

    def on_error_end(self) -> None:
        self._note("error end")

    def on_input_broken(self, error: OSError) -> None:
        self.broken = error
        self._note("input broken")

    def on_room(self) -> None:
        self._note("room")

    def on_exit(self) -> None:
        self._note("exit")

    async def until(self, condition: Callable[[], Any]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


async def eventually(predicate: Callable[[], object], within: float = 60.0) -> None:
    """Wait for something that the operating system does in its own time."""
    deadline = time.monotonic() + within
    while not predicate():
        assert time.monotonic() < deadline, f"not within {within:g} s"
        await asyncio.to_thread(time.sleep, 0.01)


class ChildContract:
    """The tests; a subclass says which implementation is tried."""

    threads = False

    def start(self, listener: Heard, *command: str, backlog: int = BACKLOG) -> ChildProcess:
        request = SpawnRequest(command, dict(os.environ))
        return start_child(request, listener, backlog, threads=self.threads)

    def python(self, listener: Heard, code: str, backlog: int = BACKLOG) -> ChildProcess:
        return self.start(listener, PYTHON, "-S", "-c", code, backlog=backlog)

    async def end(self, child: ChildProcess, heard: Heard) -> None:
        child.kill()
        await heard.until(lambda: child.exited)
        await eventually(child.reap)
        child.release()

    async def test_what_is_sent_is_read_and_what_is_written_is_heard(self) -> None:
        heard = Heard()
        child = self.start(heard, "cat")
        assert child.send(b"one\n", WireId(1))
        assert child.send(b"two\n", None)
        await heard.until(lambda: heard.output == b"one\ntwo\n")
        assert child.unsent() == frozenset()
        child.close_input()
        await heard.until(lambda: "exit" in heard.calls)
        assert child.exit_code() == 0
        await self.end(child, heard)

    async def test_stdout_and_stderr_are_two(self) -> None:
        heard = Heard()
        code = "import sys; print('out', flush=True); print('err', file=sys.stderr, flush=True)"
        child = self.python(heard, code)
        await heard.until(lambda: "exit" in heard.calls)
        child.drain_errors()
        assert (heard.output.strip(), heard.errors.strip()) == (b"out", b"err")
        await self.end(child, heard)

    async def test_an_exit_is_told_once_after_all_that_was_written(self) -> None:
        heard = Heard()
        child = self.python(heard, "import os; os.write(1, b'x' * 300_000); os._exit(3)")
        await heard.until(lambda: "exit" in heard.calls)
        assert len(heard.output) == 300_000
        assert (child.exited, child.exit_code()) == (True, 3)
        await self.end(child, heard)
        assert heard.calls.count("exit") == 1

    async def test_a_death_by_a_signal_is_a_negative_code(self) -> None:
        heard = Heard()
        child = self.start(heard, "cat")
        assert child.exit_code() is None
        assert not child.reap()
        child.kill()
        await heard.until(lambda: "exit" in heard.calls)
        assert child.exit_code() == -9
        await self.end(child, heard)

    @pytest.mark.parametrize("how", ["terminate", "kill"])
    async def test_what_a_child_has_started_ends_with_it(self, how: str) -> None:
        heard = Heard()
        child = self.start(heard, "sh", "-c", "sleep 600 & echo started; wait")
        await heard.until(lambda: heard.output)
        assert not child.is_gone()
        getattr(child, how)()
        await heard.until(lambda: child.exited)
        await eventually(child.reap)
        await eventually(child.is_gone)
        child.release()

    async def test_a_child_that_ignores_a_termination_can_be_killed(self) -> None:
        heard = Heard()
        code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True)"
        child = self.python(heard, f"{code}; time.sleep(600)")
        await heard.until(lambda: heard.output)
        child.terminate()
        assert not child.exited
        await self.end(child, heard)
        assert child.exit_code() == -9

    async def test_a_child_that_does_not_read_is_not_written_to_without_end(self) -> None:
        heard = Heard()
        code = "import sys; sys.stdin.buffer.read(1); print('on', flush=True)"
        code += "; sys.stdin.buffer.read()"
        child = self.start(heard, "sh", "-c", f'read line; exec {PYTHON} -S -c "{code}"')
        frame, sent = b"x" * 65_535 + b"\n", 0
        while child.send(frame, WireId(sent)):
            sent += 1
            assert sent < 100
        assert child.unsent()
        last = max(child.unsent())
        assert child.withdraw(last)
        assert last not in child.unsent()
        await heard.until(lambda: heard.output)
        await eventually(lambda: not child.unsent())
        await self.end(child, heard)

    async def test_a_child_that_closes_its_input_is_told_of(self) -> None:
        heard = Heard()
        child = self.python(
            heard, "import os, time; os.close(0); print(1, flush=True); time.sleep(600)"
        )
        await heard.until(lambda: heard.output)
        child.send(b"x\n", WireId(1))
        await heard.until(lambda: heard.broken is not None)
        assert not child.exited
        await self.end(child, heard)

    async def test_work_shows_in_the_activity(self) -> None:
        heard = Heard()
        code = "import sys\nprint('on', flush=True)\nwhile True: pass"
        child = self.python(heard, code)
        await heard.until(lambda: heard.output)
        before = child.activity()
        if HAS_LINUX:
            await eventually(lambda: child.activity() != before)
        else:
            assert child.activity() == before  # not known there: it counts as alive
        await self.end(child, heard)

    async def test_nothing_is_heard_after_the_release(self) -> None:
        heard = Heard()
        child = self.start(heard, "cat")
        child.send(b"one\n", None)
        await heard.until(lambda: heard.output)
        child.kill()
        child.release()
        count = len(heard.calls)
        await eventually(child.reap)
        assert len(heard.calls) == count
        child.release()


class TestPosixChild(ChildContract):
    """Descriptors on the loop, told of the end by the kernel."""


@pytest.mark.req("S5")
class TestPosixChildWithoutPidfd(ChildContract):
    """The same on a system that does not tell of the end, such as macOS."""

    @pytest.fixture(autouse=True)
    def _no_pidfd(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("holdfast._core.transports.posix_child.HAS_LINUX", False)

    async def test_the_clock_of_the_tests_waits_for_one_that_is_polled(self) -> None:
        heard = Heard()
        child = self.start(heard, "sh", "-c", "exec <&- >&- 2>&-; sleep 0.3")
        child.close_input()
        await heard.until(lambda: "output end" in heard.calls and "error end" in heard.calls)
        # No descriptor is left to wait for. By a clock that jumps, a minute is over at once.
        async with asyncio.timeout(60):
            await heard.until(lambda: child.exited)
        await self.end(child, heard)


@pytest.mark.req("S5")
class TestPortableChild(ChildContract):
    """Threads that wait for the pipes and the end, as on Windows."""

    threads = True

    @pytest.fixture(autouse=True)
    def _every_thread_ends(self) -> Iterator[None]:
        # The one that waits for the exit may end after the child's release: no test may begin to
        # count while that of the test before is still there.
        before = set(threading.enumerate())
        yield
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith("holdfast-"):
                thread.join(60)
                assert not thread.is_alive(), thread

    async def test_a_broken_input_is_no_news_of_a_child_that_has_exited(self) -> None:
        """Its caller was told of the exit without what the program had printed."""
        heard = Heard()
        child = cast(PortableChild, self.start(heard, "cat"))
        child.exited = True  # and its output is still to be read
        child._input_broken(BrokenPipeError())
        assert heard.broken is None
        child.exited = False
        await self.end(child, heard)

    async def test_no_thread_and_no_descriptor_is_left(self) -> None:
        before = (_threads(), _descriptors())
        heard = Heard()
        child = self.start(heard, "cat")
        child.send(b"one\n", None)
        await heard.until(lambda: heard.output)
        await self.end(child, heard)
        await eventually(lambda: (_threads(), _descriptors()) == before)

    async def test_a_writer_that_waits_is_ended_by_the_close(self) -> None:
        before = (_threads(), _descriptors())
        heard = Heard()
        child = self.start(heard, "sleep", "600")
        assert child.send(b"x" * 1_000_000, WireId(1))
        assert "holdfast-writer" in _threads()
        child.close_input()
        await eventually(lambda: "holdfast-writer" not in _threads())
        await self.end(child, heard)
        await eventually(lambda: (_threads(), _descriptors()) == before)

    async def test_what_the_thread_writes_is_neither_unsent_nor_withdrawn(self) -> None:
        heard = Heard()
        child = self.start(heard, "sleep", "600")
        assert child.send(b"x" * 100_000 + b"\n", WireId(1))
        assert child.send(b"y\n", WireId(2))
        assert child.unsent() == {WireId(2)}
        assert not child.withdraw(WireId(1))
        assert child.withdraw(WireId(2))
        assert child.unsent() == frozenset()
        await self.end(child, heard)

    async def test_readers_stop_when_nobody_takes_what_they_read(self) -> None:
        heard = Heard()
        code = "import os\nwhile True: os.write(1, b'x' * 65536)"
        child = self.python(heard, code)
        await heard.until(lambda: heard.output)
        reader = cast("PortableChild", child)._stdout
        # The loop does nothing here: whatever is read meanwhile is held by the thread.
        until = time.monotonic() + 60
        while not reader._stalled and time.monotonic() < until:
            time.sleep(0.001)  # noqa: ASYNC251
        assert sum(map(len, reader._chunks)) <= (AHEAD + 1) * CHUNK
        await self.end(child, heard)

    async def test_a_flood_has_its_turns_and_no_more(self) -> None:
        heard = Heard()
        code = "import os\nwhile True: os.write(1, b'x' * 65536)"
        loop = asyncio.get_running_loop()
        turns: list[int] = []
        """Chunks that were handed on in each turn of the loop."""

        def count() -> None:
            turns.append(0)
            loop.call_soon(count)

        def take_time(data: bytes) -> None:
            turns[-1] += 1
            time.sleep(0.001)

        heard.on_data = take_time  # type: ignore[method-assign]
        count()
        child = self.python(heard, code)
        await eventually(lambda: sum(turns) > 200)
        await self.end(child, heard)
        assert max(turns) <= TURNS

    def test_a_loop_that_is_closed_first_leaves_nothing_behind(self) -> None:
        before = (_threads(), _descriptors())

        async def start() -> ChildProcess:
            heard = Heard()
            child = self.start(heard, "cat")
            child.send(b"one\n", None)
            await heard.until(lambda: heard.output)
            return child

        loop = asyncio.new_event_loop()
        child = loop.run_until_complete(start())
        loop.close()
        child.kill()
        child.release()
        until = time.monotonic() + 60
        while (_threads(), _descriptors()) != before:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert child.reap()

    def test_an_interpreter_ends_with_its_children_open(self) -> None:
        code = (
            "import asyncio, os\n"
            "from holdfast._core.transports.children import start_child\n"
            "from holdfast._core.transports.spawn import SpawnRequest\n"
            "from tests.transports.test_child import Heard\n"
            "async def main():\n"
            "    heard = Heard()\n"
            "    request = SpawnRequest(('cat',), dict(os.environ))\n"
            "    child = start_child(request, heard, 1000, threads=True)\n"
            "    child.send(b'x' * 500_000, None)\n"
            "    await heard.until(lambda: heard.output)\n"
            "asyncio.run(main())\n"
        )
        done = subprocess.run([PYTHON, "-c", code], capture_output=True, timeout=200, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.req("S5")
class TestPortableChildWhosePipeBlocks(ChildContract):
    """Pipes that cannot say that they are full (Windows before Python 3.12): threads write all."""

    threads = True

    @pytest.fixture(autouse=True)
    def _always_blocks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ThreadWriter, "is_direct", False)


def _threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return sorted(name for name in names if name.startswith("holdfast-"))


def _descriptors() -> int:
    guard.watch(2**22)  # once it has been started, the guard stays
    guard.forget(2**22)
    return len(os.listdir("/proc/self/fd"))
