"""A server over HTTP, and clients that find out its era."""

from __future__ import annotations

import pytest

import holdfast
from holdfast._core.serve.http import HttpServer
from holdfast.demo.server import make_server


@pytest.mark.req("L3")
async def test_a_client_that_asks_for_the_newer_era_first_falls_back() -> None:
    """A server of the older one said that the headers were wrong, as one of the newer does."""
    server = HttpServer(make_server("handshake"))
    port = await server.start()
    try:
        async with holdfast.connect(f"http://127.0.0.1:{port}/mcp") as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}
            assert client.protocol_version == "2025-11-25"
    finally:
        await server.close()
