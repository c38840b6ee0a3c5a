"""A server on the official SDK with its own guard, and two authorization servers for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

import holdfast
from holdfast import Handlers, OAuth
from holdfast.stores import MemoryStore
from tests.interop.catalogue import PYTHON_2, SCRIPTS
from tests.interop.hosting import free_port
from tests.interop.install import NotHere, install
from tests.interop.test_oidc_provider import CACHE, SCRIPT, Person, node

__all__ = ["node"]

CANAILLE = ("canaille[front,oidc]==0.3.6",)


class Provider(NamedTuple):
    """How an authorization server is started, and what is to be known of it."""

    command: list[str]
    folder: Path
    port: int
    introspection: str
    userinfo: str
    scope: str
    person: Person

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def python(name: str, pins: tuple[str, ...]) -> str:
    try:
        return str(install("pypi", name, pins) / "bin" / "python")
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.fixture(params=["canaille", "oidc-provider"])
def provider(request: pytest.FixtureRequest, tmp_path: Path) -> Provider:
    port = free_port()
    issuer = f"http://127.0.0.1:{port}"
    if request.param == "canaille":
        script = str(SCRIPTS / "canaille_server.py")
        command = [python("canaille", CANAILLE), script, str(port)]
        person = Person(password="correct horse", answer="accept")
        return Provider(command, tmp_path, port, "", f"{issuer}/oauth/userinfo", "openid", person)
    program = request.getfixturevalue("node")
    command = [str(program), SCRIPT.name, str(port), "any"]
    asked = f"{issuer}/token/introspection"
    return Provider(command, CACHE, port, asked, "", "read", Person())


@asynccontextmanager
async def running(command: list[str], folder: Path) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def answers(url: str) -> dict[str, Any]:
    """Return a document, as soon as its server has started."""
    async with aiohttp.ClientSession() as session:
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                async with session.get(url) as answer:
                    found: dict[str, Any] = json.loads(await answer.read())
                    return found
            await asyncio.sleep(0.02)


@pytest.mark.req("A2", "A3", "A12", "A14", "A17", "A20", "A24", "B22")
async def test_a_login_to_a_server_of_the_official_sdk(provider: Provider) -> None:
    port = free_port()
    program = python(PYTHON_2.name, PYTHON_2.pins)
    words = [provider.issuer, provider.introspection, provider.userinfo, provider.scope]
    guarded = [program, str(SCRIPTS / "python_sdk_guarded.py"), str(port), *words]
    home = f"http://127.0.0.1:{port}"
    async with running(provider.command, provider.folder), running(guarded, provider.folder):
        await answers(f"{provider.issuer}/.well-known/oauth-authorization-server")
        prm = await answers(f"{home}/.well-known/oauth-protected-resource/mcp")
        assert prm["authorization_servers"] == [provider.issuer]
        store = MemoryStore()
        handlers = Handlers(login=provider.person)
        for options in (OAuth(store=store), OAuth(store=store, interactive=False)):
            async with holdfast.connect(f"{home}/mcp", auth=options, handlers=handlers) as client:
                assert (await client.call_tool("hello")).text == "hello"
                login = client.transport.authorizer.login
                assert provider.scope in login.granted
        pages = provider.person.pages
        assert pages >= 2
        async with holdfast.connect(f"{home}/mcp", auth=options) as client:
            assert await client.logout()
            with pytest.raises(holdfast.errors.LoginRequired):
                await client.call_tool("hello")
        assert provider.person.pages == pages
