"""One handler for every method: what a host sends goes to the server, and what comes back to it.

Nothing is decoded that need not be. What belongs to a hop is made anew on each side: ids, tokens of
progress, and the entries of ``_meta`` that describe the connection. All else passes as it came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.boundary import Call, LinkChanged, WireId
from holdfast._core.calls.handlers import Notification
from holdfast._core.calls.requester import Requester
from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, LOG_LEVEL, VERSIONS
from holdfast._core.eras.serving import LEVELS, STATELESS_FIELDS, Json, ServingEra
from holdfast._core.server.lifecycle import begin_session
from holdfast._core.server.message import is_id
from holdfast._core.server.request import ServerRequest
from holdfast._core.server.server import Server
from holdfast._core.server.session import ServerSession
from holdfast._core.waiting import Failure
from holdfast._core.wire.codes import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RequestError,
)
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import (
    HoldfastError,
    RpcError,
    ValidationError,
)
from holdfast.relay import passage
from holdfast.relay.envelope import (
    answered_errors,
    fault_of,
    fields_of,
    introduction,
    may_be_asked,
    of_other_era,
    passing_meta,
    subject_of,
)
from holdfast.relay.host_wishes import HostWishes
from holdfast.relay.notices import Notices
from holdfast.relay.questions import MAY_ASK, STATE, Questions
from holdfast.relay.tasks.core import following
from holdfast.relay.tasks.host import HostTasks
from holdfast.relay.tasks.shapes import of_task, promised, related_task, with_task_support
from holdfast.relay.tool_rules import ToolRules
from holdfast.types.lifecycle import Progress

if TYPE_CHECKING:
    from holdfast.relay.sharing import SharedRelay

INITIALIZED: Final = "notifications/initialized"

MOST_TIMES: Final = 100
"""Methods whose time is remembered: a host may invent any number of them."""


class Relay:
    """Serves one host what the server of a shared client offers; `SharedRelay.join` makes it.

    Args:
        shared: The client, and who else uses it.
        is_lasting: It stays when a session of its server ends.
        has_tasks: Tasks of the server are offered to the host.

    Attributes:
        server: What to serve to the host, by a runner of `holdfast._core.serve`.
        capabilities: What the host can do; None until it says so.
        log_level: The level from which it wants log messages; None: not said.
        watched: The resources whose updates it wants.
        open_calls: The number of its requests that are at the server.
        is_handshake: It has begun a session; a stateless one does not.
        tasks: The tasks that are its own.
        followed: The requests of the host that are under way, and how those that went straight did.
    """

    def __init__(
        self, shared: SharedRelay, *, is_lasting: bool = False, has_tasks: bool = True
    ) -> None:
        self.shared = shared
        self._client = shared.client
        self.requester: Requester = shared.client._requester
        self.is_lasting = is_lasting
        self.rules: ToolRules = ToolRules(shared.client, shared.tools)
        self._questions = Questions()
        self.tasks: HostTasks = HostTasks(self, is_offered=has_tasks)
        self._sessions: dict[ServerSession, None] = {}
        """The sessions of the host, the one that spoke last at the end."""
        self.wishes: HostWishes = HostWishes(self, self._sessions)
        self.is_handshake = False
        self._is_initialized = asyncio.Event()
        """Set once a handshake host may be asked."""
        self.followed: dict[ServerRequest, passage.Passage | None] = {}
        self.times: dict[str, float] = {}
        """The seconds that a request may take, by its method."""
        self._notices = Notices(self, self._sessions, self.followed)
        self._era_heard: ServingEra | None = None
        """What the last stateless request said of the host."""
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
                INITIALIZED: lambda request: self._begin(),
                **self.wishes.handlers(),
            },
            default=self._pass,
            capabilities=self._capabilities,
        )
        # What a revision does not know passes: to take it away is for those who read it.
        self.server.verbatim = True
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
            if request.era is not self._era_heard:
                self._hear_stateless(request)
        elif request.method == "initialize":
            self.is_handshake = True
            self._declare(request.get("capabilities"))
        elif request.session.era is not None and request.id is not None:
            self._begin()  # some hosts go on without saying that they are

    def _hear_stateless(self, request: ServerRequest) -> None:
        """Note what a message says of its host, unless the one before said the same."""
        capabilities, level = request.era.capabilities, request.era.log_level
        if capabilities != self.capabilities:
            self._declare(capabilities)
        if request.id is not None:
            self._era_heard = request.era
            self.log_level = level if level in LEVELS else None

    def _begin(self) -> None:
        """Ask and tell the host what waited for the end of its handshake."""
        if not self._is_initialized.is_set():
            self._is_initialized.set()
            self._notices.pass_early()

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
                self.shared.spawn(self.wishes.end_unwanted())
        else:
            self._questions.close()
            self.tasks.close()
            self.shared.leave_soon(self)

    async def leave(self) -> None:
        """End all that is of this host: calls, questions, subscriptions."""
        self.is_lasting = False
        for session in list(self._sessions):
            session.close()
        self._questions.close()
        self.tasks.close()
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

    @property
    def is_there(self) -> bool:
        """True while the server is connected."""
        return self._client.is_connected

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

    async def _introduction(self, era: ServingEra) -> Json:
        """Connect, and return what the server says of itself to a host of an era."""
        with answered_errors():
            await self._client.open()
        facts = self._client._facts
        assert facts is not None
        self._name_server()
        if era.asks is not self.shared.is_stateless:
            return introduction(facts, None)
        # A host of an older revision has no tasks.
        form = self.tasks.form if era.knows("initialize", "tasks") else None
        return introduction(facts, promised(self._capabilities(), form, in_core=era.asks))

    def _name_server(self) -> None:
        """Have results to stateless hosts name the real server."""
        facts = self._client._facts
        if facts is not None and facts.info is not None:
            self.server.info = facts.info  # type: ignore[assignment]

    async def _initialize(self, request: ServerRequest) -> Json:
        era = begin_session(request)
        introduction = await self._introduction(era)
        return {"protocolVersion": era.version, "serverInfo": self.server.info, **introduction}

    async def _discover(self, request: ServerRequest) -> Json:
        return {"supportedVersions": list(VERSIONS), **await self._introduction(request.era)}

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
        self.followed[request] = None
        try:
            if self._client._facts is None:
                # What is passed, and how, depends on the era of the server.
                await self._client.open()
            if request.method == "tools/list":
                await self.rules.check_list()
            if self.log_level is not None:
                await self.wishes.tell_level()
            if request.method.startswith("tasks/"):
                result = await self.tasks.handle(request)
            elif request.stateless:
                result = await self._pass_stateless(request)
            else:
                result = await self._send(request)
        except HoldfastError as error:
            raise fault_of(error) from error
        finally:
            del self.followed[request]
        return self.returned(request, result)

    def returned(self, request: ServerRequest, result: Raw) -> Any:
        """Return a result of the server as the host is given it."""
        self._name_server()
        if request.method == "tools/list":
            result = self.rules.enabled(result)
        if request.stateless == self.shared.is_stateless:
            return result
        if request.method == "tools/list" and not request.stateless and self.tasks.form is not None:
            result = with_task_support(result)
        fields = of_other_era(result)
        if request.stateless or not isinstance(fields, dict):
            return fields
        return {name: value for name, value in fields.items() if name not in STATELESS_FIELDS}

    def time_for(self, method: str) -> float:
        """Return the seconds that a request may take.

        The host has its own patience, and a question may wait for a person: no idle clock.
        """
        span = self.times.get(method)
        if span is None:
            timeouts = self._client._policy.timeouts
            span = timeouts.total_for(timeouts.for_method(method))
            if len(self.times) < MOST_TIMES:
                self.times[method] = span
        return span

    def fault(self, call: Call, error: Failure) -> RequestError:
        """Return the error to answer the host with, for a call that failed."""
        assert isinstance(error, HoldfastError)
        self.requester.hold_secrets(error, call)
        return fault_of(error)

    async def go_on(self, request: ServerRequest, call: Call, raw: Raw) -> Any:
        """Answer what a stateless server asks in the result of a call, until it is answered."""
        self.followed[request] = None
        self.shared.begin_call(self)
        progressed = partial(self.report, request) if call.progress else None
        try:
            with answered_errors():
                result = await self.requester.go_on(call, raw, progressed)
        finally:
            del self.followed[request]
            self.open_calls -= 1
        return self.returned(request, result)

    async def _pass_stateless(self, request: ServerRequest) -> Raw:
        """Pass a request whose host is asked by results."""
        if request.method not in MAY_ASK or (
            self.shared.is_stateless and STATE.encode() not in bytes(request.params_raw)
        ):
            # Questions of a stateless server are results, too: they pass as they are.
            return await self._send(request)
        state = request.get("requestState")
        if isinstance(state, str) and state.startswith(STATE):
            return await self._questions.resume(request, state)
        is_repeated = state is not None or "inputResponses" in request.fields
        if is_repeated and not self.shared.is_stateless:
            # The server knows no rounds: it would run the call from the beginning.
            raise RequestError(INVALID_PARAMS, "requestState is not of this server")
        return await self._questions.begin(request, self._send(request))

    async def _send(self, request: ServerRequest) -> Raw:
        """Send a request of the host to the server; a call may become a task."""
        if request.method == "tools/call":
            return await self.tasks.call(request)
        if self.shared.cache is None:
            return await self.forward(request)
        return await self.shared.cache.answer(self, request, lambda: self.forward(request))

    async def forward(
        self,
        request: ServerRequest,
        *,
        fields: Json | None = None,
        extensions: tuple[str, ...] = (),
        on_sent: Callable[[WireId], None] | None = None,
    ) -> Raw:
        """Send a request of the host to the server as it is, or with other parameters.

        ``on_sent`` is called with the id of each message.
        """
        is_call = request.method == "tools/call"
        wants_progress = "progressToken" in request.meta
        self.shared.begin_call(self)
        try:
            while True:
                checked = await self.rules.check_call(request) if is_call else {}
                now = self.requester.driver.loop.time()
                call = self.call(request, now, fields, extensions=extensions, **checked)
                try:
                    return await self.requester.forward(
                        call,
                        on_progress=partial(self.report, request) if wants_progress else None,
                        passes_questions=request.stateless,
                        on_sent=on_sent,
                    )
                except LinkChanged:
                    continue  # not sent: the server was replaced after it was checked
        finally:
            self.open_calls -= 1

    def call(
        self, request: ServerRequest, since: float, fields: Json | None = None, **options: Any
    ) -> Call:
        """Return what the server is sent for a request of the host, or with other parameters.

        Its ``_meta`` describes this hop, not the host's.

        Raises:
            ValidationError: The parameters cannot be read.
        """
        passed: Json = request.fields if fields is None else fields
        meta, wants_progress, method = self.hop(request), False, request.method
        try:
            if not passed:
                fields_of.decode(request.params_raw)  # may be unreadable
            about = subject_of(passed)
            if request.meta:
                if passing := passing_meta(request):
                    meta = {**passing, **meta}
                wants_progress = "progressToken" in request.meta
        except MALFORMED as error:
            text = f"{method}: the parameters cannot be forwarded: {error}"
            raise ValidationError(text) from error
        if "_meta" in passed:
            passed = passed.copy()
            del passed["_meta"]
        span = self.times.get(method) or self.time_for(method)
        return Call(
            method,
            passed or None,
            meta or None,
            span,
            span,
            about,
            wants_progress or bool(self.requester.progress_handlers),
            since=since,
            place_within=span,
            **options,
        )

    def report(self, request: ServerRequest, progress: Progress) -> None:
        """Pass the progress of a call as it came, with the token of the host."""
        followed = self._questions.following(request)
        token = followed.meta.get("progressToken")
        if is_id(token) and not followed.cancelled:
            fields = fields_of.decode(vars(progress)["_source"])
            followed.notify("notifications/progress", {**fields, "progressToken": token})

    def hop(self, request: ServerRequest) -> Json:
        """Return what a stateless server is told of this host with a request."""
        driver = self.requester.opener.started
        era = None if driver is None else driver.engine.link.era
        if era is None or not era.listens:
            return {}
        host: ServingEra | Relay = request.era if request.stateless else self
        capabilities, level = host.capabilities, host.log_level
        key = (era, capabilities, level)
        if key != self._hop_key:
            declared = self.shared.declaring(capabilities or {})
            self._hop_meta = {} if declared is None else {CLIENT_CAPABILITIES: declared}
            if level is not None:
                self._hop_meta[LOG_LEVEL] = level
            self._hop_key = key
        return self._hop_meta

    # From the server

    async def ask(self, method: str, params: Raw) -> Raw:
        """Ask the host what the server asks.

        Raises:
            RpcError: It cannot be asked, or it refused.
        """
        task_id = related_task(params)
        self._name_server()
        if not self.is_handshake:
            if task_id is not None and self.tasks.is_named(task_id):
                return await self.tasks.ask(task_id, method, params)
            passage.follow_all(self, self.followed, self._questions)
            return await self._questions.ask(method, params)
        await self._is_initialized.wait()
        session = next(reversed(self._sessions), None)
        if session is None or not may_be_asked(method, self.capabilities or {}):
            raise RpcError(f"the client does not offer {method}", code=METHOD_NOT_FOUND)
        followed_task = following.get()
        if followed_task is not None:
            params = of_task(params, followed_task)
        # By the stream of a request, where each has its own: another may never be opened.
        followed = next(reversed(self.followed), None)
        write = None if followed is None else followed.write
        try:
            return await session.ask_raw(method, params, write)
        except RequestError as error:
            raise RpcError(error.message, code=error.code, data=error.data) from None

    def notified(self, notification: Notification) -> None:
        """Pass a notification of the server to the host, if it is one that the host wants."""
        self._notices.pass_on(notification)
