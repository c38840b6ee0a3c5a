"""What carries conversations with authorization servers out: bounded in time and in attempts."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from holdfast import MemoryLogins
from holdfast._core.auth import jws
from holdfast._core.auth.as_client import Reach
from holdfast._core.auth.credentials import Login
from holdfast._core.auth.executor import MACHINE_TIME, Executor
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Read
from holdfast.errors import TransportError
from tests.auth.test_as_client import serving
from tests.skipping import skip


class SlowLogins(MemoryLogins):
    """Takes ten seconds for each reading, by the clock of the tests."""

    async def read(self, key: str) -> bytes | None:
        skip(10.0)
        await asyncio.sleep(0)
        return await super().read(key)


@pytest.mark.req("B14")
async def test_what_needs_no_person_ends_in_time_however_many_steps_it_has() -> None:
    steps = 0

    def conversation() -> Conversation[None]:
        nonlocal steps
        while steps < 100:
            steps += 1
            yield Read("a", Login)

    executor = Executor(Reach(), time.time, SlowLogins())
    with pytest.raises(TransportError, match=f"within {MACHINE_TIME:g} s"):
        await executor.run(conversation())
    assert steps <= MACHINE_TIME / 10 + 2


@pytest.mark.req("A36")
async def test_a_nonce_is_honoured_once_with_a_new_proof() -> None:
    """A server that is content with no nonce is not asked for ever."""
    proofs: list[str] = []

    async def never_content(request: web.Request) -> web.StreamResponse:
        proofs.append(request.headers["DPoP"])
        if len(proofs) > 10:
            return web.json_response({})
        headers = {"DPoP-Nonce": f"n{len(proofs)}"}
        return web.json_response({"error": "use_dpop_nonce"}, status=400, headers=headers)

    key = jws.new_key()
    async with serving(never_content) as url:

        def conversation() -> Conversation[object]:
            return (yield Ask(url=f"{url}/token", form={}, proof=key, pinned=True))

        executor = Executor(Reach(), time.time, MemoryLogins())
        executor.network = "loopback"
        answer = await executor.run(conversation())
    assert isinstance(answer, Fetched)
    assert answer.status == 400
    assert len(set(proofs)) == len(proofs) == 2
