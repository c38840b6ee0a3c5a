"""Logins against a certified authorization server: panva's ``oidc-provider``, from npm."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import aiohttp
import pytest
from aiohttp import web

import holdfast
from holdfast import Handlers, OAuth
from holdfast.auth import LoginRequest
from holdfast.stores import MemoryStore
from tests.interop.install import NotHere, install

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "oidc"
SCRIPT = Path(__file__).with_name("oidc_provider.mjs")
PACKAGES = ("node@22", "oidc-provider@9.13")


@pytest.fixture(scope="session")
def node() -> Path:
    """A Node that is new enough, with the provider beside it; installed once."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: the authorization server comes from there")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = CACHE / "installed"
        if not stamp.exists() or stamp.read_text() != " ".join(PACKAGES):
            command = ["npm", "install", "--silent", "--no-audit", "--prefix", str(CACHE)]
            done = subprocess.run(
                [*command, *PACKAGES], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                pytest.skip(f"npm could not install the provider: {done.stderr[-500:]}")
            stamp.write_text(" ".join(PACKAGES))
        shutil.copy(SCRIPT, CACHE / SCRIPT.name)
    return CACHE / "node_modules" / "node" / "bin" / "node"


class Hosted:
    """An MCP server whose tokens come from the provider, which is asked about each of them."""

    def __init__(self, issuer: str, url: str) -> None:
        self.issuer = issuer
        self.url = url
        self.scheme = "Bearer"
        self.seen: list[str] = []

    async def describe(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "resource": self.url,
                "authorization_servers": [self.issuer],
                "scopes_supported": ["read"],
            }
        )

    async def mcp(self, request: web.Request) -> web.StreamResponse:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != self.scheme or not await self.is_active(token):
            headers = {"WWW-Authenticate": self.scheme}
            return web.Response(status=401, headers=headers)
        if self.scheme == "DPoP":
            assert request.headers["DPoP"].count(".") == 2
        self.seen.append(token)
        asked = await request.json()
        result: dict[str, Any] = {"resultType": "complete"}
        if asked["method"] == "server/discover":
            result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        else:
            result |= {"content": [{"type": "text", "text": "hello"}]}
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": result})

    async def is_active(self, token: str) -> bool:
        pair = b64encode(b"resource-server:resource-secret").decode()
        who = {"Authorization": f"Basic {pair}"}
        async with (
            aiohttp.ClientSession(headers=who) as session,
            session.post(f"{self.issuer}/token/introspection", data={"token": token}) as response,
        ):
            found = await response.json()
            return bool(found["active"])


@asynccontextmanager
async def hosted(node: Path, document: str = "") -> AsyncIterator[Hosted]:
    """Run the provider, and a server for it; ``document``: the id of a client that has one."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    app = web.Application()
    runner = web.AppRunner(app, access_log=None)
    here = Hosted(f"http://127.0.0.1:{port}", "")
    app.router.add_get("/.well-known/oauth-protected-resource/mcp", here.describe)
    app.router.add_post("/mcp", here.mcp)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    here.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    provider = await asyncio.create_subprocess_exec(
        str(node),
        SCRIPT.name,
        str(port),
        here.url,
        document,
        cwd=CACHE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert provider.stdout is not None
    while await provider.stdout.readline() not in (b"ready\n", b""):
        pass
    try:
        yield here
    finally:
        provider.kill()
        await provider.communicate()
        await runner.cleanup()


class Person:
    """Fills in the provider's pages, as somebody in a browser would."""

    def __init__(self, **answers: str) -> None:
        self.answers = {"login": "ada", "password": "x", **answers}
        self.pages = 0

    async def __call__(self, request: LoginRequest) -> str | None:
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as session:
            if request.user_code is not None:
                self.answers["user_code"] = request.user_code
            url, form = request.url, None
            for _ in range(20):
                method = "GET" if form is None else "POST"
                async with session.request(method, url, data=form, allow_redirects=False) as page:
                    text = await page.text()
                    if "Location" in page.headers:
                        url, form = urljoin(url, page.headers["Location"]), None
                        if request.redirect_uri and url.startswith(request.redirect_uri):
                            return url
                        continue
                found = re.search(r"<form[^>]*>", text)
                if found is None:
                    return None
                self.pages += 1
                action = re.search(r'action="([^"]*)"', found[0])
                url = urljoin(url, unescape(action[1])) if action else url
                form = self.fill(text)
        raise AssertionError("the provider asks without end")

    def fill(self, text: str) -> dict[str, str]:
        form: dict[str, str] = {}
        for field in re.findall(r"<(?:input|button)[^>]*>", text):
            name = re.search(r'name="([^"]*)"', field)
            value = re.search(r'value="([^"]*)"', field)
            # Of several buttons one is pressed: the one that the answers name.
            if name is not None and (field.startswith("<input") or name[1] in self.answers):
                default = unescape(value[1]) if value else ""
                form[name[1]] = self.answers.get(name[1], default)
        return form


def connect(here: Hosted, person: Person, **options: Any) -> holdfast.Client:
    auth = OAuth(store=MemoryStore(), **options)
    return holdfast.connect(here.url, auth=auth, handlers=Handlers(login=person))


FILL_IN = """
(() => {
  if (document.readyState !== 'complete' || window.left) return '';
  const abort = document.querySelector('a[href$="/abort"]');
  const form = document.querySelector('form');
  if (!form) return document.body.innerText;
  window.left = true;
  if (DENY && abort) { abort.click(); return ''; }
  const answers = {login: 'ada', password: 'x'};
  for (const name in answers) if (form.elements[name]) form.elements[name].value = answers[name];
  form.submit();
  return '';
})()
"""


