"""The token of one account at one server, its renewal and its login, each run once at a time."""

# Renewals, and how they can go wrong
# ===================================
#
# An access token lives for minutes, a login for months. In between stands the refresh token, and
# most servers let it be used once: the answer brings the next one, and an old one that is seen
# again ends the whole family, because a thief may have it (RFC 9700 §4.14.2). So every renewal is
# a race with a loss at its end that only a person in a browser can make good. The runners are:
#
# - Calls of this process. At the expiry of a token a hundred of them are refused together. They
#   meet in ``_work``, a `SingleFlight`: the first starts the renewal, the others wait for it. It
#   runs in a task of its own, since any of the callers may be cancelled, by its own deadline
#   for one. A renewal that were cancelled between the answer and the store would lose the login.
# - Other processes with the same store. They are kept apart by the lock of the entry. Whoever
#   gets it reads the entry again *inside*: if another one has renewed meanwhile, its tokens are
#   taken and nothing is asked (``_renew_held``). The entry is written back once before the request,
#   so that a store that cannot be written is found out while the old token is still good, and it
#   is written with the new tokens before anybody uses them. A lease can end while its holder is
#   suspended, so writing is a swap: a holder of the past does not overwrite what came after.
# - The store itself, if it is across a network. While it is down nobody can be kept apart, so
#   nobody renews, and requests go out with the token that is there, expired or not. If it goes
#   down between the request and the writing, this process holds the only token of the family: it
#   uses it, and writes it as soon as the store is back (`LoginSaver`).
# - Requests that are under way with the old token. Their refusals arrive late, perhaps after the
#   renewal. A refusal is therefore judged by the token that *it* was sent with (``_has_newer``):
#   if that is no longer ours, the request is sent again and nothing else happens. The same holds
#   after the slow parts of a decision: discovery takes seconds, and a login may end in them.
# - A person who logs in, here or by ``holdfast login`` in a terminal. ``need`` is set while a login
#   is needed and None after it. A caller that comes with a `LoginRequired` looks there, and into
#   the store, before a window opens (``finds_newer_login``).
# - The end of the client. `close` cancels a login, which can be begun again, and waits for a
#   renewal, which cannot.
#
# What must hold, whoever wins:
#
# 1. A refresh token is sent once, and to the issuer that gave it.
# 2. A loser deletes nothing: an entry goes only when *its* refresh token was refused, with the
#    entry locked (``ENDS_LOGIN``). Trouble with the network keeps everything.
# 3. Nobody holds a lock or a flight while a request to the MCP server is under way. A stream that
#    is open for hours would stop every call.
# 4. For one need there is one window. A token that a server refuses right after the login does
#    not lead to the next window (``_untried_token``): it would bring another of its kind. That is
#    why headers are not kept ready until a server has accepted them once.
#
# Why no lock inside of a conversation (httpx has one in its flow): the conversations of `flow`
# decide, and know neither tasks nor stores. Only what stands here acts, so that the order of
# acquiring (flight, then lock) is the same everywhere, and nothing can wait in a circle.

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from secrets import token_urlsafe
from typing import Any, Final

from msgspec.structs import replace

from holdfast._core.auth import flow, urls
from holdfast._core.auth.auth_server import NetworkSettings, StepRunner, Watch, time_limit
from holdfast._core.auth.browser import LOGGED_IN, InteractiveLogin, LoginPhase
from holdfast._core.auth.credentials import Login, Pointer, decode, pointer_key
from holdfast._core.auth.discovery import NoAuthorizationServer
from holdfast._core.auth.flow import Attempts, AuthorizationNeed, Challenge, Refusal, RefusedRequest
from holdfast._core.auth.grants import ENDS_LOGIN, MAX_WAIT
from holdfast._core.auth.login import LoginAttempt, log_in
from holdfast._core.auth.options import Machine, OAuth, account_name
from holdfast._core.auth.saving import LoginSaver, is_needed_now
from holdfast._core.auth.service import ServiceLogin
from holdfast._core.redact.known import KNOWN, Holder, secrets_of
from holdfast._core.single_flight import SingleFlight, WorkStopped
from holdfast.errors import AuthError, GrantError, HoldfastError, LoginFailed, TransportError

NEVER: Final = float("inf")
REST: Final = 10.0
"""Seconds after a failed renewal in which a token that has not expired is used as it is."""
CLOSING: Final = 10.0
"""Seconds that closing the client waits for a running renewal to be stored."""
MAX_TRIES: Final = 4
"""Repetitions of one request, for all reasons together."""


