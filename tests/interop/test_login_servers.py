"""Logins to authorization servers that others wrote: those of the SDKs, and one of its own.

Each is taken through a whole life: a login, a second process that finds it, a renewal, a server
that forgets its clients, and the end, after which its tokens are refused.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

import holdfast
from holdfast import Client, Handlers, OAuth
from holdfast.auth import LoginRequest
from holdfast.errors import LoginRequired
from holdfast.stores import FileStore, MemoryStore, Store
from tests.interop.catalogue import (
    FASTMCP_2,
    FASTMCP_3,
    FASTMCP_4,
    PYTHON_1,
    PYTHON_2,
    SCRIPTS,
    Server,
)
from tests.interop.hosting import free_port
from tests.interop.install import NotHere, install
from tests.interop.test_authorization import answers, running
from tests.interop.test_oidc_provider import CACHE, SCRIPT, Hosted, Person, hosted, node

__all__ = ["node"]

LIFE = 3600
"""Seconds that access tokens live."""
LIBRARIES = {
    server.name: server for server in (FASTMCP_2, FASTMCP_3, FASTMCP_4, PYTHON_1, PYTHON_2)
}


class Visitor(Person):
    """Counts the windows that were opened."""

    windows = 0

    async def __call__(self, request: LoginRequest) -> str | None:
        self.windows += 1
        return await super().__call__(request)


@pytest.fixture(autouse=True)
def installed(request: pytest.FixtureRequest) -> None:
    """Install the library before the test, whose time it is not."""
    params = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    library = LIBRARIES.get(params.get("name", ""))
    if library is not None:
        with suppress(NotHere):
            install("pypi", library.name, library.pins)


@asynccontextmanager
async def login_server(
    library: Server,
    folder: Path,
    kind: str = "memory",
    upstream: str = "none",
    redirect: str = "http://127.0.0.1:1/callback",
) -> AsyncIterator[str]:
    """Run an MCP server on a library, which is its own authorization server; give its origin."""
    try:
        python = install("pypi", library.name, library.pins) / "bin" / "python"
    except NotHere as reason:
        pytest.skip(str(reason))
    port = free_port()
    script = "fastmcp_login.py" if library.package == "fastmcp" else "python_sdk_login.py"
    command = [str(python), str(SCRIPTS / script), kind, str(port), str(LIFE), upstream]
    command.append(redirect)
    home = f"http://127.0.0.1:{port}"
    async with running(command, folder):
        await answers(f"{home}/.well-known/oauth-authorization-server")
        yield home


def connect(home: str, person: Any, store: Store, **options: Any) -> Client:
    auth = OAuth(store=store, **options)
    return holdfast.connect(f"{home}/mcp", auth=auth, handlers=Handlers(login=person))


async def greet(client: Client) -> str:
    assert (await client.call_tool("hello")).text == "hello"
    return str(client.transport.authorizer.login.access_token)


async def forget_clients(home: str) -> None:
    async with aiohttp.ClientSession() as session, session.post(f"{home}/forget") as response:
        assert response.status == 200


async def is_refused(home: str, token: str) -> bool:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{home}/mcp", json={}, headers=headers) as response,
    ):
        return response.status == 401


@pytest.mark.req("A10", "A12", "A20", "A22", "A24", "B6", "B8", "B10", "B22")
@pytest.mark.parametrize("name", LIBRARIES)
async def test_the_life_of_a_login_at_the_routes_of_an_sdk(name: str, tmp_path: Path) -> None:
    person, folder = Visitor(), tmp_path / "logins"
    redirect = f"http://127.0.0.1:{free_port()}/callback"
    async with login_server(LIBRARIES[name], tmp_path, redirect=redirect) as home:
        async with connect(home, person, FileStore(folder)) as client:
            await greet(client)
            assert "read" in client.transport.authorizer.login.granted
        # Another process finds the login, renews it and asks nobody.
        async with connect(home, person, FileStore(folder)) as client:
            first = await greet(client)
            client.transport.authorizer.runner.clock = lambda: time.time() + LIFE - 1
            second = await greet(client)
            assert first != second
            assert person.windows == 1
            client.transport.authorizer.runner.clock = time.time
            assert await client.logout()
            assert await is_refused(home, second)
            # A registration is used again, until the server has forgotten it.
            await client.login()
            await greet(client)
            await forget_clients(home)
            await client.login()
            await greet(client)
            assert person.windows == 3
        # A client that the user has registered.
        options = {"client_id": "given", "client_secret": "given-secret", "redirect_uri": redirect}
        async with connect(home, person, MemoryStore(), **options) as client:
            await greet(client)
            assert client.transport.authorizer.login.client.client_id == "given"
            assert await client.logout()
        assert person.windows == 4


@pytest.mark.req("A12", "B22")
@pytest.mark.parametrize("name", ["fastmcp-2", "fastmcp-3", "fastmcp-4"])
async def test_a_login_by_way_of_an_oauth_proxy(name: str, tmp_path: Path, node: Path) -> None:
    port, person = free_port(), Visitor(action="approve")
    upstream = f"http://127.0.0.1:{port}"
    async with running([str(node), SCRIPT.name, str(port), "any", "", "600"], CACHE):
        await answers(f"{upstream}/.well-known/openid-configuration")
        async with login_server(LIBRARIES[name], tmp_path, "proxy", upstream=upstream) as home:
            async with connect(home, person, MemoryStore()) as client:
                await greet(client)
    assert person.windows == 1


@pytest.mark.req("A9", "A11")
async def test_a_client_by_its_metadata_document(node: Path) -> None:
    """The provider is handed the document, which it would fetch otherwise."""
    document = "https://client.example/holdfast.json"
    person = Visitor()
    async with hosted(node, document) as here:
        async with provider_client(here, person, client_metadata_url=document) as client:
            await greet(client)
            assert client.transport.authorizer.login.client.client_id == document
    assert person.windows == 1


@pytest.mark.req("A10")
async def test_a_client_that_was_registered_beforehand(node: Path) -> None:
    person = Visitor()
    async with hosted(node) as here:
        options = {"client_id": "given", "client_secret": "given-secret"}
        async with provider_client(here, person, **options) as client:
            token = await greet(client)
            assert await client.logout()
            assert not await here.is_active(token)
            with pytest.raises(LoginRequired):
                async with provider_client(here, person, interactive=False) as another:
                    await another.call_tool("hello")
    assert person.windows == 1


def provider_client(here: Hosted, person: Any, **options: Any) -> Client:
    auth = OAuth(store=MemoryStore(), **options)
    return holdfast.connect(here.url, auth=auth, handlers=Handlers(login=person))
