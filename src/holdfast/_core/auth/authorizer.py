"""The token of one account at one server, its renewal and its login, each run once at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from secrets import token_urlsafe
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from holdfast._core.auth import flow, urls
from holdfast._core.auth.auth_server import NetworkSettings, StepRunner, Watch, time_limit
from holdfast._core.auth.browser import LOGGED_IN, InteractiveLogin
from holdfast._core.auth.credentials import Login, Pointer, decode, pointer_key
from holdfast._core.auth.flow import Attempts, AuthorizationNeed, Challenge, Refusal, RefusedRequest
from holdfast._core.auth.grants import ENDS_LOGIN, MAX_WAIT, plain
from holdfast._core.auth.login import LoginAttempt, log_in
from holdfast._core.auth.options import Machine, OAuth
from holdfast._core.auth.service import binding_key, by_machine, check_issuer, remember_issuer
from holdfast._core.redact.known import KNOWN, Holder, secrets_of
from holdfast._core.single_flight import SingleFlight, WorkStopped
from holdfast.errors import (
    AuthError,
    DiscoveryError,
    GrantError,
    HoldfastError,
    LoginFailed,
    TransportError,
)

log: logging.Logger = logging.getLogger("holdfast")

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
        self._proven: set[str] = set()
        """Clients that the authorization server knew when it was last asked."""
        self._first_issuer: str | None = None
        """The issuer that the credentials of a service were first used at."""
        self._work = SingleFlight()
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
        if self.user is not None:
            return self.user
        name = source = getattr(self.options, "account", "default")
        if callable(source):
            try:
                name = source()
            except Exception as error:
                raise AuthError(f"{self.name}: account() failed: {error!r}") from error
        elif source == "default":
            name = os.environ.get("HOLDFAST_ACCOUNT") or source
        if not name or not isinstance(name, str):
            raise AuthError("account=…: must give the name of an account")
        return name

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
        if self.login is not None and refusal.token != self.login.access_token:
            return
        key = (refusal.status, refusal.token, refusal.challenge.scope, refusal.operation)
        renewed = attempts.renewed
        attempts.renewed |= refusal.status == 401
        if isinstance(self.options, OAuth):
            await self._work.join(key, lambda: self._decide(refusal, renewed=renewed))
        elif renewed or refusal.status == 403:
            said = refusal.challenge.error_description or refusal.challenge.error
            reason = f": {plain(said, secrets=[refusal.token or ''])}" if said else ""
            text = f"{self.name}: the server refuses the token{reason}"
            raise AuthError(text, code=refusal.status)
        else:
            await self._work.join(key, lambda: self._by_machine(refusal))

    async def _decide(self, refusal: Refusal, *, renewed: bool) -> None:
        """Renew the token if that can help, else raise `LoginRequired`."""
        stored = await self._stored()
        if stored is not None and self._is_newer(stored, refusal.token):
            # Another process has logged in or renewed the token in the meantime.
            self._take(stored)
            return
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
        if verdict.login.auth_server.assumed and not self.interactive:
            raise DiscoveryError(f"{self.name}: the server names no authorization server")
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
            if login.expired(self.runner.clock()):
                raise
            self._rest_until = now + REST
        return self.login

    def _prepare(self) -> None:
        """Keep headers ready until a renewal is due; DPoP needs a new proof for each request."""
        login = self.login
        bound = login is not None and login.dpop_key is not None
        self._ready = None if bound else _headers(login)
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
            found = await self._stored()
            self._loaded = True
            if self.login is None and found is not None:
                self._take(found)

    async def _stored(self) -> Login | None:
        return await self.runner.run(flow.stored(self._request()))

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
        async with time_limit() as limit, self.runner.store.hold(login.key) as slot:
            data = await slot.read()
            stored = decode(data, Login)
            if stored is None or stored.refresh_token is None:
                self._forget()
                raise GrantError("the stored login is gone", error="invalid_grant")
            if self._is_newer(stored, login.access_token):
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
            await slot.write(msgspec.json.encode(renewed))
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
        self._prepare()

    async def _by_machine(self, refusal: Refusal | None) -> None:
        """Get a token without a person; it is kept only in memory."""
        options, now = self.options, self.runner.clock()
        assert not isinstance(options, OAuth)
        if refusal is not None or self.need is None:
            self.need = await self.runner.run(flow.discover(self._request(refusal)))
        login = self.need.with_dpop_key()
        await self.runner.run(check_issuer(options, login, self._first_issuer))
        assertion = await options.assertion()
        if assertion is not None:
            KNOWN.note(assertion)
        grant = by_machine(options, login, assertion, now)
        try:
            login = await self.runner.run(grant)
            await self._bind(options, login)
            self._take(login)
        except GrantError as error:
            self._forget()
            self._tell("auth.failed", self.need, reason=error.error)
            raise
        self._tell("auth.granted", self.need)

    async def _bind(self, options: Machine, login: Login) -> None:
        """Remember the issuer that gave the first token; a service may have no place to write."""
        if self._first_issuer is None:
            self._first_issuer = login.issuer
            try:
                await self.runner.run(remember_issuer(options, login))
            except (HoldfastError, OSError) as error:
                text = "%s: the issuer of the credentials is not remembered (%s); issuer=… pins it"
                log.warning(text, self.name, error)

    # Logins

    async def log_in(self, handler: Any, *, fresh: bool = False) -> Login:
        """Log in with a person; concurrent callers wait for the same login."""
        try:
            return await self._work.join("login", lambda: self._log_in(handler, fresh))
        except WorkStopped:
            raise LoginFailed(f"{self.name}: the client was closed") from None

    async def _log_in(self, handler: Any, fresh: bool) -> Login:
        options = self.options
        assert isinstance(options, OAuth)
        await self.load()
        interaction = InteractiveLogin(self.name, self.account, handler)
        outcome = "The login did not succeed. Look at the program that started it."
        try:
            async with asyncio.timeout(options.timeout):
                pointer = await self.runner.read(pointer_key(self.server, self.account), Pointer)
                place = None if self.refusal is None else self.refusal.challenge.resource_metadata
                place = place or (None if pointer is None else pointer.metadata_url)
                if (need := self.need) is None:
                    request = self._request(Refusal(challenge=Challenge(resource_metadata=place)))
                    need = self.need = await self.runner.run(flow.discover(request))
                if need.step_up_for is not None:
                    self._step_ups[need.step_up_for] += 1
                bound = options.issuer
                if bound is None and pointer is not None and pointer.client_id == options.client_id:
                    bound = pointer.issuer
                self._tell("auth.login", need)
                attempt = LoginAttempt(
                    options=options,
                    now=self.runner.clock(),
                    login=need.with_dpop_key(),
                    verifier=token_urlsafe(64),
                    state=token_urlsafe(32),
                    bound=bound,
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
        self._take(login, maybe_other=need.step_up_for is None)
        self.need = None
        self._tell("auth.granted", None)
        return login

    async def log_out(self) -> bool:
        """Revoke and delete the login; return whether there was one."""
        await self.load()
        login = self.login
        async with time_limit():
            if login is not None:
                # The lock waits for a running renewal: its tokens are the ones to revoke.
                async with self.runner.store.hold(login.key) as slot:
                    login = decode(await slot.read(), Login) or login
                    await slot.write(None)
            await self.runner.write(pointer_key(self.server, self.account), None)
            if not isinstance(self.options, OAuth):
                await self.runner.write(binding_key(self.options, self.server), None)
                self._first_issuer = None
        self._forget()
        self._persons += 1
        self.need = None
        if login is not None:
            await self.runner.run(flow.revoke(login))
        return login is not None

    async def discover(self, watch: Watch) -> AuthorizationNeed:
        """Run only the discovery; ``watch`` is called with each request and its answer."""
        return await self.runner.run(flow.discover(self._request(self.refusal)), watch=watch)

    async def close(self) -> None:
        """Cancel a running login; wait for a running renewal to store its rotated token."""
        await self._work.close(cancel=("login",), timeout=CLOSING)

    def _request(self, refusal: Refusal | None = None, **known: Any) -> RefusedRequest:
        return RefusedRequest(
            server=self.server,
            account=self.account,
            options=self.options,
            now=self.runner.clock(),
            refusal=refusal or Refusal(),
            network=self.runner.network or "global",
            **known,
        )

    def _tell(self, kind: str, need: AuthorizationNeed | None, **more: Any) -> None:
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
        self.on_event(kind, {**facts, **more})


def _headers(login: Login | None) -> dict[str, str]:
    return {} if login is None else {"Authorization": f"{login.token_type} {login.access_token}"}
