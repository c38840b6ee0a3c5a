"""Rows to outcomes: so many calls at once, in bounded memory."""

# So many workers take rows from one iterator, each the next one when it is done with its last. So
# the rows are read as they are needed, and at most ``concurrency`` of them are under way.
#
# Outcomes go through a queue that holds twice as many; a consumer that is slow (a disk, a pipe)
# makes the workers wait, and with them the reading. In order of the rows, an outcome waits for
# those before it; a worker may be at most `AHEAD` × ``concurrency`` rows ahead of the slowest, so
# that one call of an hour does not collect a million outcomes behind it.
#
# What ends it. The rows are at their end; or reading them fails: then what is under way is finished
# and given out before that error is raised; or the consumer leaves (``break``, a cancellation,
# Ctrl-C): then the calls under way are cancelled, and their rows have no outcome. An error of a
# call is an outcome and ends nothing. An error that is none of ours (a bug, a full disk in a
# handler) is an outcome as well: one row of a million must not lose the others.
#
# Trying again is for calls of which nothing has run, after errors that the caller named. The pause
# is what the error says, else it doubles.

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
)
from contextlib import aclosing
from typing import Any, Final, TypeAlias

from holdfast._core.bulk.outcomes import (
    RETRYABLE,
    RowOutcome,
    of_error,
    of_result,
    retry_class,
)
from holdfast._core.calls.options import require_type
from holdfast._core.jitter import JITTER
from holdfast._core.limits.queue import calling_as
from holdfast.errors import ValidationError
from holdfast.policies import Backoff
from holdfast.types.tools import ToolResult

AHEAD: Final = 8
ATTEMPTS: Final = 5
MOST: Final = 10_000
BACKOFF: Final = Backoff(first=0.2, max=30.0, jitter=0.5)

Rows: TypeAlias = Iterable[Mapping[str, Any]] | AsyncIterable[Mapping[str, Any]]
"""The arguments of many calls."""
Outcomes: TypeAlias = AsyncGenerator[RowOutcome]
"""How they ended, as they end."""
Row: TypeAlias = Mapping[str, Any] | BaseException
"""The arguments of a call, or the reason why there are none."""
CallRow = Callable[[int, Mapping[str, Any]], Awaitable[ToolResult]]
"""Makes the call of a row, by its number and arguments."""


class Bulk:
    """The calls of many rows; iterate over it for their outcomes, once.

    Args:
        call: Makes the call of a row.
        rows: The arguments of each call, or an exception instead of a row that cannot be called;
            or pairs of a number and one of these, if ``numbered``.
        concurrency: Calls under way at once.
        ordered: Give the outcomes in the order of the rows.
        retry: What to try again after: ``"transport"``, ``"busy"``, ``"timeout"``.
        numbered: The rows have numbers of their own.
    """

    def __init__(
        self,
        call: CallRow,
        rows: Iterable[Any] | AsyncIterable[Any],
        *,
        concurrency: int = 32,
        ordered: bool = False,
        retry: Collection[str] = (),
        numbered: bool = False,
    ) -> None:
        require_type("concurrency", concurrency, int, "a whole number")
        if not 1 <= concurrency <= MOST:
            raise ValidationError(f"concurrency={concurrency!r}: must be from 1 to {MOST:,}")
        check_retry(retry)
        self._call, self._retry = call, frozenset(retry)
        self._rows = RowReader(rows, numbered=numbered)
        self._concurrency = concurrency
        self._ordered = ordered
        self._queue: asyncio.Queue[RowOutcome | None]
        self._order: deque[int] = deque()
        """The numbers of rows that were read and not given out, if they are ordered."""
        self._early: dict[int, RowOutcome] = {}
        """Outcomes that wait for those of rows before them."""
        self._held: deque[asyncio.Future[None]] = deque()
        """Those of the last of these rows whose workers wait until the slowest has moved on."""
        self._unqueued: list[RowOutcome] = []
        """Outcomes whose workers were interrupted while the queue was full."""

    async def outcomes(self) -> AsyncGenerator[RowOutcome]:
        """Make the calls; yield how each ends."""
        async with aclosing(self.batches()) as batches:
            async for batch in batches:
                for outcome in batch:
                    yield outcome

    async def batches(self) -> AsyncGenerator[list[RowOutcome]]:
        """Make the calls; yield the outcomes that are there, as soon as there are any."""
        self._queue = asyncio.Queue(self._concurrency * 2)
        with calling_as(id(self)):
            workers = [asyncio.create_task(self._work()) for _ in range(self._concurrency)]
        ending = asyncio.create_task(self._end(workers))
        try:
            is_last = False
            while not is_last:
                batch, is_last = self._drain([await self._queue.get()])
                if self._ordered:
                    batch = self._in_order(batch)
                if batch:
                    yield batch
            await ending
        finally:
            for task in (*workers, ending):
                task.cancel()
            await asyncio.wait((*workers, ending))

    def remaining(self) -> list[RowOutcome]:
        """Return the outcomes that an interrupted iteration did not get to: their calls have ended.

        Who leaves them out calls these rows again.
        """
        batch = self._drain([])[0] + self._unqueued
        return self._in_order(batch) if self._ordered else batch

    def _drain(self, items: list[RowOutcome | None]) -> tuple[list[RowOutcome], bool]:
        """Return all outcomes that are there, and whether they are the last."""
        while not self._queue.empty():
            items.append(self._queue.get_nowait())
        outcomes = [item for item in items if item is not None]
        return outcomes, len(outcomes) < len(items)

    def _in_order(self, batch: list[RowOutcome]) -> list[RowOutcome]:
        """Return the outcomes whose turn it is; keep the others."""
        self._early.update((outcome.row, outcome) for outcome in batch)
        ready = []
        while self._order and self._order[0] in self._early:
            ready.append(self._early.pop(self._order.popleft()))
        while self._held and len(self._order) - len(self._held) < AHEAD * self._concurrency:
            turn = self._held.popleft()
            if not turn.done():
                turn.set_result(None)
        return ready

    async def _end(self, workers: list[asyncio.Task[None]]) -> None:
        """Tell the consumer when all workers are done; raise why one is not."""
        await asyncio.wait(workers)
        await self._queue.put(None)
        for task in workers:
            await task

    async def _work(self) -> None:
        rows, queue = self._rows, self._queue
        while (numbered := await rows.read() if rows.is_async else rows.read_now()) is not None:
            number, row = numbered
            if self._ordered:
                await self._keep_near(number)
            outcome = await self._outcome(number, row)
            if queue.full():
                await self._put(outcome)
            else:
                queue.put_nowait(outcome)  # a tenth of a row cheaper

    async def _put(self, outcome: RowOutcome) -> None:
        try:
            await self._queue.put(outcome)
        except asyncio.CancelledError:
            self._unqueued.append(outcome)
            raise

    async def _keep_near(self, number: int) -> None:
        """Wait until a row is not too far ahead of the slowest."""
        self._order.append(number)
        if len(self._order) > AHEAD * self._concurrency:
            turn = asyncio.get_running_loop().create_future()
            self._held.append(turn)
            await turn

    async def _outcome(self, number: int, row: Row) -> RowOutcome:
        if isinstance(row, BaseException):
            return of_error(number, row, 0, 0.0)
        begun, attempts = time.perf_counter(), 0
        while True:
            attempts += 1
            try:
                result = await self._call(number, row)
                return of_result(number, result, attempts, _since(begun))
            except Exception as error:
                if attempts == ATTEMPTS or retry_class(error) not in self._retry:
                    return of_error(number, error, attempts, _since(begun))
                pause = getattr(error, "retry_in", None)
            await asyncio.sleep(BACKOFF.delay(attempts, JITTER) if pause is None else pause)


