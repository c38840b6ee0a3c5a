"""To which authorization server credentials go: the one that the user pinned, or the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import AuthError, OAuth
from holdfast._core.auth import jws
from holdfast.auth import ClientCredentials, EnterpriseManaged, WorkloadIdentity
from holdfast.errors import DiscoveryError
from holdfast.stores import MemoryStore, StoreError
from tests.auth.world import World, world

GRANTS: dict[str, Callable[..., Any]] = {
    "code": OAuth,
    "code with a secret": lambda **more: OAuth(client_id="me", client_secret="S", **more),
    "device": lambda **more: OAuth(device=True, **more),
    "secret": lambda **more: ClientCredentials(client_id="me", client_secret="S", **more),
    "key": lambda **more: ClientCredentials(client_id="me", private_key=jws.new_key(), **more),
    "workload": lambda **more: WorkloadIdentity(client_id="me", token=lambda: "JWT", **more),
    "enterprise": lambda idp, **more: EnterpriseManaged(
        idp_issuer=idp, idp_client_id="sso", id_token="ID", client_id="me", **more
    ),
}
MACHINES = ["secret", "key", "workload", "enterprise"]


def grant(name: str, idp: World, **more: Any) -> Any:
    options = {"idp": idp.url} if name == "enterprise" else {}
    return GRANTS[name](store=MemoryStore(), **options, **more)


@pytest.mark.req("A10", "A13", "B18")
@pytest.mark.parametrize("name", GRANTS)
async def test_what_is_meant_for_a_pinned_issuer_goes_to_nobody_else(name: str) -> None:
    """The resource lists an address of its own, whose document claims the pinned issuer's name."""
    async with world() as pinned, world() as taken, world() as idp:
        idp.changes = {"issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"}
        taken.metadata["issuer"] = pinned.url
        async with taken.connect(auth=grant(name, idp, issuer=pinned.url)) as session:
            with pytest.raises(AuthError):
                await session.call_tool("hello")
        for path in ("/token", "/register", "/authorize"):
            assert taken.asked(path) == []
        assert taken.count["device"] == 0
        assert pinned.sent or pinned.count["device"]


async def moved(auth: Any, first: World, second: World) -> AuthError:
    """Get a token; then the server names another authorization server."""
    async with first.connect(auth=auth) as session:
        assert (await session.call_tool("hello")).text == "hello"
        await refused_by(first, second)
        with pytest.raises(AuthError) as caught:
            await session.call_tool("hello")
    return caught.value


async def refused_by(first: World, second: World) -> None:
    first.resource = {"authorization_servers": [second.url]}
    first.tokens.clear()


@pytest.mark.req("A10", "A13")
@pytest.mark.parametrize("name", MACHINES)
async def test_credentials_of_a_service_stay_with_the_first_issuer(name: str) -> None:
    async with world() as here, world() as taken, world() as idp:
        idp.changes = {"issued_token_type": "urn:ietf:params:oauth:token-type:id-jag"}
        auth = grant(name, idp)
        error = await moved(auth, here, taken)
        assert isinstance(error, DiscoveryError)
        assert here.url in str(error)
        assert taken.url in str(error)
        assert "issuer" in str(error)
        assert taken.sent == []
        # A later process remembers it.
        async with here.connect(auth=auth) as session:
            with pytest.raises(DiscoveryError, match="belong"):
                await session.call_tool("hello")
        assert taken.sent == []


@pytest.mark.req("A10")
async def test_another_issuer_is_confirmed_by_naming_it() -> None:
    store = MemoryStore()
    async with world() as here, world() as other:
        auth = ClientCredentials(client_id="me", client_secret="S", store=store)
        await moved(auth, here, other)
        auth = ClientCredentials(client_id="me", client_secret="S", store=store, issuer=other.url)
        async with here.connect(auth=auth) as session:
            with pytest.raises(AuthError, match="refuses the token"):
                await session.call_tool("hello")
        assert other.asked("/token")


@pytest.mark.req("A10")
async def test_an_issuer_is_remembered_for_each_server_and_client() -> None:
    store = MemoryStore()
    async with world() as here, world() as other:
        for place in (here, other):
            for name in ("me", "you"):
                auth = ClientCredentials(client_id=name, client_secret="S", store=store)
                async with place.connect(auth=auth) as session:
                    assert (await session.call_tool("hello")).text == "hello"


@pytest.mark.req("A10")
async def test_an_issuer_that_gave_no_token_is_not_remembered() -> None:
    store = MemoryStore()
    async with world() as here, world() as other:
        auth = ClientCredentials(client_id="me", client_secret="S", store=store)
        other.odd = {"error": "invalid_scope"}
        here.resource = {"authorization_servers": [other.url]}
        async with here.connect(auth=auth) as session:
            with pytest.raises(AuthError):
                await session.call_tool("hello")
        here.resource = {}
        async with here.connect(auth=auth) as session:
            assert (await session.call_tool("hello")).text == "hello"


class Unwritable(MemoryStore):
    """A service may run where nothing can be written."""

    async def put(self, key: str, data: bytes, ttl: float | None = None) -> None:
        raise StoreError("read-only")


@pytest.mark.req("A10")
async def test_a_service_that_can_store_nothing_works_and_is_bound_while_it_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world() as here, world() as taken:
        auth = ClientCredentials(client_id="me", client_secret="S", store=Unwritable())
        error = await moved(auth, here, taken)
        assert isinstance(error, DiscoveryError)
        assert taken.sent == []
    assert any("issuer" in record.message for record in caplog.records)


@pytest.mark.req("A10")
async def test_logout_forgets_the_issuer_of_a_service() -> None:
    store = MemoryStore()
    async with world() as here:
        auth = ClientCredentials(client_id="me", client_secret="S", store=store)
        async with here.connect(auth=auth) as session:
            await session.call_tool("hello")
            assert await store.keys()
            await session.logout()
        assert await store.keys() == []
