"""The reference server that has every feature of the handshake era."""

from __future__ import annotations

import asyncio
import gzip
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from holdfast import Client, Progress, RequestTimeout, RpcError
from holdfast.errors import CancelledCallError, ResourceNotFoundError
from holdfast.types.content import (
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from holdfast.types.inputs import FormElicitation, UrlElicitation
from holdfast.types.resources import PromptReference, ResourceReference
from tests.interop.catalogue import EVERYTHING, WAYS, Way
from tests.interop.home import Heard, Home, Person, Settle

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG = "trigger-long-running-operation"
DOCUMENT = "demo://resource/static/document/features.md"
UPDATED = "notifications/resources/updated"
MESSAGE = "notifications/message"


@pytest.fixture
def home(settle: Settle) -> Home:
    """For the tests that need a server of their own."""
    return settle(EVERYTHING)


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


@pytest.fixture(scope="module")
def person(way: Way) -> Person:
    return Person()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(settle: Settle, way: Way, person: Person) -> AsyncIterator[Client]:
    """One client that can do everything, for most of the tests."""
    async with settle(EVERYTHING, way).visit(handlers=person.handlers) as client:
        yield client


# Tools


@pytest.mark.req("V3", "P4")
async def test_more_tools_are_offered_to_a_client_that_declares_more(
    home: Home, client: Client
) -> None:
    asking = {
        "get-roots-list",
        "trigger-elicitation-request",
        "trigger-sampling-request",
        "trigger-url-elicitation",
    }
    assert asking <= {tool.name for tool in await client.list_tools()}
    async with home.visit() as bare:
        assert not asking & {tool.name for tool in await bare.list_tools()}


@pytest.mark.req("V3", "X2", "X3", "T2")
async def test_pictures_and_annotations_arrive(client: Client) -> None:
    arguments = {"messageType": "error", "includeImage": True}
    text, picture = (await client.call_tool("get-annotated-message", arguments)).content
    assert isinstance(text, TextContent)
    assert text.annotations is not None
    assert text.annotations.priority == 1
    assert text.annotations.audience == ["user", "assistant"]
    assert isinstance(picture, ImageContent)
    assert picture.mime_type == "image/png"
    assert picture.bytes.startswith(b"\x89PNG")


@pytest.mark.req("V3", "X2", "X3", "T2")
async def test_structured_content_comes_with_its_text(client: Client) -> None:
    weather = await client.call_tool("get-structured-content", {"location": "Chicago"})
    expected = {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
    assert weather.structured == expected
    (tool,) = [one for one in await client.list_tools() if one.name == "get-structured-content"]
    assert tool.output_schema is not None
    assert tool.output_schema["required"] == ["temperature", "conditions", "humidity"]


@pytest.mark.req("V3", "X2", "X3", "T2", "P1")
async def test_links_to_resources_can_be_followed(client: Client) -> None:
    result = await client.call_tool("get-resource-links", {"count": 2})
    links = [one for one in result.content if isinstance(one, ResourceLink)]
    assert [link.name for link in links] == ["Blob Resource 1", "Text Resource 2"]
    (blob,) = (await client.read_resource(links[0].uri)).contents
    assert isinstance(blob, BlobResourceContents)
    assert blob.bytes.startswith(b"Resource 1:")
    assert (await client.read_resource(links[1].uri)).text.startswith("Resource 2:")


@pytest.mark.req("V3", "X2", "X3", "T2")
async def test_a_resource_can_come_inside_a_result(client: Client) -> None:
    arguments = {"resourceType": "Blob", "resourceId": 4}
    result = await client.call_tool("get-resource-reference", arguments)
    (found,) = [one for one in result.content if isinstance(one, EmbeddedResource)]
    assert isinstance(found.resource, BlobResourceContents)
    assert found.resource.bytes.startswith(b"Resource 4:")


@pytest.mark.req("V3", "X2", "X3", "P1", "P6")
async def test_a_resource_made_by_a_tool_is_announced_and_can_be_read(
    client: Client, person: Person
) -> None:
    arguments = {"name": "hello.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}
    (link,) = (await client.call_tool("gzip-file-as-resource", arguments)).content
    assert isinstance(link, ResourceLink)
    await person.heard.until(lambda heard: heard.of("notifications/resources/list_changed"))
    assert link.uri in {resource.uri for resource in await client.list_resources()}
    (packed,) = (await client.read_resource(link.uri)).contents
    assert isinstance(packed, BlobResourceContents)
    assert gzip.decompress(packed.bytes) == b"hello"


@pytest.mark.req("V3", "X2", "X3", "T2")
async def test_wrong_arguments_are_an_error_of_the_tool(client: Client) -> None:
    """In the raw, past whatever looks at the arguments on our side."""
    params = {"name": "get-sum", "arguments": {"a": "one"}}
    result = await client.request("tools/call", params)
    assert result["isError"]
    assert "Invalid arguments" in result["content"][0]["text"]


@pytest.mark.req("V3", "X1", "X2", "X3")
@pytest.mark.parametrize(
    "said", ["ünï\u2028code\n\t\0\U0001f980\x7f", "x" * 1_000_000, "", '{"jsonrpc":"2.0"}\n']
)
async def test_any_text_comes_back_as_it_went(client: Client, said: str) -> None:
    assert (await client.call_tool("echo", {"message": said})).text == f"Echo: {said}"


# Long calls


@pytest.mark.req("V3", "X2", "X3", "P5")
async def test_progress_comes_in_order(client: Client) -> None:
    mine: list[Progress] = []
    everybody_s: list[Progress] = []
    stop = client.on_progress(everybody_s.append)
    arguments = {"duration": 0.2, "steps": 5}
    result = await client.call_tool(LONG, arguments, on_progress=mine.append)
    stop()
    assert "completed" in result.text
    assert [(step.progress, step.total) for step in mine] == [(n, 5) for n in range(1, 6)]
    assert everybody_s == mine


@pytest.mark.req("V3", "X2", "X3", "R3", "P5")
async def test_progress_keeps_a_call_alive(client: Client) -> None:
    """Each step comes well within the timeout, which the whole exceeds."""
    result = await client.call_tool(LONG, {"duration": 1.5, "steps": 30}, timeout=1.0)
    assert "completed" in result.text


@pytest.mark.req("V3", "X2", "X3", "R4", "R6")
@pytest.mark.parametrize("how", ["task", "call", "timeout"])
async def test_a_long_call_can_be_ended_and_the_next_one_works(client: Client, how: str) -> None:
    under_way = asyncio.Event()
    arguments = {"duration": 40, "steps": 400}
    options: dict[str, Any] = {"on_progress": lambda _: under_way.set()}
    if how == "timeout":
        with pytest.raises(RequestTimeout):
            await client.call_tool(LONG, arguments, total_timeout=0.5, **options)
        assert under_way.is_set()
    elif how == "call":
        call = client.start_tool(LONG, arguments, **options)
        await under_way.wait()
        assert call.cancel()
        assert not call.cancel()
        with pytest.raises(CancelledCallError):
            await call
    else:
        task = asyncio.create_task(client.call_tool(LONG, arguments, **options))
        await under_way.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (await client.call_tool("echo", {"message": "still here"})).text == "Echo: still here"


@pytest.mark.req("V3", "R5", "R6")
async def test_the_progress_of_a_call_that_was_cancelled_is_not_delivered(home: Home) -> None:
    """This server goes on with the work; the next call of the same kind shows that it does."""
    async with home.visit() as client:
        lost: list[Progress] = []
        under_way = asyncio.Event()

        def hear(progress: Progress) -> None:
            lost.append(progress)
            under_way.set()

        call = client.start_tool(LONG, {"duration": 0.6, "steps": 12}, on_progress=hear)
        await under_way.wait()
        call.cancel()
        with pytest.raises(CancelledCallError):
            await call
        heard = len(lost)
        await client.call_tool(LONG, {"duration": 0.6, "steps": 2})
        assert len(lost) == heard
        assert client.violations == {}


# Resources, prompts, completion


@pytest.mark.req("V3", "X2", "X3", "P1")
async def test_documents_are_listed_and_read(client: Client) -> None:
    uris = {resource.uri for resource in await client.list_resources()}
    assert DOCUMENT in uris
    (document,) = (await client.read_resource(DOCUMENT)).contents
    assert isinstance(document, TextResourceContents)
    assert document.mime_type == "text/markdown"
    templates = {template.uri_template for template in await client.list_resource_templates()}
    assert templates == {f"demo://resource/dynamic/{kind}/{{resourceId}}" for kind in KINDS}


KINDS = ("text", "blob")


@pytest.mark.req("V3", "X2", "X3", "E3")
async def test_a_resource_that_is_not_there_is_told_apart(client: Client) -> None:
    with pytest.raises(ResourceNotFoundError, match="not found") as caught:
        await client.read_resource("demo://resource/none")
    assert caught.value.code == -32602


@pytest.mark.req("V3", "X2", "X3", "P3")
async def test_prompts_are_filled_in(client: Client) -> None:
    names = {prompt.name for prompt in await client.list_prompts()}
    assert {"simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"} <= names
    arguments = {"city": "Oslo", "state": "Viken"}
    (message,) = (await client.get_prompt("args-prompt", arguments)).messages
    assert isinstance(message.content, TextContent)
    assert message.content.text == "What's weather in Oslo, Viken?"
    arguments = {"resourceType": "Text", "resourceId": "2"}
    _, embedded = (await client.get_prompt("resource-prompt", arguments)).messages
    assert isinstance(embedded.content, EmbeddedResource)


@pytest.mark.req("V3", "X2", "X3", "P3", "E3")
async def test_a_prompt_without_its_arguments_is_refused(client: Client) -> None:
    with pytest.raises(RpcError) as caught:
        await client.get_prompt("args-prompt")
    assert caught.value.code == -32602


@pytest.mark.req("V3", "X2", "X3", "P3")
async def test_arguments_are_completed(client: Client) -> None:
    prompt = PromptReference(name="completable-prompt")
    assert (await client.complete(prompt, "department", "S")).values == ["Sales", "Support"]
    chosen = {"department": "Sales"}
    assert (await client.complete(prompt, "name", "E", chosen)).values == ["Eve"]
    template = ResourceReference(uri="demo://resource/dynamic/text/{resourceId}")
    assert (await client.complete(template, "resourceId", "12")).values == ["12"]


# What the server says of its own accord


@pytest.mark.req("V3", "X2", "X3", "P5")
async def test_the_log_level_is_kept_to(client: Client, person: Person) -> None:
    """The server tells of a subscription at level "info", before it answers."""
    quiet, loud = (f"demo://resource/dynamic/text/{number}" for number in (7, 8))
    await client.set_log_level("error")
    await client.subscribe_resource(quiet)
    await client.set_log_level("info")
    await client.subscribe_resource(loud)
    await person.heard.until(lambda heard: told_of(heard, loud))
    assert not told_of(person.heard, quiet)
    for uri in (quiet, loud):
        await client.unsubscribe_resource(uri)


def told_of(heard: Heard, uri: str) -> list[str]:
    texts = [str(message["data"]) for message in heard.of(MESSAGE)]
    return [text for text in texts if uri in text and "Received Subscribe" in text]


@pytest.mark.req("V3", "P2")
async def test_a_subscription_outlives_the_server(home: Home) -> None:
    heard = Heard()
    async with home.visit() as client:
        client.on_notification(heard)
        await client.subscribe_resource(DOCUMENT)
        await client.call_tool("toggle-subscriber-updates")
        await heard.until(lambda heard: heard.of(UPDATED))
        assert heard.of(UPDATED)[0]["uri"] == DOCUMENT

        heard.all.clear()
        os.kill(home.process(), signal.SIGKILL)
        await heard.until(lambda heard: told_of(heard, DOCUMENT))
        await client.call_tool("toggle-subscriber-updates")
        await heard.until(lambda heard: heard.of(UPDATED))


@pytest.mark.req("V3", "P2")
async def test_after_unsubscribing_no_updates_come(home: Home) -> None:
    heard = Heard()
    other = "demo://resource/dynamic/text/1"
    async with home.visit() as client:
        client.on_notification(heard)
        for uri in (DOCUMENT, other):
            await client.subscribe_resource(uri)
        await client.unsubscribe_resource(DOCUMENT)
        await client.call_tool("toggle-subscriber-updates")
        await heard.until(lambda heard: heard.of(UPDATED))
        assert [one["uri"] for one in heard.of(UPDATED)] == [other]


@pytest.mark.req("V3", "L8")
async def test_it_is_ended_though_it_ignores_the_end_of_its_input(home: Home) -> None:
    """Its timers keep it alive."""
    async with home.visit(target=home.target(grace=0.1)) as client:
        await client.call_tool("toggle-subscriber-updates")
        await client.call_tool("toggle-simulated-logging")


# What the server asks


@pytest.mark.req("V3", "X2", "X3", "P4")
async def test_the_server_s_model_is_the_client_s(client: Client, person: Person) -> None:
    arguments = {"prompt": "the capital of France?", "maxTokens": 7}
    result = await client.call_tool("trigger-sampling-request", arguments)
    assert "Paris" in result.text
    request = person.asked[-1]
    assert request.max_tokens == 7
    assert request.system_prompt == "You are a helpful test server."
    assert "capital of France" in request.messages[0].text


@pytest.mark.req("V3", "X2", "X3", "P4")
async def test_a_form_of_every_kind_of_field_is_filled_in(client: Client, person: Person) -> None:
    """What the person leaves out has the server's default."""
    person.answer = {"action": "accept", "content": {"name": "Ada", "check": True}}
    result = await client.call_tool("trigger-elicitation-request")
    assert "- Name: Ada" in result.text
    assert "- Favorite Integer: 42" in result.text
    form = person.asked[-1]
    assert isinstance(form, FormElicitation)
    assert form.required == ["name"]
    kinds = {field["type"] for field in form.fields.values()}
    assert kinds >= {"array", "boolean", "integer", "string"}


@pytest.mark.req("V3", "X2", "X3", "P4")
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_say_no(client: Client, person: Person, action: str) -> None:
    person.answer = {"action": action}
    result = await client.call_tool("trigger-elicitation-request")
    assert f'"action": "{action}"' in result.text


@pytest.mark.req("V3", "X2", "X3", "P4")
async def test_a_person_is_sent_to_a_page(client: Client, person: Person) -> None:
    person.answer = {"action": "accept"}
    arguments = {"url": "https://example.org/consent", "elicitationId": "one"}
    result = await client.call_tool("trigger-url-elicitation", arguments)
    assert "completed" in result.text
    page = person.asked[-1]
    assert isinstance(page, UrlElicitation)
    assert (page.url, page.elicitation_id) == ("https://example.org/consent", "one")


@pytest.mark.req("V3", "X2", "X3", "E3")
async def test_an_error_that_asks_for_a_page_keeps_its_data(client: Client) -> None:
    arguments = {"url": "https://example.org/first", "errorPath": True}
    with pytest.raises(RpcError) as caught:
        await client.call_tool("trigger-url-elicitation", arguments)
    assert caught.value.code == -32042
    assert caught.value.data["elicitations"][0]["mode"] == "url"


@pytest.mark.req("V3", "X2", "X3", "P4")
async def test_roots_are_told_and_told_again_when_they_change(
    client: Client, person: Person
) -> None:
    assert "file:///somewhere" in (await client.call_tool("get-roots-list")).text
    person.roots = ["file:///elsewhere", "file:///anywhere"]
    await client.roots_changed()
    await person.heard.until(
        lambda heard: any("2 root(s)" in str(one["data"]) for one in heard.of(MESSAGE))
    )
    assert "file:///elsewhere" in (await client.call_tool("get-roots-list")).text


@pytest.mark.req("V3", "X1")
async def test_what_it_says_on_stderr_is_heard(home: Home) -> None:
    lines: list[str] = []
    async with home.visit(target=home.target(stderr=lines.append)) as client:
        await client.ping()
    assert any("Starting default (STDIO) server" in line for line in lines)
