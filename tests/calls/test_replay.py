"""No write ever runs twice: a real server writes down what it ran, and dies around it."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Backoff, Timeouts
from holdfast.testing import SILENCE, Peer, ServerRequest
from holdfast.types import PromptReference
from tests.rows import rows

SERVER = Path(__file__).with_name("ledger_server.py")
QUICK = Backoff(first=0.001, max=0.01)
SOON = Timeouts(request=20, handshake=20)
HARMLESS = ("read", "upsert")
WRITES = ("write", "destroy")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def ran(ledger: Path) -> Counter[str]:
    return Counter(ledger.read_text().splitlines() if ledger.exists() else [])


def connect(ledger: Path, replay: Any, **options: Any) -> holdfast.Client:
    command = [sys.executable, str(SERVER), str(ledger)]
    return holdfast.connect(
        command,
        replay=replay,
        backoff=QUICK,
        timeouts=SOON,
        when_down="wait",
        protocol="2025-11-25",
        grace=0.2,
        **options,
    )


@pytest.mark.req("R11")
@pytest.mark.parametrize("tool", HARMLESS)
@pytest.mark.parametrize("die", ["before", "after"])
async def test_a_harmless_tool_is_repeated_once_where_that_is_asked_for(
    ledger: Path, tool: str, die: str
) -> None:
    async with connect(ledger, "safe") as client:
        await client.list_tools()
        result = await client.call_tool(tool, {"key": "k", "die": die})
        assert result.text == "k"
    assert ran(ledger) == {f"{tool} k": 2 if die == "after" else 1}


@pytest.mark.req("R11")
@pytest.mark.parametrize("tool", WRITES)
@pytest.mark.parametrize("replay", ["safe", "never"])
@pytest.mark.parametrize("die", ["before", "after"])
async def test_a_write_is_never_repeated_and_says_that_it_may_have_run(
    ledger: Path, tool: str, replay: str, die: str
) -> None:
    async with connect(ledger, replay) as client:
        await client.list_tools()
        with pytest.raises(holdfast.TransportError) as caught:
            await client.call_tool(tool, {"key": "k", "die": die})
        assert caught.value.outcome_unknown
        assert (await client.call_tool(tool, {"key": "next"})).text == "next"
    assert ran(ledger)[f"{tool} k"] == (1 if die == "after" else 0)


@pytest.mark.req("R11")
@pytest.mark.parametrize("tool", HARMLESS)
async def test_nothing_is_repeated_unless_it_is_asked_for(ledger: Path, tool: str) -> None:
    async with connect(ledger, "never") as client:
        await client.list_tools()
        with pytest.raises(holdfast.TransportError) as caught:
            await client.call_tool(tool, {"key": "k", "die": "after"})
    assert caught.value.outcome_unknown
    assert ran(ledger) == {f"{tool} k": 1}


@pytest.mark.req("R11")
@pytest.mark.parametrize("tool", HARMLESS)
async def test_a_tool_whose_hints_are_not_known_is_not_repeated(ledger: Path, tool: str) -> None:
    unlisted = holdfast.ToolPolicy(validate="known")
    async with connect(ledger, "safe", tools=unlisted) as client:
        with pytest.raises(holdfast.TransportError):
            await client.call_tool(tool, {"key": "k", "die": "after"})
    assert ran(ledger) == {f"{tool} k": 1}


@pytest.mark.req("R11")
async def test_a_list_is_repeated(ledger: Path) -> None:
    """The death of the call beside it takes the list with it."""
    async with connect(ledger, "safe") as client:
        await client.open()
        dying = asyncio.create_task(client.call_tool("write", {"key": "k", "die": "after"}))
        listed = asyncio.create_task(client.list_tools())
        await asyncio.wait([dying, listed])
        assert isinstance(dying.exception(), holdfast.TransportError)
        assert len(listed.result()) == 4


@pytest.mark.req("R11")
async def test_what_has_not_left_always_goes_out_once_after_the_reconnect(ledger: Path) -> None:
    """The pipe is full when the server dies: what is behind it never left."""
    filling = "x" * 200_000
    async with connect(ledger, "never") as client:
        await client.list_tools()
        calls = [
            asyncio.create_task(
                client.call_tool("write", {"key": f"k{number}", "fill": filling, "die": die})
            )
            for number, die in enumerate(["after", None, None, None])
        ]
        found = await asyncio.gather(*calls, return_exceptions=True)
    runs = ran(ledger)
    assert set(runs.values()) == {1}
    for number, one in enumerate(found):
        if isinstance(one, BaseException):
            assert isinstance(one, holdfast.TransportError)
            assert one.outcome_unknown
        else:
            assert runs[f"write k{number}"] == 1
    assert not isinstance(found[-1], BaseException), "the last one cannot have left"


@pytest.mark.req("R11")
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("replay", ["safe", "never"])
async def test_no_write_runs_twice_whenever_the_server_dies(
    ledger: Path, seed: int, replay: str
) -> None:
    """Many calls at once of all kinds, a server that dies at random ones of them."""
    chance = random.Random(seed)
    asked = [
        (chance.choice(HARMLESS + WRITES), f"k{number}", chance.choice([None, None, None, "after"]))
        for number in range(24)
    ]
    async with connect(ledger, replay) as client:
        await client.list_tools()
        work = []
        for tool, key, die in asked:
            work.append(client.start_tool(tool, {"key": key, "die": die}))
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() / 200)
        found = await asyncio.gather(*work, return_exceptions=True)
    runs = ran(ledger)
    for (tool, key, _), one in zip(asked, found, strict=True):
        times = runs[f"{tool} {key}"]
        if tool in WRITES or replay == "never":
            assert times <= 1
        assert times <= 2
        if not isinstance(one, BaseException):
            assert times >= 1
        elif times:
            assert isinstance(one, holdfast.HoldfastError)
            assert one.outcome_unknown, "what ran may not be called undone"


READS: dict[str, Callable[[holdfast.Client], Awaitable[Any]]] = {
    "prompts/get": lambda client: client.get_prompt("poem"),
    "resources/read": lambda client: client.read_resource("memo://a"),
    "resources/list": lambda client: client.list_resources(),
    "prompts/list": lambda client: client.list_prompts(),
    "completion/complete": lambda client: client.complete(
        PromptReference(name="poem"), "topic", "s"
    ),
}


def dying_peer(method: str) -> tuple[Peer, list[str]]:
    """Return a server that dies at the first request for ``method``, and those requests."""
    peer, asked = Peer(), []
    peer.resource("memo://a", "memo")
    peer.prompt("poem")(lambda topic="sea": topic)
    answers = {
        "completion/complete": {"completion": {"values": ["sea"]}},
        "prompts/get": {"messages": []},
        "resources/read": {"contents": []},
        "resources/list": {"resources": []},
        "prompts/list": {"prompts": []},
    }

    def answer(incoming: ServerRequest) -> Any:
        asked.append(method)
        if len(asked) == 1:
            peer.hang_up()
            return SILENCE
        return answers[method]

    peer.on(method, answer)
    return peer, asked


@pytest.mark.req("R11")
@rows("method", READS)
async def test_a_read_is_repeated_once_where_that_is_asked_for(method: str) -> None:
    peer, asked = dying_peer(method)
    options: dict[str, Any] = {"backoff": QUICK, "timeouts": SOON, "when_down": "wait"}
    async with holdfast.connect(peer, replay="safe", **options) as client:
        await READS[method](client)
    assert len(asked) == 2


@pytest.mark.req("R11")
@rows("method", READS)
async def test_a_read_is_not_repeated_by_default(method: str) -> None:
    peer, asked = dying_peer(method)
    options: dict[str, Any] = {"backoff": QUICK, "timeouts": SOON, "when_down": "wait"}
    async with holdfast.connect(peer, **options) as client:
        with pytest.raises(holdfast.TransportError):
            await READS[method](client)
    assert len(asked) == 1