def bulk_of(
    call_tool: Callable[..., Awaitable[ToolResult]],
    tool: str,
    rows: Iterable[Any] | AsyncIterable[Any],
    options: Mapping[str, Any],
    *,
    concurrency: int,
    ordered: bool,
    retry: Collection[str],
) -> Bulk:
    """Return the calls of one tool, made by ``call_tool``."""
    require_type("tool", tool)
    if options.get("once") is not None:
        text = "one key is one call, and each row is another; give them to call_tool"
        raise ValidationError(f"once={options['once']!r}: {text}")

    def call(number: int, arguments: Mapping[str, Any]) -> Awaitable[ToolResult]:
        return call_tool(tool, arguments, **options)

    return Bulk(call, rows, concurrency=concurrency, ordered=ordered, retry=retry)


def _since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)


def check_retry(retry: object) -> None:
    """Refuse a word that is no reason to try again."""
    words = retry if isinstance(retry, Collection) and not isinstance(retry, str) else (None,)
    if any(word not in RETRYABLE for word in words):
        expected = ", ".join(repr(choice) for choice in RETRYABLE)
        raise ValidationError(f"retry={retry!r}: must be a collection of {expected}")


class RowReader:
    """Reads rows one at a time, whoever asks, and numbers them.

    An async iterator cannot be asked twice at once.
    """

    def __init__(self, rows: Iterable[Any] | AsyncIterable[Any], *, numbered: bool) -> None:
        self._iterator: Any
        self.is_async: bool = isinstance(rows, AsyncIterable)
        """`read` has to be awaited; else `read_now` does it."""
        if isinstance(rows, AsyncIterable):
            self._iterator = aiter(rows)
        elif hasattr(rows, "__iter__") and not isinstance(rows, str | bytes | Mapping):
            self._iterator = iter(rows)
        else:
            raise ValidationError(f"rows={type(rows).__name__}: must be an iterable of mappings")
        self._lock = asyncio.Lock()
        self._numbered = numbered
        self._count = 0
        self._done = False

    def read_now(self) -> tuple[int, Row] | None:
        """Return the next row with its number; None at the end, or once reading has failed."""
        if self._done:
            return None
        self._done = True
        try:
            row = next(self._iterator)
        except StopIteration:
            return None
        self._done = False
        return self._number(row)

    async def read(self) -> tuple[int, Row] | None:
        """Do the same with rows that have to be waited for."""
        async with self._lock:
            if self._done:
                return None
            self._done = True
            try:
                row = await anext(self._iterator)
            except StopAsyncIteration:
                return None
            self._done = False
            return self._number(row)

    def _number(self, row: Any) -> tuple[int, Row]:
        number, row = row if self._numbered else (self._count, row)
        self._count += 1
        if type(row) is not dict and not isinstance(row, _ROW):
            row = ValidationError(f"row {number}: must be an object, not {type(row).__name__}")
        return number, row


_ROW: Final = (Mapping, BaseException)
