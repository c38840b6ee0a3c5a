"""One handler for every method: what a host sends goes to the server, and what comes back to it.

Nothing is decoded that need not be. What belongs to a hop is made anew on each side: ids, tokens of
progress, and the entries of ``_meta`` that describe the connection. All else passes as it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.boundary import Call, LinkChanged
from holdfast._core.calls.handlers import Notification
from holdfast._core.calls.requester import Requester
from holdfast._core.eras.base import Era
from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, LOG_LEVEL, VERSIONS
from holdfast._core.eras.serving import LEVELS, Json, begin
from holdfast._core.server import lifecycle
from holdfast._core.server.request import ServerRequest
from holdfast._core.server.server import Server
from holdfast._core.server.session import CANCELLED, ServerSession
from holdfast._core.waiting import Failure
from holdfast._core.wire.codes import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    RequestError,
)
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast.errors import (
    HoldfastError,
    RpcError,
)
from holdfast.relay import passage
from holdfast.relay.envelope import (
    check_eras,
    fault_of,
    fields_of,
    introduction,
    is_of_hop,
    may_be_asked,
    of_any_hop,
    of_other_era,
    without_hop,
    without_tasks,
)
from holdfast.relay.questions import MAY_ASK, STATE, Questions
from holdfast.relay.tool_rules import ToolRules
from holdfast.types.lifecycle import Progress

if TYPE_CHECKING:
    from holdfast.relay.sharing import SharedRelay

MESSAGE: Final = "notifications/message"
UPDATED: Final = "notifications/resources/updated"
INITIALIZED: Final = "notifications/initialized"

MOST_TIMES: Final = 100
"""Methods whose time is remembered: a host may invent any number of them."""

DEFAULT_LEVEL: Final = "info"
"""From where a host that names no level gets log messages, once another has named one."""


class Relay:
    """Serves one host what the server of a shared client offers; `SharedRelay.join` makes it.

    Args:
        shared: The client, and who else uses it.
        is_lasting: It stays when a session of its server ends.

    Attributes:
        server: What to serve to the host, by a runner of `holdfast._core.serve`.
        capabilities: What the host can do; None until it says so.
        log_level: The level from which it wants log messages; None: not said.
        watched: The resources whose updates it wants.
        open_calls: The number of its requests that are at the server.
    """

    def __init__(self, shared: SharedRelay, *, is_lasting: bool = False) -> None:
        self.shared = shared
        self._client = shared.client
        self.requester: Requester = shared.client._requester
        self.is_lasting = is_lasting
        self.rules: ToolRules = ToolRules(shared.client, shared.tools)
        self._questions = Questions()
        self._sessions: dict[ServerSession, None] = {}
        """The sessions of the host, the one that spoke last at the end."""
        self._is_handshake = False
        self._is_initialized = asyncio.Event()
        """Set once a handshake host may be asked."""
        self._followed: dict[ServerRequest, None] = {}
        """Requests of the host that are under way."""
        self._times: dict[str, float] = {}
        """The seconds that a request may take, by its method."""
        self._hop_key: tuple[Any, ...] = ()
        self._hop_meta: Json = {}
        """What a stateless server was told of the host last, and of what it was made."""
        self.capabilities: Json | None = None
        self.log_level: str | None = None
        self.watched: set[str] = set()
        self.open_calls: int = 0
        self.server: Server = Server(
            self._client.name,
            {
                "initialize": self._initialize,
                "server/discover": self._discover,
                "logging/setLevel": self._set_level,
                "resources/subscribe": self._subscribe,
                "resources/unsubscribe": self._unsubscribe,
                "subscriptions/listen": self._listen,
                INITIALIZED: lambda request: self._is_initialized.set(),
                CANCELLED: self._unwatch,
            },
            default=self._pass,
            capabilities=self._capabilities,
        )
        self.server.heard = self.heard
        self.server.left = self.left
        self.server.watchable = self.watched.__contains__

    def __repr__(self) -> str:
        return f"<Relay {self._client!r} {self._questions!r}>"

    # Both ends

    def heard(self, request: ServerRequest) -> None:
        """Note where the host is, and what it can do."""
        if next(reversed(self._sessions), None) is not request.session:
            self._sessions.pop(request.session, None)
            self._sessions[request.session] = None
        if request.stateless:
            # Whatever its method: "initialize" is not one of this era.
            if request.era.capabilities != self.capabilities:
                self._declare(request.era.capabilities)
            level = request.era.log_level
            if request.id is not None:
                self.log_level = level if level in LEVELS else None
        elif request.method == "initialize":
            self._is_handshake = True
            self._declare(request.params.get("capabilities"))
        elif request.session.era is not None and request.id is not None:
            self._is_initialized.set()  # some hosts go on without saying that they are

    def _declare(self, capabilities: Any) -> None:
        declared = capabilities if isinstance(capabilities, dict) else {}
        if declared != self.capabilities:
            self.capabilities = declared
            self.shared.declare()

    def left(self, session: ServerSession) -> None:
        """Forget a session; a host leaves with its last one."""
        self._sessions.pop(session, None)
        if self.is_lasting:
            if self.watched:
                self.shared.spawn(self._end_unwanted())
        else:
            self._questions.close()
            self.shared.leave_soon(self)

    async def leave(self) -> None:
        """End all that is of this host: calls, questions, subscriptions."""
        self.is_lasting = False
        for session in list(self._sessions):
            session.close()
        self._questions.close()
        await self.shared.leave(self)

    def _capabilities(self) -> Json:
        """Return the server's capabilities, decoded."""
        facts = self._client._facts
        try:
            declared = {} if facts is None else msgspec.json.decode(facts.capabilities)
        except MALFORMED:
            return {}
        return declared if isinstance(declared, dict) else {}

    @property
    def server_capabilities(self) -> Json | None:
        """What the server offers; None before the first connection."""
        return None if self._client._facts is None else self._capabilities()

    @property
    def instructions(self) -> str | None:
        """The server's instructions; None if it gives none."""
        return self._client.instructions

    async def open(self) -> None:
        """Connect to the server."""
        await self._client.open()

    async def wait_ready(self) -> None:
        """Wait until the server is there."""
        await self._client.wait_ready()

    async def handle(self, request: ServerRequest) -> Any:
        """Handle a request or notification that another server took for this one."""
        handler = self.server.handlers.get(request.method)
        if handler is None and request.id is not None:
            return await self.pass_request(request)
        result = (handler or self._pass)(request)
        return await result if isinstance(result, Awaitable) else result

    async def _introduction(self, request: ServerRequest) -> Json:
        """Connect, and return what the server says of itself."""
        await self._client.open()
        facts = self._client._facts
        assert facts is not None
        self._name_server()
        is_same_era = request.stateless is self.shared.is_stateless
        return introduction(facts, None if is_same_era else without_tasks(self._capabilities()))

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
            introduction = await self._introduction(request)
        except HoldfastError as error:
            raise fault_of(error) from error
        return {"protocolVersion": era.version, "serverInfo": self.server.info, **introduction}

    async def _discover(self, request: ServerRequest) -> Json:
        try:
            return {"supportedVersions": list(VERSIONS), **await self._introduction(request)}
        except HoldfastError as error:
            raise fault_of(error) from error

    # From the host

    def _pass(self, request: ServerRequest) -> Any:
        """Handle whatever has no handler of its own."""
        if request.id is not None:
            return passage.begin(self, request) or self.pass_request(request)
        if self.shared.declared is None:
            return None
        params = None if bytes(request.params_raw) == b"{}" else request.params_raw
        self._client._requester.driver.notify(request.method, params)
        return None

    async def pass_request(self, request: ServerRequest) -> Any:
        """Return the server's answer to a request of the host.

        Raises:
            RequestError: The server refused it, or it could not be passed.
        """
        self._followed[request] = None
        try:
            if self._client._facts is None:
                # What is passed, and how, depends on the era of the server.
                await self._client.open()
            if request.method.startswith("tasks/"):
                check_eras(request, self.shared.is_stateless)
            if request.method == "tools/list":
                await self.rules.check_list()
            if self.log_level is not None:
                await self.tell_level()
            pass_on = self._pass_stateless if request.stateless else self._forward
            result = await pass_on(request)
        except HoldfastError as error:
            raise fault_of(error) from error
        finally:
            del self._followed[request]
        return self.returned(request, result)

    def returned(self, request: ServerRequest, result: Raw) -> Any:
        """Return a result of the server as the host is given it."""
        self._name_server()
        if request.method == "tools/list":
            result = self.rules.enabled(result)
        if request.stateless == self.shared.is_stateless:
            return result
        return of_other_era(result)

    # What goes straight (`Passage`)

    def enter(self, request: ServerRequest) -> None:
        """Count a request that is sent to the server."""
        self._followed[request] = None
        self.open_calls += 1

    def exit(self, request: ServerRequest) -> None:
        """Count it no more."""
        del self._followed[request]
        self.open_calls -= 1

    def time_for(self, method: str) -> float:
        """Return the seconds that a request may take.

        The host has its own patience, and a question may wait for a person: no idle clock.
        """
        span = self._times.get(method)
        if span is None:
            timeouts = self._client._policy.timeouts
            span = timeouts.total_for(timeouts.for_method(method))
            if len(self._times) < MOST_TIMES:
                self._times[method] = span
        return span

    def fault(self, call: Call, error: Failure) -> RequestError:
        """Return the error to answer the host with, for a call that failed."""
        assert isinstance(error, HoldfastError)
        self.requester.hold_secrets(error, call)
        return fault_of(error)

    async def go_on(self, request: ServerRequest, call: Call, raw: Raw) -> Any:
        """Answer what a stateless server asks in the result of a call, until it is answered."""
        self._followed[request] = None
        self.shared.begin_call(self)
        progressed = partial(self.report, request) if call.progress else None
        try:
            result = await self.requester.go_on(call, raw, progressed)
        except HoldfastError as error:
            raise fault_of(error) from error
        finally:
            self.exit(request)
        return self.returned(request, result)

    async def _pass_stateless(self, request: ServerRequest) -> Raw:
        """Pass a request whose host is asked by results."""
        if request.method not in MAY_ASK or (
            self.shared.is_stateless and STATE.encode() not in bytes(request.params_raw)
        ):
            # Questions of a stateless server are results, too: they pass as they are.
            return await self._forward(request)
        state = request.params.get("requestState")
        if isinstance(state, str) and state.startswith(STATE):
            return await self._questions.resume(request, state)
        is_repeated = state is not None or "inputResponses" in request.params
        if is_repeated and not self.shared.is_stateless:
            # The server knows no rounds: it would run the call from the beginning.
            raise RequestError(INVALID_PARAMS, "requestState is not of this server")
        return await self._questions.begin(request, self._forward(request))

    async def _forward(self, request: ServerRequest) -> Raw:
        total = self.time_for(request.method)
        wants_progress = "progressToken" in request.meta
        is_call = request.method == "tools/call"
        self.shared.begin_call(self)
        try:
            while True:
                options = await self.rules.check_call(request) if is_call else {}
                try:
                    return await self._client._requester.forward(
                        request.method,
                        self._outgoing(request),
                        timeout=total,
                        total_timeout=total,
                        on_progress=partial(self.report, request) if wants_progress else None,
                        passes_questions=request.stateless,
                        **options,
                    )
                except LinkChanged:
                    continue  # not sent: the server was replaced after it was checked
        finally:
            self.open_calls -= 1

    def report(self, request: ServerRequest, progress: Progress) -> None:
        """Pass the progress of a call, with the fields that nobody knows."""
        fields = {"total": progress.total, "message": progress.message, "_meta": progress.meta}
        present = {name: value for name, value in fields.items() if value is not None}
        self._questions.following(request).progress(progress.progress, **present, **progress.extra)

    def _outgoing(self, request: ServerRequest) -> Raw | None:
        """Return the parameters with the ``_meta`` that describes this hop, not the host's."""
        era = self.requester.opener.era()
        raw, hop = request.params_raw, self.hop(request, era)
        if bytes(raw) == b"{}" and not hop:
            return None
        if not hop and not any(map(is_of_hop, request.meta)):
            return raw
        fields: dict[str, Any] = dict(fields_of.decode(raw))
        meta = {**without_hop(fields_of.decode(fields.pop("_meta", Raw(b"{}")))), **hop}
        return Raw(encode({**fields, "_meta": meta} if meta else fields))

    def hop(self, request: ServerRequest, era: Era | None) -> Json:
        """Return what a stateless server is told of this host with a request."""
        if era is None or not era.listens:
            return {}
        capabilities = request.era.capabilities if request.stateless else self.capabilities
        level = request.era.log_level if request.stateless else self.log_level
        key = (era, capabilities, level)
        if key != self._hop_key:
            declared = self.shared.declaring(capabilities or {})
            self._hop_meta = {} if declared is None else {CLIENT_CAPABILITIES: declared}
            if level is not None:
                self._hop_meta[LOG_LEVEL] = level
            self._hop_key = key
        return self._hop_meta

    # Log levels and subscriptions

    async def tell_level(self) -> None:
        """Tell the server which messages are wanted, if it has any."""
        if self.shared.is_level_new and "logging" in (self.server_capabilities or ()):
            await self.shared.tell_level()

    async def watch(self, uri: str) -> None:
        """Subscribe to a resource.

        Raises:
            RequestError: The server refuses.
        """
        try:
            await self.shared.watch(self, uri)
        except HoldfastError as error:
            raise fault_of(error) from error

    async def _set_level(self, request: ServerRequest) -> Json:
        lifecycle.set_level(request)
        former, self.log_level = self.log_level, request.params["level"]
        try:
            await self._client.open()
            await self.shared.tell_level()
        except HoldfastError as error:
            self.log_level = former
            raise fault_of(error) from error
        return {}

    async def _subscribe(self, request: ServerRequest) -> Json:
        await self.watch(lifecycle.uri_of(request))
        return lifecycle.subscribe(request)

    async def _unsubscribe(self, request: ServerRequest) -> Json:
        result = lifecycle.unsubscribe(request)
        try:
            await self.shared.unwatch(self, lifecycle.uri_of(request))
        except HoldfastError as error:
            raise fault_of(error) from error
        return result

    async def _listen(self, request: ServerRequest) -> Any:
        """Open a stream of a stateless host; resources that the server refuses are not in it."""
        try:
            await self._client.open()
        except HoldfastError as error:
            raise fault_of(error) from error
        filters = request.params.get("notifications")
        uris = filters.get("resourceSubscriptions") if isinstance(filters, dict) else None
        for uri in uris if isinstance(uris, list) else ():
            if isinstance(uri, str) and uri not in self.watched:
                try:
                    await self.watch(uri)
                except RequestError:
                    continue  # the acknowledgement says which are watched
        return lifecycle.listen(request)

    async def _unwatch(self, request: ServerRequest) -> None:
        """End the subscriptions of a stream that the host has cancelled."""
        await self._end_unwanted()

    async def _end_unwanted(self) -> None:
        """End the subscriptions that no session and no stream of the host wants any more."""
        wanted_uris: set[str] = set()
        for session in self._sessions:
            wanted_uris |= session.subscribed
            for filters in session.streams.values():
                wanted_uris.update(filters.get("resourceSubscriptions", ()))
        await self.shared.end_unwanted(self, wanted_uris)

    # From the server

    async def ask(self, method: str, params: Raw) -> Raw:
        """Ask the host what the server asks.

        Raises:
            RpcError: It cannot be asked, or it refused.
        """
        if not self._is_handshake:
            return await self._questions.ask(method, params)
        await self._is_initialized.wait()
        session = next(reversed(self._sessions), None)
        if session is None or not may_be_asked(method, self.capabilities or {}):
            raise RpcError(f"the client does not offer {method}", code=METHOD_NOT_FOUND)
        # By the stream of a request, where each has its own: another may never be opened.
        followed = next(reversed(self._followed), None)
        write = None if followed is None else followed.write
        try:
            return await session.ask_raw(method, params, write)
        except RequestError as error:
            raise RpcError(error.message, code=error.code, data=error.data) from None

    def notified(self, notification: Notification) -> None:
        """Pass a notification of the server to the host, if it is one that the host wants."""
        method = notification.method
        sessions = [session for session in self._sessions if self._is_ready(session)]
        if method == UPDATED or method.endswith("/list_changed"):
            params = of_any_hop(notification.params)
            for session in sessions:
                self.shared.announce(session, method, params)
        elif self.is_lasting:
            # A stateless request over HTTP has a stream of its own, and nothing else reaches it.
            for request in list(self._followed):
                if self._wants(notification, request.era.log_level):
                    request.notify(method, notification.raw)
        elif self._wants(notification, self.log_level):
            for session in sessions:
                session.notify(method, notification.raw)

    def _is_ready(self, session: ServerSession) -> bool:
        """Return whether a session may be told anything: not before the end of its handshake."""
        return session.era is not None or not self._is_handshake

    def _wants(self, notification: Notification, least: str | None) -> bool:
        """Return whether the host wants a notification: a log message only from a level."""
        if notification.method != MESSAGE:
            return True
        level = notification.params.get("level")
        if level not in LEVELS:
            return self._is_handshake
        if least is None:
            # In the stateless era nothing is sent unasked; before it, the server chooses.
            if not self._is_handshake:
                return False
            if not self.shared.is_level_set:
                return True
            least = DEFAULT_LEVEL
        return LEVELS.index(level) >= LEVELS.index(least)
