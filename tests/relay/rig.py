"""A host, a relay and a server, in memory, in each pair of eras."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import holdfast
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast._core.serve.memory import accept
from holdfast._core.server.request import ServerRequest
from holdfast._core.transports.memory import MemoryLink
from holdfast.relay.serving import ServedHost
from holdfast.relay.sharing import SharedRelay
from holdfast.testing import Peer

FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
CAPABILITIES = {"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": True}}


class RelayServer:
    """A relay that a client can connect to in memory."""

    def __init__(self, relay: ServedHost) -> None:
        self.relay = relay
        self.name = "relay"

    def accept(self, line: MemoryLink) -> Callable[[bytes], None]:
        return accept(self.relay.server, line).feed


class Pair:
    """The revisions of the host and of the server."""

    def __init__(self, host: str, server: str) -> None:
        self.host = (HANDSHAKE if host == "handshake" else STATELESS)[0]
        self.versions = HANDSHAKE if server == "handshake" else STATELESS
        self.is_host_stateless = host == "stateless"
        self.is_server_stateless = server == "stateless"

    def peer(self, **options: Any) -> Peer:
        return Peer("real", versions=self.versions, **options)

    @asynccontextmanager
    async def connect(
        self, peer: Peer, *, upstream: dict[str, Any] | None = None, **options: Any
    ) -> AsyncIterator[holdfast.Client]:
        """Yield the host, which speaks to the server through a relay."""
        async with holdfast.connect(peer, **(upstream or {})) as client:
            server: Any = RelayServer(SharedRelay(client).join())
            async with holdfast.connect(server, protocol=self.host, **options) as host:
                yield host

    @asynccontextmanager
    async def share(
        self, peer: Peer, *hosts: dict[str, Any], **upstream: Any
    ) -> AsyncIterator[tuple[SharedRelay, list[holdfast.Client]]]:
        """Yield what some hosts share, and the hosts, each with its own options."""
        async with holdfast.connect(peer, **upstream) as client, AsyncExitStack() as stack:
            shared = SharedRelay(client)
            clients = []
            for options in hosts:
                server: Any = RelayServer(shared.join())
                joined = holdfast.connect(server, protocol=self.host, **options)
                clients.append(await stack.enter_async_context(joined))
            yield shared, clients

    async def ask(self, request: ServerRequest, method: str, params: dict[str, Any]) -> Any:
        """Ask as a server of the pair's revision does, which does not run a call again.

        Returns None for the stateless revisions until the answer has come.
        """
        if not self.is_server_stateless:
            return await request.session.ask(method, params)
        if "inputResponses" not in request.params:
            return None
        assert request.params["requestState"] == "the server's own"
        return request.params["inputResponses"]["q"]


def input_required(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {
        "resultType": "input_required",
        "inputRequests": {"q": {"method": method, "params": params}},
        "requestState": "the server's own",
    }
