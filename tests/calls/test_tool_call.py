"""The steps of a tool call as functions of its memory: how it goes on, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import structs

import holdfast
from holdfast._core.boundary import Call, LinkChanged
from holdfast._core.calls.tool_call import ToolCall
from holdfast.client import Client
from holdfast.errors import (
    CancelledCallError,
    HoldfastError,
    LoginRequired,
    RequestTimeout,
    RpcError,
    TransportError,
)
from holdfast.testing import Peer

SENT = Call("tools/call", about="add", idle=30, total=300)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    peer = Peer()

    @peer.tool()
    def add() -> str:
        return "3"

    async with holdfast.connect(peer) as client:
        yield client


def make_call(client: Client, **memory: Any) -> ToolCall:
    """Return a call of ``add`` in the middle of its life."""
    pipeline, driver = client._pipeline, client._requester.driver
    params: dict[str, Any] = {"name": "add", "arguments": {}}
    now = driver.loop.time()
    call = ToolCall(pipeline, driver, "add", {}, {}, params, now, now)
    return structs.replace(call, **memory)


def lost(*, unknown: bool) -> TransportError:
    return TransportError("the link was lost", outcome_unknown=unknown)


@pytest.mark.req("R2", "R8")
@pytest.mark.parametrize(
    ("memory", "error", "unknown"),
    [
        # The driver knows it of a request that is out.
        ({"request": SENT}, lost(unknown=True), True),
        ({"request": SENT}, lost(unknown=False), False),
        ({"request": SENT}, RpcError("no", code=-32000), False),
        # An error before that is about another request.
        ({}, lost(unknown=True), False),
        ({}, lost(unknown=False), False),
        # An earlier attempt may have run, whatever became of this one.
        ({"may_have_run": True}, lost(unknown=False), True),
        ({"request": SENT, "may_have_run": True}, lost(unknown=False), True),
        ({"request": SENT, "may_have_run": True}, RpcError("no", code=-32000), True),
        # A server that asks has begun; one that answers with an error has ended.
        ({"request": SENT, "rounds": 1}, lost(unknown=False), True),
        ({"request": SENT, "rounds": 1}, RpcError("no", code=-32000), False),
        ({"request": SENT, "rounds": 1, "is_answered": True}, lost(unknown=False), False),
    ],
)
async def test_the_end_of_a_call_says_whether_it_may_have_run(
    client: Client, memory: dict[str, Any], error: HoldfastError, unknown: bool
) -> None:
    before = (error.message, error.outcome_unknown)
    failure = make_call(client, **memory).fail(error)
    assert isinstance(failure, type(error))
    assert failure.outcome_unknown is unknown
    assert (error.message, error.outcome_unknown) == before, "an error is built once"


@pytest.mark.req("R2")
async def test_the_error_of_a_list_says_that_the_call_was_not_sent(client: Client) -> None:
    error = RequestTimeout("x: tools/list: no answer; it may have run", outcome_unknown=True)
    failure = make_call(client).fail(error)
    assert str(failure).endswith("; tools/call 'add' was not sent")
    assert isinstance(failure, RequestTimeout)


@pytest.mark.req("R2")
@pytest.mark.parametrize(
    ("memory", "unknown"),
    [({}, False), ({"may_have_run": True}, True), ({"request": SENT, "rounds": 1}, True)],
)
async def test_a_cancelled_call_says_in_its_cause_whether_it_may_have_run(
    client: Client, memory: dict[str, Any], unknown: bool
) -> None:
    error = asyncio.CancelledError()
    assert make_call(client, **memory).fail(error) is error
    assert isinstance(error.__cause__, CancelledCallError)
    assert error.__cause__.outcome_unknown is unknown


async def test_the_cause_of_the_driver_stays_if_the_request_is_out(client: Client) -> None:
    error = asyncio.CancelledError()
    cause = error.__cause__ = CancelledCallError("said by the driver")
    make_call(client, request=SENT).fail(error)
    assert error.__cause__ is cause


@pytest.mark.req("R2", "H4")
@pytest.mark.parametrize("rounds", [0, 1])
@pytest.mark.parametrize("repeated", [False, True])
async def test_a_link_that_changed_begins_anew_and_keeps_what_may_have_run(
    client: Client, rounds: int, repeated: bool
) -> None:
    call = make_call(client, request=SENT, rounds=rounds)
    error = LinkChanged("gone", may_have_run=repeated, refusals=3)
    await call.recover(error)
    assert call.request is None
    assert call.refusals == 3
    assert call.may_have_run is (repeated or rounds > 0)


@pytest.mark.req("A1")
async def test_a_login_that_nobody_can_make_is_raised_with_what_the_call_remembers(
    client: Client,
) -> None:
    call = make_call(client, request=SENT, may_have_run=True)
    error = LoginRequired("log in")
    with pytest.raises(LoginRequired):
        await call.recover(error)
    failure = call.fail(error)
    assert isinstance(failure, LoginRequired)
    assert failure.outcome_unknown
    assert call.logins == 1


async def test_an_error_of_the_server_that_has_no_remedy_is_raised(client: Client) -> None:
    call = make_call(client, request=SENT)
    error = RpcError("no", code=-32000)
    with pytest.raises(RpcError) as caught:
        await call.recover(error)
    assert caught.value is error
    assert call.request is SENT, "the attempt is the last one"


@pytest.mark.req("R2")
async def test_a_server_that_wants_a_task_is_called_as_one(client: Client) -> None:
    data: dict[str, Any] = {
        "requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    }
    call = make_call(client, request=SENT)
    await call.recover(RpcError("a task, please", code=-32021, data=data))
    assert call.takes_task
    assert call.asks_leave
    assert call.request is None
    assert not call.may_have_run
    with pytest.raises(RpcError):
        await call.recover(RpcError("a task, please", code=-32021, data=data))


@pytest.mark.req("H4")
@pytest.mark.parametrize("unknown", [True, False])
async def test_a_lost_link_has_the_guards_look_again(client: Client, unknown: bool) -> None:
    """Over HTTP a request's own error may be the only sign that the server was replaced."""
    lists: list[int] = []
    client.guard_tools(lambda tools, instructions: lists.append(len(tools)))
    await client.call_tool("add")
    make_call(client, request=SENT).fail(RequestTimeout("slow", outcome_unknown=True))
    await client.call_tool("add")
    assert lists == [1]
    make_call(client, request=SENT).fail(lost(unknown=unknown))
    await client.call_tool("add")
    assert lists == [1, 1]
