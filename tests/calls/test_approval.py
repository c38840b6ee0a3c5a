"""Approval before anything is sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import holdfast
from holdfast import Handlers, ToolPolicy, ValidationError
from holdfast.calls import ApprovalRequest
from holdfast.errors import ApprovalError
from holdfast.testing import Peer
from holdfast.types.tools import ToolAnnotations
from tests.skipping import skip


def peer() -> Peer:
    found = Peer("disk")
    hints = {
        "read": ToolAnnotations(read_only_hint=True),
        "add": ToolAnnotations(destructive_hint=False),
        "wipe": ToolAnnotations(destructive_hint=True),
        "unsaid": None,
    }
    for name, hint in hints.items():
        found.tool(name, annotations=hint)(lambda **arguments: "done")
    return found


def calls(one: Peer) -> int:
    return sum(message.method == "tools/call" for message in one.received)


@pytest.mark.req("D2")
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize(
    ("verdict", "why"), [(False, "not approved; nothing"), ("too deep", "not approved: too deep")]
)
async def test_a_refused_call_is_never_sent(kind: str, verdict: bool | str, why: str) -> None:
    asked: list[ApprovalRequest] = []

    def plain(request: ApprovalRequest) -> bool | str:
        asked.append(request)
        return verdict

    async def slow(request: ApprovalRequest) -> bool | str:
        return plain(request)

    server = peer()
    policy = ToolPolicy(approve=plain if kind == "sync" else slow)
    async with holdfast.connect(server, tools=policy) as client:
        with pytest.raises(ApprovalError, match=why) as caught:
            await client.call_tool("read", {"a": 1})
        assert (caught.value.kind, caught.value.outcome_unknown) == ("approval", False)
        assert calls(server) == 0
        (request,) = asked
        assert (request.server, request.tool, request.arguments) == ("disk", "read", {"a": 1})
        (tool,) = [one for one in await client.model_tools() if one.name == "read"]
        assert (await tool.call()).kind == "approval"


@pytest.mark.req("D2")
async def test_an_approved_call_goes_on_and_is_asked_for_once() -> None:
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    async with holdfast.connect(peer(), tools=ToolPolicy(approve=approve)) as client:
        assert (await client.call_tool("wipe", timeout=5)).text == "done"
        assert asked == ["wipe"]


@pytest.mark.req("D2", "R3")
@pytest.mark.parametrize("options", [{}, {"timeout": 5}], ids=["policy", "timeout"])
async def test_the_time_of_whoever_approves_is_none_of_the_calls(options: Any) -> None:
    async def approve(request: ApprovalRequest) -> bool:
        skip(10_000)
        return True

    async with holdfast.connect(peer(), tools=ToolPolicy(approve=approve)) as client:
        assert (await client.call_tool("wipe", **options)).text == "done"


@pytest.mark.req("D2")
async def test_annotations_ask_about_what_may_destroy() -> None:
    asked: list[str] = []

    def approval(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return request.tool != "unsaid"

    policy = ToolPolicy(approve="annotations")
    handlers = Handlers(approval=approval)
    async with holdfast.connect(peer(), tools=policy, handlers=handlers) as client:
        for name in ("read", "add", "wipe"):
            assert (await client.call_tool(name)).text == "done"
        with pytest.raises(ApprovalError):
            await client.call_tool("unsaid")
        assert asked == ["wipe", "unsaid"]


@pytest.mark.req("D2")
async def test_where_nobody_can_be_asked_nothing_is_sent() -> None:
    server = peer()
    async with holdfast.connect(server, tools=ToolPolicy(approve="annotations")) as client:
        with pytest.raises(ApprovalError, match="nobody can be asked") as caught:
            await client.call_tool("wipe")
        assert "Handlers(approval=" in str(caught.value)
        assert "Handlers" not in caught.value.message
        assert calls(server) == 0


@pytest.mark.req("D2")
async def test_one_that_fails_does_not_approve() -> None:
    def broken(request: ApprovalRequest) -> bool:
        raise OSError("no terminal")

    async with holdfast.connect(peer(), tools=ToolPolicy(approve=broken)) as client:
        with pytest.raises(ApprovalError, match="OSError: no terminal"):
            await client.call_tool("read")


@pytest.mark.req("D2")
async def test_a_refusal_is_observed_like_any_refused_call() -> None:
    records: list[Any] = []
    observed = holdfast.Observability(audit=records.append)
    policy = ToolPolicy(approve=lambda request: False)
    async with holdfast.connect(peer(), tools=policy, observability=observed) as client:
        with pytest.raises(ApprovalError):
            await client.call_tool("read")
    assert len(records) == 1


def test_an_approval_that_cannot_be_is_refused() -> None:
    wrong: Any = "sometimes"
    with pytest.raises(ValidationError, match="approve='sometimes'"):
        ToolPolicy(approve=wrong)


@pytest.mark.req("D2")
async def test_tools_are_approved_by_name() -> None:
    asked: list[str] = []

    def approval(request: ApprovalRequest) -> bool:
        asked.append(request.tool)
        return True

    policy = ToolPolicy(approve={"*": "annotations", "rea*": "always", "wipe": "never"})
    async with holdfast.connect(
        peer(), tools=policy, handlers=Handlers(approval=approval)
    ) as client:
        for name in ("read", "add", "wipe", "unsaid"):
            await client.call_tool(name)
    assert asked == ["read", "unsaid"]


@pytest.mark.req("D2")
def test_a_rule_by_name_is_a_word() -> None:
    wrong: Any = {"wipe": len}
    with pytest.raises(ValidationError, match="must be 'annotations' or 'always' or 'never'"):
        ToolPolicy(approve=wrong)


@pytest.mark.req("L7", "D2")
async def test_a_close_ends_a_call_that_waits_for_approval() -> None:
    asked = asyncio.Event()

    async def never(_: ApprovalRequest) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    server = peer()
    client = holdfast.connect(server, tools=ToolPolicy(approve=never))
    calling = asyncio.ensure_future(client.call_tool("read"))
    await asked.wait()
    asked.clear()
    await client.close()
    for call in (calling, client.call_tool("read")):
        with pytest.raises(holdfast.errors.ShutdownError) as caught:
            await asyncio.wait_for(call, 5)
        assert not caught.value.outcome_unknown
    assert not asked.is_set()
    assert calls(server) == 0


@pytest.mark.req("L7", "R12", "D2")
async def test_an_approval_that_closes_its_client_comes_to_its_end() -> None:
    ended = False

    async def close(_: ApprovalRequest) -> bool:
        nonlocal ended
        await client.close()
        await asyncio.sleep(0)
        ended = True
        return True

    server = peer()
    client = holdfast.connect(server, tools=ToolPolicy(approve=close))
    with pytest.raises(holdfast.errors.ShutdownError):
        await client.call_tool("read")
    assert ended
    assert calls(server) == 0
