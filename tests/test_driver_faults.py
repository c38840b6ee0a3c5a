"""Whatever carrying out one effect does, the other effects of the list are carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import pytest
from msgspec import Raw

from holdfast._core import boundary as b
from holdfast._core.boundary import Call, Effect, Generation, Link, Report, Ticket, WireId
from holdfast._core.driver import _EFFECTS, Driver
from holdfast._core.engine.state import State
from holdfast._core.eras.conversation import Plan
from holdfast.errors import HoldfastError, TransportError
from holdfast.policies import Identity, Limits, Policy
from holdfast.types.lifecycle import Progress
from tests.rows import rows

GENERATION = Generation(1)
INITIALIZED = (
    b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"serverInfo":{"name":"x","version":"1"}}}\n'
)


class DefectError(Exception):
    """Nobody expects it."""


class FragileLink:
    """A link whose every method fails once it is told to."""

    def __init__(
        self, transport: Fragile, report: Callable[[Report], None], at: Generation
    ) -> None:
        self._transport = transport
        self._report = report
        self._generation = at
        asyncio.get_running_loop().call_soon(report, b.Opened(at))

    def send(
        self, frame: bytes, wire_id: WireId | None, options: b.StreamOptions | None = None
    ) -> bool:
        self._transport.check()
        self._transport.begun.set()
        return True

    def listen(self, options: b.StreamOptions) -> None:
        self._transport.check()

    def withdraw(self, wire_id: WireId) -> bool:
        self._transport.check()
        return not self._transport.has_left

    def finish(self, wire_id: WireId) -> None:
        self._transport.check()

    def unsent(self) -> frozenset[WireId]:
        return frozenset()

    def received(self) -> None:
        pass

    def agreed(self) -> None:
        pass

    def unread(self) -> bool:
        self._transport.check()
        return False

    def close(self, farewell: b.StreamOptions | None = None) -> None:
        self._transport.check()
        asyncio.get_running_loop().call_soon(self._report, b.Drained(self._generation))

    def kill(self) -> None: ...


class Fragile:
    """The transport to it, and the listener: all of them fail together."""

    name = "fragile"
    key: Hashable | None = None
    traits = b.Traits()
    authorizer = None

    def __init__(self) -> None:
        self.broken = False
        self.has_left = False
        """The bytes of each request have left: it cannot be withdrawn."""
        self.begun = asyncio.Event()

    def check(self, *_: Any) -> None:
        if self.broken:
            raise DefectError

    def open(
        self,
        generation: Generation,
        limits: Limits,
        report: Callable[[Report], None],
        variant: str | None = None,
    ) -> Link:
        self.check()
        return FragileLink(self, report, generation)

    notified = noticed = asked = dismissed = moved = starting = violated = waiting = store_down = (
        check
    )


async def ready(fragile: Fragile) -> Driver:
    plan = Plan(Identity(name="x", version="1"), opening="initialize")
    driver = Driver("fragile", fragile, Policy(), plan, fragile)
    opening = asyncio.ensure_future(driver.open())
    await fragile.begun.wait()
    driver.report(b.Delivered(GENERATION, INITIALIZED))
    await opening
    return driver


def effects(ticket: Ticket) -> Iterator[Effect]:
    """One effect of every kind, each of which meets something that fails."""
    options = b.StreamOptions({})
    yield b.Open(Generation(9))
    yield b.Send(b"{}\n", WireId(99), None, ticket)
    yield b.Send(b"{}\n")
    yield b.OpenStream(options)
    yield b.Retract(WireId(99), b"{}\n")
    yield b.Finish(WireId(99))
    yield b.CheckRead()
    yield b.Close(GENERATION)
    yield b.Completed(Ticket(99), None)  # type: ignore[arg-type]
    yield b.Failed(Ticket(99), TransportError("gone"))
    yield b.Related(ticket, "x", Raw(b"{}"))
    yield b.Progressed(ticket, [Progress(progress_token=1, progress=1)])
    yield b.Noticed("x", None)
    yield b.Asked(GENERATION, 1, "x", None)
    yield b.Dismissed(GENERATION, 1)
    yield b.Moved("ready", "backoff")
    yield b.Starting(GENERATION, 1.0, 1.0)
    yield b.Violated("x", "y", 1)
    yield b.Throttled(0.0)
    yield b.Unhandled(DefectError())


KINDS = [*effects(Ticket(1))]


def test_every_kind_of_effect_is_tried() -> None:
    assert {type(effect) for effect in KINDS} == set(_EFFECTS)


@pytest.mark.req("R2", "R12")
@rows("kind", range(len(KINDS)), ids=lambda kind: type(KINDS[kind]).__name__)
async def test_an_effect_that_fails_costs_no_other_call_its_outcome(kind: int) -> None:
    fragile = Fragile()
    driver = await ready(fragile)
    call = Call("tools/call", {}, progress=True)
    theirs = asyncio.ensure_future(
        driver.request(call, on_progress=fragile.check, on_related=fragile.check)
    )
    mine = asyncio.ensure_future(driver.request(call))
    await asyncio.sleep(0)
    fragile.broken = True
    effect = [*effects(Ticket(1))][kind]
    driver._apply([effect, b.Completed(Ticket(2), Raw(b'{"n":1}'))])
    assert bytes(await mine) == b'{"n":1}'
    fragile.broken = False
    driver._apply([b.Completed(Ticket(1), Raw(b"{}"))])
    assert bytes(await theirs) == b"{}"
    await driver.close()
    assert driver.engine.state is State.CLOSED


@pytest.mark.req("R2")
async def test_a_request_that_cannot_be_handed_over_fails_at_once() -> None:
    fragile = Fragile()
    driver = await ready(fragile)
    fragile.broken = True
    with pytest.raises(HoldfastError, match="could not be handed to the transport"):
        await driver.request(Call("tools/call", {}))
    fragile.broken = False
    await driver.close()


@pytest.mark.req("L5")
async def test_a_transport_that_fails_to_open_in_an_unknown_way_counts_as_lost() -> None:
    fragile = Fragile()
    fragile.broken = True
    plan = Plan(Identity(name="x", version="1"))
    driver = Driver("fragile", fragile, Policy(), plan, fragile)
    with pytest.raises(TransportError, match="could not be opened"):
        await driver.open()
    fragile.broken = False
    await driver.close()


@pytest.mark.req("R2", "R10")
async def test_a_handler_that_fails_on_an_acknowledgement_costs_no_answer_beside_it() -> None:
    fragile = Fragile()
    driver = await ready(fragile)
    asking = asyncio.ensure_future(
        driver.request(Call("tools/call", {}, progress=True), on_progress=fragile.check)
    )
    await asyncio.sleep(0)
    fragile.broken = True
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress",'
        b'"params":{"progressToken":2,"progress":1}}\n'
    )
    answer = b'{"jsonrpc":"2.0","id":2,"result":{"n":1}}\n'
    driver.report(b.Delivered(GENERATION, progress + answer))
    assert bytes(await asking) == b'{"n":1}'
    fragile.broken = False
    await driver.close()


@pytest.mark.req("R4", "R7")
async def test_a_call_cancelled_before_it_left_did_not_run() -> None:
    fragile = Fragile()
    driver = await ready(fragile)
    asking = asyncio.ensure_future(driver.request(Call("tools/call", {}, idle=0.001)))
    with pytest.raises(HoldfastError) as failure:
        await asking
    assert not failure.value.outcome_unknown
    await driver.close()


@pytest.mark.req("R4", "R7", "R11")
@pytest.mark.parametrize("ending", ["timeout", "cancelled"])
async def test_what_was_withdrawn_says_nothing_of_another_call_that_had_left(ending: str) -> None:
    fragile = Fragile()
    driver = await ready(fragile)

    async def failure_of(idle: float) -> HoldfastError:
        request = asyncio.ensure_future(driver.request(Call("tools/call", {}, idle=idle)))
        if ending == "cancelled":
            await asyncio.sleep(0)
            request.cancel()
        await asyncio.wait([request])
        try:
            await request
        except (HoldfastError, asyncio.CancelledError) as error:
            failure = error if isinstance(error, HoldfastError) else error.__cause__
            assert isinstance(failure, HoldfastError)
            return failure
        raise AssertionError

    idle = 0.001 if ending == "timeout" else 60.0
    assert not (await failure_of(idle)).outcome_unknown
    fragile.has_left = True
    assert (await failure_of(idle)).outcome_unknown
    fragile.has_left = False
    assert not (await failure_of(idle)).outcome_unknown
    await driver.close()


@pytest.mark.req("L7")
async def test_a_cancelled_close_leaves_no_task_behind() -> None:
    fragile = Fragile()
    driver = await ready(fragile)
    closing = asyncio.ensure_future(driver.close())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing])
    for _ in range(10):
        await asyncio.sleep(0)
    assert [task for task in asyncio.all_tasks() if "holdfast" in task.get_name()] == []
