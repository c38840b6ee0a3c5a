"""The price of what users add: the same calls with it and without, in turns in one process."""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

import holdfast
from benchmarks import server
from benchmarks.bench import (
    HELLO,
    Bench,
    Found,
    Measure,
    MeasureError,
    Row,
    Stopwatch,
    expect,
    in_loop,
)
from benchmarks.http_rows import Endpoint, settle_allocator
from benchmarks.server import Target
from benchmarks.sides import Side
from holdfast.calllog import CallLog
from holdfast.trace.writer import TraceFile

BATCHES, CALLS = 40, 50
Once = Callable[[], Awaitable[Any]]
Pair = Callable[[Target, AsyncExitStack], Awaitable[tuple[Once, Once]]]
"""Opens two clients, and returns what to do without the addition and with it."""


def in_turns(pair: Pair, wire: str) -> Measure:
    async def work(bench: Bench, side: Side) -> Found:
        if wire == "http":
            settle_allocator()
            bench = replace(bench, server=Endpoint((bench.web,), bench.server.about))
        async with AsyncExitStack() as stack:
            plain, added = await pair(bench.target(side), stack)
            await batch(plain), await batch(added)
            gc.collect()
            pairs = []
            for number in range(BATCHES):
                if number % 2:  # the first of two is not always the same
                    later = await batch(added)
                    pairs.append((await batch(plain), later))
                else:
                    pairs.append((await batch(plain), await batch(added)))
        middle = statistics.median(one for one, _ in pairs)
        ratio = statistics.median(with_it / without for without, with_it in pairs)
        return {"plain": middle, "holdfast": middle * ratio}

    return in_loop(work)


async def batch(once: Once) -> float:
    clock = Stopwatch.default
    started = clock()
    for _ in range(CALLS):
        await once()
    return (clock() - started) / CALLS


async def opened(target: Target, stack: AsyncExitStack, **options: Any) -> holdfast.Client:
    client = await stack.enter_async_context(holdfast.connect(target, **options))
    await client.call_tool("echo", HELLO)
    return client


def echo(client: holdfast.Client) -> Once:
    return lambda: client.call_tool("echo", HELLO)


