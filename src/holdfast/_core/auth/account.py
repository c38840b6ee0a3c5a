"""One account at one server: its token, its renewal and its login, one of each at a time."""

from __future__ import annotations

import asyncio
import random
import shlex
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast._core.auth import flow, jws, urls
from holdfast._core.auth.browser import Person
from holdfast._core.auth.challenge import Refusal, Tries
from holdfast._core.auth.credentials import Login, Pointer, decode, entry_key
from holdfast._core.auth.flow import Case, Need
from holdfast._core.auth.grants import ENDS_LOGIN, plain
from holdfast._core.auth.login import Attempt, by_machine, log_in
from holdfast._core.auth.options import EnterpriseManaged, OAuth, WorkloadIdentity, supplied
from holdfast._core.single_flight import SingleFlight, WorkStopped
from holdfast.errors import (
    AuthError,
    DiscoveryError,
    GrantError,
    HoldfastError,
    LoginFailed,
    LoginRequired,
    TransportError,
)

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer, Watch

NEVER: Final = float("inf")
REST: Final = 10.0
"""Seconds after a failed renewal in which a token that is still good is used as it is."""
CLOSING: Final = 10.0
"""Seconds for a renewal under way to be saved when the client is closed."""
MAX_TRIES: Final = 4
"""How often one request is sent again, whatever the reasons."""


