"""A record of every call, with its secrets blacked out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import holdfast
from holdfast import Observability, Timeouts, ToolPolicy
from holdfast.calls import AuditRecord
from holdfast.policies import Identity, Redaction
from holdfast.testing import SILENCE, Peer

SOON = Timeouts(request=5)
LOGIN = {
    "type": "object",
    "properties": {"user": {"type": "string"}, "phrase": {"type": "string", "writeOnly": True}},
    "required": ["user"],
}


@pytest.fixture
def peer() -> Peer:
    peer = Peer()

    @peer.tool(input_schema=LOGIN)
    def login(**_: Any) -> str:
        return "welcome"

    @peer.tool()
    def fail(**_: Any) -> str:
        raise ValueError("no luck, Bearer abcdefgh12345678")

    @peer.tool()
    def silent() -> Any:
        return SILENCE

    return peer


def connect(
    peer: Peer,
    audit: Callable[[AuditRecord], Any] | None,
    tools: ToolPolicy | None = None,
    **options: Any,
) -> holdfast.Client:
    return holdfast.connect(
        peer,
        timeouts=SOON,
        name="shop",
        observability=Observability(audit=audit, **options),
        identity=Identity(name="agent"),
        tools=tools,
    )


@pytest.mark.req("T8")
async def test_a_call_is_recorded_with_who_what_when_and_how_it_ended(peer: Peer) -> None:
    records: list[AuditRecord] = []
    async with connect(peer, records.append) as client:
        await client.call_tool("login", {"user": "me"})
    (record,) = records
    assert (record.who, record.server, record.tool) == ("agent", "shop", "login")
    assert (record.arguments, record.outcome, record.error) == ({"user": "me"}, "ok", None)
    assert record.time > 1_700_000_000
    assert record.duration > 0
    assert record.correlation_id


@pytest.mark.req("T8")
@pytest.mark.parametrize("listed", [True, False])
async def test_secrets_are_blacked_out(peer: Peer, listed: bool) -> None:
    records: list[AuditRecord] = []
    tools = ToolPolicy(validate="always" if listed else "known")
    async with connect(peer, records.append, tools=tools) as client:
        await client.call_tool("login", {"user": "me", "password": "hunter2", "phrase": "open"})
    assert records[0].arguments["password"] == "[redacted]"
    assert (records[0].arguments["phrase"] == "[redacted]") is listed


@pytest.mark.req("T8")
async def test_redaction_can_be_set_and_switched_off(peer: Peer) -> None:
    records: list[AuditRecord] = []
    own = Redaction(keys=["user"])
    async with connect(peer, records.append, redaction=own) as client:
        await client.call_tool("login", {"user": "me", "password": "x"})
    async with connect(peer, records.append, redaction=Redaction(on=False)) as client:
        await client.call_tool("login", {"user": "me", "password": "x"})
    assert records[0].arguments == {"user": "[redacted]", "password": "x"}
    assert records[1].arguments == {"user": "me", "password": "x"}


@pytest.mark.req("T8")
async def test_every_ending_is_recorded(peer: Peer) -> None:
    records: list[AuditRecord] = []
    async with connect(peer, records.append) as client:
        await client.list_tools()
        await client.call_tool("fail")
        with pytest.raises(holdfast.RequestTimeout):
            await client.call_tool("silent", timeout=0.01)
        with pytest.raises(holdfast.ValidationError):
            await client.call_tool("login", {"user": 5})
        with pytest.raises(holdfast.ValidationError):
            await client.call_tool("nothing")
        running = client.start_tool("silent")
        await peer.expect("tools/call", 3)
        running.cancel()
        with pytest.raises(holdfast.errors.CancelledCallError):
            await running
        peer.on("tools/call", lambda _: peer.hang_up())
        await client.invoke_tool("fail")
    ends = [(record.tool, record.outcome, record.outcome_unknown) for record in records]
    assert ends == [
        ("fail", "tool_error", False),
        ("silent", "timeout", True),
        ("login", "validation", False),
        ("nothing", "validation", False),
        ("silent", "cancelled", True),
        ("fail", "transport", True),
    ]
    assert "abcdefgh12345678" not in str(records[0].error)
    assert "no luck" in str(records[0].error)


@pytest.mark.req("T8")
async def test_arguments_that_do_not_fit_are_not_told_by_their_value(peer: Peer) -> None:
    records: list[AuditRecord] = []
    async with connect(peer, records.append) as client:
        await client.list_tools()
        with pytest.raises(holdfast.ValidationError):
            await client.call_tool("login", {"user": "me", "phrase": ["hunter2"]})
    assert records[0].error == "/phrase: type"
    assert "hunter2" not in str(records[0])


@pytest.mark.req("T8")
async def test_the_log_gets_each_record_as_json(
    peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="holdfast.audit")
    async with connect(peer, None) as client:
        await client.call_tool("login", {"user": "me", "token": "x"})
    (line,) = [record for record in caplog.records if record.name == "holdfast.audit"]
    written = msgspec.json.decode(line.getMessage())
    assert written["arguments"] == {"user": "me", "token": "[redacted]"}
    assert line.audit.tool == "login"  # type: ignore[attr-defined]


@pytest.mark.req("T8")
async def test_an_async_callback_is_awaited(peer: Peer) -> None:
    found: asyncio.Future[AuditRecord] = asyncio.get_running_loop().create_future()

    async def audit(record: AuditRecord) -> None:
        found.set_result(record)

    async with connect(peer, audit) as client:
        await client.call_tool("login", {"user": "me"})
        assert (await found).tool == "login"


@pytest.mark.req("T8")
async def test_a_callback_that_fails_hurts_no_call(peer: Peer) -> None:
    def audit(_: AuditRecord) -> None:
        raise RuntimeError("full disk")

    async with connect(peer, audit) as client:
        assert (await client.call_tool("login", {"user": "me"})).text == "welcome"


@pytest.mark.req("T8", "M1")
async def test_a_record_and_the_events_of_its_call_have_one_correlation_id(peer: Peer) -> None:
    records: list[AuditRecord] = []
    events: list[Any] = []
    async with connect(peer, records.append) as client:
        await client.list_tools()
        client.events.subscribe(events.append, "request.start", "request.stop")
        await client.call_tool("login", {"user": "me"})
    assert {event.correlation_id for event in events} == {records[0].correlation_id}
