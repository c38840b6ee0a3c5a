"""An application that makes life hard: no descriptors, stolen children, forks, other loops."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.faults.harness import (
    Log,
    alive,
    connect,
    descriptors,
    ending,
    eventually,
    no_leaks,
)
from tests.faults.rows import ROGUE, at

ROOT = Path(__file__).parents[2]
STUBBORN = (*at("start", "ignore:SIGTERM"), *at("eof", "hang"))


def command(log: Log, *rules: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(ROGUE), "--log", str(log.path), *rules]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


# Descriptors.


@contextmanager
def only_descriptors(more: int) -> Iterator[None]:
    """Let this process open ``more`` descriptors, counted from the highest."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = next(number for number in range(soft) if number not in descriptors())
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.req("L8", "E1", "L5")
@pytest.mark.parametrize("more", [0, 2, 4, 6, 8, 9, 10, 11])
async def test_without_descriptors_the_error_is_typed_and_nothing_leaks(
    log: Log, more: int
) -> None:
    async with no_leaks(log):
        client = connect(command(log), {"when_down": "fail"})
        with only_descriptors(more):
            end = await ending(client.open())
        assert end.ok or end.kind == "unsent", end
        end = await ending(client.wait_ready(20))
        assert end.ok, f"the client did not recover: {end}"
        assert (await ending(client.call_tool("echo"))).ok
        await client.close()


# Children.


SCRIPT = """
import asyncio, os, signal, sys, time
import holdfast
how, command = sys.argv[1], sys.argv[2:]

async def main():
    if how == "ignored":
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    if how == "reaper":
        signal.signal(signal.SIGCHLD, reap)
    client = holdfast.connect(command, grace=0.2, when_down="wait",
                              backoff=holdfast.Backoff(first=0.01, max=0.05))
    first = (await client.call_tool("echo")).text
    if how == "fork":
        holder = os.fork()
        if holder == 0:
            time.sleep(60)
            os._exit(0)
    try:
        await client.call_tool("fault", timeout=100)
    except holdfast.TransportError:
        pass
    second = (await client.call_tool("echo")).text
    started = time.monotonic()
    await client.close()
    assert time.monotonic() - started < 60
    if how == "fork":
        os.kill(holder, signal.SIGKILL)
    print("restarted" if first != second else "same", flush=True)

def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass

asyncio.run(main())
"""


@pytest.mark.req("L8", "L5", "R2")
@pytest.mark.parametrize("rules", [at("fault", "exit:1"), (*at("fault", "exit:1"), *STUBBORN)])
@pytest.mark.parametrize("how", ["plain", "ignored", "reaper", "fork"])
async def test_whoever_reaps_our_children_the_client_recovers_and_closes(
    log: Log, how: str, rules: tuple[str, ...]
) -> None:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, how, *command(log, *rules)],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (process.stdout, process.stderr) == ("restarted\n", "")
    await eventually(lambda: not any(map(alive, log.spawns)), "the servers to end")


# Loops.


async def live(log: Log, *rules: str) -> None:
    """A short life with everything in it: a call, a timeout, a crash, a close under way."""
    async with no_leaks(log):
        unlisted = holdfast.ToolPolicy(validate="known")
        client = connect(command(log, *rules), {"grace": 0.1, "tools": unlisted})
        first = (await client.call_tool("echo")).text
        assert (await ending(client.call_tool("fault", timeout=0.1))).kind == "timeout"
        assert (await ending(client.request("tools/list", timeout=100))).kind == "lost"
        assert (await client.call_tool("echo")).text != first
        waiting = asyncio.ensure_future(client.call_tool("fault"))
        await eventually(lambda: len(log.faults()) == 2, "the call to arrive")
        await client.close()
        assert (await ending(waiting)).kind == "shutdown"


LIFE = (*at("fault"), *at("list", "exit:1"), *STUBBORN)


@pytest.mark.req("L12", "L8")
def test_a_client_lives_in_a_thread_of_its_own(log: Log) -> None:
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(live(log, *LIFE))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(40)
    assert not thread.is_alive()
    assert failures == []


@pytest.mark.req("L12", "L8")
def test_a_client_lives_on_uvloop(log: Log) -> None:
    uvloop = pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(live(log, *LIFE))


@pytest.mark.req("L8")
@pytest.mark.parametrize("factory", ["asyncio", "uvloop"])
def test_an_abandoned_client_ends_with_its_loop(log: Log, factory: str) -> None:
    make = asyncio.new_event_loop
    if factory == "uvloop":
        make = pytest.importorskip("uvloop").new_event_loop

    async def abandon() -> None:
        client = connect(command(log, *STUBBORN), {"grace": 30.0})
        await client.open()

    with (
        pytest.warns(ResourceWarning, match="unclosed client"),
        asyncio.Runner(loop_factory=make) as runner,
    ):
        runner.run(abandon())
    assert not any(map(alive, log.spawns))


@pytest.mark.req("L12", "E1")
async def test_another_loop_is_refused_by_name(log: Log) -> None:
    async with no_leaks(log):
        async with connect(command(log), {}) as client:
            await client.open()
            end = await asyncio.to_thread(lambda: asyncio.run(ending(client.call_tool("echo"))))
            assert end.kind == "state"
            assert "loop" in str(end.error)
            assert (await ending(client.call_tool("echo"))).ok


# Handlers.


@pytest.mark.req("R12", "P6")
@pytest.mark.parametrize("kind", ["raises", "blocks", "cancels", "calls back"])
async def test_a_bad_notification_handler_hurts_only_itself(log: Log, kind: str) -> None:
    note = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}\n'
    reached = asyncio.Event()
    others: list[object] = []

    async with no_leaks(log):
        async with connect(
            command(log, *at("fault", ("flood", b"50:" + note), "good")), {}
        ) as client:

            async def bad(_: holdfast.calls.Notification) -> None:
                reached.set()
                if kind == "raises":
                    raise ZeroDivisionError
                if kind == "blocks":
                    await asyncio.Event().wait()
                if kind == "cancels":
                    raise asyncio.CancelledError
                await client.call_tool("echo")

            client.on_notification(bad)
            client.on_notification(others.append)
            for _ in range(3):
                assert (await ending(client.call_tool("fault"))).ok
            async with asyncio.timeout(20):
                await reached.wait()
            if kind != "blocks":
                await eventually(lambda: others, "the other handler")
            assert (await ending(client.close())).ok


@pytest.mark.req("R12", "P5")
@pytest.mark.parametrize("kind", ["raises", "blocks"])
async def test_a_bad_progress_handler_hurts_only_itself(log: Log, kind: str) -> None:
    note = (
        b'{"jsonrpc":"2.0","method":"notifications/progress",'
        b'"params":{"progressToken":@TOKEN@,"progress":@I@}}\n'
    )
    seen: list[Any] = []

    def raises(progress: holdfast.Progress) -> None:
        seen.append(progress)
        raise ZeroDivisionError

    async def blocks(progress: holdfast.Progress) -> None:
        seen.append(progress)
        await asyncio.Event().wait()

    handler = raises if kind == "raises" else blocks
    async with no_leaks(log):
        async with connect(
            command(log, *at("fault", ("flood", b"20:" + note), "good")), {}
        ) as client:
            assert (await ending(client.call_tool("fault", on_progress=handler))).ok
            await eventually(lambda: seen, "progress")
            assert (await ending(client.call_tool("echo"))).ok
            assert (await ending(client.close())).ok