class Chromium:
    """A real browser without a window, driven by the Chrome DevTools Protocol."""

    def __init__(self, folder: Path) -> None:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        if found is None:
            pytest.skip("chromium is not installed")
        self._port = folder / "profile" / "DevToolsActivePort"
        self._pid = folder / "pid"
        self._heard: list[dict[str, Any]] = []
        flags = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage"
        self.program = folder / "browser"
        self.program.write_text(
            f"#!/bin/sh\necho $$ > {self._pid}\nexec {found} {flags} --remote-debugging-port=0 "
            f'--no-first-run --user-data-dir={folder}/profile "$1"\n'
        )
        self.program.chmod(0o700)

    async def fill_in(self, *, deny: bool) -> str:
        """Go through the provider's pages; return the text of the last page."""
        # Another process writes it.
        while not self._port.exists() or not self._port.read_text().strip():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        port = self._port.read_text().split()[0]
        async with aiohttp.ClientSession() as session:
            pages: list[dict[str, Any]] = []
            while not pages:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    pages = [one for one in await answer.json() if one["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"]) as socket:
                script = FILL_IN.replace("DENY", "true" if deny else "false")
                await socket.send_json({"id": 0, "method": "Page.enable"})
                number = 0
                while True:
                    number += 1
                    params = {"expression": script}
                    ask = {"id": number, "method": "Runtime.evaluate", "params": params}
                    await socket.send_json(ask)
                    said = await self._until(socket, partial(_answers, number))
                    text = said.get("result", {}).get("result", {}).get("value", "")
                    if text:
                        return str(text)
                    await self._until(socket, lambda one: one.get("method") == LOADED)

    async def _until(
        self, socket: aiohttp.ClientWebSocketResponse, fits: Callable[[Any], bool]
    ) -> dict[str, Any]:
        held = [one for one in self._heard if fits(one)]
        while not held:
            one = await socket.receive_json()
            self._heard.append(one)
            held = [one] if fits(one) else []
        self._heard.remove(held[0])
        found: dict[str, Any] = held[0]
        return found

    def close(self) -> None:
        if self._pid.exists():
            with suppress(ProcessLookupError):
                os.kill(int(self._pid.read_text()), signal.SIGKILL)


LOADED = "Page.loadEventFired"


def _answers(number: int, message: dict[str, Any]) -> bool:
    return message.get("id") == number


@pytest.mark.req("A19", "B11", "B12")
@pytest.mark.parametrize("deny", [False, True])
async def test_a_login_in_a_real_browser(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deny: bool
) -> None:
    chromium = Chromium(tmp_path)
    monkeypatch.setenv("BROWSER", str(chromium.program))
    monkeypatch.delenv("HOLDFAST_NO_BROWSER", raising=False)
    async with hosted(node) as here:
        auth, handlers = OAuth(store=MemoryStore()), Handlers(login=holdfast.auth.browser_login)
        async with holdfast.connect(here.url, auth=auth, handlers=handlers) as client:
            login = asyncio.create_task(client.login())
            try:
                page = await chromium.fill_in(deny=deny)
                if deny:
                    assert "did not succeed" in page
                    with pytest.raises(holdfast.errors.LoginFailed, match="access_denied"):
                        await login
                    return
                assert "You are logged in" in page
                await login
            finally:
                chromium.close()
            assert (await client.call_tool("hello")).text == "hello"


@pytest.mark.req("A12", "A14", "A15", "A17", "A24", "B22")
async def test_a_login_with_registration_rotation_and_revocation(node: Path) -> None:
    async with hosted(node) as here:
        person = Person()
        async with connect(here, person) as client:
            loop = asyncio.get_running_loop()
            until = loop.time() + 5
            while loop.time() < until:
                assert (await client.call_tool("hello")).text == "hello"
            assert len(set(here.seen)) >= 2
            token = here.seen[-1]
            assert await client.logout()
            assert not await here.is_active(token)
        assert person.pages >= 2


@pytest.mark.req("A36")
async def test_tokens_bound_to_a_key_with_nonces(node: Path) -> None:
    async with hosted(node) as here:
        here.scheme = "DPoP"
        async with connect(here, Person()) as client:
            assert (await client.call_tool("hello")).text == "hello"
            await asyncio.sleep(2)
            assert (await client.call_tool("hello")).text == "hello"
        assert len(set(here.seen)) == 2


@pytest.mark.req("B12")
async def test_a_device_login(node: Path) -> None:
    async with hosted(node) as here:
        async with connect(here, Person(), device=True) as client:
            assert (await client.call_tool("hello")).text == "hello"


@pytest.mark.req("A14", "B19")
async def test_a_real_provider_that_does_not_advertise_pkce_is_refused() -> None:
    try:
        folder = install("pypi", "oidc-provider-mock", ["oidc-provider-mock==0.3.0"])
    except NotHere as reason:
        pytest.skip(str(reason))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    here = Hosted(f"http://127.0.0.1:{port}", "")
    app = web.Application()
    app.router.add_get("/.well-known/oauth-protected-resource/mcp", here.describe)
    app.router.add_post("/mcp", here.mcp)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    here.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    provider = await asyncio.create_subprocess_exec(
        str(folder / "bin" / "oidc-provider-mock"),
        "--port",
        str(port),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert provider.stderr is not None
    while b"running on" not in (line := await provider.stderr.readline()):
        assert line, "the provider ended"
    person = Person()
    try:
        async with connect(here, person) as client:
            with pytest.raises(holdfast.errors.DiscoveryError, match='pkce="assume"'):
                await client.call_tool("hello")
        assert person.pages == 0
    finally:
        provider.kill()
        await provider.wait()
        await runner.cleanup()
