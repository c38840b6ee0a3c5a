"""The application's answers to a server's questions: their forms, and what fits none."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Handlers
from holdfast._core.eras.revisions import HANDSHAKE, STATELESS
from holdfast.testing import Peer, RequestError, ServerRequest
from holdfast.types.inputs import ElicitResult

eras = pytest.mark.parametrize("versions", [STATELESS, HANDSHAKE], ids=["stateless", "handshake"])

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
WITH_ACTION = {"type": "object", "properties": {"action": {"type": "string"}}}
SAMPLE: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 5,
}


def form(schema: Any = FORM) -> tuple[str, dict[str, Any]]:
    return "elicitation/create", {"mode": "form", "message": "Who?", "requestedSchema": schema}


URL = (
    "elicitation/create",
    {"mode": "url", "message": "Pay", "url": "https://example.org/", "elicitationId": "e"},
)


@dataclasses.dataclass
class Person:
    name: str


class PersonStruct(msgspec.Struct):
    name: str


def asking(versions: tuple[str, ...], question: tuple[str, Any]) -> Peer:
    """Return a server whose tool asks a question and returns the answer as structured content."""
    peer = Peer(versions=versions)
    method, params = question

    async def call(incoming: ServerRequest) -> Any:
        if versions == HANDSHAKE:
            answer = await incoming.ask(method, params)
        elif "inputResponses" in incoming.params:
            answer = incoming.params["inputResponses"]["q"]
        else:
            requests = {"q": {"method": method, "params": params}}
            return {"resultType": "input_required", "inputRequests": requests}
        return {"content": [], "structuredContent": answer}

    peer.on("tools/call", call)
    return peer


async def answer_of(versions: tuple[str, ...], question: Any, **handlers: Any) -> Any:
    """Return what the server gets as the answer."""
    client = holdfast.connect(asking(versions, question), handlers=Handlers(**handlers))
    async with client:
        result = await client.call_tool("ask")
        result.raise_for_error()
        return result.structured


ANN = {"action": "accept", "content": {"name": "Ann"}}


@eras
@pytest.mark.req("P4", "X3")
@pytest.mark.parametrize(
    ("returned", "answer"),
    [
        ({"name": "Ann"}, ANN),
        (ANN, ANN),
        (ElicitResult(action="accept", content={"name": "Ann"}), ANN),
        (Person("Ann"), ANN),
        (PersonStruct("Ann"), ANN),
        ({}, {"action": "accept", "content": {}}),
        (
            {"content": {"name": "Ann"}},
            {"action": "accept", "content": {"content": {"name": "Ann"}}},
        ),
        ({"action": "decline"}, {"action": "decline"}),
        ({"action": "cancel"}, {"action": "cancel"}),
        (None, {"action": "decline"}),
    ],
)
async def test_a_form_is_answered_by_its_values_or_by_an_action(
    versions: tuple[str, ...], returned: Any, answer: Any
) -> None:
    assert await answer_of(versions, form(), elicitation=lambda request: returned) == answer


@pytest.mark.req("P4")
@pytest.mark.parametrize(
    ("returned", "answer"),
    [
        ({"action": "buy"}, {"action": "accept", "content": {"action": "buy"}}),
        (
            {"action": "accept", "content": {"action": "buy"}},
            {"action": "accept", "content": {"action": "buy"}},
        ),
        ({"action": "decline"}, {"action": "decline"}),
    ],
)
async def test_a_form_may_have_a_field_that_is_called_action(returned: Any, answer: Any) -> None:
    question = form(WITH_ACTION)
    assert await answer_of(STATELESS, question, elicitation=lambda request: returned) == answer


@pytest.mark.req("P4")
@pytest.mark.parametrize("returned", [{"action": "accept"}, {"action": "cancel"}])
async def test_a_page_to_visit_is_answered_by_an_action(returned: Any) -> None:
    assert await answer_of(STATELESS, URL, elicitation=lambda request: returned) == returned
    declined = await answer_of(STATELESS, URL, elicitation=lambda request: None)
    assert declined == {"action": "decline"}


def unusable(*_: Any) -> Any:
    return UNUSABLE["returned"]


UNUSABLE: dict[str, Any] = {}
NO_ROOTS: tuple[Any, ...] = (None, 7, "file:///a", {"uri": "file:///a"}, [7], [{}])


@eras
@pytest.mark.req("P4", "R12")
@pytest.mark.parametrize(
    ("kind", "question", "returned"),
    [
        *(
            ("elicitation", form(), returned)
            for returned in (
                "Ann",
                ["Ann"],
                7,
                True,
                {"action": "yes"},
                {"action": None},
                {"action": ["accept"]},
                {"action": "accept", "content": "Ann"},
                {"action": "accept", "content": ["Ann"]},
                ElicitResult(action="perhaps"),
                object(),
            )
        ),
        ("elicitation", URL, {"name": "Ann"}),
        ("elicitation", URL, "accept"),
        ("elicitation", URL, {"action": "open"}),
        *(
            ("sampling", ("sampling/createMessage", SAMPLE), returned)
            for returned in (
                None,
                7,
                ["a"],
                {},
                {"text": "hi"},
                {"role": "assistant"},
                {"action": "decline"},
            )
        ),
        *(("roots", ("roots/list", {}), returned) for returned in NO_ROOTS),
    ],
)
async def test_a_result_that_fits_no_form_is_an_error_that_names_the_handler(
    versions: tuple[str, ...], kind: str, question: Any, returned: Any
) -> None:
    UNUSABLE["returned"] = returned
    with pytest.raises(holdfast.HoldfastError, match="the handler unusable must return"):
        await answer_of(versions, question, **{kind: unusable})


UNANSWERED = pytest.mark.parametrize(
    ("option", "question"),
    [
        ("elicitation", form()),
        ("elicitation", URL),
        ("sampling", ("sampling/createMessage", SAMPLE)),
        ("roots", ("roots/list", {})),
    ],
)


@UNANSWERED
@pytest.mark.req("P4")
async def test_a_call_that_asks_without_a_handler_names_the_option(
    option: str, question: Any
) -> None:
    with pytest.raises(holdfast.ProtocolError) as caught:
        await answer_of(STATELESS, question)
    assert f"Handlers({option}=…) answers it" in str(caught.value)


@UNANSWERED
@pytest.mark.req("P4")
async def test_a_request_of_the_server_without_a_handler_names_the_option(
    option: str, question: Any, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer(versions=HANDSHAKE)
    async with holdfast.connect(peer) as client:
        await client.open()
        with pytest.raises(RequestError, match=f"gave no Handlers.{option}=…."):
            await peer.ask(*question)
    assert f"Handlers({option}=…) answers it" in caplog.text


@pytest.mark.req("P4")
async def test_a_question_that_nobody_knows_names_no_option() -> None:
    with pytest.raises(holdfast.ProtocolError, match="which was not declared") as caught:
        await answer_of(STATELESS, ("other/question", {}))
    assert not caught.value.hints


# Questions and the link


@pytest.mark.req("R2", "H4")
@pytest.mark.parametrize("ending", ["error", "lost"])
async def test_a_call_may_have_run_if_the_link_changed_after_its_questions(ending: str) -> None:
    peer = Peer(versions=STATELESS)
    calls = 0

    @peer.tool()
    def pay() -> str:
        return ""

    def call(incoming: ServerRequest) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            method, params = form()
            requests = {"q": {"method": method, "params": params}}
            return {"resultType": "input_required", "inputRequests": requests}
        raise RequestError(-32000, "not twice")

    peer.on("tools/call", call)

    async def answer(request: Any) -> Any:
        down = asyncio.Event()
        client.events.subscribe(lambda event: down.set(), "connection.transition")
        peer.hang_up()
        await down.wait()
        await client.wait_ready(5)
        if ending == "lost":
            client.guard_tools(refuse)
        return {"name": "Ann"}

    def refuse(tools: Any, instructions: Any) -> None:
        raise holdfast.DriftError("another server")

    handlers, quick = Handlers(elicitation=answer), holdfast.Backoff(first=0.001)
    client = holdfast.connect(peer, handlers=handlers, backoff=quick, when_down="wait")
    async with client:
        client.guard_tools(lambda tools, instructions: None)
        with pytest.raises(holdfast.HoldfastError) as caught:
            await client.call_tool("pay")
    assert calls == (2 if ending == "error" else 1)
    assert caught.value.outcome_unknown
