"""The inner parts of other libraries that are used: a release that changes them must fail here.

Small POSTs are built from aiohttp's own objects, and the driver wakes a caller through its future.
Both would go on working, only slower or not quite right, if these changed. So they are pinned: an
update is tried by raising the bound in pyproject.toml and running these tests.
"""

from __future__ import annotations

import asyncio
import inspect
import tomllib
from typing import Any

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_writer import StreamWriter
from yarl import URL

import holdfast
from holdfast._core.transports.http_client import HttpConnector, SmallPost
from tests.rows import rows
from tests.rules.source import PROJECT


def test_the_fast_path_is_on_with_every_version_that_may_be_installed() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (bound,) = [line for line in project["dependencies"] if line.startswith("aiohttp")]
    assert bound == "aiohttp<3.15,>=3.14", "try the new release with the tests below"
    assert aiohttp.__version__.startswith("3.14.")
    assert SmallPost.FAMILIAR


@rows(
    ("function", "names"),
    [
        (
            ResponseHandler.set_response_params,
            ["read_until_eof", "auto_decompress", "read_bufsize"],
        ),
        (ResponseHandler.data_received, ["data"]),
        (StreamWriter.__init__, ["protocol", "loop"]),
        (StreamWriter.write_headers, ["status_line", "headers"]),
        (StreamWriter.write, ["chunk", "drain"]),
        (
            aiohttp.ClientResponse.__init__,
            [
                "method",
                "url",
                "writer",
                "continue100",
                "timer",
                "request_info",
                "traces",
                "loop",
                "session",
                "stream_writer",
            ],
        ),
        (aiohttp.ClientResponse.start, ["connection"]),
        (aiohttp.TCPConnector.connect, ["req", "traces", "timeout"]),
        (aiohttp.TCPConnector._close, ["abort_ssl"]),
    ],
)
def test_the_functions_that_are_called_take_what_they_are_given(
    function: Any, names: list[str]
) -> None:
    parameters = inspect.signature(function).parameters
    assert not [name for name in names if name not in parameters]
    required = [
        name
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    assert not [name for name in required if name not in [*names, "self"]]


async def heard(small: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the head of a POST as it is sent, without what differs from call to call."""
    monkeypatch.setattr(SmallPost, "FAMILIAR", small)
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/mcp"
    headers = {"X-Mine": "1"}
    async with holdfast.connect(url, protocol="2026-07-28", headers=headers, auth=None) as client:
        with pytest.raises(holdfast.HoldfastError):
            await client.open()
    server.close()
    await server.wait_closed()
    lines = heads[0].decode().replace(str(port), "PORT").split("\r\n")
    return sorted(line.lower() for line in lines)


async def test_a_small_post_is_sent_as_a_session_sends_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await heard(True, monkeypatch) == await heard(False, monkeypatch)


async def test_a_template_has_what_its_copies_need() -> None:
    async with aiohttp.ClientSession() as session:
        loop = asyncio.get_running_loop()
        url = URL("http://127.0.0.1/mcp")
        post = SmallPost("POST", url, headers={}, loop=loop, session=session)
        for name in ("headers", "url", "loop", "session", "_timer", "request_info"):
            assert hasattr(post, name), name
        assert post.connection_key is not None
        connector = HttpConnector()
        assert callable(connector._factory)
        await connector.close()


async def test_a_future_knows_the_task_that_waits_for_it() -> None:
    """The driver calls it at once, instead of in the next turn of the loop."""
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def wait() -> int:
        return await future

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    ((wakeup, context),) = future._callbacks
    future.remove_done_callback(wakeup)
    future.set_result(7)
    context.run(asyncio.get_running_loop().call_soon, wakeup, future)
    assert await task == 7
