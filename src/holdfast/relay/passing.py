"""One handler for every method: what a host sends goes to the server, and what comes back to it.

Nothing is decoded that need not be. What belongs to a hop is made anew on each side: ids, tokens of
progress, and the entries of ``_meta`` that describe the connection. All else passes as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.calls.handlers import Notification
from holdfast._core.eras.revisions import LOG_LEVEL, PREFIX, VERSIONS
from holdfast._core.eras.serving import LEVELS, Json, begin
from holdfast._core.server import lifecycle
from holdfast._core.server.request import ServerRequest
from holdfast._core.server.server import Server
from holdfast._core.server.session import CANCELLED, ServerSession
from holdfast._core.wire.codes import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RequestError,
)
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast.errors import (
    HoldfastError,
    RequestTimeout,
    RpcError,
    ShutdownError,
    StateError,
    TransportError,
    ValidationError,
)
from holdfast.relay.questions import MAY_ASK, STATE, Questions
from holdfast.types.lifecycle import RELATED_TASK, Progress

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.client import Client

CONNECTION_LOST: Final = -32000
TIMED_OUT: Final = -32001
"""Codes that the official SDKs use for the same, in the range that JSON-RPC leaves to servers."""

MESSAGE: Final = "notifications/message"
UPDATED: Final = "notifications/resources/updated"
INITIALIZED: Final = "notifications/initialized"

_fields = msgspec.json.Decoder(dict[str, Raw])
_tools = msgspec.json.Decoder(list[Raw])


class Relay:
    """Serves one host what one client's server offers.

    Args:
        client: A client that has not been used yet: the capabilities of the host are declared by
            it. It is closed by its owner.

    Attributes:
        server: What to serve to the host, by a runner of `holdfast._core.serve`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._questions = Questions()
        self._session: ServerSession | None = None
        self._is_declared = False
        """True once the capabilities of the host are known, and the client may be used."""
        self._log_level: str | None = None
        """The level from which a stateless host wants log messages, by its latest request."""
        self._server_level: str | None = None
        """The level that a handshake server was told for a stateless host."""
        self._watched: set[str] = set()
        """Resources that the server was asked to watch."""
        self.server: Server = Server(
            client.name,
            {
                "initialize": self._initialize,
                "server/discover": self._discover,
                "logging/setLevel": self._set_level,
                "resources/subscribe": self._subscribe,
                "resources/unsubscribe": self._unsubscribe,
                "subscriptions/listen": self._listen,
                INITIALIZED: lambda request: None,
                CANCELLED: self._unwatch,
            },
            default=self._pass,
            capabilities=self._capabilities,
        )
        self.server.heard = self._heard
        self.server.left = lambda session: self._questions.close()
        self.server.watchable = self._watched.__contains__

    def __repr__(self) -> str:
        return f"<Relay {self._client!r} {self._questions!r}>"

    # Both ends

    def _heard(self, request: ServerRequest) -> None:
        """Note where the host is; the first message declares what the host can do."""
        if request.method == "initialize":
            self._declare(request.params.get("capabilities"))
        elif request.stateless:
            self._declare(request.era.capabilities)
            level = request.era.log_level
            if request.id is not None:
                self._log_level = level if level in LEVELS else None
        self._session = request.session

    def _declare(self, capabilities: Any) -> None:
        """Declare to the server what the host can do, once: the connection is made with it."""
        if not self._is_declared:
            self._is_declared = True
            declared = capabilities if isinstance(capabilities, dict) else {}
            self._client._attach_answerer(self._answer, capabilities=declared)
            self._client.on_notification(self._notified)

    @property
    def _upstream_is_stateless(self) -> bool:
        era = self._client._requester.opener.era()
        return era is not None and era.listens

    def _capabilities(self) -> Json:
        """Return the server's capabilities, decoded."""
        facts = self._client._facts
        try:
            declared = {} if facts is None else msgspec.json.decode(facts.capabilities)
        except MALFORMED:
            return {}
        return declared if isinstance(declared, dict) else {}

    async def _introduction(self) -> Json:
        """Connect, and return what the server says of itself."""
        await self._client.open()
        facts = self._client._facts
        assert facts is not None
        self._name_server()
        instructions = {} if facts.instructions is None else {"instructions": facts.instructions}
        return {"capabilities": facts.capabilities, **instructions}

    def _name_server(self) -> None:
        """Have results to stateless hosts name the real server."""
        facts = self._client._facts
        if facts is not None and facts.info is not None:
            self.server.info = facts.info  # type: ignore[assignment]

    async def _initialize(self, request: ServerRequest) -> Json:
        if request.session.era is not None:
            raise RequestError(INVALID_REQUEST, "already initialized")
        era = begin(request.params, VERSIONS)
        try:
            introduction = await self._introduction()
        except HoldfastError as error:
            raise fault_of(error) from error
        return {"protocolVersion": era.version, "serverInfo": self.server.info, **introduction}

    async def _discover(self, request: ServerRequest) -> Json:
        try:
            return {"supportedVersions": list(VERSIONS), **await self._introduction()}
        except HoldfastError as error:
            raise fault_of(error) from error

    # From the host

    def _pass(self, request: ServerRequest) -> Any:
        """Handle whatever has no handler of its own."""
        if request.id is not None:
            return self._pass_request(request)
        if not self._is_declared:
            return None
        params = None if bytes(request.params_raw) == b"{}" else request.params_raw
        self._client._requester.driver.notify(request.method, params)
        return None

    async def _pass_request(self, request: ServerRequest) -> Any:
        try:
            if self._client._facts is None:
                # What is passed, and how, depends on the era of the server.
                await self._client.open()
            if request.method.startswith("tools/"):
                await self._check_tool(request)
            if not request.stateless:
                result = await self._forward(request)
            else:
                await self._tell_level()
                result = await self._pass_stateless(request)
        except HoldfastError as error:
            raise fault_of(error) from error
        self._name_server()
        if request.method == "tools/list":
            result = self._enabled(result)
        if request.stateless == self._upstream_is_stateless:
            return result
        return _of_other_era(result)

    async def _pass_stateless(self, request: ServerRequest) -> Raw:
        """Pass a request whose host is asked by results."""
        if request.method not in MAY_ASK:
            return await self._forward(request)
        state = request.params.get("requestState")
        if isinstance(state, str) and state.startswith(STATE):
            return await self._questions.resume(request, state)
        is_repeated = state is not None or "inputResponses" in request.params
        if is_repeated and not self._upstream_is_stateless:
            # The server knows no rounds: it would run the call from the beginning.
            raise RequestError(INVALID_PARAMS, "requestState is not of this server")
        return await self._questions.begin(request, self._forward(request))

    async def _forward(self, request: ServerRequest) -> Raw:
        def report(progress: Progress) -> None:
            fields = {"total": progress.total, "message": progress.message, "_meta": progress.meta}
            present = {name: value for name, value in fields.items() if value is not None}
            self._questions.following(request).progress(progress.progress, **present)

        # The host has its own patience, and a question may wait for a person: no idle clock.
        timeouts = self._client._policy.timeouts
        total = timeouts.total_for(timeouts.for_method(request.method))
        wants_progress = "progressToken" in request.meta
        return await self._client._requester.forward(
            request.method,
            self._outgoing(request),
            timeout=total,
            total_timeout=total,
            on_progress=report if wants_progress else None,
            passes_questions=request.stateless,
        )

    def _outgoing(self, request: ServerRequest) -> Raw | None:
        """Return the parameters without the ``_meta`` that describes the host's connection."""
        raw = request.params_raw
        if bytes(raw) == b"{}":
            return None
        if not any(map(_is_of_hop, request.meta)):
            return raw
        fields: dict[str, Any] = dict(_fields.decode(raw))
        meta = _without_hop(_fields.decode(fields.pop("_meta")))
        if self._upstream_is_stateless and self._log_level is not None:
            meta[LOG_LEVEL] = self._log_level
        return Raw(encode({**fields, "_meta": meta} if meta else fields))

    async def _tell_level(self) -> None:
        """Tell a handshake server the level that the host gives with each request."""
        level = self._log_level
        if level is None or level == self._server_level or self._upstream_is_stateless:
            return
        if "logging" in self._capabilities():
            await self._client.set_log_level(level)
            self._server_level = level

    # Tools, where there are rules for them

    async def _check_tool(self, request: ServerRequest) -> None:
        """Refuse what the lock file or the policy of the client refuses."""
        table, policy = self._client._tools, self._client._policy.tools
        if request.method == "tools/list" and table.guarded:
            await table.list(None, self._client._requester.deadline("tools/list"))
        if request.method != "tools/call":
            return
        name = request.params.get("name")
        if isinstance(name, str):
            if not policy.enables(name):
                raise table.disabled(name)
            if table.guarded:
                await table.find(name, self._client._requester.deadline("tools/call"))

    def _enabled(self, result: Raw) -> Raw:
        """Return a page of tools without those that may not be called."""
        policy = self._client._policy.tools
        if policy.allow is None and not policy.deny:
            return result
        try:
            fields: dict[str, Any] = dict(_fields.decode(result))
            tools = _tools.decode(fields.get("tools", Raw(b"[]")))
            enabled = [tool for tool in tools if policy.enables(_name(tool))]
        except MALFORMED as error:
            raise RequestError(INTERNAL_ERROR, f"the list of tools is malformed: {error}") from None
        return Raw(encode({**fields, "tools": enabled}))

    # Log levels and subscriptions

    async def _set_level(self, request: ServerRequest) -> Json:
        lifecycle.set_level(request)
        try:
            await self._client.set_log_level(request.params["level"])
        except HoldfastError as error:
            raise fault_of(error) from error
        return {}

    async def _subscribe(self, request: ServerRequest) -> Json:
        uri = lifecycle.uri_of(request)
        try:
            await self._client.subscribe_resource(uri)
        except HoldfastError as error:
            raise fault_of(error) from error
        self._watched.add(uri)
        return lifecycle.subscribe(request)

    async def _unsubscribe(self, request: ServerRequest) -> Json:
        uri = lifecycle.uri_of(request)
        self._watched.discard(uri)
        try:
            await self._client.unsubscribe_resource(uri)
        except HoldfastError as error:
            raise fault_of(error) from error
        return lifecycle.unsubscribe(request)

    async def _listen(self, request: ServerRequest) -> Any:
        """Open a stream of a stateless host; resources that the server refuses are not in it."""
        try:
            await self._client.open()
        except HoldfastError as error:
            raise fault_of(error) from error
        filters = request.params.get("notifications")
        uris = filters.get("resourceSubscriptions") if isinstance(filters, dict) else None
        for uri in uris if isinstance(uris, list) else ():
            if isinstance(uri, str) and uri not in self._watched:
                try:
                    await self._client.subscribe_resource(uri)
                except HoldfastError:
                    continue  # the acknowledgement says which are watched
                self._watched.add(uri)
        return lifecycle.listen(request)

    async def _unwatch(self, request: ServerRequest) -> None:
        """End the subscriptions that no stream of the host wants any more."""
        session = request.session
        wanted_uris = set(session.subscribed)
        for filters in session.streams.values():
            wanted_uris.update(filters.get("resourceSubscriptions", ()))
        for uri in self._watched - wanted_uris:
            self._watched.discard(uri)
            try:
                await self._client.unsubscribe_resource(uri)
            except HoldfastError:
                continue  # nobody waits for it; what still comes is not passed on

    # From the server

    async def _answer(self, method: str, params: Raw) -> Raw:
        """Ask the host what the server asks."""
        session = self._session
        if session is None or session.era is None:
            return await self._questions.ask(method, params)
        if method.partition("/")[0] not in session.era.capabilities:
            raise RpcError(f"the client does not offer {method}", code=METHOD_NOT_FOUND)
        try:
            return await session.ask_raw(method, params)
        except RequestError as error:
            raise RpcError(error.message, code=error.code, data=error.data) from None

    def _notified(self, notification: Notification) -> None:
        """Pass a notification of the server to the host, if it is one that the host wants."""
        session, method = self._session, notification.method
        assert session is not None
        if method == UPDATED or method.endswith("/list_changed"):
            params = notification.params
            meta = params.get("_meta")
            if isinstance(meta, dict):
                params["_meta"] = _without_hop(meta)
                if not params["_meta"]:
                    del params["_meta"]
            session.announce(method, params)
        elif session.era is not None or method != MESSAGE or self._wants(notification.params):
            session.notify(method, notification.raw)

    def _wants(self, params: Json) -> bool:
        """Return whether a stateless host wants a log message."""
        level, least = params.get("level"), self._log_level
        if least is None or level not in LEVELS:
            return False
        return LEVELS.index(level) >= LEVELS.index(least)


