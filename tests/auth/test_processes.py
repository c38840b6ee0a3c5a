"""Several processes with one stored login, as editors and shells have it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from holdfast import OAuth
from holdfast.errors import LoginRequired
from holdfast.stores import FileStore
from tests.auth.world import world

CALLER = """
import asyncio, sys
import holdfast

async def main(url, folder):
    auth = holdfast.OAuth(store=holdfast.stores.FileStore(folder), interactive=False)
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    calls = 0
    async with holdfast.connect(url, auth=auth) as client:
        while not ended.done():
            assert (await client.call_tool("hello")).text == "hello"
            calls += 1
    print(calls)

asyncio.run(main(*sys.argv[1:]))
"""


async def start(script: str, *words: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-c", script, *words]
    return await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, stderr=pipe)


KILLED = """
import asyncio, sys
import holdfast

class Stuck(holdfast.stores.FileStore):
    saves = 0

    async def put(self, key, data, ttl=None):
        # The first one only tries whether the store can be written.
        self.saves += 1
        if self.saves < int(sys.argv[3]):
            return await super().put(key, data, ttl)
        print("saving", flush=True)
        import time
        time.sleep(60)

    async def swap(self, key, old, new, ttl=None):
        await self.put(key, new, ttl)
        return True

async def main(url, folder):
    auth = holdfast.OAuth(store=Stuck(folder), interactive=False)
    async with holdfast.connect(url, auth=auth, protocol="2025-11-25") as client:
        await client.call_tool("hello")

asyncio.run(main(*sys.argv[1:3]))
"""


@pytest.mark.thorough(only=True)
@pytest.mark.hang(400)
@pytest.mark.req("B2", "B3", "B7")
async def test_processes_share_a_login_whose_tokens_live_for_a_moment(tmp_path: Path) -> None:
    async with world() as here:
        here.life = 0.3
        async with here.connect(auth=OAuth(store=FileStore(tmp_path))) as client:
            await client.login()
        running = [await start(CALLER, f"{here.url}/mcp", str(tmp_path)) for _ in range(6)]
        await here.refreshed(10)
        for process in running:
            out, err = await process.communicate(b"")
            assert process.returncode == 0, err.decode()
            assert int(out) > 0
        # A refresh token that is used twice would have ended the login for all of them.
        assert here.refresh
        assert here.count["authorize"] == 1
        assert here.count["refresh_token"] >= 10


@pytest.mark.hang(400)
@pytest.mark.req("B2", "B4")
@pytest.mark.parametrize(
    ("save", "grace", "lost"),
    [(1, False, False), (2, False, True), (2, True, False)],
    ids=["before", "after", "grace"],
)
async def test_a_process_killed_before_or_after_the_answer_leaves_a_whole_entry(
    tmp_path: Path, save: int, grace: bool, lost: bool
) -> None:
    async with world() as here:
        here.life, here.grace = 1e-9, grace
        store = FileStore(tmp_path)
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.login()
        before = [await store.get(key) for key in await store.keys()]
        process = await start(KILLED, f"{here.url}/mcp", str(tmp_path), str(save))
        assert process.stdout is not None
        assert await process.stdout.readline() == b"saving\n"
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
        assert [await store.get(key) for key in await store.keys()] == before
        assert here.count["refresh_token"] == save - 1
        here.life = 3600
        async with here.connect(auth=OAuth(store=store, interactive=False)) as client:
            if not lost:
                assert await client.list_tools()
                return
            # The rotated token is gone, so the login has ended: said at once, and nothing hangs.
            with pytest.raises(LoginRequired):
                await client.list_tools()
