"""Streams in memory for the clients of others: ``mcp`` 1 and 2, and FastMCP on them."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from holdfast._core.serve.runner import LoopRunner
from holdfast._core.serve.unread import may_wait
from holdfast._core.server.session import ServerSession
from holdfast.errors import StateError
from holdfast.relay.sharing import SharedRelay

if TYPE_CHECKING:
    from holdfast.client import Client

_shared: WeakKeyDictionary[Client, SharedRelay] = WeakKeyDictionary()


class SdkStreams:
    """The streams of one session, each time it is entered; a transport for FastMCP's client.

    Args:
        client: The client that speaks to the server. It stays open, and may serve several sessions.
    """

    legacy_only = False

    def __init__(self, client: Client) -> None:
        self._client = client
        self._entered: list[Any] = []

    def __repr__(self) -> str:
        return f"<SdkStreams {self._client!r}>"

    async def __aenter__(self) -> tuple[Any, Any]:
        context = self._connect()
        self._entered.append(context)
        return await context.__aenter__()

    async def __aexit__(self, *error: Any) -> Any:
        return await self._entered.pop().__aexit__(*error)

    async def close(self) -> None:
        """Do nothing: the client is closed by its owner."""

    def get_session_id(self) -> str | None:
        """Return None: the session has no id, as over stdio."""
        return None

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: Any = None, **session_options: Any
    ) -> AsyncIterator[Any]:
        """Yield a session that is not initialized, as FastMCP wants its transports to."""
        from mcp import ClientSession

        kind = getattr(transport_options, "session_class", ClientSession)
        async with self._connect() as streams, kind(*streams, **session_options) as session:
            yield session

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[tuple[Any, Any]]:
        import anyio

        forms = _forms()
        to_host, read = anyio.create_memory_object_stream[Any](math.inf)
        write, from_host = anyio.create_memory_object_stream[Any](0)
        if self._client not in _shared:
            _shared[self._client] = SharedRelay(self._client)
        host = _shared[self._client].join()

        def send(line: bytes) -> None:
            # Their bytes are not counted: who reads them does not say so.
            if not may_wait(line, to_host.statistics().current_buffer_used, 0):
                return
            try:
                to_host.send_nowait(forms.read(line))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # the session has ended

        session = ServerSession(host.server, send, LoopRunner())

        async def receive() -> None:
            async for message in from_host:
                session.feed(forms.write(message))

        reading = asyncio.get_running_loop().create_task(receive())
        try:
            yield read, write
        finally:
            reading.cancel()
            session.close()
            await host.leave()
            for stream in (to_host, read, write, from_host):
                stream.close()


class _Forms(NamedTuple):
    """How the installed version of ``mcp`` reads and writes a message."""

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]


def _forms() -> _Forms:
    try:
        from mcp import types
        from mcp.shared.message import SessionMessage
    except ImportError as error:
        text = "streams are for clients of the package mcp, which is not installed: pip install mcp"
        raise StateError(text) from error
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    if adapter is None:  # mcp 1
        model = types.JSONRPCMessage
        return _Forms(
            lambda line: SessionMessage(model.model_validate_json(line)),
            lambda sent: sent.message.model_dump_json(by_alias=True, exclude_none=True).encode(),
        )
    return _Forms(
        lambda line: SessionMessage(adapter.validate_json(line, by_name=False)),
        lambda sent: sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode(),
    )


def streams(client: Client) -> SdkStreams:
    """Return streams to a client's server for a session of the package ``mcp``, or of FastMCP.

    Args:
        client: A client that has not been used yet, except by this function: what the session can
            be asked is declared by it.

    Returns:
        An async context manager of a stream to read from and one to write to. FastMCP's ``Client``
        takes it as it is.

    Example:
        ```python
        async with holdfast.connect("python server.py") as client:
            async with streams(client) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
        ```
    """
    transports = sys.modules.get("fastmcp.client.transports")
    if transports is not None:
        transports.ClientTransport.register(SdkStreams)
    return SdkStreams(client)
