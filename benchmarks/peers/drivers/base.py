"""What every Python driver does: take orders line by line, do the work, answer line by line.

A driver runs in its client's own environment, so this file needs nothing but Python. An order is a
line of JSON, ``{"id": 1, "do": "call", …}``; its answer carries the same id and either ``ok`` or
``error``. The order ``measure`` is timed in here, where no pipe to the harness can slow it down.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

HELLO = {"text": "hello, world"}
WARM = 0.15
"""Seconds of the same work before the clock starts."""

Order = dict[str, Any]


class Session(Protocol):
    """What is asked of a client: the verbs that all of them have."""

    async def open(self, target: Any) -> Any: ...
    async def close(self) -> Any: ...
    async def tools(self) -> int: ...
    async def call(self, name: str, arguments: dict[str, Any], timeout: float | None) -> str: ...
    def revision(self) -> str: ...


Make = Callable[[], Session]


class WrongAnswerError(Exception):
    """The work was not done, so its time would mean nothing."""


# -- the work that is timed ----------------------------------------------------------------------


async def repeated(once: Callable[[], Awaitable[None]], seconds: float, least: int = 3) -> float:
    """Seconds that one of them takes, over about ``seconds`` of them, after a warm-up."""
    ends = time.perf_counter() + min(WARM, seconds)
    await once()
    while time.perf_counter() < ends:
        await once()
    gc.collect()
    done, started = 0, time.perf_counter()
    while True:
        await once()
        done += 1
        spent = time.perf_counter() - started
        if spent >= seconds and done >= least:
            return spent / done


async def calls(make: Make, order: Order) -> float:
    """Calls one after the other (in tens, to look at the clock less often), or many at once."""
    width = int(order["width"])
    session = make()
    await session.open(order["target"])

    async def one_by_one() -> None:
        for _ in range(10):
            if await session.call("echo", HELLO, None) != HELLO["text"]:
                raise WrongAnswerError("not what was sent")

    async def at_once() -> None:
        every = [session.call("echo", HELLO, None) for _ in range(width)]
        if set(await asyncio.gather(*every)) != {HELLO["text"]}:
            raise WrongAnswerError("not what was sent")

    took = await repeated(one_by_one if width == 1 else at_once, order["seconds"])
    await session.close()
    return took / (10 if width == 1 else width)


async def blob(make: Make, order: Order) -> float:
    size = int(order["size"])
    session = make()
    await session.open(order["target"])

    async def once() -> None:
        if len(await session.call("blob", {"size": size}, None)) != size:
            raise WrongAnswerError("not the size that was asked for")

    took = await repeated(once, order["seconds"])
    await session.close()
    return took


async def connect(make: Make, order: Order) -> float:
    async def once() -> None:
        session = make()
        await session.open(order["target"])
        if await session.tools() != order["tools"]:
            raise WrongAnswerError("not all tools were listed")
        await session.close()

    return await repeated(once, order["seconds"])


async def memory(make: Make, order: Order) -> float:
    """Bytes that each further connection adds to this process; each has made a call.

    The first ones pay for what is shared. None is closed: the process ends after this.
    """

    async def opened() -> Session:
        session = make()
        await session.open(order["target"])
        await session.call("echo", HELLO, None)
        return session

    kept = [await opened() for _ in range(order["first"])]
    gc.collect()
    before = resident()
    kept += [await opened() for _ in range(order["connections"])]
    gc.collect()
    return max(resident() - before, 0) / float(len(kept) - order["first"])


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


WORKS: dict[str, Callable[[Make, Order], Awaitable[float]]] = {
    "calls": calls,
    "blob": blob,
    "connect": connect,
    "memory": memory,
}


# -- one session, kept by one task ---------------------------------------------------------------


class Owner:
    """Opens a session, calls and closes it, all in one task: as ``async with`` does in a program.

    Only a close that is said to happen ``elsewhere`` happens in the task of the order itself.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.work: asyncio.Queue[tuple[asyncio.Future[Any], Callable[[], Awaitable[Any]]]] = (
            asyncio.Queue()
        )
        self.task = asyncio.create_task(self.run())

    async def run(self) -> None:
        while True:
            try:
                done, step = await self.work.get()
            except asyncio.CancelledError:  # a client's scope may go on cancelling
                continue
            try:
                result = await step()
            except BaseException as error:
                settle(done, None, error)
            else:
                settle(done, result, None)

    async def give_up(self) -> None:
        """End what is under way, as a caller does that has waited long enough."""
        self.task.cancel()
        await self.do(nothing)
        self.task.uncancel()

    async def do(self, step: Callable[[], Awaitable[Any]]) -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.work.put_nowait((done, step))
        return await done


