"""Several processes with one stored login, as editors and shells have it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from holdfast import FileLogins, LoginRequired, OAuth
from tests.auth.world import world

CALLER = """
import asyncio, sys
import holdfast

async def main(url, folder, seconds):
    auth = holdfast.OAuth(store=holdfast.FileLogins(folder), interactive=False)
    async with holdfast.connect(url, auth=auth, protocol="2025-11-25") as client:
        loop = asyncio.get_running_loop()
        until, calls = loop.time() + float(seconds), 0
        while loop.time() < until:
            assert (await client.call_tool("hello")).text == "hello"
            calls += 1
        print(calls)

asyncio.run(main(*sys.argv[1:]))
"""

KILLED = """
import asyncio, sys
import holdfast

class Stuck(holdfast.FileLogins):
    def save(self, name, data):
        print("answered", flush=True)
        import time
        time.sleep(60)

async def main(url, folder):
    auth = holdfast.OAuth(store=Stuck(folder), interactive=False)
    async with holdfast.connect(url, auth=auth, protocol="2025-11-25") as client:
        await client.call_tool("hello")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.hang(120)
@pytest.mark.req("B2", "B3", "B7")
async def test_processes_share_a_login_whose_tokens_live_a_second(tmp_path: Path) -> None:
    async with world() as here:
        here.life = 1.0
        async with here.connect(auth=OAuth(store=FileLogins(tmp_path))) as client:
            await client.login()
        url = f"{here.url}/mcp"
        running = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                CALLER,
                url,
                str(tmp_path),
                "5",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            for _ in range(4)
        ]
        for process in running:
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            assert int(out) > 0
        # A refresh token that is used twice would have ended the login for all of them.
        assert here.refresh
        assert here.count["authorize"] == 1
        assert 1 <= here.count["refresh_token"] < 20


@pytest.mark.hang(120)
@pytest.mark.req("B2", "B4")
async def test_a_process_killed_before_it_saved_leaves_a_whole_entry(tmp_path: Path) -> None:
    async with world() as here:
        here.life = 0.01
        store = FileLogins(tmp_path)
        async with here.connect(auth=OAuth(store=store)) as client:
            await client.login()
        before = [await store.read(key) for key in await store.keys()]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            KILLED,
            f"{here.url}/mcp",
            str(tmp_path),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert await process.stdout.readline() == b"answered\n"
        os.kill(process.pid, signal.SIGKILL)
        await process.communicate()
        assert [await store.read(key) for key in await store.keys()] == before
        # The rotated token is lost, so the login has ended: said at once, and nothing hangs.
        async with here.connect(auth=OAuth(store=store, interactive=False)) as client:
            with pytest.raises(LoginRequired):
                await client.list_tools()
