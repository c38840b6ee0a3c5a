"""Questions that are the caller's to answer, and typed answers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Handlers, ValidationError
from holdfast._core.eras.revisions import STATELESS, VERSIONS
from holdfast.calls import PendingCall
from holdfast.testing import Peer
from holdfast.types.inputs import FORM_BYTES, FORM_FIELDS, FormElicitation

ASKS = Handlers(elicitation="return")
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "my-age": {"type": "integer"},
        "rank": {"type": "string", "default": "none"},
    },
    "required": ["name"],
}


def asking(versions: tuple[str, ...] = VERSIONS, form: Any = FORM) -> Peer:
    peer = Peer("desk", versions=versions)
    asked = {"mode": "form", "message": "Who?", "requestedSchema": form}

    def call(request: Any) -> Any:
        given = request.params.get("inputResponses")
        if given is None:
            question = {"method": "elicitation/create", "params": asked}
            state = {"step": 1, "exact": 1.0}
            return {
                "resultType": "input_required",
                "inputRequests": {"who": question},
                "requestState": msgspec.json.encode(state).decode(),
            }
        text = msgspec.json.encode([given, request.params["requestState"]]).decode()
        return {"resultType": "complete", "content": [{"type": "text", "text": text}]}

    peer.tool("enlist")(lambda **arguments: "unused")
    peer.on("tools/call", call)
    return peer


@pytest.mark.req("D3")
async def test_questions_come_to_the_caller_who_goes_on_another_day() -> None:
    peer = asking()
    async with holdfast.connect(peer, handlers=ASKS) as client:
        result = await client.call_tool("enlist", {"year": 2026})
        assert result.text == "The server asks: Who?"
        stored = msgspec.json.encode(result.pending)
    async with holdfast.connect(peer, handlers=ASKS) as client:
        pending = msgspec.json.decode(stored, type=PendingCall)
        assert (pending.tool, pending.arguments) == ("enlist", {"year": 2026})
        assert pending.questions["who"]["params"]["message"] == "Who?"
        answer = {"action": "accept", "content": {"name": "Ada"}}
        done = await client.resume(pending, {"who": answer}, timeout=5)
        given, state = msgspec.json.decode(done.text)
        assert given == {"who": answer}
        assert state == '{"step":1,"exact":1.0}'
        assert done.pending is None
        sent = [one for one in peer.received if one.method == "tools/call"]
        assert sent[-1].params["arguments"] == {"year": 2026}


@pytest.mark.req("D3")
@pytest.mark.parametrize(("answers", "why"), [({}, "no answer to"), ({"x": None}, "no answer")])
async def test_a_question_without_an_answer_sends_nothing(
    answers: dict[str, Any], why: str
) -> None:
    peer = asking()
    async with holdfast.connect(peer, handlers=ASKS) as client:
        result = await client.call_tool("enlist")
        before = len(peer.received)
        with pytest.raises(ValidationError, match=why):
            await client.resume(result.pending, answers)
        assert len(peer.received) == before


@pytest.mark.req("D3")
def test_it_works_without_a_loop() -> None:
    with holdfast.sync.connect(asking(), handlers=ASKS) as client:
        pending = client.call_tool("enlist").pending
        assert '"decline"' in client.resume(pending, {"who": None}).text


@pytest.mark.req("D3")
async def test_a_question_of_the_handshake_era_is_refused_with_the_reason() -> None:
    """It is a request on its own: there is no call that it could be returned from."""
    with_demo = [sys.executable, "-m", "holdfast.demo.server", "--eras", "handshake"]
    async with holdfast.connect(with_demo, handlers=ASKS) as client:
        result = await client.call_tool("ask_name")
    assert result.is_error
    assert result.pending is None
    assert "needs a server of a stateless revision" in result.text


@pytest.mark.req("D3")
@pytest.mark.req("K1")
async def test_a_task_that_asks_the_caller_goes_on_waiting_for_a_handler() -> None:
    peer = Peer("desk", versions=STATELESS)
    asked = {"mode": "form", "message": "Who?", "requestedSchema": FORM}

    @peer.tool(task=True)
    def enlist() -> str:
        return "unused"

    async def call(incoming: Any, arguments: Any) -> Any:
        answer = await incoming.ask("elicitation/create", asked)
        return {"content": [{"type": "text", "text": answer["content"]["name"]}]}

    peer.catalog.tools["enlist"] = peer.catalog.tools["enlist"]._replace(run=call)
    async with holdfast.connect(peer, handlers=ASKS) as client:
        with pytest.raises(holdfast.StateError, match="waits for answers") as caught:
            await client.call_tool("enlist", task=True)
    assert caught.value.task_id is not None
    fill = Handlers(elicitation=lambda request: Person("Ada"))
    async with holdfast.connect(peer, handlers=fill) as client:
        assert (await client.resume_task(caught.value.task_id)).text == "Ada"


@pytest.mark.req("D3")
async def test_a_question_that_cannot_be_read_is_nobodys() -> None:
    peer = asking()
    peer.on("tools/call", {"resultType": "input_required", "inputRequests": {"a": 5}})
    async with holdfast.connect(peer, handlers=ASKS) as client:
        with pytest.raises(holdfast.ProtocolError, match="'a' is malformed"):
            await client.call_tool("enlist")


@dataclass
class Person:
    name: str


class Sailor(msgspec.Struct):
    name: str
    rank: str = "mate"


@pytest.mark.req("D5")
@pytest.mark.parametrize(
    ("given", "content"),
    [
        (Person("Ada"), {"name": "Ada", "rank": "none"}),
        (Sailor("Bo"), {"name": "Bo", "rank": "mate"}),
    ],
)
async def test_a_handler_may_return_an_instance(given: Any, content: dict[str, Any]) -> None:
    handlers = Handlers(elicitation=lambda request: given)
    async with holdfast.connect(asking(), handlers=handlers) as client:
        answers = msgspec.json.decode((await client.call_tool("enlist")).text)[0]
        assert answers == {"who": {"action": "accept", "content": content}}


@pytest.mark.req("D5")
async def test_a_form_has_a_type_of_its_own() -> None:
    def fill(request: Any) -> Any:
        assert isinstance(request, FormElicitation)
        kind = request.response_type
        names = [one.encode_name for one in msgspec.structs.fields(kind)]
        assert sorted(names) == ["my-age", "name", "rank"]
        return kind("Ada")

    async with holdfast.connect(asking(), handlers=Handlers(elicitation=fill)) as client:
        answers = msgspec.json.decode((await client.call_tool("enlist")).text)[0]
        assert answers["who"]["content"] == {"name": "Ada", "rank": "none"}


@pytest.mark.req("D5")
def test_the_type_of_a_form_takes_any_names() -> None:
    names = ["a b", "_field_0", "field_0", "class", "__init__", "self", ""]
    schema = {"properties": {name: {"type": "integer"} for name in names}, "required": names}
    kind = FormElicitation(message="?", requested_schema=schema).response_type
    made = msgspec.to_builtins(kind(*range(len(names))))
    assert made == dict(zip(names, range(len(names)), strict=True))


@pytest.mark.req("D5")
@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"properties": {f"a{at}": {} for at in range(FORM_FIELDS + 1)}}, "1001 fields"),
        ({"properties": {"a": {"description": "x" * FORM_BYTES}}}, "bytes"),
    ],
    ids=["fields", "bytes"],
)
async def test_a_form_that_nobody_could_fill_in_is_not_shown(form: Any, why: str) -> None:
    shown: list[Any] = []
    handlers = Handlers(elicitation=shown.append)
    async with holdfast.connect(asking(form=form), handlers=handlers) as client:
        with pytest.raises(holdfast.ProtocolError, match=why):
            await client.call_tool("enlist")
    assert not shown


@pytest.mark.req("D5")
def test_required_names_that_are_no_fields_are_left_out() -> None:
    schema = {"properties": {"b": {}, "a": {}}, "required": ["a", "c", ["b"], "a"]}
    assert FormElicitation(message="?", requested_schema=schema).required == ["a"]


@pytest.mark.req("D5")
async def test_an_instance_with_wrong_values_and_none() -> None:
    wrong: Any = Sailor(5)  # type: ignore[arg-type]
    async with holdfast.connect(
        asking(), handlers=Handlers(elicitation=lambda request: wrong)
    ) as client:
        with pytest.raises(holdfast.ProtocolError, match="Expected `str`"):
            await client.call_tool("enlist")
    async with holdfast.connect(
        asking(), handlers=Handlers(elicitation=lambda request: None)
    ) as client:
        assert '"decline"' in (await client.call_tool("enlist")).text
