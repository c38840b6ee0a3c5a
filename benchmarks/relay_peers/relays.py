"""What is put between host and server: nothing, Holdfast, and the relays of others, pinned."""

from __future__ import annotations

import random
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple

from benchmarks.relay_peers import server as scripted
from benchmarks.relay_peers.host import Host, Lost
from benchmarks.relay_peers.links import HttpLink, Journal, Link, StdioLink
from benchmarks.relay_peers.things import THINGS, Trial, outcomes
from tests.interop.install import install as install_pins

HERE: Final = Path(__file__).resolve().parent
CACHE: Final = HERE.parents[1] / ".cache" / "relay-peers"

Era = Literal["handshake", "stateless"]


class Package(NamedTuple):
    """Where the relay of another comes from."""

    source: Literal["pypi", "npm"]
    name: str
    pins: tuple[str, ...]

    @property
    def home(self) -> Path:
        return CACHE / self.name

    def program(self, name: str) -> Path:
        folder = "bin" if self.source == "pypi" else "node_modules/.bin"
        return self.home / folder / name


MCP_PROXY: Final = Package("pypi", "mcp-proxy", ("mcp-proxy==0.13.0",))
FASTMCP: Final = Package("pypi", "fastmcp", ("fastmcp==4.1.2", "mcp==2.3.0", "pydantic==2.14.3"))
SUPERGATEWAY: Final = Package("npm", "supergateway", ("supergateway@4.0.0",))


class Relay(NamedTuple):
    """A column of the table: what is between, and the eras of both sides."""

    title: str
    host: Era
    server: Era
    link: Callable[[Sequence[str]], Link]
    """Makes the host's way to a server that a command starts."""
    package: Package | None = None

    @property
    def is_ours(self) -> bool:
        return self.package is None

    async def trial(self, patience: float) -> dict[str, str]:
        """Try all things; return what was lost of each, or nothing.

        Args:
            patience: Seconds for each thing.
        """
        try:
            async with self.connected() as trial:
                return await outcomes(trial, patience)
        except Lost as reason:
            return dict.fromkeys(THINGS, f"no connection: {reason}")

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Trial]:
        """Connect the host to the server, with the relay between them."""
        async with Journal().listening() as journal:
            command = [sys.executable, scripted.__file__, self.server, str(journal.port)]
            host = Host(self.link(command), self.host)
            try:
                await host.open()
                yield Trial(host, journal)
            finally:
                await host.close()


def install(relay: Relay) -> None:
    """Make sure that the relay of another is there.

    Raises:
        NotHere: It cannot be reached.
        Broken: It cannot be installed.
    """
    if relay.package is not None:
        install_pins(relay.package.source, relay.package.name, relay.package.pins, CACHE)


def free_port() -> int:
    """Below those that the kernel gives to clients: nobody takes it until the relay listens."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def serve(command: Sequence[str]) -> Link:
    return StdioLink([sys.executable, "-m", "holdfast", "serve", "--", *command])


def serve_http(host: Era) -> Callable[[Sequence[str]], Link]:
    def link(command: Sequence[str]) -> Link:
        port = free_port()
        relay = [sys.executable, "-m", "holdfast", "serve", "--http", str(port), "--", *command]
        return HttpLink(relay, f"http://127.0.0.1:{port}/", is_stateless=host == "stateless")

    return link


def mcp_proxy(command: Sequence[str]) -> Link:
    port = free_port()
    program = MCP_PROXY.program("mcp-proxy")
    return HttpLink([program, "--port", str(port), "--", *command], f"http://127.0.0.1:{port}/mcp")


def fastmcp(mode: str = "-") -> Callable[[Sequence[str]], Link]:
    script = HERE / "drivers" / "fastmcp_proxy.py"
    return lambda command: StdioLink([FASTMCP.program("python"), script, mode, *command])


def supergateway(*options: str) -> Callable[[Sequence[str]], Link]:
    def link(command: Sequence[str]) -> Link:
        port = free_port()
        words = ["--stdio", shlex.join(command), "--outputTransport", "streamableHttp"]
        program = str(SUPERGATEWAY.program("supergateway"))
        relay = [program, *words, "--port", str(port), *options]
        return HttpLink(relay, f"http://127.0.0.1:{port}/mcp")

    return link


ERAS: Final[tuple[Era, Era]] = ("handshake", "stateless")
PAIRS: Final[list[tuple[Era, Era]]] = [(host, server) for host in ERAS for server in ERAS]
NONE: Final = [Relay("none", era, era, StdioLink) for era in ERAS]
OURS: Final = [Relay("`holdfast serve`", host, server, serve) for host, server in PAIRS]
OURS_HTTP: Final = [
    Relay("`holdfast serve --http`", host, server, serve_http(host)) for host, server in PAIRS
]
OTHERS: Final = [
    Relay("mcp-proxy 0.13.0", "handshake", "handshake", mcp_proxy, MCP_PROXY),
    Relay("FastMCP 4.1.2 proxy", "handshake", "handshake", fastmcp(), FASTMCP),
    Relay("FastMCP 4.1.2 proxy", "stateless", "handshake", fastmcp(), FASTMCP),
    Relay('FastMCP 4.1.2 proxy, `mode="auto"`', "stateless", "handshake", fastmcp("auto"), FASTMCP),
    Relay(
        "supergateway 4.0.0 `--stateful`",
        "handshake",
        "handshake",
        supergateway("--stateful"),
        SUPERGATEWAY,
    ),
    Relay("supergateway 4.0.0", "handshake", "handshake", supergateway(), SUPERGATEWAY),
]
RELAYS: Final = [*NONE, *OURS, *OURS_HTTP, *OTHERS]