async def nothing() -> None:
    """A step that only shows that all steps before it have ended."""


class TaskCancelledError(Exception):
    """The client cancelled the task that called it."""


def settle(done: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    elif isinstance(error, asyncio.CancelledError):
        done.set_exception(TaskCancelledError("the calling task was cancelled"))
    elif isinstance(error, Exception):
        done.set_exception(error)
    else:
        done.set_exception(TaskCancelledError(type(error).__name__))


class Driver:
    """Takes the orders; each runs in a task of its own."""

    def __init__(self, make: Make) -> None:
        self.make = make
        self.owner: Owner | None = None

    async def do(self, order: Order) -> Any:
        match order["do"]:
            case "measure":
                return await WORKS[order["work"]](self.make, order)
            case "open":
                self.owner = Owner(self.make())
                await self.owned.do(lambda: self.owned.session.open(order["target"]))
                return self.owned.session.revision()
            case "call":
                return await self.owned.do(lambda: self.call(order))
            case "give up":
                await self.owned.give_up()
            case "close" if order.get("elsewhere"):
                await self.owned.session.close()
            case "close":
                await self.owned.do(self.owned.session.close)
        return None

    @property
    def owned(self) -> Owner:
        assert self.owner is not None, "open comes first"
        return self.owner

    async def call(self, order: Order) -> int:
        """How long the text is that came back."""
        arguments = {"text": "x" * int(order.get("size", 5))}
        text = await self.owned.session.call(order["tool"], arguments, order.get("timeout"))
        return len(text)


async def answer(driver: Driver, order: Order) -> None:
    started = time.perf_counter()
    try:
        said: dict[str, Any] = {"ok": await driver.do(order)}
    except BaseException as error:  # whatever it is, the harness is told
        said = {"error": {"type": name_of(error), "message": str(error)[:300]}}
    seconds = round(time.perf_counter() - started, 6)
    print(json.dumps({"id": order["id"], "seconds": seconds, **said}), flush=True)


def name_of(error: BaseException) -> str:
    """The class; of a group also what is in it, since that is what one has to look for."""
    if isinstance(error, BaseExceptionGroup):
        inside = ", ".join(sorted({name_of(one) for one in error.exceptions}))
        return f"{type(error).__name__}({inside})"
    return type(error).__name__


async def serve(make: Make) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    driver, running = Driver(make), set()
    while line := await reader.readline():
        task = asyncio.create_task(answer(driver, json.loads(line)))
        running.add(task)
        task.add_done_callback(running.discard)
    os._exit(0)  # a client that hangs must not keep its driver


async def one_answer(make: Make, target: Any) -> None:
    session = make()
    await session.open(target)
    if await session.call("echo", HELLO, None) != HELLO["text"]:
        raise WrongAnswerError("not what was sent")
    await session.close()


def main(load: Callable[[], Make]) -> None:
    """``serve`` orders, time an ``import``, or be a whole short program (``cold TARGET``)."""
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(serve(load()))
        case ["cold", target]:
            asyncio.run(one_answer(load(), json.loads(target)))
        case other:
            raise SystemExit(f"what is {other}?")
