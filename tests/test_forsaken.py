"""Clients that are dropped without a close: their servers end, and Python says so."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
import holdfast.sync
from holdfast.testing import SILENCE, Peer

DEMO = [sys.executable, "-m", "holdfast.demo.server"]
AWHILE = 20.0  # seconds; a guard against hanging, not a measure of speed


@contextmanager
def told() -> Iterator[list[str]]:
    """Collect the warnings about resources."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield texts
        gc.collect()
        texts += [str(warning.message) for warning in caught]


def pid_of(client: object) -> int:
    driver = client._requester.opener.started  # type: ignore[attr-defined]
    pid = driver._link._child.pid
    assert isinstance(pid, int)
    return pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + AWHILE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.req("L9")
async def test_a_server_ends_with_its_client_on_a_running_loop() -> None:
    with told() as texts:
        client = holdfast.connect(DEMO, name="demo")
        await client.open()
        pid = pid_of(client)
        del client
        gc.collect()
        await asyncio.to_thread(wait_until, lambda: not is_running(pid))
    assert texts == ["unclosed client 'demo': close it, or use 'async with'"]


@pytest.mark.req("L9")
@pytest.mark.parametrize("closed", [False, True])
def test_a_server_ends_with_its_client_on_a_loop_that_does_not_run(closed: bool) -> None:
    loop = asyncio.new_event_loop()
    with told() as texts:
        client = holdfast.connect(DEMO)
        loop.run_until_complete(client.open())
        pid = pid_of(client)
        if closed:
            loop.close()
        del client
        gc.collect()
        assert not is_running(pid)
    assert len(texts) >= 1
    loop.close()


@pytest.mark.req("L9")
async def test_a_client_may_be_collected_in_another_thread() -> None:
    with told() as texts:
        box = [holdfast.connect(DEMO)]
        await box[0].open()
        pid = pid_of(box[0])
        await asyncio.to_thread(box.clear)
        gc.collect()
        await asyncio.to_thread(wait_until, lambda: not is_running(pid))
    assert len(texts) == 1


@pytest.mark.req("L9")
def test_a_synchronous_client_that_is_dropped_ends_its_server() -> None:
    with told() as texts:
        client = holdfast.sync.connect(DEMO, name="demo")
        client.open()
        pid = pid_of(client._inner)
        del client
        gc.collect()
        wait_until(lambda: not is_running(pid))
    assert texts == ["unclosed client 'demo': close it, or use 'async with'"]


@pytest.mark.req("L9")
@pytest.mark.parametrize("closed", [False, True])
async def test_a_connection_that_is_dropped_is_closed(closed: bool) -> None:
    from tests.cli.shop import Shop

    with Shop() as shop, told() as texts:

        async def use() -> None:
            client = holdfast.connect(shop.url, auth=None)
            await client.list_tools()

        if closed:
            loop = asyncio.new_event_loop()
            await asyncio.to_thread(loop.run_until_complete, use())
            loop.close()
        else:
            await use()
            gc.collect()
            await asyncio.sleep(0.01)
    assert any("unclosed client" in text for text in texts)
    assert not any("ClientSession" in text for text in texts)


@pytest.mark.req("L9")
async def test_nothing_is_said_of_clients_that_were_closed_or_never_used() -> None:
    with told() as texts:
        async with holdfast.connect(Peer()) as client:
            await client.list_tools()
        del client
        holdfast.connect(DEMO)
        with pytest.raises(holdfast.ValidationError):
            holdfast.connect(5)  # type: ignore[arg-type]
    assert texts == []


@pytest.mark.req("L9")
async def test_a_call_that_is_under_way_keeps_its_client() -> None:
    peer = Peer()
    peer.tool("slow")(lambda: SILENCE)
    with told() as texts:
        call = holdfast.connect(peer).start_tool("slow")
        request = await peer.expect("tools/call")
        gc.collect()
        await asyncio.sleep(0)
        peer.respond(request, {"content": [{"type": "text", "text": "done"}]})
        assert (await call).text == "done"
        assert texts == []
        del call
        gc.collect()
        await asyncio.sleep(0)
    assert len(texts) == 1


@pytest.mark.req("L9")
async def test_a_client_that_waits_to_try_again_stops_trying() -> None:
    opened: list[int] = []

    class Counting(holdfast.Stdio):
        def open(self, *args: object, **options: object) -> object:  # type: ignore[override]
            opened.append(1)
            return super().open(*args, **options)  # type: ignore[arg-type]

    with told() as texts:
        backoff = holdfast.Backoff(first=0.01, max=0.01)
        server: Any = Counting(["true"])
        client = holdfast.connect(server, backoff=backoff)
        with pytest.raises(holdfast.TransportError):
            await client.open()
        del client
        gc.collect()
        for _ in range(3):
            await asyncio.sleep(0.02)
        count = len(opened)
        await asyncio.sleep(0.1)
        assert len(opened) == count
    assert len(texts) == 1


def test_a_program_that_ends_with_a_client_open_says_nothing_it_cannot(tmp_path: Path) -> None:
    """At the end of the interpreter hardly anything can be imported any more."""
    program = tmp_path / "program.py"
    program.write_text(
        "import asyncio, sys, holdfast\n"
        "async def main():\n"
        "    global client\n"
        f"    client = holdfast.connect({DEMO!r})\n"
        "    await client.list_tools()\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, str(program)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
