"""One tool over many rows: the engine and ``client.map``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import holdfast
from holdfast import Limits, Servers, ValidationError, sync
from holdfast._core.bulk.engine import AHEAD, Bulk
from holdfast._core.bulk.outcomes import RowOutcome
from holdfast.errors import BackpressureError, StateError, TransportError
from holdfast.testing import Peer
from tests.rows import rows


@pytest.fixture
def peer() -> Peer:
    peer = Peer()

    @peer.tool()
    def double(number: int) -> int:
        if number == 13:
            raise ValueError("unlucky")
        return number * 2

    @peer.tool()
    def shape(value: int) -> dict[str, int]:
        return {"value": value}

    return peer


async def collected(outcomes: AsyncIterator[RowOutcome]) -> list[RowOutcome]:
    return [outcome async for outcome in outcomes]


def bulk(call: Any, rows: Any, **options: Any) -> AsyncIterator[RowOutcome]:
    return Bulk(call, rows, **options).outcomes()


@pytest.mark.req("S4")
async def test_each_row_has_one_outcome(peer: Peer) -> None:
    rows = ({"number": number} for number in range(100))
    async with holdfast.connect(peer) as client:
        outcomes = await collected(client.map("double", rows, concurrency=8))
    assert sorted(outcome.row for outcome in outcomes) == list(range(100))
    by_row = {outcome.row: outcome for outcome in outcomes}
    assert (by_row[4].outcome, by_row[4].result, by_row[4].attempts) == ("ok", 8, 1)
    assert by_row[13].outcome == "error"
    assert isinstance(by_row[13].error, dict)
    assert by_row[13].error["kind"] == "tool"
    assert "unlucky" in by_row[13].error["message"]


@pytest.mark.req("S4")
async def test_a_structured_result_is_the_result(peer: Peer) -> None:
    async with holdfast.connect(peer) as client:
        (outcome,) = await collected(client.map("shape", [{"value": 3}]))
    assert outcome.result == {"value": 3}
    assert outcome.ok
    assert outcome.line().startswith(b'{"row":0,"outcome":"ok","result":{"value":3},"attempts":1,')


@pytest.mark.req("S4")
async def test_rows_may_come_from_an_async_iterator(peer: Peer) -> None:
    async def rows() -> AsyncIterator[dict[str, int]]:
        for number in range(20):
            await asyncio.sleep(0)
            yield {"number": number + 20}

    async with holdfast.connect(peer) as client:
        outcomes = await collected(client.map("double", rows(), concurrency=4, ordered=True))
    assert [outcome.result for outcome in outcomes] == [2 * n for n in range(20, 40)]


@pytest.mark.req("S4")
async def test_rows_that_cannot_be_called_are_outcomes(peer: Peer) -> None:
    rows: list[Any] = [{"number": 1}, "text", None, {"number": 2}, {}]
    async with holdfast.connect(peer) as client:
        outcomes = await collected(client.map("double", rows, ordered=True))
    assert [outcome.outcome for outcome in outcomes] == [*("ok", "error", "error", "ok", "error")]
    texts = [outcome.error["message"] for outcome in outcomes if isinstance(outcome.error, dict)]
    assert texts[0] == "row 1: must be an object, not str"
    assert "number" in texts[2]
    assert [outcome.attempts for outcome in outcomes] == [1, 0, 0, 1, 1]


@pytest.mark.req("S4")
async def test_no_more_rows_are_read_than_are_under_way() -> None:
    read, release = 0, asyncio.Event()

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal read
        while True:
            read += 1
            yield {}

    async def call(number: int, row: Any) -> Any:
        await release.wait()
        raise AssertionError

    outcomes = bulk(call, rows(), concurrency=5)
    first = asyncio.ensure_future(anext(outcomes))
    for _ in range(10):
        await asyncio.sleep(0)
    assert read == 5
    first.cancel()
    await asyncio.wait((first,))


@pytest.mark.req("S4")
async def test_a_consumer_that_is_slow_holds_the_reading_back() -> None:
    read = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal read
        for read in range(1, 1001):  # noqa: B007
            yield {}

    async def call(number: int, row: Any) -> Any:
        raise ValidationError("no")

    outcomes = bulk(call, rows(), concurrency=3)
    await anext(outcomes)
    for _ in range(200):
        await asyncio.sleep(0)
    assert read <= 3 * 6
    await outcomes.aclose()  # type: ignore[attr-defined]


@pytest.mark.req("S4")
async def test_one_slow_row_holds_back_few_others_in_order() -> None:
    slow, begun = asyncio.Event(), 0

    async def call(number: int, row: Any) -> Any:
        nonlocal begun
        begun += 1
        if number == 0:
            await slow.wait()
        raise ValidationError("no")

    outcomes = bulk(call, ({} for _ in range(10_000)), concurrency=2, ordered=True)
    first = asyncio.ensure_future(anext(outcomes))
    for _ in range(500):
        await asyncio.sleep(0)
    assert begun <= AHEAD * 2 + 4
    slow.set()
    assert (await first).row == 0
    assert [outcome.row async for outcome in outcomes] == list(range(1, 10_000))


class Numbered(int):
    """A row's number that counts how often it is compared."""

    compared = 0
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        Numbered.compared += 1
        return int.__eq__(self, other)


