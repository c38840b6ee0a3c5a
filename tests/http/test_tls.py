"""https: trust, certificates of our own, and tunnels through proxies."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import OAuth, TransportError
from holdfast._core.transports.http import Http
from holdfast._core.transports.http_client import HttpClient
from tests.http.harness import connect, failure, say
from tests.http.rogue import Legacy, Modern, Rogue, read_request

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout")


class Authority:
    """A certificate authority of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca, self.key = str(folder / "ca.pem"), str(folder / "ca.key")
        name = ("-subj", "/CN=test CA", "-days", "2")
        usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
        openssl("req", "-x509", *NEW_KEY, self.key, *name, *usage, "-out", self.ca)

    def issue(self, name: str, names: str) -> tuple[str, str]:
        """A certificate and its key."""
        at = self.folder / name
        cert, key, request, extra = (f"{at}.{end}" for end in ("pem", "key", "csr", "ext"))
        Path(extra).write_text(f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\n")
        openssl("req", *NEW_KEY, key, "-subj", f"/CN={name}", "-out", request)
        signing = ("-CA", self.ca, "-CAkey", self.key, "-CAcreateserial", "-days", "2")
        openssl("x509", "-req", "-in", request, *signing, "-extfile", extra, "-out", cert)
        return cert, key


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def tls(authority: Authority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server", "IP:127.0.0.1"))
    return context


@pytest.mark.req("X5", "X2")
async def test_an_extra_ca_is_trusted(authority: Authority, tls: ssl.SSLContext) -> None:
    async with Modern(tls=tls) as server, connect(server, ca=authority.ca) as client:
        for number in range(5):
            assert await say(client, str(number)) == str(number)
        assert server.connections == 1


@pytest.mark.req("X5", "L8")
async def test_a_session_ends_well_over_tls(authority: Authority, tls: ssl.SSLContext) -> None:
    async with Legacy(tls=tls) as server:
        async with connect(server, ca=authority.ca) as client:
            assert await say(client) == "ahoy"
        assert server.sessions == []
        await server.until(lambda: server.standing == 0)


@pytest.mark.req("X5", "E2")
async def test_an_unknown_ca_is_not_trusted_and_the_cure_is_named(tls: ssl.SSLContext) -> None:
    async with Modern(tls=tls) as server, connect(server) as client:
        error = await failure(say(client))
        assert isinstance(error, TransportError)
        assert "certificate verify failed" in str(error)
        assert "ca=" in str(error)
        assert not error.outcome_unknown
        assert server.requests == []


@pytest.mark.req("X5", "X4", "E2")
async def test_a_certificate_for_another_host_is_not_accepted(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("other", "DNS:other.test"))
    async with Modern(tls=context) as server, connect(server, ca=authority.ca) as client:
        error = await failure(say(client))
        assert "127.0.0.1" in str(error)
        assert "certificate verify failed" in str(error)
        assert server.requests == []


@pytest.mark.req("X5")
@pytest.mark.parametrize("together", [True, False])
async def test_a_certificate_of_our_own_is_shown(
    authority: Authority, tmp_path: Path, together: bool
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("strict", "IP:127.0.0.1"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca)
    pair = authority.issue("client", "DNS:client.test")
    both = tmp_path / "both.pem"
    both.write_text("".join(Path(part).read_text() for part in pair))
    cert = str(both) if together else pair
    async with Modern(tls=context) as server:
        async with connect(server, ca=authority.ca, cert=cert) as client:
            assert await say(client) == "ahoy"
        async with connect(server, ca=authority.ca) as client:
            assert isinstance(await failure(say(client)), TransportError)


class Plain(Rogue):
    """Says to whatever comes that it is no HTTP."""

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        await reader.read(1000)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.req("E2")
async def test_https_to_a_server_without_tls_is_told() -> None:
    async with Plain() as server:
        url = server.url.replace("http:", "https:")
        async with connect(url) as client:
            error = await failure(say(client))
        assert isinstance(error, TransportError)
        assert "TLS" in str(error)
        assert not error.outcome_unknown


@pytest.mark.req("E2")
async def test_http_to_a_server_with_tls_is_told(tls: ssl.SSLContext) -> None:
    async with Modern(tls=tls) as server:
        async with connect(server.url.replace("https:", "http:")) as client:
            assert isinstance(await failure(say(client)), TransportError)


# Tunnels


class Tunnel(Rogue):
    """A proxy that lets through what asks for a tunnel."""

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        request = await read_request(reader, number)
        self.requests.append(request)
        assert request.method == "CONNECT"
        host, _, port = request.path.partition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def behind(authority: Authority, tls: ssl.SSLContext) -> AsyncIterator[tuple[Modern, Tunnel]]:
    async with Modern(tls=tls) as server, Tunnel() as proxy:
        yield server, proxy


@pytest.mark.req("X5")
async def test_https_goes_through_a_tunnel(authority: Authority, tls: ssl.SSLContext) -> None:
    async with behind(authority, tls) as (server, proxy):
        secret = {"Authorization": "secret"}
        async with connect(server, ca=authority.ca, proxy=proxy.origin, headers=secret) as client:
            assert await say(client) == "ahoy"
        (tunnel,) = proxy.requests
        assert tunnel.path == f"127.0.0.1:{server.port}"
        assert tunnel.header("Authorization") is None, "the proxy learns nothing"
        assert tunnel.header("Mcp-Method") is None


@pytest.mark.req("X5")
async def test_the_tunnel_is_found_in_the_environment(
    authority: Authority, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with behind(authority, tls) as (server, proxy):
        monkeypatch.setenv("https_proxy", proxy.origin)
        async with connect(server, ca=authority.ca) as client:
            assert await say(client) == "ahoy"
        assert len(proxy.requests) == 1


# Contexts are shared


class Recording(ThreadPoolExecutor):
    """The loop's threads; counts what they are given to do."""

    jobs = 0

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        self.jobs += 1
        return super().submit(*args, **kwargs)


async def test_all_clients_with_the_same_settings_share_a_context_made_in_a_thread() -> None:
    with Recording() as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        servers = [Http(f"https://{name}.example/mcp") for name in ("a", "b")]
        first, second = [await server.tls.context() for server in servers]
        assert first is second
        assert threads.jobs == len(servers)
        for server in servers:
            assert await server.tls.context() is first
        assert threads.jobs == len(servers)


async def test_all_accounts_of_a_client_share_its_context() -> None:
    server = Http("https://a.example/mcp", auth=OAuth(account=lambda: "ada"))
    context = await server.tls.context()
    for number in range(50):
        user = server.for_account(f"user{number}")
        assert user.tls.ready is context
        assert user.authorizer is not None
        assert await user.authorizer.runner._settings.tls() is context


async def test_other_settings_have_other_contexts(tmp_path: Path) -> None:
    places = tmp_path / "one", tmp_path / "other"
    for place in places:
        place.mkdir()
    files = [Authority(place).ca for place in places]
    plain = await Http("https://a.example").tls.context()
    trusting = [await Http("https://a.example", ca=file).tls.context() for file in files]
    assert len({id(context) for context in (plain, *trusting)}) == 3
    # A file that was replaced is read again, by those who come later.
    Path(files[0]).write_bytes(Path(files[1]).read_bytes())
    os.utime(files[0], ns=(1, 1))
    assert await Http("https://a.example", ca=files[0]).tls.context() is not trusting[0]


async def test_a_context_of_the_application_is_used_as_it_is() -> None:
    context = ssl.create_default_context()
    server = Http("https://a.example", ssl=context)
    assert server.tls.ready is context
    assert await server.tls.context() is context


async def test_without_tls_no_context_is_made() -> None:
    server = Http("http://127.0.0.1:1/mcp")
    client = HttpClient(server, 1000)
    assert client._tls is server.tls.ready is None
    await client.close()
