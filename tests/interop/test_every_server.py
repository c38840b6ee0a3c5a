"""What holds for every server, in every era that it speaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import product

import pytest
import pytest_asyncio

from holdfast import Client, ProtocolError, RequestTimeout, RpcError
from holdfast.errors import CancelledCallError
from tests.interop.catalogue import ALL, SERVERS, TIME_1_0, WAYS, Server
from tests.interop.home import Home, Settle, ask, ask_until_answered
from tests.interop.processes import children_that_ended, freeze, thaw

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = 200


def eras() -> Iterator[object]:
    """Each server as it comes, and those of both eras once more in the older one."""
    for server, way in product(SERVERS, WAYS):
        if way not in server.ways:
            continue
        marks = [] if server.is_quick(way) else [pytest.mark.slow_interop]
        newest, *older = server.eras(way)
        for pin in (None, *older):
            name = "-".join(filter(None, (server.name, way, pin)))
            yield pytest.param((server, way, pin, pin or newest), id=name, marks=marks)


@dataclass
class Link:
    """One client for all tests of a server, made again when a test has closed it."""

    home: Home
    pin: str | None
    agreed: str
    client: Client | None = None

    async def open(self) -> Client:
        if self.client is None:
            self.client = self.home.connect(protocol=self.pin)
        await self.client.wait_ready(30)
        return self.client

    async def close(self) -> None:
        client, self.client = self.client, None
        if client is not None:
            await client.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=eras())
async def link(request: pytest.FixtureRequest, settle: Settle) -> AsyncIterator[Link]:
    server, way, pin, agreed = request.param
    link = Link(settle(server, way), pin, agreed)
    async with link.home.up():
        yield link
        await link.close()


@pytest.fixture
def server(link: Link) -> Server:
    return link.home.server


@pytest.mark.req("V3", "X2", "X3", "L3", "L10")
async def test_the_newest_common_revision_is_agreed(link: Link, server: Server) -> None:
    client = await link.open()
    assert client.protocol_version == link.agreed
    assert client.server_info is not None
    assert client.server_info.name
    capabilities = client.server_capabilities
    assert capabilities is not None
    offered = {what for what in OFFERS if getattr(capabilities, what) is not None}
    assert offered == set(server.offers)


OFFERS = ("tools", "resources", "prompts", "completions", "logging")


@pytest.mark.req("V3", "X2", "X3", "L2", "T1", "T7", "P1", "P3")
async def test_every_list_can_be_read(link: Link, server: Server) -> None:
    client = await link.open()
    tools = await client.list_tools()
    assert link.home.question(0).tool in {tool.name for tool in tools}
    assert all(tool.input_schema["type"] == "object" for tool in tools)
    assert await client.available_tools()
    if "resources" in server.offers:
        assert all(resource.uri for resource in await client.list_resources())
        assert all(one.uri_template for one in await client.list_resource_templates())
    if "prompts" in server.offers:
        assert all(prompt.name for prompt in await client.list_prompts())
    assert client.violations == {}


@pytest.mark.req("V3", "X2", "X3", "T2")
async def test_a_known_question_gets_its_known_answer(link: Link) -> None:
    client = await link.open()
    await ask(client, link.home.question(7))
    await client.ping()


@pytest.mark.req("V3", "X2", "X3", "T2", "E3")
async def test_an_unknown_tool_is_an_error(link: Link, server: Server) -> None:
    """Asked in the raw: a client that knows the tools need not send this at all."""
    client = await link.open()
    params = {"name": "no-such-tool", "arguments": {}}
    if server.unknown_tool is None:
        assert (await client.request("tools/call", params))["isError"]
        return
    with pytest.raises(RpcError, match="no-such-tool") as caught:
        await client.request("tools/call", params)
    assert caught.value.code == server.unknown_tool


@pytest.mark.req("V3", "X2", "X3", "R2")
async def test_two_hundred_calls_at_once_get_their_own_answers(link: Link) -> None:
    client = await link.open()
    await asyncio.gather(*(ask(client, link.home.question(n)) for n in range(AT_ONCE)))
    assert client.violations == {}


@pytest.mark.req("V3", "X2", "X3", "R2", "R4", "R5", "R6")
async def test_calls_that_were_given_up_do_not_disturb_the_next(link: Link, server: Server) -> None:
    """The server is frozen for as long as it takes to give up; its answers come late."""
    client = await link.open()
    first, *others = (link.home.question(number) for number in range(4))
    process, frozen = link.home.process(), link.home.processes()
    await freeze(frozen)
    try:
        call = client.start_tool(first.tool, first.arguments)
        task = asyncio.create_task(client.call_tool(first.tool, first.arguments))
        with pytest.raises(RequestTimeout):
            await client.call_tool(first.tool, first.arguments, timeout=0.05)
        assert call.cancel()
        task.cancel()
        with pytest.raises(CancelledCallError):
            await call
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        thaw(frozen)
    if not server.outlives_cancel(link.home.way):
        await ask_until_answered(client, first)
        return
    for question in others:
        await ask(client, question)
    assert client.violations == {}
    assert link.home.process() == process


@pytest.mark.req("V3", "X2", "X3", "L5", "L9", "R11", "E2")
async def test_a_server_that_is_killed_comes_back_by_itself(link: Link) -> None:
    client = await link.open()
    error = await link.home.crash(client)
    assert error.outcome_unknown
    assert client.protocol_version == link.agreed
    await ask(client, link.home.question(3))


@pytest.mark.req("V3", "X2", "X3", "L8")
async def test_closing_leaves_nothing_behind(link: Link) -> None:
    client = await link.open()
    await ask(client, link.home.question(1))
    assert link.home.remains()
    await link.close()
    assert not client.is_connected
    assert await link.home.is_empty()
    assert children_that_ended() == []


def pins() -> Iterator[object]:
    """Every server with every revision; but for the silent one, which has a test of its own."""
    for server in SERVERS:
        for pin in ALL:
            if (server, pin) != (TIME_1_0, ALL[0]):
                yield pytest.param(server, pin, id=f"{server}-{pin}")


@pytest.mark.slow_interop
@pytest.mark.req("V3", "L3")
@pytest.mark.parametrize(("server", "pin"), list(pins()))
async def test_a_pin_is_kept_to_or_refused(settle: Settle, server: Server, pin: str) -> None:
    home = settle(server)
    async with home.connect(protocol=pin) as client:
        if pin in server.speaks:
            await client.open()
            assert client.protocol_version == pin
            await ask(client, home.question(5))
        else:
            with pytest.raises(ProtocolError, match=pin):
                await client.open()
    assert await home.is_empty()
