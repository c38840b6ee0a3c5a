"""Streams in memory for the clients of others: ``mcp`` 1 and 2, and FastMCP on them."""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

from msgspec import UNSET

from holdfast._core.serve.runner import LoopRunner
from holdfast._core.serve.unread import may_wait
from holdfast._core.server.message import is_id, read_message
from holdfast._core.server.session import ServerSession
from holdfast._core.wire.jsonrpc import encode_line
from holdfast.errors import StateError
from holdfast.relay.envelope import broken, unsendable
from holdfast.relay.sharing import SharedRelay

if TYPE_CHECKING:
    from holdfast._core.server.server import Server
    from holdfast.client import Client

_relays: WeakKeyDictionary[Client, ReferenceType[SharedRelay]] = WeakKeyDictionary()
"""The relay of each client; once a session has spoken, the client holds it."""


class SdkStreams:
    """The streams of one session, each time it is entered; a transport for FastMCP's client.

    Args:
        client: The client that speaks to the server. It stays open, and may serve several sessions.
    """

    legacy_only = False

    def __init__(self, client: Client) -> None:
        self._client = client
        self._entered: AbstractAsyncContextManager[tuple[Any, Any]] | None = None

    def __repr__(self) -> str:
        return f"<SdkStreams {self._client!r}>"

    async def __aenter__(self) -> tuple[Any, Any]:
        if self._entered is not None:
            raise StateError("these streams are in use: each session needs streams(client) anew")
        self._entered = self._connect()
        try:
            return await self._entered.__aenter__()
        except BaseException:
            self._entered = None
            raise

    async def __aexit__(self, *error: Any) -> Any:
        entered, self._entered = self._entered, None
        assert entered is not None, "left more often than entered"
        return await entered.__aexit__(*error)

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
        loop = self._client._requester.driver.loop
        to_host, read = anyio.create_memory_object_stream[Any](math.inf)
        write, from_host = anyio.create_memory_object_stream[Any](0)
        host = _relay_of(self._client).join()
        end = _ServerEnd(host.server, forms, to_host)
        reading = loop.create_task(end.receive(from_host))
        try:
            yield read, write
        finally:
            # All but the last at once: what cancels the session cancels that, too.
            reading.cancel()
            end.session.close()
            for stream in (to_host, read, write, from_host):
                stream.close()
            await host.leave()


class _ServerEnd:
    """The end of one session's streams at which the relay is its server."""

    def __init__(self, server: Server, forms: _Forms, to_host: Any) -> None:
        self._forms = forms
        self._to_host = to_host
        self.session = ServerSession(server, self._send, LoopRunner())

    def __repr__(self) -> str:
        return f"<_ServerEnd {self.session!r}>"

    async def receive(self, from_host: Any) -> None:
        """Take what the session sends, until it ends."""
        async for sent in from_host:
            try:
                line = self._forms.write(sent)
            except ValueError as error:
                self._refuse(getattr(sent.message, "root", sent.message), error, by_host=True)
            else:
                self.session.feed(line)

    def _send(self, line: bytes) -> None:
        # Their bytes are not counted: who reads them does not say so.
        if not may_wait(line, self._to_host.statistics().current_buffer_used, 0):
            return
        try:
            self._put(self._forms.read(line))
        except ValueError as error:
            self._refuse(read_message(line), error, by_host=False)

    def _put(self, message: Any) -> None:
        from anyio import BrokenResourceError, ClosedResourceError

        with suppress(BrokenResourceError, ClosedResourceError):  # the session has ended
            self._to_host.send_nowait(message)

    def _refuse(self, message: Any, error: ValueError, *, by_host: bool) -> None:
        """Have nobody wait for a message that the models of ``mcp`` cannot hold.

        A request is refused to its sender; instead of a response comes an error.
        """
        request_id = getattr(message, "id", None)
        if not is_id(request_id):
            # A notification. Transports of mcp give sessions the error.
            self._put(error)
            return
        fault = unsendable(str(error)) if by_host else broken(f"mcp cannot read it: {error}")
        line = encode_line({"jsonrpc": "2.0", "id": request_id, "error": fault.fault})
        is_request = getattr(message, "method", UNSET) is not UNSET
        if is_request == by_host:
            self._put(self._forms.read(line))
        else:
            self.session.feed(line)


class _Forms(NamedTuple):
    """How the installed version of ``mcp`` reads and writes a message."""

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes]


def _relay_of(client: Client) -> SharedRelay:
    reference = _relays.get(client)
    relay = None if reference is None else reference()
    if relay is None:
        relay = SharedRelay(client)
        _relays[client] = ref(relay)
    return relay


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
        An async context manager of a stream to read from and one to write to. ``mcp.Client``
        of mcp 2 takes it as it is, and so does FastMCP's, if that was imported before.

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
