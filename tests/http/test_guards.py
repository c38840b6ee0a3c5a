"""A guard over HTTP, where no link is there to be lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast import DriftError, Tool
from tests.http.harness import connect, failure, say
from tests.http.rogue import Handler, Legacy, Modern, Obliging, Reply, Request, answer


async def _reset(request: Request, reply: Reply) -> None:
    reply.reset()


@pytest.mark.req("H8")
async def test_a_guard_looks_again_when_a_stateless_server_was_out_of_reach() -> None:
    seen: list[int] = []
    async with Modern() as server, connect(server) as client:
        client.guard_tools(lambda tools, instructions: seen.append(len(tools)))
        await say(client)
        server.on["tools/call"] = _reset
        await failure(say(client))
        del server.on["tools/call"]
        await say(client)
    assert len(seen) == 2, "what comes back may be another program"


async def _busy(request: Request, reply: Reply) -> None:
    await reply.status(503, Retry_After="0")


@pytest.mark.req("H8", "R11")
@pytest.mark.parametrize("shape", [Modern, Legacy])
@pytest.mark.parametrize("refusal", [_reset, _busy])
async def test_a_guard_looks_before_a_call_is_sent_a_second_time(
    shape: type[Obliging], refusal: Handler
) -> None:
    seen: list[int] = []

    def check(tools: Sequence[Tool], instructions: str | None) -> None:
        seen.append(len(server.posts("tools/call")))
        if len(seen) > 1:
            raise DriftError("another server")

    tool = {"name": "echo", "inputSchema": {}, "annotations": {"readOnlyHint": True}}

    async def listed(request: Request, reply: Reply) -> None:
        await reply.json(answer(request.id, {"resultType": "complete", "tools": [tool]}))

    async with shape() as server, connect(server, replay="safe", when_down="wait") as client:
        server.on["tools/list"] = listed
        server.on["tools/call"] = refusal
        client.guard_tools(check)
        assert isinstance(await failure(say(client)), DriftError)
        assert seen == [0, 1], "sent once, and looked at again before the second time"


@pytest.mark.req("H8", "R11")
async def test_a_server_that_stays_busy_is_not_asked_for_ever() -> None:
    async with Modern() as server, connect(server) as client:
        client.guard_tools(lambda tools, instructions: None)
        server.on["tools/call"] = _busy
        assert "503" in str(await failure(say(client)))
        assert len(server.posts("tools/call")) == 4
