"""Closing, cancelling and ending at the wrong moment, against a real child process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import errors
from tests.faults.harness import (
    Log,
    alive,
    children,
    connect,
    descriptors,
    ending,
    eventually,
    no_leaks,
    pids,
)
from tests.faults.rows import ROGUE, at

ROOT = Path(__file__).parents[2]
SILENT = at("fault")
"""Calls of ``fault`` are never answered."""
STUBBORN = (*at("start", "ignore:SIGTERM"), *at("eof", "hang"))
BOUND = 100.0


def command(log: Log, *rules: str, era: str = "legacy") -> list[str]:
    path = str(log.path)
    return [sys.executable, "-I", "-S", str(ROGUE), "--era", era, "--log", path, *rules]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "log")


def a_client(log: Log, *rules: str, era: str = "legacy", **options: Any) -> holdfast.Client:
    return connect(command(log, *rules, era=era), options)


@asynccontextmanager
async def opened(log: Log, *rules: str, **options: Any) -> AsyncIterator[holdfast.Client]:
    async with no_leaks(log):
        async with a_client(log, *rules, **options) as client:
            await client.open()
            yield client


def fault(client: holdfast.Client, **more: Any) -> asyncio.Task[Any]:
    """A call that is never answered, under way in a task of its own."""
    return asyncio.ensure_future(client.call_tool("fault", **more))


async def arrived(log: Log, count: int = 1) -> None:
    await eventually(lambda: len(log.faults()) >= count, f"{count} calls to arrive")


async def answers(client: holdfast.Client) -> str:
    end = await ending(client.call_tool("echo"))
    assert end.ok, end
    return end.text


# Closing.


@pytest.mark.req("L7", "R2", "L12")
async def test_close_in_another_task_ends_every_call_before_the_teardown(log: Log) -> None:
    async with opened(log, *SILENT, *at("eof", "hang"), grace=0.3) as client:
        calls = [fault(client) for _ in range(50)]
        await arrived(log, 50)
        closing = asyncio.create_task(client.close())
        done, _ = await asyncio.wait(calls, timeout=BOUND)
        assert not closing.done(), "callers hear of it at once, not when the process is gone"
        assert len(done) == len(calls)
        for call in calls:
            error = call.exception()
            assert isinstance(error, errors.ShutdownError)
            assert error.outcome_unknown
        assert await closing is True


@pytest.mark.req("L7")
async def test_of_ten_concurrent_closers_one_closes_and_none_hangs(log: Log) -> None:
    async with opened(log, *STUBBORN, grace=0.1) as client:
        ends = await asyncio.gather(*(ending(client.close()) for _ in range(10)))
        assert sorted(end.value for end in ends) == [False] * 9 + [True]
        assert client.state == "closed"
        assert not alive(log.spawns[0]), "every closer waits for the end"


@pytest.mark.req("L7", "L4")
async def test_a_client_that_was_never_used_closes_without_starting_anything(log: Log) -> None:
    async with no_leaks(log):
        client = a_client(log)
        assert await client.close() is True
        assert await client.close() is False
        assert log.spawns == []
        assert (await ending(client.call_tool("echo"))).kind in ("shutdown", "state")


@pytest.mark.req("L7", "L8")
@pytest.mark.parametrize("turns", range(8))
async def test_close_right_after_the_first_use_leaves_nothing(log: Log, turns: int) -> None:
    async with no_leaks(log):
        client = a_client(log)
        call = asyncio.ensure_future(ending(client.call_tool("echo")))
        for _ in range(turns):
            await asyncio.sleep(0)
        assert (await ending(client.close())).ok
        assert (await call).kind in ("shutdown", "state")


@pytest.mark.req("L7", "L8")
@pytest.mark.parametrize("rules", [at("start", "hang"), (*at("discover"), *at("initialize"))])
async def test_close_while_initializing(log: Log, rules: tuple[str, ...]) -> None:
    async with no_leaks(log):
        client = a_client(log, *rules, grace=0.1)
        opening = asyncio.ensure_future(ending(client.open()))
        call = asyncio.ensure_future(ending(client.call_tool("echo")))
        ready = asyncio.ensure_future(ending(client.wait_ready(BOUND)))
        await eventually(lambda: log.events("hang") or log.events("got"), "the server")
        assert client.state == "initializing"
        end = await ending(client.close())
        assert end.value is True
        for waiting in (opening, call, ready):
            assert (await waiting).kind in ("shutdown", "state")


@pytest.mark.req("L7", "L11")
@pytest.mark.parametrize("when_down", ["fail", "wait"])
async def test_close_in_backoff(log: Log, when_down: str) -> None:
    async with no_leaks(log):
        backoff = {"first": 30.0, "max": 30.0}
        client = a_client(log, *at("start", "exit:1"), backoff=backoff, when_down=when_down)
        assert (await ending(client.open())).kind == "unsent"
        assert client.state == "backoff"
        call = asyncio.ensure_future(ending(client.call_tool("echo")))
        await asyncio.sleep(0)
        assert (await ending(client.close())).value is True
        kind = (await call).kind
        assert kind == ("state" if when_down == "fail" else "shutdown")
        assert client.state == "closed"


@pytest.mark.req("L11", "L5")
async def test_in_backoff_the_error_says_when_the_next_attempt_is(log: Log) -> None:
    async with no_leaks(log):
        backoff = {"first": 30.0, "max": 30.0}
        client = a_client(log, *at("start", "exit:1"), backoff=backoff, when_down="fail")
        await ending(client.open())
        end = await ending(client.call_tool("echo"))
        assert isinstance(end.error, errors.StateError)
        assert end.error.state == "backoff"
        assert end.error.retry_in is not None
        assert 0 < end.error.retry_in <= 30
        await client.close()


@pytest.mark.req("L7")
async def test_after_close_every_verb_is_refused_at_once(log: Log) -> None:
    async with opened(log) as client:
        await client.close()
        verbs: list[Awaitable[Any]] = [client.call_tool("echo"), client.list_tools()]
        verbs += [client.ping(), client.open(), client.wait_ready(BOUND)]
        for verb in verbs:
            assert (await ending(verb)).kind in ("shutdown", "state")
        assert len(log.spawns) == 1


@pytest.mark.req("L8")
async def test_a_cancelled_closer_does_not_stop_the_teardown(log: Log) -> None:
    async with opened(log, *STUBBORN, grace=0.2) as client:
        closing = asyncio.create_task(client.close())
        await eventually(lambda: log.events("hang"), "the end of stdin")
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await eventually(lambda: not alive(log.spawns[0]), "the server to end")
        assert (await ending(client.close())).value is False


@pytest.mark.req("L12", "L8")
@pytest.mark.parametrize("order", ["first", "last"])
async def test_two_clients_close_in_any_order_in_any_task(tmp_path: Path, order: str) -> None:
    logs = [Log(tmp_path / "one"), Log(tmp_path / "two")]
    async with no_leaks(*logs):
        clients = [a_client(log) for log in logs]
        for client in clients:
            await asyncio.create_task(client.open())
        closers = clients if order == "first" else clients[::-1]
        for number, client in enumerate(closers):
            assert await asyncio.create_task(client.close()) is True
            for other in closers[number + 1 :]:
                assert await answers(other)


@pytest.mark.req("L12")
async def test_clients_of_many_tasks_open_and_close_at_once(tmp_path: Path) -> None:
    logs = [Log(tmp_path / str(n)) for n in range(8)]

    async def live(log: Log) -> None:
        async with a_client(log) as client:
            assert await answers(client) == str(log.spawns[0])

    async with no_leaks(*logs):
        await asyncio.gather(*map(live, logs))


@pytest.mark.req("L8", "L7")
async def test_cancelling_the_body_of_async_with_closes(log: Log) -> None:
    async def body() -> None:
        async with a_client(log, *SILENT) as client:
            await client.open()
            await client.call_tool("fault")

    async with no_leaks(log):
        task = asyncio.create_task(body())
        await arrived(log)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not alive(log.spawns[0])


@pytest.mark.req("L8", "E1")
async def test_an_error_in_the_body_of_async_with_comes_out_as_it_is(log: Log) -> None:
    async with no_leaks(log):
        with pytest.raises(ZeroDivisionError):
            async with a_client(log) as client:
                await client.open()
                raise ZeroDivisionError


@pytest.mark.req("R12", "L7")
@pytest.mark.parametrize("kind", ["notification", "progress"])
async def test_a_handler_may_close_the_client(log: Log, kind: str) -> None:
    token = b'{"progressToken":@TOKEN@,"progress":1}'
    method = b"message" if kind == "notification" else b"progress"
    note = b'{"jsonrpc":"2.0","method":"notifications/%s","params":%s}\n' % (method, token)
    async with opened(log, *at("fault", ("write", note)), *at("eof", "hang"), grace=0.1) as client:
        closed = asyncio.Event()

        async def close(*_: object) -> None:
            await client.close()
            closed.set()

        if kind == "notification":
            client.on_notification(close)
        call = fault(client, on_progress=close if kind == "progress" else None)
        assert (await ending(call)).kind == "shutdown"
        await eventually(lambda: client.state == "closed", "the client to close")


# Cancelling.


@pytest.mark.req("R6", "R4", "R2")
@pytest.mark.parametrize("times", [1, 2, 10])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_cancelling_a_caller_tells_the_server_once(log: Log, times: int, era: str) -> None:
    async with opened(log, *SILENT, era=era) as client:
        call = fault(client)
        other = fault(client)
        await arrived(log, 2)
        for _ in range(times):
            call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await answers(client)
        told = log.messages("notifications/cancelled")
        assert [note["params"]["requestId"] for note in told] == [log.faults()[0]["id"]]
        assert not other.done()
        await client.close()
        assert (await ending(other)).kind == "shutdown"


@pytest.mark.req("R6", "R2")
async def test_cancelling_a_running_call_ends_it_once(log: Log) -> None:
    async with opened(log, *SILENT) as client:
        running = client.start_tool("fault", {})
        await arrived(log)
        assert running.cancel() is True
        assert running.cancel() is False
        end = await ending(_wait(running))
        assert isinstance(end.error, errors.CancelledCallError)
        assert running.done
        assert running.cancel() is False
        await answers(client)
        assert len(log.messages("notifications/cancelled")) == 1


async def _wait(running: Any) -> Any:
    return await running


@pytest.mark.req("R6", "R4")
async def test_a_foreign_timeout_around_a_call_tells_the_server(log: Log) -> None:
    async with opened(log, *SILENT) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as limit:
                call = fault(client)
                await arrived(log)
                limit.reschedule(asyncio.get_running_loop().time())
                await call
        await answers(client)
        assert len(log.messages("notifications/cancelled")) == 1


@pytest.mark.req("R6", "R5")
async def test_an_answer_to_a_cancelled_call_is_dropped(log: Log) -> None:
    rules = at("fault", "await:cancelled", "good", "good")
    async with opened(log, *rules) as client:
        call = fault(client)
        await arrived(log)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await answers(client) == str(log.spawns[0])


@pytest.mark.req("R6", "L2")
async def test_cancelling_while_connecting_leaves_the_client_usable(
    log: Log, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    async with no_leaks(log):
        async with a_client(log, *at("start", f"until:{release}")) as client:
            tasks = [
                asyncio.ensure_future(client.call_tool("fault")),
                asyncio.ensure_future(client.open()),
                asyncio.ensure_future(client.wait_ready(BOUND)),
            ]
            await eventually(lambda: log.events("waiting"), "the server to start")
            for task in tasks:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            release.touch()
            assert await answers(client) == str(log.spawns[0])
            assert len(log.spawns) == 1
            assert log.faults() == [], "a call that was cancelled before it left is never sent"


@pytest.mark.req("R6", "R7")
async def test_cancelling_a_call_to_a_deaf_server(log: Log) -> None:
    async with opened(log, *at("fault", "hang"), grace=0.1) as client:
        first = fault(client)
        await arrived(log)
        calls = [fault(client, arguments={"value": "x" * 50_000}) for _ in range(10)]
        await asyncio.sleep(0)
        for call in [first, *calls]:
            call.cancel()
        done = await asyncio.gather(first, *calls, return_exceptions=True)
        kinds = (asyncio.CancelledError, errors.BackpressureError)
        assert all(isinstance(error, kinds) for error in done)


@pytest.mark.req("L10", "L6")
async def test_wait_ready_gives_up_in_time_and_the_client_lives_on(log: Log) -> None:
    async with no_leaks(log):
        client = a_client(log, *at("discover"), *at("initialize"), grace=0.1)
        end = await ending(client.wait_ready(0.2))
        assert end.kind == "timeout"
        assert isinstance(end.error, TimeoutError)
        assert client.state == "initializing"
        await client.close()


# Dying servers.


def gone(pid: int) -> bool:
    return not alive(pid)


@pytest.mark.req("L5", "L9")
async def test_a_server_killed_while_idle_is_replaced(log: Log) -> None:
    async with opened(log) as client:
        for _ in range(3):
            victim = int(await answers(client))
            os.kill(victim, signal.SIGKILL)
            await eventually(partial(gone, victim), "the victim to be reaped")
            assert int(await answers(client)) != victim
        assert len(log.spawns) == 4


@pytest.mark.req("L8", "L5")
async def test_many_restarts_leak_nothing(log: Log) -> None:
    async with opened(log, *at("fault", "exit:1")) as client:
        await answers(client)
        tasks, fds = len(asyncio.all_tasks()), len(descriptors())
        for _ in range(15):
            assert (await ending(client.call_tool("fault"))).kind == "lost"
        await answers(client)
        await eventually(lambda: len(asyncio.all_tasks()) <= tasks, "tasks to end")
        await eventually(lambda: len(descriptors()) <= fds, "descriptors to be closed")


@pytest.mark.req("L8", "L12")
async def test_many_clients_one_after_the_other_leak_nothing(tmp_path: Path) -> None:
    logs = [Log(tmp_path / str(n)) for n in range(20)]
    async with no_leaks(*logs):
        for number, log in enumerate(logs):
            client = a_client(log, *(SILENT if number % 2 else at("initialize", "exit:1")))
            await ending(client.open())
            if number % 4 == 1:
                call = fault(client)
                await arrived(log)
                await client.close()
                assert (await ending(call)).kind == "shutdown"
            await client.close()


@pytest.mark.req("R11", "L5")
async def test_a_call_that_may_have_run_is_never_sent_again(log: Log) -> None:
    async with opened(log, *at("fault", "exit:1"), replay="safe") as client:
        end = await ending(client.call_tool("fault"))
        assert end.kind == "lost"
        await answers(client)
        assert len(log.faults()) == 1


@pytest.mark.req("R11", "L5")
async def test_a_list_is_sent_again_once_when_asked_to(log: Log) -> None:
    async with opened(log, *at("list", "exit:1"), replay="safe") as client:
        end = await ending(client.list_tools())
        assert end.kind == "lost", "the second attempt is the last"
        assert len(log.messages("tools/list")) == 2


@pytest.mark.req("R11", "L5")
async def test_a_list_survives_one_crash_when_asked_to(log: Log) -> None:
    lives = ("--lives", "1")
    async with opened(log, *lives, *at("list", "exit:1"), replay="safe") as client:
        assert [tool.name for tool in await client.list_tools()] == ["echo", "fault"]
        assert len(log.spawns) == 2


@pytest.mark.req("L8")
async def test_the_server_is_in_a_group_of_its_own(log: Log) -> None:
    async with opened(log):
        (spawn,) = log.events("spawn")
        assert spawn["group"] != os.getpgid(0)


# The end of the loop, of the interpreter, of the parent.


@contextmanager
def nothing_left(log: Log) -> Iterator[None]:
    """Outside of any loop: no process of the log lives, no child is left."""
    before = children()
    try:
        yield
        asyncio.run(eventually(lambda: not any(map(alive, pids(log))), f"{pids(log)} to end"))
        assert children() <= before
    finally:
        for pid in pids(log):
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


RULES = {
    "good": (),
    "ignores-eof": at("eof", "hang"),
    "stubborn": STUBBORN,
    "grandchild": at("start", "fork:plain"),
    "stubborn-grandchild": (*at("start", "fork:stubborn"), *STUBBORN),
}


@pytest.mark.req("L8")
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_a_loop_that_ends_without_close_takes_the_server_with_it(
    log: Log, rules: tuple[str, ...]
) -> None:
    async def main() -> None:
        client = a_client(log, *rules, grace=30.0)
        await client.open()
        assert await answers(client)

    with nothing_left(log), pytest.warns(ResourceWarning, match="unclosed client"):
        asyncio.run(main())


@pytest.mark.req("L8")
def test_a_loop_that_ends_with_calls_under_way(log: Log) -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def main() -> None:
        client = a_client(log, *SILENT, *STUBBORN, grace=30.0)
        await client.open()
        tasks.extend(fault(client) for _ in range(10))
        await arrived(log, 10)

    with nothing_left(log):
        asyncio.run(main())
    assert all(task.done() for task in tasks)
    for task in tasks:
        if not task.cancelled():
            assert isinstance(task.exception(), errors.HoldfastError)


@pytest.mark.req("L8")
def test_a_loop_that_ends_while_connecting(log: Log) -> None:
    async def main() -> None:
        client = a_client(log, *at("start", "hang"), grace=30.0)
        asyncio.ensure_future(client.open()).add_done_callback(lambda task: task.cancelled())
        await eventually(lambda: log.events("hang"), "the server to start")

    with nothing_left(log), pytest.warns(ResourceWarning, match="unclosed client"):
        asyncio.run(main())


@pytest.mark.req("L8")
def test_a_loop_that_ends_while_closing(log: Log) -> None:
    async def main() -> None:
        client = a_client(log, *STUBBORN, grace=30.0)
        await client.open()
        closing = asyncio.ensure_future(client.close())
        closing.add_done_callback(lambda task: task.cancelled())
        await eventually(lambda: log.events("hang"), "the end of stdin")

    with nothing_left(log):
        asyncio.run(main())


SCRIPT = """
import asyncio, os, signal, sys
import holdfast
how, command = sys.argv[1], sys.argv[2:]

