"""A guard over HTTP, where no link is there to be lost."""

from __future__ import annotations

import pytest

from tests.http.harness import connect, failure, say
from tests.http.rogue import Modern, Reply, Request


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
