"""The loopback listener and the browser, with friends and enemies at the door."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from holdfast._core.auth.browser import (
    LOGGED_IN,
    MAX_CONNECTIONS,
    Listener,
    describe,
    open_browser,
    ssh_hint,
)
from holdfast._core.auth.options import LoginRequest
from holdfast._core.auth.urls import BadUrl
from holdfast.errors import HoldfastError, LoginFailed
from tests.auth.world import world
from tests.rows import rows


async def say(listener: Listener, request: str, *, host: str | None = None) -> str:
    parts = urlsplit(listener.redirect_uri)
    assert parts.port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    lines = f"{request}\r\nHost: {host or parts.netloc}\r\n\r\n"
    writer.write(lines.encode())
    found = await reader.read()
    writer.close()
    return found.decode()


def location(response: str) -> str:
    """Where a response redirects to."""
    return re.search(r"^Location: (\S+)\r$", response, re.M)[1]  # type: ignore[index]


@pytest.mark.req("A16", "B12")
async def test_only_the_right_state_ends_the_wait() -> None:
    listener = await Listener.start(None, "/callback/x", fixed=False)
    waiting = asyncio.create_task(listener.wait("STATE"))
    await asyncio.sleep(0)
    wrong = [
        ("GET /callback/x?code=evil&state=OTHER HTTP/1.1", None, "400"),
        ("GET /callback/x?code=evil HTTP/1.1", None, "400"),
        ("GET /callback/x?code=a&code=b&state=STATE HTTP/1.1", None, "400"),
        ("GET /callback/y?code=evil&state=STATE HTTP/1.1", None, "404"),
        ("GET /favicon.ico HTTP/1.1", None, "404"),
        ("POST /callback/x?code=evil&state=STATE HTTP/1.1", None, "400"),
        ("GET /callback/x?code=evil&state=STATE HTTP/1.1", "evil.example", "400"),
        ("nonsense", None, "400"),
    ]
    for request, host, status in wrong:
        assert status in (await say(listener, request, host=host)).partition("\r\n")[0]
    assert not waiting.done()
    good = await say(listener, "GET /callback/x?code=CODE&state=STATE HTTP/1.1")
    assert good.startswith("HTTP/1.1 303")
    place = location(good)
    assert place.startswith("/outcome/")
    assert "CODE" not in good
    second = await say(listener, "GET /callback/x?code=LATER&state=STATE HTTP/1.1")
    assert second.startswith("HTTP/1.1 303")
    assert (await waiting)["code"] == "CODE"
    window = asyncio.create_task(say(listener, f"GET {place} HTTP/1.1"))
    await listener.close("as it ended")
    page = await window
    assert "as it ended" in page
    for header in ("no-store", "no-referrer", "default-src 'none'"):
        assert header in page
    assert "<script" not in page


@pytest.mark.req("B12", "B20")
async def test_the_page_of_the_outcome_is_for_the_browser_alone_and_shows_text_as_text() -> None:
    listener = await Listener.start(None, "/callback", fixed=False)
    for path in ("/outcome", "/outcome/", "/outcome/x", "/done", "/failed"):
        assert "404" in (await say(listener, f"GET {path} HTTP/1.1")).partition("\r\n")[0]
    waiting = asyncio.create_task(listener.wait("STATE"))
    await asyncio.sleep(0)
    place = location(await say(listener, "GET /callback?error=no&state=STATE HTTP/1.1"))
    assert (await waiting)["error"] == "no"
    window = asyncio.create_task(say(listener, f"GET {place} HTTP/1.1"))
    await listener.close("<b>é & co</b>")
    page = await window
    assert "&lt;b&gt;é &amp; co&lt;/b&gt;" in page
    head, _, body = page.partition("\r\n\r\n")
    assert f"Content-Length: {len(body.encode())}\r\n" in f"{head}\r\n"


@pytest.mark.req("A16")
async def test_nothing_counts_before_the_state_is_known() -> None:
    listener = await Listener.start(None, "/callback", fixed=False)
    assert "400" in await say(listener, "GET /callback?code=x&state= HTTP/1.1")
    await listener.close("")


async def test_a_flood_of_connections_does_not_stop_the_browser() -> None:
    listener = await Listener.start(None, "/callback", fixed=False)
    waiting = asyncio.create_task(listener.wait("STATE"))
    port = urlsplit(listener.redirect_uri).port
    assert port is not None
    silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * MAX_CONNECTIONS)]
    huge = await say(listener, "GET /callback?" + "x" * 100_000 + " HTTP/1.1")
    assert "303" not in huge
    assert len(listener._open) <= MAX_CONNECTIONS
    place = location(await say(listener, "GET /callback?code=CODE&state=STATE HTTP/1.1"))
    assert (await waiting)["code"] == "CODE"
    window = asyncio.create_task(say(listener, f"GET {place} HTTP/1.1"))
    silent += [await asyncio.open_connection("127.0.0.1", port) for _ in range(2 * MAX_CONNECTIONS)]
    await listener.close("as it ended")
    assert "as it ended" in await window
    for _, writer in silent:
        writer.close()


@pytest.mark.req("B9")
async def test_the_preferred_port_is_used_if_it_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        preferred = f"http://127.0.0.1:{port}/callback"
        other = await Listener.start(preferred, "/callback", fixed=False)
        assert other.redirect_uri != preferred
        await other.close("")
        with pytest.raises(LoginFailed, match=str(port)):
            await Listener.start(preferred, "/callback", fixed=True)
    same = await Listener.start(preferred, "/callback", fixed=True)
    assert same.redirect_uri == preferred
    await same.close("")


@pytest.mark.req("A18")
async def test_it_listens_on_loopback_alone() -> None:
    listener = await Listener.start("http://localhost:0/cb", "/callback", fixed=False)
    places = [server.sockets[0].getsockname()[:2] for server in listener._servers]
    assert {host for host, _ in places} <= {"127.0.0.1", "::1"}
    assert len({port for _, port in places}) == 1
    # Browsers try either family for the name.
    assert len(places) == (2 if Path("/proc/net/if_inet6").exists() else 1)
    await listener.close("")
    away = await Listener.start("https://app.example/cb", "/callback", fixed=True)
    assert away.redirect_uri == "https://app.example/cb"
    assert not away._servers


@pytest.mark.req("B12")
@rows(
    ("pasted", "wrong"),
    [
        ("{uri}?code=C&state=STATE", ""),
        ("  {uri}?code=C&state=STATE\n", ""),
        ("{uri}?code=C&state=OTHER", "another login"),
        ("https://evil.example/callback?code=C&state=STATE", "does not begin with"),
        ("C", "does not begin with"),
    ],
)
async def test_a_pasted_address_is_checked_like_a_visit(pasted: str, wrong: str) -> None:
    listener = await Listener.start(None, "/callback", fixed=False)
    waiting = asyncio.create_task(listener.wait("STATE"))
    await asyncio.sleep(0)
    assert wrong in listener.paste(pasted.format(uri=listener.redirect_uri))
    if not wrong:
        assert (await waiting)["code"] == "C"
    await listener.close("")
    waiting.cancel()


@pytest.mark.req("A19")
@pytest.mark.skipif(sys.platform == "win32", reason="another way to open a browser")
def test_a_url_is_one_argument_and_no_shell_sees_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = tmp_path / "shown"
    program = tmp_path / "browser"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$#" "$1" > {shown}.part; mv {shown}.part {shown}\n'
    )
    program.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(program))
    monkeypatch.delenv("HOLDFAST_NO_BROWSER", raising=False)
    url = "https://as.example/authorize?a=$(id)&b=;reboot"
    assert open_browser(url)
    while not shown.exists():
        os.sched_yield()
    assert shown.read_text().splitlines() == ["1", url]


@pytest.mark.req("A19")
@pytest.mark.parametrize(
    "url", ["--flag", "javascript:alert(1)", "file:///etc/passwd", "https://a b"]
)
def test_other_things_than_pages_are_not_opened(url: str) -> None:
    with pytest.raises(BadUrl):
        open_browser(url)


def test_no_browser_is_opened_where_the_variable_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NO_BROWSER", "1")
    assert not open_browser("https://as.example/")


@pytest.mark.req("B12")
def test_over_ssh_the_tunnel_is_named() -> None:
    environ = {"SSH_CONNECTION": "10.0.0.9 5000 10.0.0.7 22"}
    assert "ssh -L 4000:127.0.0.1:4000 10.0.0.7" in ssh_hint("http://127.0.0.1:4000/cb", environ)
    assert ssh_hint("http://127.0.0.1:4000/cb", {}) == ""


def test_a_person_is_told_who_asks_for_what() -> None:
    request = LoginRequest(
        url="https://as/x", server="linear", issuer="https://as", scopes=("read",), account="work"
    )
    assert describe(request) == "linear asks you to log in as 'work' at https://as for: read."
    assert "https://as/x" not in repr(request)


@pytest.mark.req("A16")
@pytest.mark.parametrize("path", ["/done", "/outcome"])
async def test_any_path_can_be_the_one_that_the_browser_comes_back_to(path: str) -> None:
    listener = await Listener.start(f"http://127.0.0.1:0{path}", "/callback", fixed=False)
    waiting = asyncio.create_task(listener.wait("STATE"))
    await asyncio.sleep(0)
    response = await say(listener, f"GET {path}?code=C&state=STATE HTTP/1.1")
    assert (await waiting)["code"] == "C"
    window = asyncio.create_task(say(listener, f"GET {location(response)} HTTP/1.1"))
    await listener.close("as it ended")
    assert "as it ended" in await window


async def in_a_window(url: str, page: asyncio.Future[str]) -> None:
    """Go where a browser would go, and read its last page."""
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        page.set_result(await response.text())


@pytest.mark.req("B12")
async def test_the_window_says_that_one_is_logged_in_only_after_the_code_was_exchanged() -> None:
    loop = asyncio.get_running_loop()
    async with world() as here:
        here.gate = asyncio.Event()
        page: asyncio.Future[str] = loop.create_future()
        windows: list[asyncio.Task[None]] = []

        def login(request: LoginRequest) -> None:
            windows.append(asyncio.create_task(in_a_window(request.url, page)))

        async with here.connect(login=login) as session:
            call = asyncio.create_task(session.call_tool("hello"))
            await here.entered.wait()
            assert not page.done()
            here.gate.set()
            assert (await call).text == "hello"
            assert LOGGED_IN in await page


@pytest.mark.req("B12")
@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        ({"odd": {"error": "invalid_grant", "error_description": "<i>late</i>"}}, "invalid_grant"),
        ({"odd": {"token_type": "Bearer"}}, "gave no access token"),
        ({"broken": 503}, "HTTP status 503"),
        ({"iss": "https://evil.example"}, "is not from"),
    ],
)
async def test_the_window_says_why_a_login_failed(trouble: dict[str, Any], text: str) -> None:
    loop = asyncio.get_running_loop()
    async with world() as here:
        for name, value in trouble.items():
            setattr(here, name, value)
        page: asyncio.Future[str] = loop.create_future()
        windows: list[asyncio.Task[None]] = []

        def login(request: LoginRequest) -> None:
            windows.append(asyncio.create_task(in_a_window(request.url, page)))

        async with here.connect(login=login) as session:
            with pytest.raises(HoldfastError, match=text):
                await session.login()
            shown = await page
            assert "did not succeed" in shown
            assert text in shown
            assert "<i>" not in shown
            assert LOGGED_IN not in shown
