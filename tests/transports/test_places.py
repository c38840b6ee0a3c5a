from __future__ import annotations

import asyncio

import pytest

from holdfast._core.boundary import WireId
from holdfast._core.transports.places import Places


@pytest.mark.req("R7")
async def test_requests_that_wait_are_bounded_in_bytes_and_taken_again_once_there_is_room() -> None:
    told: list[str] = []
    places = Places(1, 100, lambda: told.append("room"))
    first, second, third = WireId(1), WireId(2), WireId(3)
    assert places.admit(first, 1000), "one request may be larger than the bound"
    assert not places.admit(second, 1)
    async with places.one_for(first):
        assert told == ["room"]
        assert places.admit(second, 60)
        assert not places.admit(third, 60)
        waiting = asyncio.create_task(hold(places, second))
        await asyncio.sleep(0)
        assert places.taken
        assert told == ["room"]
    await waiting
    assert told == ["room", "room"]
    assert places.admit(third, 60)


async def hold(places: Places, wire_id: WireId) -> None:
    async with places.one_for(wire_id):
        pass


@pytest.mark.req("R11")
async def test_a_request_is_unsent_until_there_is_a_connection_for_it() -> None:
    places = Places(1, 100, lambda: None)
    wire_id = WireId(1)
    places.admit(wire_id, 10)
    async with places.one_for(wire_id):
        assert places.unsent == {wire_id}
        places.sent(wire_id)
        assert places.unsent == frozenset()
        places.hold(wire_id)
        assert places.end(wire_id)
        assert not places.end(wire_id)
