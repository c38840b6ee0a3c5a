"""Scripts of ours with one set of tools, each on a library that others wrote, in both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import product

import pytest
import pytest_asyncio

from holdfast import Client, HoldfastError, Progress, RequestTimeout, RpcError
from holdfast.errors import CancelledCallError
from holdfast.types.content import BlobResourceContents, TextContent
from holdfast.types.resources import PromptReference
from tests.interop.catalogue import (
    FASTMCP_2,
    FASTMCP_4,
    PYTHON_1,
    PYTHON_2,
    TYPESCRIPT_2,
    WAYS,
    WORKSHOPS,
    Server,
)
from tests.interop.home import Home, Person, Settle

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODERN = "2026-07-28"
MESSAGE = "notifications/message"
UPDATED = "notifications/resources/updated"


def eras() -> Iterator[object]:
    for server, way in product(WORKSHOPS, WAYS):
        if way in server.ways:
            marks = [] if server.is_quick(way) else [pytest.mark.slow_interop]
            for pin in server.eras(way):
                name = f"{server.name}-{way}-{pin}"
                yield pytest.param((server, way, pin), id=name, marks=marks)


@dataclass
class Shop:
    """A workshop with a client that can do everything."""

    home: Home
    pin: str
    client: Client
    person: Person = field(default_factory=Person)

    @property
    def server(self) -> Server:
        return self.home.server

    async def call(self, tool: str, **arguments: object) -> str:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.text
        return result.text


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=eras())
async def shop(request: pytest.FixtureRequest, settle: Settle) -> AsyncIterator[Shop]:
    server, way, pin = request.param
    home, person = settle(server, way), Person()
    async with home.visit(protocol=pin, handlers=person.handlers) as client:
        yield Shop(home, pin, client, person)


@pytest.mark.req("V3", "X2", "X3", "T2")
async def test_a_tool_that_raises_gives_an_error_as_its_result(shop: Shop) -> None:
    assert (await shop.client.call_tool("fail")).is_error


@pytest.mark.req("V3", "X2", "X3", "P5")
async def test_progress_comes_in_order(shop: Shop) -> None:
    heard: list[Progress] = []
    result = await shop.client.call_tool("count", {"steps": 9}, on_progress=heard.append)
    assert result.text == "counted"
    assert [(step.progress, step.total) for step in heard] == [(n, 9) for n in range(1, 10)]


@pytest.mark.req("V3", "X2", "X3", "P5")
async def test_log_messages_come(shop: Shop) -> None:
    """The stateless era sends none that were not asked for."""
    if shop.pin == MODERN:
        await shop.client.set_log_level("debug")
    await shop.call("say", text="good morning")
    await shop.person.heard.until(
        lambda heard: any("good morning" in str(one["data"]) for one in heard.of(MESSAGE))
    )


@pytest.mark.req("V3", "X2", "X3", "P4")
async def test_a_person_is_asked(shop: Shop) -> None:
    name = "value" if shop.server is FASTMCP_2 or is_old_fastmcp(shop) else "name"
    shop.person.answer = {"action": "accept", "content": {name: "Grace"}}
    assert await shop.call("ask") == "hello Grace"
    assert shop.person.asked[-1].message == "Who is there?"


def is_old_fastmcp(shop: Shop) -> bool:
    return shop.server is FASTMCP_4 and shop.pin != MODERN


@pytest.mark.req("V3", "X2", "X3", "P4")
async def test_a_model_and_roots_are_asked_for(shop: Shop) -> None:
    """FastMCP 4 has neither any more."""
    if shop.server is FASTMCP_4:
        assert (await shop.client.call_tool("sample")).is_error
        return
    assert await shop.call("sample") == "Paris"
    assert shop.person.asked[-1].messages[0].text == "capital?"
    assert (await shop.call("roots")).rstrip("/") == "file:///somewhere"


@pytest.mark.req("V3", "X2", "X3", "R4", "R6")
@pytest.mark.parametrize("how", ["task", "call", "timeout"])
async def test_the_server_hears_that_a_call_was_given_up(shop: Shop, how: str) -> None:
    if how == "timeout":
        with pytest.raises(RequestTimeout):
            await shop.client.call_tool("hold", timeout=0.2)
        assert await shop.call("held") == "held"
    elif how == "call":
        call = shop.client.start_tool("hold")
        assert await shop.call("held") == "held"
        assert call.cancel()
        with pytest.raises(CancelledCallError):
            await call
    else:
        task = asyncio.create_task(shop.client.call_tool("hold"))
        assert await shop.call("held") == "held"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await shop.call("released") == "released"
    assert shop.client.violations == {}


@pytest.mark.req("V3", "X2", "X3", "P1")
async def test_resources_are_read_as_text_and_as_bytes(shop: Shop) -> None:
    client = shop.client
    uris = {resource.uri for resource in await client.list_resources()}
    assert uris == {"note://memo", "note://bytes"}
    (template,) = await client.list_resource_templates()
    assert template.uri_template == "note://about/{topic}"
    assert (await client.read_resource("note://memo")).text == "remember"
    assert (await client.read_resource("note://about/bees")).text == "about bees"
    (found,) = (await client.read_resource("note://bytes")).contents
    assert isinstance(found, BlobResourceContents)
    assert found.bytes == b"\x00\xff"


@pytest.mark.req("V3", "X2", "X3", "E3")
async def test_a_resource_that_is_not_there_is_refused(shop: Shop) -> None:
    with pytest.raises(RpcError) as caught:
        await shop.client.read_resource("note://nothing")
    odd = shop.server in (PYTHON_1, FASTMCP_2)
    assert caught.value.code == (0 if odd else -32602)


@pytest.mark.req("V3", "X2", "X3", "P3")
async def test_a_prompt_is_filled_in(shop: Shop) -> None:
    (prompt,) = await shop.client.list_prompts()
    assert prompt.name == "greet"
    (message,) = (await shop.client.get_prompt("greet", {"name": "Ada"})).messages
    assert isinstance(message.content, TextContent)
    assert message.content.text == "Greet Ada."


@pytest.mark.req("V3", "X2", "X3", "P3")
async def test_an_argument_is_completed_where_that_is_offered(shop: Shop) -> None:
    prompt = PromptReference(name="greet")
    if "completions" in shop.server.offers:
        assert (await shop.client.complete(prompt, "name", "A")).values == ["Ada", "Alan"]
        return
    with pytest.raises(RpcError) as caught:
        await shop.client.complete(prompt, "name", "A")
    assert caught.value.code == -32601


@pytest.mark.req("V3", "X2", "X3", "P2")
async def test_updates_come_to_those_who_listen_where_that_is_offered(shop: Shop) -> None:
    if shop.pin != MODERN or shop.server not in (PYTHON_2, TYPESCRIPT_2):
        with pytest.raises(HoldfastError):
            await shop.client.subscribe_resource("note://memo")
        return
    await shop.client.subscribe_resource("note://memo")
    await shop.call("touch", uri="note://bytes")
    await shop.call("touch", uri="note://memo")
    await shop.person.heard.until(lambda heard: heard.of(UPDATED))
    assert [one["uri"] for one in shop.person.heard.of(UPDATED)] == ["note://memo"]
    await shop.client.unsubscribe_resource("note://memo")
