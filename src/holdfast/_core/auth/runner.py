"""Carry conversations out: requests, signatures, stored entries, and the person's part."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Container, Coroutine, Mapping
from secrets import token_urlsafe
from typing import Any, Protocol, TypeVar

from holdfast._core.auth import jws, urls
from holdfast._core.auth.as_client import AsClient, Reach
from holdfast._core.auth.browser import Listener
from holdfast._core.auth.credentials import (
    Login,
    Registration,
    decode,
    encode,
    login_key,
    registration_key,
)
from holdfast._core.auth.options import LoginRequest, Machine, OAuth, check_token
from holdfast._core.auth.steps import (
    Ask,
    Browse,
    Conversation,
    Fetched,
    Keep,
    Listen,
    Load,
    Pause,
    Recall,
    ShowCode,
    Sign,
    Step,
    Unreachable,
)
from holdfast._core.auth.store import LoginStore
from holdfast.errors import AuthError, HoldfastError, LoginFailed

T = TypeVar("T")


class Owner(Protocol):
    """What the accounts of one server share."""

    server: str
    name: str
    options: OAuth | Machine
    network: str | None
    nonces: dict[str, str]
    reach: Reach
    clock: Callable[[], float]
    on_event: Callable[[str, dict[str, Any]], None]

    @property
    def store(self) -> LoginStore: ...


class Runner:
    """Runs the conversations of one account."""

    def __init__(
        self,
        account: str,
        store: Callable[[], LoginStore],
        reach: Reach,
        nonces: dict[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._account = account
        self._store = store
        self._reach = reach
        self._nonces = nonces
        self._clock = clock

    async def run(
        self, conversation: Conversation[T], network: str, person: Person | None = None
    ) -> T:
        """Carry a conversation out to its end."""
        async with AsClient(self._reach, network) as client:
            answer: Any = None
            while True:
                try:
                    step = conversation.send(answer)
                except StopIteration as done:
                    value: T = done.value
                    return value
                answer = await self._perform(step, client, person)

    async def _perform(self, step: Step, client: AsClient, person: Person | None) -> Any:
        match step:
            case Ask():
                return await self._ask(step, client)
            case Sign():
                return jws.assertion(
                    step.key,
                    step.claims,
                    algorithm=step.algorithm,
                    key_id=step.key_id,
                    now=self._clock(),
                    jti=token_urlsafe(16),
                )
            case Recall():
                key = login_key(step.issuer, step.resource, self._account)
                return decode(await self._store().read(key), Login)
            case Load():
                key = registration_key(step.issuer, step.redirect)
                return decode(await self._store().read(key), Registration)
            case Keep():
                async with self._store().hold(registration_key(step.issuer, step.redirect)) as slot:
                    kept = step.registration
                    await slot.write(None if kept is None else encode(kept))
                return None
            case _:
                assert person is not None
                return await person.perform(step)

    async def _ask(self, ask: Ask, client: AsClient) -> Fetched | Unreachable:
        """Send a request; where the server wants a nonce in the proof, once more with it."""
        place = urls.origin(ask.url)
        for again in (False, True):
            more = {}
            if ask.proof is not None:
                more["DPoP"] = self.proof(ask.proof, ask.method, ask.url, None)
            answer, headers = await client.ask(ask, more)
            nonce = headers.get("DPoP-Nonce")
            if nonce is not None and len(nonce) < 1024:
                self._nonces[place] = nonce
            if again or ask.proof is None or nonce is None or not isinstance(answer, Fetched):
                break
            if (answer.document() or {}).get("error") != "use_dpop_nonce":
                break
        return answer

    def proof(self, key: str, method: str, url: str, login: Login | None) -> str:
        return jws.proof(
            key,
            method=method,
            url=url,
            now=self._clock() + (login.skew if login is not None else 0.0),
            jti=token_urlsafe(16),
            nonce=self._nonces.get(urls.origin(url)),
            token=None if login is None else login.access_token,
        )


class Person:
    """The steps of a conversation that need a person."""

    def __init__(self, server: str, account: str, handler: Any) -> None:
        self._server = server
        self._account = account
        self._handler = handler
        self._listener: Listener | None = None
        self._shown: asyncio.Task[Any] | None = None

    async def perform(self, step: Step) -> Any:
        match step:
            case Listen():
                await self.close()
                self._listener = await Listener.start(step.preferred, step.path, fixed=step.fixed)
                return self._listener.redirect_uri
            case Browse():
                return await self._browse(step)
            case ShowCode():
                request = self._request(step.url, step.issuer, step.scopes, step.user_code)
                self._shown = asyncio.get_running_loop().create_task(self._call(request))
                return None
            case Pause():
                await asyncio.sleep(step.seconds)
                return None
        raise AssertionError(step)

    async def _browse(self, step: Browse) -> Mapping[str, str]:
        """Wait for the redirect: by the listener, or as the handler gives it back."""
        listener = self._listener
        assert listener is not None
        loop = asyncio.get_running_loop()
        heard = loop.create_task(listener.wait(step.state))
        # One turn of the loop, so that the listener knows the state before anybody answers.
        await asyncio.sleep(0)
        request = self._request(step.url, step.issuer, step.scopes, None)
        asked = loop.create_task(self._call(request))
        try:
            await asyncio.wait([heard, asked], return_when=asyncio.FIRST_COMPLETED)
            while not heard.done():
                wrong = listener.paste(given) if (given := asked.result()) else ""
                if wrong:
                    raise LoginFailed(f"the address given back cannot be used: {wrong}")
                await asyncio.wait([heard])
            return heard.result()
        finally:
            heard.cancel()
            asked.cancel()

    def _request(
        self, url: str, issuer: str, scopes: tuple[str, ...], code: str | None
    ) -> LoginRequest:
        return LoginRequest(
            url=url,
            server=self._server,
            issuer=issuer,
            scopes=scopes,
            account=self._account,
            user_code=code,
            redirect_uri=None if self._listener is None else self._listener.redirect_uri,
        )

    async def _call(self, request: LoginRequest) -> str | None:
        try:
            found = self._handler(request)
            found = await found if inspect.isawaitable(found) else found
        except HoldfastError:
            raise
        except Exception as error:
            raise LoginFailed(f"the login handler failed: {type(error).__name__}") from error
        return found if isinstance(found, str) else None

    async def close(self) -> None:
        if self._shown is not None:
            self._shown.cancel()
        if self._listener is not None:
            await self._listener.close()
            self._listener = None


class SingleFlight:
    """Work that is done once for all who want it at the same time."""

    def __init__(self) -> None:
        self._tasks: dict[object, asyncio.Task[Any]] = {}

    async def join(self, key: object, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Join the work under this key, or begin it in a task that no caller can cancel."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(work())
            self._tasks[key] = task
            task.add_done_callback(lambda done: self._finished(key, done))
        try:
            found: T = await asyncio.shield(task)
        except HoldfastError as error:
            raise error.again() from error.__cause__
        return found

    def _finished(self, key: object, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(key, None)
        if not task.cancelled():
            task.exception()

    async def close(self, *, cancel: Container[object], timeout: float) -> None:
        """Cancel the work under some keys and let the rest come to its end."""
        tasks = dict(self._tasks)
        for key, task in tasks.items():
            if key in cancel:
                task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=timeout)


async def supplied(source: Any, *, file: bool = False) -> str:
    """Return a token from a function, a file that is read anew, or as it is given."""
    if callable(source):
        found = source()
        found = await found if inspect.isawaitable(found) else found
    elif file:
        found = await asyncio.to_thread(_read, source)
    else:
        found = source
    text = found.strip() if isinstance(found, str) else found
    return check_token(text)


def _read(path: Any) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as found:
            return found.read(65536)
    except OSError as error:
        raise AuthError(f"the token file cannot be read: {error.strerror}") from None