def option(**options: Any) -> Pair:
    """An option of ``connect``, against a client without it."""

    async def pair(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
        plain = await opened(target, stack)
        return echo(plain), echo(await opened(target, stack, **options))

    return pair


def at_once(width: int, **options: Any) -> Pair:
    """The same for as many calls at once."""

    async def pair(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
        plain, added = await option(**options)(target, stack)
        return crowd(plain, width), crowd(added, width)

    return pair


def crowd(once: Once, width: int) -> Once:
    return lambda: asyncio.gather(*(once() for _ in range(width)))


# -- one by one ----------------------------------------------------------------------------------


async def validation(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    """Arguments are checked by default: the plain call is the one with the check off."""
    off = holdfast.ToolPolicy(validate="off", results="off")
    plain, checked = await opened(target, stack, tools=off), await opened(target, stack)
    try:
        await checked.call_tool("echo", {"text": 5})
    except holdfast.ValidationError:
        return echo(plain), echo(checked)
    raise MeasureError("the arguments are not checked")


async def output(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    """A structured result, checked by default, against the same result unchecked."""
    off = holdfast.ToolPolicy(results="off")
    plain, checked = await opened(target, stack, tools=off), await opened(target, stack)
    return lambda: plain.call_tool("place", HELLO), lambda: checked.call_tool("place", HELLO)


async def cache_hit(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    """A list from the cache, against a call; this stateless server forbids to keep it."""
    plain = await opened(target, stack)
    caching = await opened(target, stack, cache=holdfast.Cache(tools=600))
    before = await served(caching)
    for _ in range(3):
        await caching.list_tools()
    expect("lists that reached the server", await served(caching) - before, 0)
    return echo(plain), caching.list_tools


async def served(client: holdfast.Client) -> int:
    return int((await client.call_tool("served", {})).text)


async def call_log(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "calls.jsonl"
    log = CallLog(path)
    plain, logged = await option(log=log)(target, stack)
    log.flush()
    expect("lines of one call", len(path.read_text().splitlines()), 2)
    return plain, flushed(logged, log.flush)


async def trace(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    """Every message in a file; the writing counts as that of the call log does."""
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run.jsonl"
    file = TraceFile(path)
    plain, traced = await option(trace=file)(target, stack)
    file.flush()
    calls = path.read_text().count('"method":"tools/call","id"')
    expect("calls in the trace", calls, 1)
    return plain, flushed(traced, file.flush)


def flushed(once: Once, flush: Callable[[], None]) -> Once:
    """The work, and what a thread does for it later: one call of a batch waits until all of it is
    written, so that its time counts."""
    calls = 0

    def work() -> Awaitable[Any]:
        nonlocal calls
        calls += 1
        if calls % CALLS == 0:
            flush()
        return once()

    return work


async def audit(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    records: list[Any] = []
    observability = holdfast.Observability(audit=records.append)
    pair = await option(observability=observability)(target, stack)
    expect("records of one call", len(records), 1)
    return pair


async def events(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    plain, heard = await opened(target, stack), await opened(target, stack)
    seen: list[Any] = []
    heard.events.subscribe(seen.append)
    await heard.call_tool("echo", HELLO)
    expect("events of one call", len(seen), 2)
    return echo(plain), echo(heard)


async def opentelemetry(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    """Spans and metrics made by the SDK, exported to nowhere."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    observability = holdfast.Observability(
        opentelemetry=True, tracer_provider=TracerProvider(), meter_provider=MeterProvider()
    )
    return await option(observability=observability)(target, stack)


async def lock(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    from holdfast.lock import guard

    plain = await opened(target, stack)
    path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "holdfast.lock"
    seen = guard.LockedServer.of(await plain.list_tools(), plain.instructions)
    guard.write(path, guard.LockFile({plain.name: seen}))
    return echo(plain), echo(await opened(target, stack, lock=path))


def stored(*, dpop: bool) -> Pair:
    """A login that is in the store already, against no authorization at all."""

    async def pair(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
        store = holdfast.stores.MemoryStore()
        await keep_login(store, str(target), dpop)
        plain = await opened(target, stack)
        authorized = await opened(target, stack, auth=holdfast.OAuth(store=store))
        return echo(plain), echo(authorized)

    return pair


async def keep_login(store: holdfast.stores.MemoryStore, url: str, dpop: bool) -> None:
    from holdfast._core.auth import credentials, jws, urls

    auth_server = credentials.AuthServer(
        issuer="https://as.example", token_endpoint="https://as.example/t"
    )
    login = credentials.Login(
        server=urls.canonical(url),
        account="default",
        auth_server=auth_server,
        resource=url,
        client=credentials.Registration(client_id="bench"),
        access_token="t" * 800,
        token_type="DPoP" if dpop else "Bearer",
        dpop_key=jws.new_key() if dpop else None,
    )
    pointer = credentials.Pointer(issuer=auth_server.issuer, resource=url)
    entries = {login.key: login, credentials.entry_key("server", login.server, "default"): pointer}
    for key, entry in entries.items():
        await store.put(key, msgspec.json.encode(entry))


def row(key: str, title: str, pair: Pair, wire: str = "stdio", era: str = "stateless") -> Row:
    return Row(
        key,
        title,
        "µs",
        in_turns(pair, wire),
        wire=wire,
        only=(f"holdfast-{era}",),
        group="users",
    )


async def shared(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
    """The same server through the daemon: one more process, and a socket."""
    from holdfast.daemon import life

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))
    places = {"XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
    stack.enter_context(patch.dict(os.environ, places))
    await asyncio.to_thread(life.start)
    stack.push_async_callback(asyncio.to_thread, life.stop)
    plain, through = await opened(target, stack), await opened(target, stack, shared=True)
    if through.transport.daemon is None:
        raise MeasureError("the daemon is not used")
    return echo(plain), echo(through)


def to_python(pair: Pair) -> Pair:
    """The same with the server in Python, which takes three times as long for a call."""

    async def measured(target: Target, stack: AsyncExitStack) -> tuple[Once, Once]:
        return await pair(server.find(compiled=False).listing(8), stack)

    return measured


ROWS = (
    row("shared", "through the daemon", shared),
    row("validation", "arguments validated", validation),
    row("output", "result validated", output),
    row("cache-hit", "list of 8 tools, cached", cache_hit, era="handshake"),
    row("call-log", "call log in a file", call_log),
    row("call-log-python", "call log, server in Python", to_python(call_log)),
    row("trace", "a trace in a file", trace),
    row("trace-python", "a trace, server in Python", to_python(trace)),
    row("audit", "audit records", audit),
    row("events", "a subscriber to events", events),
    row("opentelemetry", "OpenTelemetry", opentelemetry),
    row("lock", "lock file", lock),
    row("threads", "pipes served by threads", option(threads=True)),
    row("threads-c64", "64 calls at once, by threads", at_once(64, threads=True)),
    row("bearer", "bearer token, HTTP", option(auth=holdfast.Bearer("t" * 800)), "http"),
    row("stored-login", "stored login, HTTP", stored(dpop=False), "http"),
    row("dpop", "DPoP, HTTP", stored(dpop=True), "http"),
)
