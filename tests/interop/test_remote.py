"""What only servers behind a URL can do: come and go while the client stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import product

import pytest
import pytest_asyncio

from holdfast import Client, StateError, TransportError
from tests.interop.catalogue import EVERYTHING, SERVERS, Way
from tests.interop.home import Heard, Settle, ask
from tests.interop.hosting import Hosted

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOCUMENT = "demo://resource/static/document/features.md"
MESSAGE = "notifications/message"
UPDATED = "notifications/resources/updated"
REMOTE: tuple[Way, ...] = ("http", "sse")


def eras() -> Iterator[object]:
    for server, way in product(SERVERS, REMOTE):
        if way in server.ways:
            marks = [] if server.is_quick(way) else [pytest.mark.slow_interop]
            for pin in server.eras(way):
                name = f"{server.name}-{way}-{pin}"
                yield pytest.param((server, way, pin), id=name, marks=marks)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=eras())
async def home(request: pytest.FixtureRequest, settle: Settle) -> AsyncIterator[Hosted]:
    server, way, _ = request.param
    home = settle(server, way)
    assert isinstance(home, Hosted)
    async with home.up():
        yield home


@pytest.fixture
def pin(home: Hosted, request: pytest.FixtureRequest) -> str:
    revision: str = request.node.callspec.params["home"][2]
    return revision


@pytest_asyncio.fixture(loop_scope="module")
async def client(home: Hosted, pin: str) -> AsyncIterator[Client]:
    """Waits for a server that is on its way back, as one behind a URL may be."""
    async with home.connect(protocol=pin, when_down="wait") as client:
        await client.open()
        yield client
    assert not home.remains()


@pytest.mark.req("V3", "X2", "X3", "L5", "L9", "R2")
async def test_a_server_that_restarts_between_calls_is_not_noticed(
    home: Hosted, client: Client, pin: str
) -> None:
    """Those with sessions do not know ours any more: one new one is begun, for all calls."""
    await ask(client, home.question(1))
    await home.restart()
    await asyncio.gather(*(ask(client, home.question(number)) for number in range(100)))
    if home.server is EVERYTHING and home.way == "http":
        assert len([line for line in home.said if "Session initialized" in line]) == 1
    assert client.protocol_version == pin
    assert client.violations == {}


@pytest.mark.req("V3", "X2", "X3", "E2")
async def test_while_the_server_is_away_calls_fail_and_then_work_again(
    home: Hosted, pin: str
) -> None:
    async with home.connect(protocol=pin, when_down="fail") as client:
        await ask(client, home.question(1))
        await home.stop()
        try:
            await fails_unsent(home, client)
        finally:
            await home.start()
        await client.wait_ready(30)
        await ask(client, home.question(2))


async def fails_unsent(home: Hosted, client: Client) -> None:
    """Where there is a connection to lose, it is known to be lost; else nothing is."""
    if home.way == "sse":
        with pytest.raises((StateError, TransportError), match=home.server.name):
            await client.ping()
        return
    with pytest.raises(TransportError, match="was not run") as caught:
        await client.ping()
    assert not caught.value.outcome_unknown


@pytest.mark.req("V3", "X2", "X3", "L8")
async def test_closing_in_the_middle_of_calls_leaves_no_connection(home: Hosted, pin: str) -> None:
    client = home.connect(protocol=pin)
    await home.under_way(client)
    assert home.remains()
    assert await client.close()
    assert not home.remains()


@pytest.mark.req("V3", "X3")
async def test_the_old_transport_is_found_out_or_chosen(home: Hosted, pin: str) -> None:
    """The URL says nothing: what the server answers does, unless the caller knows."""
    if home.way != "sse":
        with pytest.raises(TransportError):
            async with home.connect(home.target(transport="sse")) as client:
                await client.open()
        return
    for target in (home.target(), home.target(transport="auto"), home.target(transport="sse")):
        async with home.connect(target) as client:
            await ask(client, home.question(6))
            assert client.protocol_version == pin
    with pytest.raises(TransportError, match="streamable"):
        async with home.connect(home.target(transport="streamable")) as client:
            await client.open()


@pytest.mark.req("V3", "X2", "X3", "P2")
@pytest.mark.parametrize("way", REMOTE)
async def test_a_subscription_outlives_the_server(settle: Settle, way: Way) -> None:
    """Nobody calls anything: that the session is gone is learnt from the stream alone."""
    home, heard = settle(EVERYTHING, way), Heard()
    assert isinstance(home, Hosted)
    async with home.visit(when_down="wait") as client:
        client.on_notification(heard)
        await client.subscribe_resource(DOCUMENT)
        await client.call_tool("toggle-subscriber-updates")
        await heard.until(lambda heard: heard.of(UPDATED))
        assert heard.of(UPDATED)[0]["uri"] == DOCUMENT

        heard.all.clear()
        await home.restart()
        await heard.until(lambda heard: "Received Subscribe" in str(heard.of(MESSAGE)))
        await client.call_tool("toggle-subscriber-updates")
        await heard.until(lambda heard: heard.of(UPDATED))