async def main():
    client = holdfast.connect(command, grace=30.0)
    await client.open()
    await client.call_tool("echo")
    if how == "exception":
        raise LookupError("meant")
    if how == "exit":
        sys.exit(3)
    if how == "_exit":
        os._exit(4)
    if how in ("wait", "interrupt"):
        print("ready", flush=True)
        await asyncio.sleep(60)

if how == "bare loop":
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
else:
    asyncio.run(main())
"""


def script(how: str, log: Log, *rules: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, how, *command(log, *rules)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )


@pytest.mark.req("L8")
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_an_interpreter_that_ends_without_close_leaves_no_process(
    log: Log, rules: tuple[str, ...]
) -> None:
    with nothing_left(log), script("return", log, *rules) as process:
        _, complaints = process.communicate(timeout=BOUND)
        assert complaints == ""
        assert process.returncode == 0


@pytest.mark.req("L8")
@pytest.mark.parametrize(
    ("how", "code"), [("exception", 1), ("exit", 3), ("_exit", 4), ("bare loop", 0)]
)
def test_an_interpreter_that_ends_badly_leaves_no_process(log: Log, how: str, code: int) -> None:
    with nothing_left(log), script(how, log, *STUBBORN) as process:
        process.communicate(timeout=BOUND)
        assert process.returncode == code


@pytest.mark.req("L8")
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_parent_that_is_killed_takes_server_and_grandchild_with_it(
    log: Log, rules: tuple[str, ...], name: str
) -> None:
    with nothing_left(log), script("wait", log, *rules) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(getattr(signal, name))
        process.communicate(timeout=BOUND)
        assert process.returncode != 0
