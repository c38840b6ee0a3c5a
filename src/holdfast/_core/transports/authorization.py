"""Authorization for HTTP: credentials for each request, and handling of refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeVar

import aiohttp
import msgspec

from holdfast._core.auth.discovery import NoAuthorizationServer
from holdfast._core.auth.flow import Attempts, Refusal, read_challenge
from holdfast._core.boundary import RefusalReason, Refused
from holdfast._core.callbacks import ends_task
from holdfast.errors import AuthError, HoldfastError

if TYPE_CHECKING:
    from holdfast._core.auth.auth_server import AddressCheck
    from holdfast._core.auth.authorizer import Authorizer
    from holdfast._core.transports.http_client import Watcher

T = TypeVar("T")

Held = Callable[[bool], None]
_VERSION: Final = "MCP-Protocol-Version"


class Permit:
    """The credentials of one request, including its retries."""

    def __init__(
        self,
        authorizer: Authorizer,
        address_check: AddressCheck,
        held: Held | None,
        watcher: Watcher | None = None,
    ) -> None:
        self._authorizer = authorizer
        self._address_check = address_check
        self._held = held
        self._watcher = watcher
        self._attempts = Attempts()

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        """Return the credentials to send; the request is held until they are available."""
        return await self._work(self._authorizer.headers(method, url))

    def accepted(
        self, response: aiohttp.ClientResponse, sent: Mapping[str, str]
    ) -> aiohttp.ClientResponse:
        """Note that the server took the request, and so the token that was sent with it."""
        self._authorizer.accept(sent.get("Authorization", "").partition(" ")[2] or None)
        return response

    async def answered(
        self, response: aiohttp.ClientResponse, sent: Mapping[str, str], body: bytes | None
    ) -> bool:
        """Return whether to repeat a request that was sent with the headers ``sent``; or raise."""
        if response.method == "DELETE":
            # A session that cannot be deleted expires: do not refresh or log in for that.
            return False
        challenge = read_challenge(response.headers.getall("WWW-Authenticate", ()))
        if response.status == 403 and challenge.error != "insufficient_scope":
            return False
        refusal = Refusal(
            status=response.status,
            challenge=challenge,
            token=sent.get("Authorization", "").partition(" ")[2] or None,
            operation=_operation(body),
            nonce=response.headers.get("DPoP-Nonce"),
            network=self._address_check.network,
            version_header={_VERSION: sent[_VERSION]} if _VERSION in sent else {},
        )
        response.release()
        try:
            await self._work(self._authorizer.answer(refusal, self._attempts))
        except Refused as failure:
            # A server without OAuth wants other credentials.
            is_without = isinstance(failure.error, NoAuthorizationServer)
            if is_without and not self._authorizer.interactive:
                return False
            raise
        return True

    async def _work(self, work: Awaitable[T]) -> T:
        if self._held is not None:
            self._held(True)
        self._tell("credentials are needed")
        try:
            result = await work
            self._tell("there are credentials")
            return result
        except HoldfastError as error:
            self._tell(error.message)
            # Credentials that are refused, or an authorization server out of reach.
            refused = isinstance(error, AuthError)
            reason = RefusalReason.UNAUTHORIZED if refused else RefusalReason.UNREACHABLE
            raise Refused(error, reason, processed=False) from error
        except BaseException as error:
            if ends_task(error):
                raise
            # Raised by the application's store or function: the text may contain secrets.
            # What follows "credentials:" is hidden as one.
            text = f"{type(error).__name__} in a function or store of the application"
            text = f"there are no credentials, because of {text}"
            raise Refused(AuthError(text), RefusalReason.UNAUTHORIZED, processed=False) from error
        finally:
            if self._held is not None:
                self._held(False)

    def _tell(self, why: str) -> None:
        if self._watcher is not None:
            from holdfast._core.transports.http_client import HttpNote

            self._watcher(HttpNote("login", why=why))


def _operation(body: bytes | None) -> str:
    """Return the method and target of a request; step-ups are counted for each."""
    request = msgspec.json.decode(body or b"{}")
    params = request.get("params") or {}
    return f"{request.get('method', '')} {params.get('name') or params.get('uri', '')}"[:300]