@pytest.mark.req("S4")
async def test_holding_rows_back_costs_each_row_the_same() -> None:
    """Every row that waited was searched for whenever another ended: seconds at a thousand."""
    slow, jobs, count = asyncio.Event(), 200, 4000

    async def call(number: int, row: Any) -> Any:
        if number < 1:
            await slow.wait()
        for _ in range(int(number) % 7):
            await asyncio.sleep(0)
        raise ValidationError("no")

    rows: Iterator[Any] = ((Numbered(number), {}) for number in range(count))
    Numbered.compared = 0
    outcomes = bulk(call, rows, concurrency=jobs, ordered=True, numbered=True)
    first = asyncio.ensure_future(anext(outcomes))
    for _ in range(500):
        await asyncio.sleep(0)
    slow.set()
    assert int((await first).row) == 0
    assert [int(outcome.row) async for outcome in outcomes] == list(range(1, count))
    assert Numbered.compared <= 10 * count


@pytest.mark.req("S4")
async def test_leaving_early_cancels_the_calls_under_way(peer: Peer) -> None:
    cancelled: list[int] = []

    async def call(number: int, row: Any) -> Any:
        if number == 0:
            raise ValidationError("first")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(number)
            raise

    outcomes = bulk(call, [{}] * 4, concurrency=4)
    async for outcome in outcomes:
        assert outcome.row == 0
        break
    await outcomes.aclose()  # type: ignore[attr-defined]
    assert sorted(cancelled) == [1, 2, 3]


@pytest.mark.req("S4")
@pytest.mark.parametrize("ordered", [False, True])
async def test_calls_that_ended_are_told_after_an_interruption(ordered: bool) -> None:
    """A row without an outcome is called again: those whose calls ended would run twice."""
    ended: list[int] = []

    async def call(number: int, row: Any) -> Any:
        ended.append(number)
        raise ValidationError("no")

    work = Bulk(call, ({} for _ in range(100)), concurrency=3, ordered=ordered)
    batches = work.batches()
    first = await anext(batches)
    for _ in range(200):
        await asyncio.sleep(0)
    await batches.aclose()
    remaining = work.remaining()
    assert len(remaining) > 3 * 2  # more than the queue holds: workers waited to put theirs
    assert sorted(outcome.row for outcome in (*first, *remaining)) == ended


@pytest.mark.req("S4")
async def test_a_failure_of_the_reading_comes_after_the_outcomes(peer: Peer) -> None:
    def rows() -> Iterator[dict[str, int]]:
        yield {"number": 1}
        yield {"number": 2}
        raise OSError("the disk is gone")

    results = []
    async with holdfast.connect(peer) as client:
        with pytest.raises(OSError, match="the disk is gone"):
            async for outcome in client.map("double", rows(), concurrency=2):
                results.append(outcome.result)  # noqa: PERF401
    assert sorted(results) == [2, 4]


