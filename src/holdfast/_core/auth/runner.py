"""Carry conversations out: requests, signatures, stored entries, and the person's part."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from holdfast._core import files
from holdfast._core.auth import jws, urls
from holdfast._core.auth.as_client import AsClient
from holdfast._core.auth.browser import Listener
from holdfast._core.auth.credentials import Login, decode, encode
from holdfast._core.auth.options import LoginRequest, check_token
from holdfast._core.auth.steps import (
    Ask,
    Browse,
    Conversation,
    Fetched,
    Listen,
    Pause,
    Read,
    ShowCode,
    Sign,
    Step,
    Unreachable,
    Write,
)
from holdfast._core.callbacks import ends_task
from holdfast.errors import AuthError, HoldfastError, LoginFailed

if TYPE_CHECKING:
    from holdfast._core.auth.authorizer import Authorizer

T = TypeVar("T")
Watch: TypeAlias = "Callable[[Ask, Fetched | Unreachable], None]"


class Runner:
    """Runs the conversations of one server.

    Args:
        owner: The settings, the store and the nonces.
        person: Performs the steps that need one.
        watch: Called with each request and its answer.
    """

    def __init__(
        self, owner: Authorizer, person: Person | None = None, watch: Watch | None = None
    ) -> None:
        self._owner = owner
        self._person = person
        self._watch = watch

    async def run(self, conversation: Conversation[T], network: str) -> T:
        """Carry a conversation out to its end."""
        async with AsClient(self._owner.reach, network) as client:
            answer: Any = None
            while True:
                try:
                    step = conversation.send(answer)
                except StopIteration as done:
                    value: T = done.value
                    return value
                answer = await self._perform(step, client)

    async def _perform(self, step: Step, client: AsClient) -> Any:
        owner = self._owner
        match step:
            case Ask():
                answer = await self._ask(step, client)
                if self._watch is not None:
                    self._watch(step, answer)
                return answer
            case Sign(key, algorithm, key_id, claims):
                now = owner.clock()
                return jws.assertion(key, claims, algorithm=algorithm, key_id=key_id, now=now)
            case Read(key, kind):
                return decode(await owner.store.read(key), kind)
            case Write(key, value):
                async with owner.store.hold(key) as slot:
                    return await slot.write(None if value is None else encode(value))
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case _:
                assert self._person is not None
                return await self._person.perform(step)

    async def _ask(self, ask: Ask, client: AsClient) -> Fetched | Unreachable:
        """Send a request; where the server wants a nonce in the proof, once more with it."""
        for again in (False, True):
            more = {}
            if ask.proof is not None:
                more["DPoP"] = proof(self._owner, ask.proof, ask.method, ask.url)
            answer, headers = await client.ask(ask, more)
            nonce = headers.get("DPoP-Nonce")
            if nonce is None or len(nonce) >= 1024:
                break
            self._owner.nonces[urls.origin(ask.url)] = nonce
            if again or ask.proof is None or not isinstance(answer, Fetched):
                break
            if (answer.document() or {}).get("error") != "use_dpop_nonce":
                break
        return answer


def proof(owner: Authorizer, key: str, method: str, url: str, login: Login | None = None) -> str:
    """Return a DPoP proof for one request, bound to the token of a login."""
    return jws.proof(
        key,
        method=method,
        url=url,
        now=owner.clock() + (login.skew if login is not None else 0.0),
        nonce=owner.nonces.get(urls.origin(url)),
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
            case Listen(preferred, path, fixed):
                await self.close()
                self._listener = await Listener.start(preferred, path, fixed=fixed)
                return self._listener.redirect_uri
            case Browse():
                return await self._browse(step)
            case ShowCode():
                self._shown = asyncio.create_task(self._call(step, step.user_code))
                return None
        raise AssertionError(step)

    async def _browse(self, step: Browse) -> Mapping[str, str]:
        """Wait for the redirect: by the listener, or as the handler gives it back."""
        listener = self._listener
        assert listener is not None
        heard = asyncio.ensure_future(listener.wait(step.state))
        asked = asyncio.create_task(self._call(step))
        try:
            await asyncio.wait([heard, asked], return_when=asyncio.FIRST_COMPLETED)
            if not heard.done() and (given := asked.result()):
                wrong = listener.paste(given)
                if wrong:
                    raise LoginFailed(f"the address given back cannot be used: {wrong}")
            return await heard
        finally:
            heard.cancel()
            asked.cancel()

    async def _call(self, step: Browse | ShowCode, code: str | None = None) -> str | None:
        request = LoginRequest(
            url=step.url,
            server=self._server,
            issuer=step.issuer,
            scopes=step.scopes,
            account=self._account,
            user_code=code,
            redirect_uri=None if self._listener is None else self._listener.redirect_uri,
        )
        try:
            found = self._handler(request)
            found = await found if inspect.isawaitable(found) else found
        except HoldfastError:
            raise
        except BaseException as error:
            if ends_task(error):
                raise
            raise LoginFailed(f"the login handler failed: {type(error).__name__}") from error
        return found if isinstance(found, str) else None

    async def close(self) -> None:
        if self._shown is not None:
            self._shown.cancel()
        if self._listener is not None:
            await self._listener.close()
            self._listener = None


async def supplied(source: Any, *, file: bool = False) -> str:
    """Return a token from a function, a file that is read anew, or as it is given."""
    if callable(source):
        found = source()
        found = await found if inspect.isawaitable(found) else found
    elif file:
        try:
            data = await asyncio.to_thread(files.read_bytes, source, 65536)
        except OSError as error:
            text = f"the token file cannot be read: {files.reason(error)}"
            raise AuthError(text) from None
        found = data.decode("ascii", "replace")
    else:
        found = source
    return check_token(found.strip() if isinstance(found, str) else found)