def fault_of(error: HoldfastError) -> RequestError:
    """Return the error to answer the host with: the server's as it came, or one of ours."""
    if isinstance(error, RpcError) and error.code is not None:
        return RequestError(error.code, error.server_message or error.message, error.data)
    data: Json = {"kind": error.kind, "outcomeUnknown": error.outcome_unknown}
    if isinstance(error, StateError) and error.retry_in is not None:
        data["retryIn"] = error.retry_in
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), INTERNAL_ERROR)
    return RequestError(code, error.redacted, data)


_CODES: Final[Mapping[type[HoldfastError], int]] = {
    TransportError: CONNECTION_LOST,
    ShutdownError: CONNECTION_LOST,
    StateError: CONNECTION_LOST,
    RequestTimeout: TIMED_OUT,
    ValidationError: INVALID_PARAMS,
}


def _is_of_hop(key: str) -> bool:
    """Return whether an entry of ``_meta`` describes the connection; a task is no part of it."""
    return key.startswith(PREFIX) and key != RELATED_TASK


def _without_hop(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if not _is_of_hop(key)}


def _of_other_era(result: Raw) -> Any:
    """Return a result whose own fields the host's era may add to or take from."""
    try:
        fields: dict[str, Any] = dict(_fields.decode(result))
        if "_meta" in fields:
            meta = _without_hop(_fields.decode(fields.pop("_meta")))
            if meta:
                fields["_meta"] = meta
    except MALFORMED:
        return result
    if "resultType" in fields:
        fields["resultType"] = msgspec.json.decode(fields["resultType"])
    return fields


def _name(tool: Raw) -> str:
    name = msgspec.json.decode(_fields.decode(tool).get("name", b'""'))
    return name if isinstance(name, str) else ""
