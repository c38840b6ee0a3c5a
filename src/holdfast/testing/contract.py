"""The contract of transports, as tests to inherit.

class TestMyTransport(TransportContract):
    @contextlib.asynccontextmanager
    async def transport(self):
        yield MyTransport(...)   # leads to `holdfast.testing.echo_server`

A transport whose requests each have a stream of their own says ``streams = True``: there a
request fails alone. ``ordered = False`` where frames may overtake each other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec
from msgspec import UNSET

from holdfast._core.boundary import (
    Delivered,
    Drained,
    Generation,
    Link,
    Lost,
    Opened,
    Refused,
    Report,
    Room,
    Transport,
    WireId,
)
from holdfast._core.wire import jsonrpc
from holdfast.errors import HoldfastError
from holdfast.policies import Limits

PATIENCE = 60.0
"""Seconds after which a contract test counts as hung."""


class Probe:
    """A link under test, and all that it reported."""

    def __init__(self) -> None:
        self.reports: list[Report] = []
        self.link: Link | None = None
        self.messages: list[jsonrpc.Envelope | jsonrpc.Junk] = []
        """All messages delivered so far."""
        self._results: dict[Any, Any] = {}
        self._changed = asyncio.Event()
        self._number = 0

    def report(self, report: Report) -> None:
        """Record a report of the link."""
        self.reports.append(report)
        self._changed.set()
        if isinstance(report, Delivered):
            messages = jsonrpc.decode_lines(report.data)
            self.messages.extend(messages)
            answers = [
                message for message in messages if getattr(message, "result", UNSET) is not UNSET
            ]
            self._results.update((message.id, message.result) for message in answers)  # type: ignore[union-attr]
            if self.link is not None and report.stream in {message.id for message in messages}:
                # As the engine does: the stream has given its answer.
                self.link.finish(report.stream)  # type: ignore[arg-type]

    def order(self, method: str, **params: Any) -> int:
        """Send a request to the server."""
        assert self.link is not None
        self._number += 1
        frame = jsonrpc.request(self._number, method, params)
        assert self.link.send(frame, WireId(self._number))
        return self._number

    async def offer(self, method: str, **params: Any) -> int:
        """Send a request, and wait for room where the link is busy."""
        assert self.link is not None
        self._number += 1
        number, frame = self._number, jsonrpc.request(self._number, method, params)
        while True:
            rooms = len(self.seen(Room))
            if self.link.send(frame, WireId(number)):
                return number
            await self.until(lambda: len(self.seen(Room)) > rooms)  # noqa: B023

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not (value := condition()):
                self._changed.clear()
                await self._changed.wait()
        return value

    def seen(self, kind: type) -> list[Any]:
        """Return the reports of one kind."""
        return [report for report in self.reports if type(report) is kind]

    async def answer(self, number: int) -> dict[str, Any]:
        """The result for one order."""
        result: dict[str, Any] = msgspec.json.decode(
            await self.until(lambda: self._results.get(number))
        )
        return result

    async def failure(self, number: int) -> HoldfastError:
        """Wait for the failure of an order, alone or with the link, and return its error."""

        def failures() -> list[Any]:
            refused = [report for report in self.seen(Refused) if report.wire_id == number]
            return refused + self.seen(Lost)

        error: HoldfastError = (await self.until(failures))[0].error
        return error


class TransportContract:
    """Inherit, give ``transport``, and the transport is tested like ours."""

    generation = Generation(7)
    streams = False
    """Each request travels on a stream of its own."""
    ordered = True
    """Frames arrive in the order in which they were sent."""

    def transport(self) -> AbstractAsyncContextManager[Transport]:
        """Return a transport that leads to `holdfast.testing.echo_server`."""
        raise NotImplementedError

    @asynccontextmanager
    async def probe(self, limits: Limits | None = None) -> AsyncIterator[Probe]:
        """Open a link with a `Probe` on it, and close it at the end."""
        async with self.transport() as transport:
            probe = Probe()
            probe.link = transport.open(self.generation, limits or Limits(), probe.report)
            assert probe.reports == [], "nothing is reported from inside a call"
            await probe.until(lambda: probe.seen(Opened))
            try:
                yield probe
            finally:
                if not probe.seen(Drained):
                    probe.link.close()
                    await probe.until(lambda: probe.seen(Drained))

    async def test_it_names_itself(self) -> None:
        async with self.transport() as transport:
            assert transport.name
            hash(transport.key)

    async def test_opening_is_reported_once(self) -> None:
        async with self.probe() as probe:
            await probe.answer(probe.order("echo"))
            assert probe.seen(Opened) == [Opened(self.generation, self.streams)]

    async def test_a_frame_is_answered(self) -> None:
        async with self.probe() as probe:
            assert await probe.answer(probe.order("echo", word="ahoy")) == {"word": "ahoy"}

    async def test_unicode_survives(self) -> None:
        async with self.probe() as probe:
            word = "ü 漢字 🐙 \u2028 \n"
            assert await probe.answer(probe.order("echo", word=word)) == {"word": word}

    async def test_many_frames_are_all_answered_in_order(self) -> None:
        async with self.probe() as probe:
            numbers = [await probe.offer("echo", number=number) for number in range(500)]
            await probe.until(lambda: len(probe.messages) >= len(numbers))
            answered = [message.id for message in probe.messages]
            assert (answered if self.ordered else sorted(answered)) == numbers  # type: ignore[type-var]

    async def test_a_large_frame_goes_both_ways(self) -> None:
        async with self.probe() as probe:
            text = "y" * 3_000_000
            assert await probe.answer(probe.order("echo", text=text)) == {"text": text}

    async def test_only_whole_lines_are_delivered(self) -> None:
        async with self.probe() as probe:
            await probe.answer(probe.order("big", size=1_000_000))
            delivered = probe.seen(Delivered)
            assert all(report.whole or report.data.endswith(b"\n") for report in delivered)

    async def test_a_flood_is_delivered_whole(self) -> None:
        async with self.probe() as probe:
            await probe.answer(probe.order("flood", count=20_000))
            assert len(probe.messages) == 20_001

    async def test_junk_is_passed_on_for_the_engine_to_judge(self) -> None:
        async with self.probe() as probe:
            await probe.answer(probe.order("junk"))
            assert any(isinstance(message, jsonrpc.Junk) for message in probe.messages)

    async def test_a_message_over_the_limit_is_not_taken(self) -> None:
        async with self.probe(Limits(frame_bytes=10_000)) as probe:
            error = await probe.failure(probe.order("big", size=50_000))
            assert "10000" in error.message
            assert len(probe.seen(Lost)) == (0 if self.streams else 1)
            assert probe.messages == []

    async def test_the_servers_end_is_reported_once(self) -> None:
        async with self.probe() as probe:
            end = Refused if self.streams else Lost
            probe.order("die")
            await probe.until(lambda: probe.seen(end))
            assert probe.link is not None
            probe.link.close()
            await probe.until(lambda: probe.seen(Drained))
            assert len(probe.seen(end)) == 1

    async def test_closing_is_reported_once_however_often_it_is_asked(self) -> None:
        async with self.probe() as probe:
            assert probe.link is not None
            for _ in range(3):
                probe.link.close()
            await probe.until(lambda: probe.seen(Drained))
            probe.link.close()
            await asyncio.sleep(0)
            assert probe.seen(Drained) == [Drained(self.generation)]
            assert probe.seen(Lost) == []

    async def test_nothing_is_delivered_after_closing(self) -> None:
        async with self.probe() as probe:
            assert probe.link is not None
            probe.order("flood", count=1000)
            probe.link.close()
            before = len(probe.seen(Delivered))
            await probe.until(lambda: probe.seen(Drained))
            assert len(probe.seen(Delivered)) == before

    async def test_every_report_carries_its_generation(self) -> None:
        async with self.probe() as probe:
            await probe.answer(probe.order("echo"))
            await probe.failure(probe.order("die"))
            assert {report.generation for report in probe.reports} == {self.generation}

    async def test_sending_to_a_dead_server_does_no_harm(self) -> None:
        async with self.probe() as probe:
            await probe.failure(probe.order("die"))
            numbers = [probe.order("echo") for _ in range(10)]
            if self.streams:
                for number in numbers:
                    await probe.failure(number)

    async def test_killing_ends_it_at_once(self) -> None:
        async with self.transport() as transport:
            probe = Probe()
            link = transport.open(self.generation, Limits(), probe.report)
            await probe.until(lambda: probe.seen(Opened))
            link.kill()
            link.kill()
