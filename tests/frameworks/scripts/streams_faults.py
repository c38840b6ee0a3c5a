"""What goes wrong around streams for a session of ``mcp``; prints what became of it."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession
from mcp.types import ListRootsResult, Root
from pydantic import FileUrl

import holdfast
from holdfast.relay import streams

SERVER = [sys.executable, str(Path(__file__).with_name("odd_answers.py"))]


async def _roots(context: Any) -> Any:
    return ListRootsResult(roots=[Root.model_construct(uri=FileUrl("file:///a"), name="\ud800")])


@asynccontextmanager
async def _session(client: holdfast.Client) -> AsyncIterator[ClientSession]:
    async with (
        streams(client) as (read, write),
        ClientSession(read, write, list_roots_callback=_roots) as session,
    ):
        await session.initialize()
        yield session


async def _told(call: Awaitable[Any]) -> Any:
    try:
        return (await call).content[0].text
    except holdfast.HoldfastError as error:
        return type(error).__name__
    except Exception as error:
        return getattr(getattr(error, "error", error), "data", repr(error))


async def odd_answers(client: holdfast.Client) -> dict[str, Any]:
    async with _session(client) as session:
        kinds = ("digits", "deep", "notice", "asks", "fine")
        return {kind: await _told(session.call_tool(kind, {})) for kind in kinds}


async def odd_arguments(client: holdfast.Client) -> list[Any]:
    async with _session(client) as session:
        values = ("\ud800", "fine")
        return [await _told(session.call_tool("fine", {"value": value})) for value in values]


async def cancelled(client: holdfast.Client) -> list[str]:
    """Cancel all around a session; return what is left open."""
    with anyio.CancelScope() as scope:
        async with _session(client):
            scope.cancel()
            await anyio.sleep_forever()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    return [str(warning.message) for warning in caught]


async def entered_twice(client: holdfast.Client) -> Any:
    transport = streams(client)
    async with transport as (read, write), ClientSession(read, write) as session:
        try:
            async with transport:
                refusal = ""
        except holdfast.StateError as error:
            refusal = str(error)
        await session.initialize()
        return refusal, await _told(session.call_tool("fine", {}))


async def main() -> None:
    reports: dict[str, Any] = {}
    kept = []
    for part in (odd_answers, odd_arguments, cancelled, entered_twice):
        async with holdfast.connect(SERVER, name="odd") as client:
            kept.append(weakref.ref(client))
            reports[part.__name__] = await part(client)
        del client
    gc.collect()
    reports["kept"] = sum(reference() is not None for reference in kept)
    print(json.dumps(reports))


if __name__ == "__main__":
    asyncio.run(main())
