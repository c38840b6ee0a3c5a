"""What a host wants to be told of: log messages from a level, and updates of resources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from holdfast._core.eras.serving import Json
from holdfast._core.server import lifecycle
from holdfast._core.server.request import Handler, ServerRequest
from holdfast._core.server.session import CANCELLED, ServerSession
from holdfast._core.wire.codes import RequestError
from holdfast.errors import HoldfastError
from holdfast.relay.envelope import answered_errors, fault_of

if TYPE_CHECKING:
    from holdfast.relay.passing import Relay
    from holdfast.relay.sharing import Tell


class HostWishes:
    """Tells the server what a host wants.

    Args:
        relay: Of the host.
        sessions: The sessions of the host.
    """

    def __init__(self, relay: Relay, sessions: Iterable[ServerSession]) -> None:
        self._relay = relay
        self._sessions = sessions
        self._client = relay.shared.client

    def __repr__(self) -> str:
        return f"<HostWishes {self._relay!r}>"

    def handlers(self) -> dict[str, Handler]:
        """Return the handlers of requests that are about this."""
        return {
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "subscriptions/listen": self._listen,
            CANCELLED: lambda request: self.end_unwanted(),
        }

    async def tell_level(self) -> None:
        """Tell the server which messages are wanted, if it has any."""
        if self._relay.shared.is_level_new and "logging" in (self._relay.server_capabilities or ()):
            await self._relay.shared.tell_level()

    async def watch(self, uri: str, subscribe: Tell | None = None) -> object:
        """Subscribe to a resource; return what the server said, if it was told.

        Raises:
            RequestError: The server refuses.
        """
        with answered_errors():
            return await self._relay.shared.watch(self._relay, uri, subscribe)

    def _telling(self, request: ServerRequest, tell: Tell, note: Callable[[str], object]) -> Tell:
        """Return what tells a handshake server by the host's own request, with all that is in it.

        ``tell`` tells it otherwise; after a crash it is told again by what ``note`` remembers.
        """

        async def pass_on(word: str) -> object:
            await self._client.open()
            if self._relay.shared.is_stateless:
                return await tell(word)
            result = await self._relay.forward(request)
            note(word)
            return result

        return pass_on

    async def _set_level(self, request: ServerRequest) -> Json | Raw:
        lifecycle.set_level(request)
        client, relay = self._client, self._relay
        former, relay.log_level = relay.log_level, request.get("level")
        try:
            await client.open()
            note = relay.requester.driver.set_log_level
            # Where another host wants more, the server is not told.
            is_most = relay.shared.most_verbose() == relay.log_level
            tell = self._telling(request, client.set_log_level, note) if is_most else None
            result = await relay.shared.tell_level(tell)
        except HoldfastError as error:
            relay.log_level = former
            raise fault_of(error) from error
        return result if isinstance(result, Raw) else {}

    async def _subscribe(self, request: ServerRequest) -> Json | Raw:
        client, uri = self._client, lifecycle.uri_of(request)
        note = client._unsolicited.subscriptions.note
        result = await self.watch(uri, self._telling(request, client.subscribe_resource, note))
        empty = lifecycle.subscribe(request)
        return result if isinstance(result, Raw) else empty

    async def _unsubscribe(self, request: ServerRequest) -> Json | Raw:
        client, uri = self._client, lifecycle.uri_of(request)
        empty = lifecycle.unsubscribe(request)
        forget = client._unsolicited.subscriptions.forget
        tell = self._telling(request, client.unsubscribe_resource, forget)
        with answered_errors():
            result = await self._relay.shared.unwatch(self._relay, uri, tell)
        return result if isinstance(result, Raw) else empty

    async def _listen(self, request: ServerRequest) -> Any:
        """Open a stream of a stateless host; resources that the server refuses are not in it."""
        with answered_errors():
            await self._client.open()
        return await listen(request, self.watch)

    async def end_unwanted(self) -> None:
        """End the subscriptions that no session and no stream of the host wants any more."""
        wanted_uris: set[str] = set()
        for session in self._sessions:
            wanted_uris |= session.subscribed
            for filters in session.streams.values():
                wanted_uris.update(filters.get("resourceSubscriptions", ()))
        await self._relay.shared.end_unwanted(self._relay, wanted_uris)


async def listen(request: ServerRequest, watch: Callable[[str], Awaitable[object]]) -> Any:
    """Open a stream, after the resources that it wants are watched."""
    filters = request.get("notifications")
    uris = filters.get("resourceSubscriptions") if isinstance(filters, dict) else None
    for uri in uris if isinstance(uris, list) else ():
        if isinstance(uri, str) and not request.session.server.watchable(uri):
            with suppress(RequestError):  # the acknowledgement says which are watched
                await watch(uri)
    return lifecycle.listen(request)