class Account:
    """One account at the server: its login, and the work under way for it."""

    def __init__(self, owner: Authorizer, name: str) -> None:
        self.owner = owner
        self.name = name
        self.login: Login | None = None
        self.need: Need | None = None
        """What a login would ask for, since the last refusal."""
        self.refusal: Refusal | None = None
        """The last one of the server's."""
        self._loaded = False
        self._person: tuple[str, str | None] | None = None
        """Issuer and subject of the login that was used last."""
        self._persons = 0
        """Changes of the person who is logged in."""
        self._step_ups: dict[str, int] = {}
        self._proven: set[str] = set()
        self._work = SingleFlight()
        self._trouble: TransportError | None = None
        """Why the last renewal failed; not before ``_trouble_until`` is there another."""
        self._trouble_until = 0.0
        self._rest_until = 0.0
        """A token that is still good is not renewed before."""
        self._ready: dict[str, str] | None = None
        self._ready_until = 0.0

    def __repr__(self) -> str:
        return f"<Account {self.name!r} {self.login!r}>"

    @property
    def interactive(self) -> bool:
        """True if the user asked for OAuth; otherwise a stored login is used if there is one."""
        return getattr(self.owner.options, "interactive", True)

    @property
    def identity(self) -> str:
        """Tells one user of the server from another, for caches and sessions."""
        login = self.login
        who = "" if login is None else f"{login.issuer} {login.subject or ''}"
        return f"{self.name} {self._persons} {who}"

    # For the HTTP client

    def ready(self) -> dict[str, str] | None:
        """Return the headers at once if a token is at hand that is bound to no key."""
        return self._ready if self._ready_until > self.owner.clock() else None

    async def headers(self, method: str, url: str) -> dict[str, str]:
        """Return the credentials for a request; none if there are none."""
        login = await self._current()
        if login is None or urls.origin(url) != urls.origin(self.owner.server):
            return {}
        headers = {"Authorization": f"{login.token_type} {login.access_token}"}
        if login.dpop_key is not None:
            headers["DPoP"] = self.owner.proof(login.dpop_key, method, url, login)
        return headers

    async def answer(self, refusal: Refusal, tries: Tries) -> None:
        """Return if the request is to be sent again; raise why not otherwise.

        Raises:
            LoginRequired: A person has to log in.
            TransportError: No authorization server can be reached.
            AuthError: Nothing helps.
        """
        tries.count += 1
        owner, self.refusal = self.owner, refusal
        owner.network = refusal.network or owner.network
        owner.note_nonce(owner.server, refusal.nonce)
        if refusal.challenge.error == "use_dpop_nonce" and not tries.nonce:
            tries.nonce = True
            return
        if tries.count > MAX_TRIES:
            raise AuthError(f"{owner.name}: the server refuses every token", code=refusal.status)
        if self.login is not None and refusal.token != self.login.access_token:
            return
        key = (refusal.status, refusal.token, refusal.challenge.scope, refusal.operation)
        renewed = tries.renewed
        tries.renewed |= refusal.status == 401
        if isinstance(owner.options, OAuth):
            await self._work.join(key, lambda: self._decide(refusal, renewed=renewed))
        elif tries.granted or refusal.status == 403:
            said = plain(refusal.challenge.error_description) or plain(refusal.challenge.error)
            text = f"{owner.name}: the server refuses the token{': ' + said if said else ''}"
            raise AuthError(text, code=refusal.status)
        else:
            tries.granted = True
            await self._work.join(key, lambda: self._by_machine(refusal))

    async def _decide(self, refusal: Refusal, *, renewed: bool) -> None:
        """Renew if that can help, else raise that a login is needed."""
        stored = await self._stored()
        newer = stored is not None and stored.access_token != refusal.token
        if stored is not None and newer and not stored.due(self.owner.clock()):
            # Another process has logged in, or renewed the token, meanwhile.
            self._take(stored)
            return
        login = stored or self.login
        step_ups = self._step_ups.get(refusal.operation, 0)
        while True:
            case = self._case(refusal, login=login, renewed=renewed, step_ups=step_ups)
            verdict = await self.owner.run(flow.answer(case))
            if isinstance(verdict, Need):
                break
            try:
                await self._renew(verdict)
                return
            except GrantError as error:
                if error.error not in ENDS_LOGIN:
                    raise
                login, renewed = None, True
        if verdict.server.assumed and not self.interactive:
            raise DiscoveryError(f"{self.owner.name}: the server names no authorization server")
        if verdict.step_up:
            self._step_ups[refusal.operation] = step_ups + 1
        self.need = verdict
        raise self._login_required(verdict)

    def _login_required(self, need: Need) -> LoginRequired:
        words = ["holdfast", "login", self.owner.name]
        if self.name != "default":
            words += ["--account", self.name]
        # Names may come from a project's file: what is copied must be one command.
        command = shlex.join(words)
        more = " for more scopes" if need.step_up else ""
        self._tell("auth.required", need)
        text, scopes = f"the server wants a login{more}", need.scopes or ()
        return LoginRequired(text, command=command, scopes=scopes, hint=f"run: {command}")

    # Tokens

    async def _current(self) -> Login | None:
        """Return the login, renewed if it is due and that can be done."""
        await self.load()
        login, now = self.login, self.owner.clock()
        resting = login is not None and now < self._rest_until and not login.expired(now)
        if login is None or resting or not login.due(now, random.random()):
            self._prepare()
            return login
        try:
            if not isinstance(self.owner.options, OAuth):
                await self._work.join("machine", lambda: self._by_machine(None))
            elif login.refresh_token is not None:
                return await self._renew(login)
        except TransportError:
            if login.expired(self.owner.clock()):
                raise
            self._rest_until = now + REST
        except GrantError as error:
            if error.error not in ENDS_LOGIN:
                raise
        return self.login

    def _prepare(self) -> None:
        """Have the headers of an unbound token ready for as long as it is not due."""
        login = self.login
        if login is None:
            self._ready, self._ready_until = {}, NEVER
        elif login.dpop_key is not None:
            # A proof is made for each request.
            self._ready = None
        else:
            self._ready = {"Authorization": f"{login.token_type} {login.access_token}"}
            self._ready_until = login.renew_at(random.random())

    async def load(self) -> None:
        """Read the stored login of this server and account, once."""
        if not self._loaded and isinstance(self.owner.options, OAuth):
            found = await self._stored()
            self._loaded = True
            if self.login is None and found is not None:
                self._take(found)

    async def _stored(self) -> Login | None:
        """Return the stored login, if it is for this server and for the issuer that is pinned."""
        pointer = await self._pointer()
        if pointer is None:
            return None
        key = entry_key("login", pointer.issuer, pointer.resource, self.name)
        login = decode(await self.owner.store.read(key), Login)
        if login is None or login.server != self.owner.server:
            return None
        pinned = self.owner.options.issuer
        return login if pinned is None or urls.same_issuer(pinned, login.issuer) else None

    async def _pointer(self) -> Pointer | None:
        key = entry_key("server", self.owner.server, self.name)
        return decode(await self.owner.store.read(key), Pointer)

    async def _renew(self, login: Login) -> Login:
        if self._trouble is not None and self.owner.clock() < self._trouble_until:
            raise self._trouble.again()
        return await self._work.join(("renew", login.key), lambda: self._renew_held(login))

    async def _renew_held(self, login: Login) -> Login:
        """Refresh with the entry held, unless another process has done it (B2, B3, B4)."""
        owner = self.owner
        async with owner.store.hold(login.key) as slot:
            stored = decode(await slot.read(), Login)
            if stored is None or stored.refresh_token is None:
                self._forget()
                raise GrantError("the stored login is gone", error="invalid_grant")
            newer = stored.access_token != login.access_token
            if newer and not stored.due(owner.clock()):
                self._take(stored)
                return stored
            try:
                renewed = await self.owner.run(flow.renew(stored, owner.clock()))
            except GrantError as error:
                if error.error in ENDS_LOGIN:
                    await slot.write(None)
                    self._forget()
                self._tell("auth.failed", None, reason=error.error)
                raise
            except TransportError as error:
                wait = (error.data or {}).get("retry_after", 0.0)
                self._trouble, self._trouble_until = error, owner.clock() + wait
                raise
            # Saved before it is used: a token that was rotated and lost ends the login.
            await slot.write(msgspec.json.encode(renewed))
        self._proven.add(renewed.client.client_id)
        self._take(renewed)
        self._tell("auth.refreshed", None)
        return renewed

    def _take(self, login: Login, *, maybe_other: bool = False) -> None:
        """Use a login; another person's ends the session and the caches of the one before."""
        before, self._person = self._person, (login.issuer, login.subject)
        unknown = maybe_other and login.subject is None
        self.login, self._loaded = login, True
        self.owner.network = self.owner.network or login.network
        if before is not None and (before != self._person or unknown):
            self._persons += 1
            self.owner.on_change()
        self._prepare()

    def _forget(self) -> None:
        self.login = None
        self._prepare()

    async def _by_machine(self, refusal: Refusal | None) -> None:
        """Get a token without a person; it is kept in memory alone."""
        options = self.owner.options
        case = self._case(refusal)
        if refusal is not None or self.need is None:
            self.need = await self.owner.run(flow.discover(case))
        given = None
        if isinstance(options, WorkloadIdentity):
            given = await supplied(options.token, file=True)
        elif isinstance(options, EnterpriseManaged):
            given = await supplied(options.id_token)
        key = jws.new_key() if self.need.dpop else None
        try:
            self._take(await self.owner.run(by_machine(case, self.need, given, key)))
        except GrantError as error:
            self._forget()
            self._tell("auth.failed", self.need, reason=error.error)
            raise
        self._tell("auth.granted", self.need)

    # Logins

    async def log_in(self, handler: Any, *, fresh: bool = False) -> Login:
        """Log in with a person; callers that come meanwhile wait for the same login."""
        try:
            return await self._work.join("login", lambda: self._log_in(handler, fresh))
        except WorkStopped:
            raise LoginFailed(f"{self.owner.name}: the client was closed") from None

    async def _log_in(self, handler: Any, fresh: bool) -> Login:
        options = self.owner.options
        assert isinstance(options, OAuth)
        await self.load()
        try:
            async with asyncio.timeout(options.timeout):
                login = await self._conduct(options, handler, fresh)
                await self._keep(login)
        except HoldfastError:
            self._tell("auth.failed", self.need, reason="login")
            raise
        except TimeoutError:
            text = f"nobody completed the login within {options.timeout:g} s"
            raise LoginFailed(f"{self.owner.name}: {text}") from None
        self._proven.add(login.client.client_id)
        stepped_up = self.need is not None and self.need.step_up
        self._take(login, maybe_other=not stepped_up)
        self.need = None
        self._tell("auth.granted", None)
        return login

    async def _conduct(self, options: OAuth, handler: Any, fresh: bool) -> Login:
        case = self._case(login=self.login)
        if self.need is None:
            self.need = await self.owner.run(flow.discover(case))
        need = self.need
        pointer = await self._pointer()
        same = pointer is not None and pointer.client_id == options.client_id
        attempt = Attempt(
            case=case,
            need=need,
            verifier=token_urlsafe(64),
            state=token_urlsafe(32),
            dpop_key=jws.new_key() if need.dpop else None,
            bound=options.issuer or (pointer.issuer if pointer is not None and same else None),
            proven=self._proven,
            fresh=fresh,
        )
        self._tell("auth.login", need)
        person = Person(self.owner.name, self.name, handler)
        try:
            return await self.owner.run(log_in(attempt), person)
        finally:
            await person.close()

    async def _keep(self, login: Login) -> None:
        client_id = login.client.client_id
        pointer = Pointer(issuer=login.issuer, resource=login.resource, client_id=client_id)
        entries = {login.key: login, entry_key("server", self.owner.server, self.name): pointer}
        for key, entry in entries.items():
            async with self.owner.store.hold(key) as slot:
                await slot.write(msgspec.json.encode(entry))

    async def log_out(self) -> bool:
        """Revoke and delete the login; return whether there was one."""
        await self.load()
        login = self.login
        async with self.owner.store.hold(entry_key("server", self.owner.server, self.name)) as slot:
            await slot.write(None)
        if login is not None:
            # A renewal under way ends first: its tokens are the ones to revoke.
            async with self.owner.store.hold(login.key) as slot:
                login = decode(await slot.read(), Login) or login
                await slot.write(None)
        self._forget()
        self._persons += 1
        self.need = None
        if login is not None:
            await self.owner.run(flow.revoke(login))
        return login is not None

    async def discover(self, watch: Watch) -> Need:
        """Run the discovery alone; ``watch`` sees each request and its answer."""
        return await self.owner.run(flow.discover(self._case(self.refusal)), watch=watch)

    async def close(self) -> None:
        """End a login under way, and wait for the rest."""
        await self._work.close(cancel=("login",), timeout=CLOSING)

    # Inside

    def _case(self, refusal: Refusal | None = None, **known: Any) -> Case:
        owner = self.owner
        return Case(
            server=owner.server,
            account=self.name,
            options=owner.options,
            now=owner.clock(),
            refusal=refusal or Refusal(),
            network=owner.network or "global",
            **known,
        )

    def _tell(self, kind: str, need: Need | None, **more: Any) -> None:
        login = self.login
        facts = {
            "server": self.owner.server,
            "account": self.name,
            "issuer": need.server.issuer if need else login.issuer if login else None,
            "resource": need.resource if need else login.resource if login else None,
            "scopes": (need.scopes or ()) if need else login.granted if login else (),
            "expires_at": login.expires_at if login else None,
            **more,
        }
        self.owner.on_event(kind, facts)
