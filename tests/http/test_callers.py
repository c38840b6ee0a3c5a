"""Whose headers a request carries, where a function gives them for each."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from tests.http.harness import connect, say
from tests.http.rogue import Modern

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
