"""Requests to authorization servers that lie, stall, grow, or live where they must not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from holdfast import OAuth
from holdfast._core.auth import auth_server, jws
from holdfast._core.auth.auth_server import MACHINE_TIME, AddressCheck, NetworkSettings, StepRunner
from holdfast._core.auth.authorizer import Authorizer
from holdfast._core.auth.credentials import Login
from holdfast._core.auth.steps import Ask, Conversation, Fetched, Read, Unreachable
from holdfast.errors import TransportError
from holdfast.stores import MemoryStore
from tests.auth.talk import stored_login
from tests.rows import rows
from tests.skipping import skip

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


def step_runner(home: str, settings: NetworkSettings | None = None) -> StepRunner:
    """For a server in one kind of network."""
    found = StepRunner(settings or NetworkSettings(), time.time, MemoryStore())
    found.network = home
    return found


async def ask(url: str, *, home: str = "loopback", **options: Any) -> Fetched | Unreachable:
    return await step_runner(home).fetch(Ask(url=url, **options))


async def test_an_answer_is_read() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept"] == "application/json"
        assert "Cookie" not in request.headers
        return web.json_response({"a": 1}, headers={"Set-Cookie": "x=y"})

    async with serving(answer) as url:
        found = await ask(f"{url}/x")
        assert isinstance(found, Fetched)
        assert (found.status, found.document()) == (200, {"a": 1})


@pytest.mark.req("A31")
@rows(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://0.0.0.0:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://0x7f.1:{port}/",
        "http://2130706433:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://[64:ff9b::10.0.0.1]/",
        "http://[fd00::1]/",
        "http://100.64.0.1/",
    ],
)
async def test_private_addresses_are_not_connected_to_from_the_internet(url: str) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(str(request.url))
        return web.json_response({})

    async with serving(answer) as home:
        found = await ask(url.format(port=home.rpartition(":")[2]), home="global")
        assert isinstance(found, Unreachable)
        assert not asked


@pytest.mark.req("A31")
async def test_a_place_that_the_user_pinned_may_be_private() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({})

    async with serving(answer) as url:
        assert isinstance(await ask(url, home="global", pinned=True), Fetched)
        assert isinstance(await ask(url, home="private"), Unreachable)


@pytest.mark.req("A31")
def test_a_server_that_was_seen_in_two_networks_counts_as_public() -> None:
    peers = AddressCheck("mcp.example", proxied=False)
    for address in ("8.8.8.8", "127.0.0.1"):
        info = (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))
        peers.socket(info).close()
    assert peers.network == "global"


@pytest.mark.req("A32")
@pytest.mark.parametrize("hops", [3, 4])
async def test_metadata_may_be_redirected_three_times(hops: int) -> None:
    left = hops

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal left
        if left:
            left -= 1
            return web.Response(status=302, headers={"Location": f"/{left}"})
        return web.json_response({})

    async with serving(answer) as url:
        found = await ask(url)
        assert isinstance(found, Fetched if hops == 3 else Unreachable)


@pytest.mark.req("A32", "A30")
@rows(
    "place",
    ["http://192.0.2.1/", "http://evil.example/", "file:///etc/passwd", "https://u:p@h/", "//x y/"],
)
async def test_a_redirect_obeys_the_same_rules(place: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": place})

    async with serving(answer) as url:
        assert isinstance(await ask(url), Unreachable)


@pytest.mark.req("A32", "A30")
async def test_no_redirect_leads_to_plain_http() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(str(request.url))
        return web.Response(status=302, headers={"Location": "http://other.example/"})

    async with serving(answer) as proxy:
        asker = step_runner("global", NetworkSettings(proxy=lambda url: proxy))
        found = await asker.fetch(Ask(url="http://as.example/"))
    assert isinstance(found, Unreachable)
    assert asked == ["http://as.example/"]


@pytest.mark.req("A31")
async def test_every_request_makes_a_connection_that_is_checked() -> None:
    peers: list[Any] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.json_response({})

    async with serving(answer) as url:
        for _ in range(2):
            await ask(url)
    assert len(set(peers)) == 2


@pytest.mark.req("A32")
@pytest.mark.parametrize("options", [{"form": {"a": "b"}}, {"json": {"a": "b"}}, {"follow": False}])
async def test_a_token_request_is_not_redirected(options: dict[str, Any]) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async with serving(answer) as url:
        found = await ask(f"{url}/token", **options)
        assert isinstance(found, Fetched)
        assert (found.status, asked) == (307, ["/token"])


@pytest.mark.req("A32")
@pytest.mark.parametrize("kind", ["large", "endless", "bomb", "torn", "odd"])
async def test_a_body_is_bounded(kind: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if kind == "large":
            return web.Response(body=b"x" * (auth_server.MAX_BODY + 1))
        if kind in ("bomb", "torn", "odd"):
            packed = zlib.compress(b"0" * 50_000_000) if kind == "bomb" else b"no zlib"
            coding = "br" if kind == "odd" else "deflate"
            return web.Response(body=packed, headers={"Content-Encoding": coding})
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)

    async with serving(answer) as url:
        found = await ask(url)
        assert isinstance(found, Unreachable)
        assert found.forbidden


async def test_a_compressed_body_is_read() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        packed = zlib.compress(b'{"a":1}')
        return web.Response(body=packed, headers={"Content-Encoding": "deflate"})

    async with serving(answer) as url:
        found = await ask(url)
        assert isinstance(found, Fetched)
        assert found.document() == {"a": 1}


@pytest.mark.req("A32")
async def test_a_server_that_stalls_is_given_up() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(answer) as url:
        asker = step_runner("loopback")
        asker.timeout = 0.2
        found = await asker.fetch(Ask(url=url))
        assert isinstance(found, Unreachable)
        assert not found.forbidden


async def test_tls_settings_that_cannot_be_used_make_a_server_unreachable() -> None:
    async def missing() -> ssl.SSLContext:
        raise FileNotFoundError("no such CA")

    found = await step_runner("global", NetworkSettings(tls=missing)).fetch(
        Ask(url="https://as.example/")
    )
    assert isinstance(found, Unreachable)


async def test_a_server_that_is_not_there_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = await ask(f"http://127.0.0.1:{port}/")
    assert isinstance(found, Unreachable)
    assert not found.forbidden


@pytest.mark.req("B7")
async def test_the_skew_of_a_clock_is_read_from_its_date() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response({}, headers={"Date": "Tue, 01 Jan 2036 00:00:00 GMT"})

    async with serving(answer) as url:
        found = await ask(url)
        assert isinstance(found, Fetched)
        assert found.skew > 1e6


@pytest.mark.req("B21")
async def test_the_proxy_of_the_server_is_used() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(str(request.url))
        return web.json_response({})

    async with serving(answer) as proxy:
        asker = step_runner("global", NetworkSettings(proxy=lambda url: proxy))
        found = await asker.fetch(Ask(url="http://as.example/x"))
        assert isinstance(found, Fetched)
        literal = await asker.fetch(Ask(url="http://169.254.169.254/x"))
        assert isinstance(literal, Unreachable)
        assert asked == ["http://as.example/x"]


# Conversations: bounded in time and in attempts.


class SlowLogins(MemoryStore):
    """Takes ten seconds for each reading, by the clock of the tests."""

    async def get(self, key: str) -> bytes | None:
        skip(10.0)
        await asyncio.sleep(0)
        return await super().get(key)


@pytest.mark.req("B14")
async def test_what_needs_no_person_ends_in_time_however_many_steps_it_has() -> None:
    steps = 0

    def conversation() -> Conversation[None]:
        nonlocal steps
        while steps < 100:
            steps += 1
            yield Read("a", Login)

    slow = StepRunner(NetworkSettings(), time.time, SlowLogins())
    with pytest.raises(TransportError, match=f"within {MACHINE_TIME:g} s"):
        await slow.run(conversation())
    assert steps <= MACHINE_TIME / 10 + 2


class StuckLogins(MemoryStore):
    """A store whose database does not answer."""

    async def get(self, key: str) -> bytes | None:
        skip(MACHINE_TIME + 1)
        await asyncio.Event().wait()
        return None


@pytest.mark.req("B14")
async def test_a_store_that_does_not_answer_is_not_waited_for_without_end() -> None:
    stuck = Authorizer("https://mcp.example/mcp", OAuth(store=StuckLogins()))
    with pytest.raises(TransportError, match=f"within {MACHINE_TIME:g} s"):
        await stuck.headers("POST", "https://mcp.example/mcp")


class UnlockableLogins(MemoryStore):
    """A store whose lock is held for ever by somebody else."""

    @asynccontextmanager
    async def lock(self, name: str, ttl: float = 30) -> AsyncIterator[int]:
        skip(MACHINE_TIME + 1)
        await asyncio.Event().wait()
        async with super().lock(name, ttl):
            yield 1


@pytest.mark.req("B14", "B22")
async def test_a_logout_does_not_wait_without_end_for_the_store() -> None:
    authorizer = Authorizer("https://mcp.example/mcp", OAuth(store=UnlockableLogins()))
    authorizer._take(stored_login())
    with pytest.raises(TransportError, match=f"within {MACHINE_TIME:g} s"):
        await authorizer.log_out()
    assert authorizer.login is not None


@pytest.mark.req("B14", "B2")
async def test_a_renewal_does_not_wait_without_end_for_the_store() -> None:
    authorizer = Authorizer("https://mcp.example/mcp", OAuth(store=UnlockableLogins()))
    authorizer._take(stored_login(expires_at=1.0))
    with pytest.raises(TransportError, match=f"within {MACHINE_TIME:g} s"):
        await authorizer.headers("POST", "https://mcp.example/mcp")


@pytest.mark.req("A36")
async def test_a_nonce_is_honoured_once_with_a_new_proof() -> None:
    """A server that is content with no nonce is not asked for ever."""
    proofs: list[str] = []

    async def never_content(request: web.Request) -> web.StreamResponse:
        proofs.append(request.headers["DPoP"])
        if len(proofs) > 10:
            return web.json_response({})
        headers = {"DPoP-Nonce": f"n{len(proofs)}"}
        return web.json_response({"error": "use_dpop_nonce"}, status=400, headers=headers)

    key = jws.new_key()
    async with serving(never_content) as url:

        def conversation() -> Conversation[object]:
            return (yield Ask(url=f"{url}/token", form={}, proof=key, pinned=True))

        answer = await step_runner("loopback").run(conversation())
    assert isinstance(answer, Fetched)
    assert answer.status == 400
    assert len(set(proofs)) == len(proofs) == 2


async def test_without_tls_no_context_is_made() -> None:
    async def forbidden() -> ssl.SSLContext:
        raise AssertionError("a context was made for http")

    async def answer(request: web.Request) -> web.Response:
        return web.json_response({})

    async with serving(answer) as url:
        fetched = await step_runner("loopback", NetworkSettings(tls=forbidden)).fetch(Ask(url=url))
        assert isinstance(fetched, Fetched)
