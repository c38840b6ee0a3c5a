"""Opening, sharing and closing over HTTP: nothing is left behind, whoever closes and when."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

import holdfast
from holdfast.errors import ShutdownError
from tests.http.harness import QUICK, connect, descriptors, failure, say, tasks
from tests.http.rogue import (
    PATIENCE,
    Gate,
    Handler,
    Legacy,
    Modern,
    Obliging,
    Old,
    Reply,
    Request,
    event,
    notice,
)
from tests.http.test_sessions import Talker

SHAPES: list[Callable[[], Obliging]] = [Modern, Legacy, Talker, Old]


async def _open(request: Request, reply: Reply) -> None:
    await reply.stream(event(notice("notifications/message", {"data": "begun"})))
    await reply.gone()


def _refusing(status: int) -> Handler:
    return lambda request, reply: reply.body(b"no", status, "text/plain", Retry_After="9999")


@pytest.mark.req("X2")
@pytest.mark.parametrize("events", [False, True])
async def test_one_connection_serves_calls_that_follow_each_other(events: bool) -> None:
    async with Modern() as server:
        server.events = events
        async with connect(server) as client:
            for number in range(30):
                assert await say(client, str(number)) == str(number)
        assert server.connections == 1


@pytest.mark.req("X2")
async def test_a_connection_is_used_again_after_errors_and_notifications() -> None:
    async with Legacy() as server, connect(server) as client:
        for status in (400, 404, 500):
            server.on["tools/call"] = _refusing(status)
            await failure(say(client))
        del server.on["tools/call"]
        await say(client)
        # Last, because "later" holds for every call that follows.
        server.on["tools/call"] = _refusing(429)
        await failure(say(client))
        assert server.connections <= 3


@pytest.mark.req("X2", "L8")
async def test_a_stream_left_open_after_its_answer_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast._core.transports.http_link.LINGER", 0.01)

    async def lingering(request: Request, reply: Reply) -> None:
        await reply.stream(event({"jsonrpc": "2.0", "id": request.id, "result": {"content": []}}))
        await reply.gone()

    async with Modern() as server, connect(server) as client:
        await client.open()
        before = tasks()
        server.on["tools/call"] = lingering
        await asyncio.gather(*(say(client) for _ in range(20)))
        await server.until(lambda: server.standing <= 1)
        assert len(tasks() - before) <= 1, "what is left is the server's own"


@pytest.mark.req("L7", "L12", "R2")
@pytest.mark.parametrize("shape", [Modern, Legacy, Old])
async def test_closing_from_another_task_ends_fifty_calls_at_once(
    shape: Callable[[], Obliging],
) -> None:
    gate = Gate()

    async def held(request: Request, reply: Reply) -> None:
        if isinstance(server, Old):
            await reply.status(202)
        else:
            await gate()
            await _open(request, reply)

    async with shape() as server:
        client = connect(server)
        await client.open()
        server.on["tools/call"] = held
        calls = [asyncio.ensure_future(failure(say(client))) for _ in range(50)]
        await server.until(lambda: len(server.posts("tools/call")) == 50)
        gate.open()
        closers = [asyncio.ensure_future(client.close()) for _ in range(3)]
        errors = await asyncio.gather(*calls)
        assert all(isinstance(error, ShutdownError) for error in errors)
        assert all(error.outcome_unknown for error in errors)
        assert sorted(await asyncio.gather(*closers)) == [False, False, True]
        await server.until(lambda: server.standing == 0)


@pytest.mark.req("L8")
@pytest.mark.parametrize("shape", SHAPES)
async def test_fifty_clients_leave_nothing_behind(shape: Callable[[], Obliging]) -> None:
    async with shape() as server:

        async def cycle() -> None:
            async with connect(server, trust_env=False) as client:
                assert await say(client) == "ahoy"
            await server.until(lambda: server.standing == 0)

        await cycle()
        gc.collect()
        files, work = descriptors(), len(tasks())
        for _ in range(50):
            await cycle()
        gc.collect()
        assert descriptors() <= files + 2
        assert len(tasks()) <= work


@pytest.mark.req("L8", "L7")
@pytest.mark.parametrize("shape", SHAPES)
async def test_no_task_outlives_the_close(shape: Callable[[], Obliging]) -> None:
    async with shape() as server:
        client = connect(server)
        await client.open()
        server.on["tools/call"] = _open
        running = [asyncio.ensure_future(failure(say(client))) for _ in range(5)]
        await server.heard("tools/call", 5)
        await client.close()
        await asyncio.gather(*running)
        own = {task for task in tasks() if "Rogue" not in task}
        assert own == set()


@pytest.mark.req("L7")
@pytest.mark.parametrize("when", ["before", "during"])
async def test_closing_before_or_during_the_handshake_ends_it(when: str) -> None:
    async with Modern() as server:
        server.on["POST"] = lambda request, reply: reply.gone()
        client = connect(server)
        opening = asyncio.ensure_future(failure(client.open()))
        if when == "during":
            await server.heard("server/discover")
        else:
            await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            await client.close()
        assert isinstance(await opening, ShutdownError)
        await server.until(lambda: server.standing == 0)


@pytest.mark.req("L12")
async def test_a_client_is_opened_in_one_task_used_in_others_and_closed_in_another() -> None:
    async with Legacy() as one, Modern() as two:
        first, second = connect(one), connect(two)
        await asyncio.create_task(first.open())
        await asyncio.create_task(second.open())
        found = await asyncio.gather(*(say(first, "1") for _ in range(5)), say(second, "2"))
        assert found == ["1"] * 5 + ["2"]
        await asyncio.create_task(first.close())
        assert await say(second) == "ahoy"
        await asyncio.create_task(second.close())


@pytest.mark.req("L4")
async def test_nothing_is_asked_before_the_first_use() -> None:
    async with Modern() as server:
        async with connect(server):
            pass
        assert server.connections == 0


@pytest.mark.req("L9", "L5")
async def test_a_server_that_restarts_under_a_call_fails_it_and_serves_the_next() -> None:
    async with Legacy() as server, connect(server, backoff=QUICK) as client:
        await client.open()
        server.on["tools/call"] = lambda request, reply: reply.gone()
        call = asyncio.ensure_future(failure(say(client)))
        await server.heard("tools/call")
        await server.stop()
        server.sessions.clear()
        error = await call
        assert error.outcome_unknown
        server.on.clear()
        await server.start()
        assert await say(client) == "ahoy"


def leave_open(shape: Callable[[], Obliging]) -> Callable[[], object]:
    async def main() -> holdfast.Client:
        server = shape()
        await server.start()
        client = connect(server)
        assert await say(client) == "ahoy"
        server.on["tools/call"] = _open
        call = asyncio.ensure_future(say(client))
        call.add_done_callback(lambda task: task.cancelled() or task.exception())
        await server.heard("tools/call", 2)
        server.deafen()
        return client

    return main


@pytest.mark.req("L8")
@pytest.mark.parametrize("shape", SHAPES)
def test_a_loop_that_ends_first_leaves_no_warning(shape: Callable[[], Obliging]) -> None:
    client = asyncio.run(leave_open(shape)())  # type: ignore[arg-type,var-annotated]
    del client
    gc.collect()


@pytest.mark.req("X2", "X3")
@pytest.mark.parametrize("shape", SHAPES)
def test_it_works_on_uvloop(shape: Callable[[], Obliging]) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> list[str]:
        async with shape() as server, connect(server) as client:
            return list(await asyncio.gather(*(say(client, str(one)) for one in range(20))))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(main()) == [str(one) for one in range(20)]


@pytest.mark.req("R2", "X2")
async def test_many_calls_share_few_connections() -> None:
    async with Modern() as server, connect(server, connections=5) as client:
        found = await asyncio.gather(*(say(client, str(number)) for number in range(200)))
        assert found == [str(number) for number in range(200)]
        assert server.connections <= 6


@pytest.mark.req("X5")
async def test_a_name_and_an_identity_are_what_they_are_set_to() -> None:
    identity = holdfast.policies.Identity(name="me", version="7")
    async with Legacy() as server:
        async with connect(server, name="mine", identity=identity) as client:
            await client.open()
            assert client.name == "mine"
        (greeting,) = server.posts("initialize")
        assert greeting.params["clientInfo"] == {"name": "me", "version": "7"}
