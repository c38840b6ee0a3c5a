"""Whose headers a request carries, where a function gives them for each."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from tests.http.harness import connect, failure, say
from tests.http.rogue import Legacy, Modern, Reply, Request

user: ContextVar[str] = ContextVar("user", default="nobody")


@pytest.mark.req("X5")
async def test_a_request_that_waited_for_the_connection_is_still_its_callers() -> None:
    async def call_as(name: str) -> None:
        user.set(name)
        await say(client)

    async with Modern() as server:
        client = connect(server, headers=lambda: {"Authorization": user.get()})
        async with client:
            await asyncio.gather(*(call_as(name) for name in "abcdef"))
        sent = [post.header("Authorization") or "" for post in server.posts("tools/call")]
    assert sorted(sent) == list("abcdef")


@pytest.mark.req("X5", "R4")
async def test_a_call_that_times_out_is_cancelled_with_its_callers_headers() -> None:
    async def never(request: Request, reply: Reply) -> None:
        await reply.gone()

    async def call_as(name: str, timeout: float) -> None:
        user.set(name)
        await failure(say(client, name, timeout=timeout))

    async with Legacy() as server:
        client = connect(server, headers=lambda: {"Authorization": user.get()})
        async with client:
            await say(client)
            server.on["tools/call"] = never
            await asyncio.gather(*(call_as(name, 0.1 + 0.1 * at) for at, name in enumerate("abc")))
            await server.heard("notifications/cancelled", 3)
        callers = {post.id: post.header("Authorization") for post in server.posts("tools/call")}
        told = server.posts("notifications/cancelled")
        for post in told:
            assert post.header("Authorization") == callers[post.params["requestId"]]