class Flaky:
    """Fails a few times."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    async def __call__(self, number: int, row: Any) -> Any:
        if self._errors:
            raise self._errors.pop(0)
        return holdfast.ToolResult(content=[])


BUSY = BackpressureError("later", retry_in=0.0)
DOWN = StateError("down", state="backoff", retry_in=0.0)


@pytest.mark.req("S4")
@rows(
    ("errors", "retry", "ending", "attempts"),
    [
        ([BUSY, BUSY], {"busy"}, "ok", 3),
        ([BUSY], (), "error", 1),
        ([BUSY], {"transport"}, "error", 1),
        ([DOWN, DOWN], {"transport"}, "ok", 3),
        ([DOWN, BUSY], {"transport", "busy"}, "ok", 3),
        ([BUSY] * 9, {"busy"}, "error", 5),
        ([TransportError("lost", outcome_unknown=True)], {"transport"}, "unknown", 1),
        ([StateError("closed", state="closed")], {"transport"}, "error", 1),
        ([TypeError("a bug")], {"transport", "busy", "timeout"}, "error", 1),
    ],
)
async def test_only_what_has_not_run_is_tried_again(
    errors: list[Exception], retry: Any, ending: str, attempts: int
) -> None:
    (outcome,) = await collected(bulk(Flaky(*errors), [{}], retry=retry))
    assert (outcome.outcome, outcome.attempts) == (ending, attempts)


@pytest.mark.req("S4")
async def test_a_lost_call_is_unknown() -> None:
    async def call(number: int, row: Any) -> Any:
        raise TransportError("the link was lost; it may have run", outcome_unknown=True)

    (outcome,) = await collected(bulk(call, [{}]))
    assert outcome.outcome == "unknown"
    assert isinstance(outcome.error, dict)
    assert outcome.error["kind"] == "transport"


@pytest.mark.req("S4")
async def test_secrets_of_a_row_are_in_no_error() -> None:
    peer = Peer()

    @peer.tool()
    def login(password: str) -> str:
        raise ValueError(f"cannot log in with {password}")

    async with holdfast.connect(peer) as client:
        (outcome,) = await collected(client.map("login", [{"password": "s3cr3t-anchor-99"}]))
    assert b"s3cr3t-anchor-99" not in outcome.line()


@pytest.mark.req("S4")
@pytest.mark.parametrize(
    ("rows", "options"),
    [
        ([{}], {"concurrency": 0}),
        ([{}], {"concurrency": 10**6}),
        ([{}], {"concurrency": "8"}),
        ([{}], {"retry": "busy"}),
        ([{}], {"retry": ["never"]}),
        ({"a": 1}, {}),
        ("abc", {}),
        (5, {}),
    ],
)
async def test_a_map_that_cannot_work_is_refused(
    peer: Peer, rows: Any, options: dict[str, Any]
) -> None:
    async with holdfast.connect(peer) as client:
        with pytest.raises(ValidationError):
            await collected(client.map("double", rows, **options))


@pytest.mark.req("S4", "S3")
async def test_a_map_leaves_turns_to_other_calls(peer: Peer) -> None:
    async with holdfast.connect(peer, limits=Limits(concurrent=1)) as client:
        outcomes = client.map("double", ({"number": 1} for _ in range(500)), concurrency=20)
        done = 0
        async for _ in outcomes:
            done += 1
            if done == 1:
                await client.call_tool("double", {"number": 2})
                assert done == 1
    assert done == 500


@pytest.mark.req("S4")
async def test_servers_map_by_the_dotted_name(peer: Peer) -> None:
    async with Servers({"math": peer}) as servers:
        outcomes = await collected(servers.map("math.double", [{"number": 3}]))
    assert [outcome.result for outcome in outcomes] == [6]


@pytest.mark.req("S4")
def test_the_synchronous_face_maps_as_well(peer: Peer) -> None:
    with sync.connect(peer) as client:
        outcomes = client.map("double", ({"number": n} for n in range(300)), concurrency=8)
        rows = sorted(outcome.row for outcome in outcomes)
        assert rows == list(range(300))
        for outcome in client.map("double", ({"number": 1} for _ in range(100_000))):
            assert outcome.ok
            break
        assert client.call_tool("double", {"number": 4}).text == "8"


@pytest.mark.req("S4")
def test_without_await_a_row_is_called_when_it_is_there(peer: Peer) -> None:
    """A row may depend on the outcome of the one before it, and the last on a broken link."""
    ended: list[int] = []
    has_ended = threading.Event()

    def rows() -> Iterator[dict[str, int]]:
        for number in range(5):
            yield {"number": number}
            assert has_ended.wait(60)
            has_ended.clear()
        raise ConnectionError("the database is gone")

    with sync.connect(peer) as client:
        with pytest.raises(ConnectionError, match="the database is gone"):
            for outcome in client.map("double", rows()):
                ended.append(outcome.row)
                has_ended.set()
    assert ended == [0, 1, 2, 3, 4]


@pytest.mark.req("S4")
def test_without_await_a_map_that_is_left_ends_the_reading(peer: Peer) -> None:
    is_closed = threading.Event()

    def rows() -> Iterator[dict[str, int]]:
        try:
            while True:
                yield {"number": 1}
        finally:
            is_closed.set()

    with sync.connect(peer) as client:
        for _ in client.map("double", rows()):
            break
        assert is_closed.wait(60)


@pytest.mark.req("S2", "S4")
@pytest.mark.parametrize(
    "options", [{"once": "order-1"}, {"retry": None}, {"retry": "busy"}, {"retry": ["always"]}]
)
async def test_options_that_cannot_work_for_many_rows(options: Any) -> None:
    async with holdfast.connect(Peer()) as client:
        with pytest.raises(ValidationError, match=f"{next(iter(options))}="):
            client.map("add", [{}], **options)
