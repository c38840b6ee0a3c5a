"""Whatever functions of the application raise, it ends nothing but themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import pytest

import holdfast
from holdfast import Handlers, Observability, ToolPolicy
from holdfast._core import callbacks
from holdfast._core.callbacks import LONG, ends_task
from holdfast.testing import Peer, ServerRequest
from tests.http.harness import connect, failure, say
from tests.http.rogue import Legacy, Modern, Obliging, Old, Reply, Request, answer, event, notice
from tests.http.rogue import text as result_text


class OddError(BaseException):
    """None that ``except Exception`` catches."""


ODD = [OddError, asyncio.CancelledError, GeneratorExit, ValueError]
odd = pytest.mark.parametrize("kind", ODD)


def plain(kind: type[BaseException]) -> Callable[[Any], Any]:
    def fail(_: Any) -> Any:
        raise kind("odd")

    return fail


def coroutine(kind: type[BaseException]) -> Callable[[Any], Any]:
    async def fail(_: Any) -> Any:
        raise kind("odd")

    return fail


both = pytest.mark.parametrize("make", [plain, coroutine])


def talkative() -> Peer:
    """A server whose tool reports progress and logs before it answers."""
    peer = Peer()

    @peer.tool()
    def echo(text: str) -> str:
        peer.progress(peer.received[-1], 1)
        peer.notify("notifications/message", {"level": "info", "data": "x"})
        return text

    return peer


@pytest.mark.req("R12", "M1")
@odd
@both
async def test_callbacks_that_fail_in_any_way_cost_no_call(
    kind: type[BaseException], make: Callable[..., Any]
) -> None:
    fail = make(kind)
    async with holdfast.connect(
        talkative(),
        handlers=Handlers(notification=fail, progress=fail),
        observability=Observability(audit=fail),
    ) as client:
        client.events.subscribe(fail)
        for words in ("one", "two"):
            found = await client.call_tool("echo", {"text": words}, on_progress=fail, timeout=5)
            assert found.text == words


@pytest.mark.req("R12")
@odd
@both
@pytest.mark.parametrize("shape", [Modern, Legacy, Old])
async def test_progress_that_fails_in_any_way_costs_no_answer_over_http(
    kind: type[BaseException], make: Callable[..., Any], shape: type[Obliging]
) -> None:
    async with shape() as server:

        async def respond(request: Request, reply: Reply) -> None:
            token = request.params["_meta"]["progressToken"]
            progress = notice("notifications/progress", {"progressToken": token, "progress": 1})
            events = event(progress) + event(answer(request.id, result_text("done")))
            if isinstance(server, Old):
                assert server.stream is not None
                await reply.status(202)
                await server.stream.send(events)
            else:
                await reply.stream(events)
                await reply.end()

        server.on["tools/call"] = respond
        async with connect(server) as client:
            assert await say(client, on_progress=make(kind), timeout=20) == "done"


@pytest.mark.req("X5", "R12")
@odd
@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("shape", [Modern, Legacy, Old])
async def test_headers_that_fail_in_any_way_end_their_own_call_at_once(
    kind: type[BaseException], later: bool, shape: type[Obliging]
) -> None:
    broken = False

    def headers() -> dict[str, str]:
        if broken:
            raise kind("odd")
        return {}

    async def headers_later() -> dict[str, str]:
        return headers()

    async with shape() as server:
        target = holdfast.Http(server.url, headers=headers_later if later else headers)
        async with holdfast.connect(target) as client:
            assert await say(client) == "ahoy"
            broken = True
            error = await failure(say(client))
            assert isinstance(error, holdfast.AuthError)
            assert "headers() failed" in str(error)
            assert not error.outcome_unknown
            broken = False
            assert await say(client) == "ahoy"


@pytest.mark.req("R12")
@odd
@both
async def test_an_approval_that_fails_in_any_way_refuses_the_call(
    kind: type[BaseException], make: Callable[..., Any]
) -> None:
    policy = ToolPolicy(approve=make(kind))
    async with holdfast.connect(talkative(), tools=policy) as client:
        with pytest.raises(holdfast.errors.ApprovalError, match="asking for approval failed"):
            await client.call_tool("echo", {"text": "x"})


async def test_only_the_task_s_own_cancellation_ends_it() -> None:
    assert not ends_task(asyncio.CancelledError())
    assert ends_task(KeyboardInterrupt())
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await asyncio.sleep(0)
    assert ends_task(caught.value)
    task.uncancel()


def test_a_coroutine_that_is_closed_ends() -> None:
    assert ends_task(GeneratorExit())


# A plain function that holds the event loop


class Slow:
    """Plain functions of every shape, each of which holds the loop the first times."""

    def method(self, value: Any) -> None:
        time.sleep(LONG * 1.2)

    def __call__(self, value: Any) -> None:
        time.sleep(LONG * 1.2)


def slow_function(value: Any) -> None:
    time.sleep(LONG * 1.2)


def slow_and_wrong(value: Any) -> None:
    time.sleep(LONG * 1.2)
    raise RuntimeError("boom")


@wraps(slow_function)
def wrapped(value: Any) -> None:
    slow_function(value)


@pytest.fixture
def _none_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callbacks, "_slow", set())


@pytest.mark.req("R12")
@pytest.mark.usefixtures("_none_reported")
@pytest.mark.parametrize(
    ("handler", "name"),
    [
        (slow_function, "slow_function"),
        (partial(slow_function), "slow_function"),
        (wrapped, "slow_function"),
        (Slow().method, "Slow.method"),
        (Slow(), "Slow"),
        (lambda value: time.sleep(LONG * 1.2), "<lambda>"),
    ],
    ids=["function", "partial", "wrapped", "method", "callable", "lambda"],
)
def test_a_plain_function_that_holds_the_loop_is_named_once(
    handler: Any, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        callbacks.call_plain(handler, None)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert f"{name}" in record.getMessage()
    assert "held the event loop for" in record.getMessage()


@pytest.mark.req("R12")
@pytest.mark.usefixtures("_none_reported")
def test_one_that_fails_is_named_as_well(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError, match="boom"):
        callbacks.call_plain(slow_and_wrong, None)
    assert "slow_and_wrong" in caplog.text


@pytest.mark.req("R12")
@pytest.mark.usefixtures("_none_reported")
def test_what_is_remembered_of_slow_functions_is_bounded(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "MOST_SLOW", 1)
    callbacks.call_plain(slow_function, None)
    callbacks.call_plain(Slow(), None)
    assert len(caplog.records) == 1


@pytest.mark.req("R12")
@pytest.mark.usefixtures("_none_reported")
async def test_every_plain_handler_is_watched(caplog: pytest.LogCaptureFixture) -> None:
    peer = Peer(versions=["2025-11-25"])

    def call(request: ServerRequest) -> Any:
        peer.progress(request, 1)
        peer.notify("notifications/message", {"level": "info", "data": "x"})
        return {"content": []}

    def of_progress(value: Any) -> None:
        time.sleep(LONG * 1.2)

    def of_every_call(value: Any) -> None:
        time.sleep(LONG * 1.2)

    def of_notification(value: Any) -> None:
        time.sleep(LONG * 1.2)
        heard.set()

    def of_event(value: Any) -> None:
        time.sleep(LONG * 1.2)

    def of_audit(value: Any) -> None:
        time.sleep(LONG * 1.2)

    def of_log(value: Any) -> None:
        time.sleep(LONG * 1.2)

    heard = asyncio.Event()
    peer.on("tools/call", call)
    handlers = holdfast.Handlers(notification=of_notification, progress=of_every_call)
    audited = holdfast.Observability(audit=of_audit)
    async with holdfast.connect(
        peer, handlers=handlers, observability=audited, log=of_log
    ) as client:
        client.events.subscribe(of_event, "request.start")
        for _ in range(2):
            await client.call_tool("x", on_progress=of_progress)
        await heard.wait()
    for handler in (of_progress, of_every_call, of_notification, of_event, of_audit, of_log):
        named = [record for record in caplog.records if handler.__name__ in record.getMessage()]
        assert len(named) == 1, handler