class Authorizer:
    """The authorization of one account at one server, as its transport sees it.

    Renewals and logins run in tasks of their own: they outlive the callers that wait for them.
    """

    def __init__(
        self,
        server: str,
        options: OAuth | Machine,
        *,
        settings: NetworkSettings | None = None,
        name: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server: str = urls.canonical(server)
        self.options = options
        self.name: str = name or self.server
        self.login: Login | None = None
        self.need: AuthorizationNeed | None = None
        """The authorization that a login would request, since the last refusal."""
        self.refusal: Refusal | None = None
        self.on_event: Callable[[str, dict[str, Any]], None] = lambda kind, facts: None
        self.on_change: Callable[[], None] = lambda: None
        """Called when the person who is logged in changes."""
        self._settings = settings or NetworkSettings()
        self.runner: StepRunner = StepRunner(self._settings, clock, getattr(options, "store", None))
        self._loaded = not isinstance(options, OAuth)
        """Tokens of machines are not stored."""
        self._person: tuple[str, str | None] | None = None
        """Issuer and subject of the login that was used last."""
        self.user: str | None = None
        """The account that `for_account` was given, whatever the environment says."""
        self._persons = 0
        """Counts the changes of the person who is logged in."""
        self._held: Holder | None = None
        """Keeps the tokens known to whatever hides secrets."""
        self._step_ups: Counter[str] = Counter()
        self._untried_token: str | None = None
        """The token of a new login, until the server has accepted it."""
        self.phase: LoginPhase = LoginPhase()
        """Tells whether a login waits for a person, or for an authorization server."""
        self._proven: set[str] = set()
        """Clients that the authorization server knew when it was last asked."""
        self._service: ServiceLogin | None = None
        if not isinstance(options, OAuth):
            self._service = ServiceLogin(options, self.runner, self.name)
        self._work = SingleFlight()
        self._saver = LoginSaver()
        self._trouble: TransportError | None = None
        """Why the last renewal failed; it is not tried again before ``_trouble_until``."""
        self._trouble_until = 0.0
        self._rest_until = 0.0
        """A token that has not expired is not renewed before this time."""
        self._ready: dict[str, str] | None = None
        self._ready_until = 0.0

    def __repr__(self) -> str:
        return f"<Authorizer {self.server} {type(self.options).__name__} {self.login!r}>"

    @property
    def personal(self) -> bool:
        """True if a function names the account of each request; see `for_account`."""
        return callable(getattr(self.options, "account", None))

    @property
    def is_busy(self) -> bool:
        """True while a renewal or a login is running."""
        return self._work.is_busy

    @property
    def account(self) -> str:
        """The name of the account; from the function, if it is one, for the current caller."""
        return self.user if self.user is not None else account_name(self.options, self.name)

    def for_account(self, name: str) -> Authorizer:
        """Return an authorizer for one account, with the same store."""
        assert isinstance(self.options, OAuth)
        options = replace(self.options, account=name, store=self.runner.store.store)
        clock, settings = self.runner.clock, self._settings
        authorizer = Authorizer(
            self.server, options, settings=settings, name=self.name, clock=clock
        )
        authorizer.user = name
        return authorizer

    def allow_login(self, **settings: Any) -> None:
        """Allow a login, with changed settings."""
        if isinstance(self.options, OAuth):
            self.options = replace(self.options, interactive=True, **settings)

    @property
    def interactive(self) -> bool:
        """True if the user asked for OAuth; otherwise a stored login is used if there is one."""
        return getattr(self.options, "interactive", True)

    @property
    def identity(self) -> str:
        """Differs between users of the server, so that caches and sessions are kept apart."""
        login = self.login
        who = "" if login is None else f"{login.issuer} {login.subject or ''}"
        return f"{self.account} {self._persons} {who}"

    # For the HTTP client

    def ready(self) -> dict[str, str] | None:
        """Return the headers if they are ready; None if `headers` must be awaited."""
        if not self._loaded:
            self._skip_load()
        return self._ready if self._ready_until > self.runner.clock() else None

    async def headers(self, method: str, url: str) -> dict[str, str]:
        """Return the credentials for a request; empty if there is no login."""
        login = await self._current()
        if login is None or login.dpop_key is None:
            return _headers(login)
        proof = self.runner.proof(login.dpop_key, method, url, login.access_token)
        return {**_headers(login), "DPoP": proof}

    def accept(self, token: str | None) -> None:
        """Note that the server accepted a token."""
        if token is not None and token == self._untried_token:
            self._untried_token = None
            self._prepare()

    async def answer(self, refusal: Refusal, attempts: Attempts) -> None:
        """Return if the request can be sent again; otherwise raise why not."""
        attempts.count += 1
        self.refusal = refusal
        self.runner.network = refusal.network or self.runner.network
        self.runner.note_nonce(self.server, refusal.nonce)
        if refusal.challenge.error == "use_dpop_nonce" and not attempts.nonce:
            attempts.nonce = True
            return
        if attempts.count > MAX_TRIES:
            raise AuthError(f"{self.name}: the server refuses every token", code=refusal.status)
        if self._has_newer(refusal.token):
            return
        key = (refusal.status, refusal.token, refusal.challenge.scope, refusal.operation)
        renewed = attempts.renewed
        attempts.renewed |= refusal.status == 401
        if isinstance(self.options, OAuth):
            await self._work.join(key, lambda: self._decide(refusal, renewed=renewed))
        elif renewed or refusal.status == 403:
            raise flow.refused(self.name, "the server refuses the token", refusal)
        else:
            await self._work.join(key, lambda: self._by_machine(refusal))

    async def _decide(self, refusal: Refusal, *, renewed: bool) -> None:
        """Renew the token if that can help, else raise `LoginRequired`."""
        stored = await self._stored()
        if stored is not None and self._is_newer(stored, refusal.token):
            # Another process has logged in or renewed the token in the meantime.
            self._take(stored)
            return
        if refusal.status == 401 and refusal.token == self._untried_token is not None:
            # Another login would bring another token of the same kind, after another window.
            text = "the server refuses the token of the new login"
            raise flow.refused(self.name, text, refusal)
        login, ups = stored or self.login, self._step_ups[refusal.operation]
        while True:
            request = self._request(refusal, login=login, renewed=renewed, step_ups=ups)
            verdict = await self.runner.run(flow.answer(request))
            if isinstance(verdict, AuthorizationNeed):
                break
            try:
                await self._renew(verdict)
                return
            except GrantError as error:
                if error.error not in ENDS_LOGIN:
                    raise
                renewed = True
        if self._has_newer(refusal.token):
            # A login has ended during the discovery.
            return
        if verdict.login.auth_server.assumed and not self.interactive:
            raise NoAuthorizationServer(f"{self.name}: the server names no authorization server")
        self.need = verdict
        self._tell("auth.required", verdict)
        raise flow.login_required(self.name, self.account, verdict)

    # Tokens

    async def _current(self) -> Login | None:
        """Return the login, renewed if it is due and can be renewed."""
        await self.load()
        login, now = self.login, self.runner.clock()
        if login is None or not login.due(now, random.random()):
            self._prepare()
            return login
        if now < self._rest_until and not login.expired(now):
            return login
        try:
            if not isinstance(self.options, OAuth):
                await self._work.join("machine", lambda: self._by_machine(None))
            elif login.refresh_token is not None:
                return await self._renew(login)
        except Exception as error:
            # The authorization server's, or that of the application's store or function.
            if getattr(error, "error", "") in ENDS_LOGIN:
                return self.login
            if is_needed_now(login, self.runner.clock(), error):
                raise
            self._rest_until = now + REST
        return self.login

    def _prepare(self) -> None:
        """Keep headers ready until a renewal is due; DPoP needs a new proof for each request."""
        login = self.login
        bound = login is not None and login.dpop_key is not None
        # A new token is watched until the server has accepted it.
        self._ready = None if bound or self._untried_token is not None else _headers(login)
        self._ready_until = NEVER if login is None else login.renew_at(random.random())

    def _skip_load(self) -> None:
        """Get by without reading the store if it can tell at once that there is no login."""
        # An error is raised again where it is expected, when the store is read.
        with suppress(AuthError):
            if self.runner.store.lacks(pointer_key(self.server, self.account)):
                self._loaded = True
                self._prepare()

    async def load(self) -> None:
        """Read the stored login of this server and account, once."""
        if not self._loaded:
            stored = await self._stored()
            self._loaded = True
            if self.login is None and stored is not None:
                self._take(stored)

    async def _stored(self) -> Login | None:
        return await self.runner.run(flow.stored(self._request()))

    def _has_newer(self, token: str | None) -> bool:
        """Return whether there is a login whose token is another one than was refused."""
        return self.login is not None and self.login.access_token != token

    def _is_newer(self, stored: Login, token: str | None) -> bool:
        return stored.access_token != token and not stored.due(self.runner.clock())

    async def _renew(self, login: Login) -> Login:
        # The lower bound is for a clock that was set back: the pause must not grow by that.
        until = self._trouble_until
        if self._trouble is not None and until - MAX_WAIT <= self.runner.clock() < until:
            raise self._trouble.again()
        return await self._work.join(("renew", login.key), lambda: self._renew_held(login))

    async def _renew_held(self, login: Login) -> Login:
        """Refresh with the entry locked, unless another process has done it (B2, B3, B4)."""
        token = login.access_token
        async with time_limit() as limit, self.runner.store.hold(login.key) as slot:
            data = await slot.read()
            stored = decode(data, Login)
            if stored is None or stored.refresh_token is None:
                self._forget()
                raise GrantError("the stored login is gone", error="invalid_grant")
            if self._is_newer(stored, token):
                self._take(stored)
                return stored
            # Test that the store can be written before the refresh token is used up.
            await slot.write(data)
            # The request has its own limit. Storing its answer has none: the old token is used up.
            limit.reschedule(None)
            try:
                renewed = await self.runner.run(flow.renew(stored, self.runner.clock()))
            except GrantError as error:
                if error.error in ENDS_LOGIN:
                    await slot.write(None)
                    self._forget()
                self._tell("auth.failed", None, reason=error.error)
                raise
            except TransportError as error:
                wait = (error.data or {}).get("retry_after", 0.0)
                self._trouble, self._trouble_until = error, self.runner.clock() + wait
                raise
            # Stored before it is used: losing a rotated token ends the login.
            renewed = await self._saver.save(slot, renewed, partial(self._is_newer, token=token))
        self._take(renewed)
        self._tell("auth.refreshed", None)
        return renewed

    def _take(self, login: Login, *, maybe_other: bool = False) -> None:
        """Use a login; if the person changed, `on_change` ends the session and clears caches."""
        before, self._person = self._person, (login.issuer, login.subject)
        unknown = maybe_other and login.subject is None
        self.login, self._loaded = login, True
        self._held = KNOWN.held(secrets_of("login", login))
        self.runner.note_login(login)
        if before is not None and (before != self._person or unknown):
            self._persons += 1
            self.on_change()
        self._prepare()

    def _forget(self) -> None:
        self.login = None
        self._untried_token = None
        self._prepare()

    async def _by_machine(self, refusal: Refusal | None) -> None:
        """Get a token without a person; it is kept only in memory."""
        assert self._service is not None
        if refusal is not None or self.need is None:
            self.need = await self.runner.run(flow.discover(self._request(refusal)))
        try:
            self._take(await self._service.log_in(self.need.with_dpop_key()))
        except GrantError as error:
            self._forget()
            self._tell("auth.failed", self.need, reason=error.error)
            raise
        self._tell("auth.granted", self.need)

    # Logins

    async def log_in(self, handler: Any, *, fresh: bool = False) -> Login:
        """Log in with a person; concurrent callers wait for the same login."""
        try:
            return await self._work.join("login", lambda: self._log_in(handler, fresh))
        except WorkStopped:
            raise LoginFailed(f"{self.name}: the client was closed") from None

    async def finds_newer_login(self) -> bool:
        """Return whether there is another login than the one that was refused last.

        A request may learn of its refusal after the login that it needs: of this process, or of
        another one with the same store. Then it only has to be sent again.
        """
        if self.need is None:
            return self.login is not None
        if self.need.step_up_for is not None or "login" in self._work:
            return False
        refused_token = None if self.refusal is None else self.refusal.token
        stored = await self._stored()
        if stored is None or not self._is_newer(stored, refused_token):
            return False
        self._take(stored)
        self.need = None
        return True

    def _metadata_place(self, pointer: Pointer | None) -> str | None:
        """Return the URL of the resource metadata: the challenge's, else that of the last login."""
        place = None if self.refusal is None else self.refusal.challenge.resource_metadata
        return place or (None if pointer is None else pointer.metadata_url)

    async def _log_in(self, handler: Any, fresh: bool) -> Login:
        options = self.options
        assert isinstance(options, OAuth)
        await self.load()
        interaction = InteractiveLogin(self.name, self.account, handler, self.phase.change)
        outcome = "The login did not succeed. Look at the program that started it."
        try:
            async with asyncio.timeout(options.timeout):
                pointer = await self.runner.read(pointer_key(self.server, self.account), Pointer)
                place = self._metadata_place(pointer)
                if (need := self.need) is None:
                    request = self._request(Refusal(challenge=Challenge(resource_metadata=place)))
                    need = self.need = await self.runner.run(flow.discover(request))
                if need.step_up_for is not None:
                    self._step_ups[need.step_up_for] += 1
                self._tell("auth.login", need)
                attempt = LoginAttempt(
                    options=options,
                    now=self.runner.clock(),
                    login=need.with_dpop_key(),
                    verifier=token_urlsafe(64),
                    state=token_urlsafe(32),
                    bound=_bound_issuer(options, pointer),
                    # After a 401 the server may have forgotten the client with the token. For a
                    # step-up the token is valid, and servers count authorization requests.
                    proven=self._proven if need.step_up_for is not None else frozenset(),
                    fresh=fresh,
                )
                login = await self.runner.run(log_in(attempt), interaction)
                await self.runner.run(flow.keep(login, place))
                outcome = LOGGED_IN
        except HoldfastError as error:
            outcome = f"The login did not succeed: {error.message}"
            self._proven.clear()
            self._tell("auth.failed", self.need, reason="login")
            raise
        except TimeoutError:
            self._proven.clear()
            text = f"nobody completed the login within {options.timeout:g} s"
            raise LoginFailed(f"{self.name}: {text}") from None
        finally:
            await interaction.close(outcome)
        self._proven.add(login.client.client_id)
        self._untried_token = login.access_token
        self._take(login, maybe_other=need.step_up_for is None)
        self.need = None
        self._tell("auth.granted", None)
        return login

    async def log_out(self) -> bool:
        """Revoke and delete the login; return whether there was one.

        Raises:
            AuthError: It was deleted here, but its tokens were not revoked.
        """
        await self.load()
        login = self.login
        async with time_limit():
            if login is not None:
                # The lock waits for a running renewal: its tokens are the ones to revoke.
                async with self.runner.store.hold(login.key) as slot:
                    login = decode(await slot.read(), Login) or login
                    await slot.write(None)
            await self.runner.write(pointer_key(self.server, self.account), None)
            if self._service is not None:
                await self._service.forget(self.server)
        self._forget()
        self._persons += 1
        self.need = None
        if login is not None and (problem := await self.runner.run(flow.revoke(login))):
            text = "the login was deleted here, but its tokens may stay valid"
            raise AuthError(f"{self.name}: {text}: {problem}")
        return login is not None

    async def discover(self, watch: Watch) -> AuthorizationNeed:
        """Run only the discovery; ``watch`` is called with each request and its answer."""
        return await self.runner.run(flow.discover(self._request(self.refusal)), watch=watch)

    async def close(self) -> None:
        """Cancel a running login; wait for a running renewal to store its rotated token."""
        await self._work.close(cancel=("login",), timeout=CLOSING)
        await self._saver.close(CLOSING)

    def _request(self, refusal: Refusal | None = None, **facts: Any) -> RefusedRequest:
        return RefusedRequest(
            server=self.server,
            account=self.account,
            options=self.options,
            now=self.runner.clock(),
            refusal=refusal or Refusal(),
            network=self.runner.network or "global",
            **facts,
        )

    def _tell(self, kind: str, need: AuthorizationNeed | None, **details: Any) -> None:
        about = need.login if need else self.login
        scopes = about and (about.requested_scopes if need else about.granted)
        facts = {
            "server": self.server,
            "account": self.account,
            "issuer": about and about.issuer,
            "resource": about and about.resource,
            "scopes": scopes or (),
            "expires_at": self.login and self.login.expires_at,
        }
        self.on_event(kind, {**facts, **details})


def _headers(login: Login | None) -> dict[str, str]:
    return {} if login is None else {"Authorization": f"{login.token_type} {login.access_token}"}


def _bound_issuer(options: OAuth, pointer: Pointer | None) -> str | None:
    """Return the issuer that the client belongs to: the user's, else that of its last login."""
    if options.issuer is None and pointer is not None and pointer.client_id == options.client_id:
        return pointer.issuer
    return options.issuer
