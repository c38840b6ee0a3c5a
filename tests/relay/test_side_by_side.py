"""The 23 things of ``make relay-peers``, through ``holdfast serve`` in each pair of eras."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from benchmarks.relay_peers import report
from benchmarks.relay_peers.links import Link, Message, StdioLink, Take
from benchmarks.relay_peers.relays import NONE, OURS, Relay
from benchmarks.relay_peers.things import THINGS

PATIENCE = 60.0
"""Seconds for each thing: nothing is waited for unless it is lost."""


def lost(outcomes: dict[str, str]) -> dict[str, str]:
    return {title: reason for title, reason in outcomes.items() if reason}


def title(relay: Relay) -> str:
    return f"{relay.title.strip('`')}-{relay.host}-{relay.server}"


@pytest.mark.req("Y1")
@pytest.mark.parametrize("relay", [*NONE, *OURS], ids=title)
async def test_nothing_is_lost(relay: Relay) -> None:
    outcomes = await relay.trial(PATIENCE)
    assert lost(outcomes) == {}
    assert len(outcomes) == 23


@pytest.mark.req("Y1")
@pytest.mark.parametrize("relay", [*NONE, *OURS], ids=title)
async def test_long_messages_and_many_notifications_pass(relay: Relay) -> None:
    async with relay.connected() as trial, asyncio.timeout(PATIENCE):
        await trial.host.call("flood", {"count": 3000})
        await trial.host.notified("notifications/vendor/step", number=2999)
        numbers = [message["params"]["number"] for message in trial.host.notifications]
        assert numbers == list(range(3000))
        long = {"text": "é" * 10_000_000}
        echoed = await trial.host.call("echo", long)
        assert echoed["arguments"] == long


class DeafLink(StdioLink):
    """Passes neither errors' data nor the server's requests, as a poor relay does."""

    async def open(self, take: Take, on_lost: Callable[[], None]) -> None:
        def take_some(message: Message) -> None:
            if "method" in message and "id" in message:
                refusal = {"code": -32601, "message": "not supported"}
                self.send({"jsonrpc": "2.0", "id": message["id"], "error": refusal})
            else:
                message.get("error", {}).pop("data", None)
                take(message)

        await super().open(take_some, on_lost)


def deaf(command: Sequence[str]) -> Link:
    return DeafLink(command)


@pytest.mark.req("Y1")
async def test_what_a_relay_loses_is_noticed() -> None:
    outcomes = await Relay("deaf", "handshake", "handshake", deaf).trial(PATIENCE)
    questions = ["elicitation", "sampling", "roots"]
    assert list(lost(outcomes)) == [*questions, "error code and data", "not found"]
    assert "not supported" in outcomes["roots"]


@pytest.mark.req("Y1")
def test_the_page_says_what_was_lost() -> None:
    whole = dict.fromkeys(THINGS, "")
    relay = OURS[0]
    page = report.page({report.key(relay): {**whole, "progress": "a | `b`"}})
    assert "| `holdfast serve` | 2025-11-25 | 2025-11-25 | 22 | progress |" in page
    assert "| progress | `a \\| 'b'` |" in page
    everything = report.line(relay, dict.fromkeys(THINGS, "no connection"))
    assert everything.endswith("| 0 | everything |")
