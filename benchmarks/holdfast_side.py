"""Holdfast as the benchmark drives it: through its public names alone, with its defaults.

No version is pinned: against a server of the handshake era the client finds that out itself.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

import holdfast


def client(command: list[str]) -> holdfast.Client:
    return holdfast.connect(command)


class Place(Struct):
    name: str
    latitude: float
    tags: list[str]


async def place(server: holdfast.Client) -> Place:
    """A structured result, read as a type."""
    return (await server.call_tool("place", {"text": "hello, world"})).as_type(Place)


def check_era(server: holdfast.Client, legacy: bool) -> None:
    """That the row shows what its name says."""
    expected = "2025-11-25" if legacy else "2026-07-28"
    found = str(server.protocol_version)
    if found != expected:
        raise RuntimeError(f"agreed on {found}, but the row is about {expected}")


def cold(command: list[str]) -> None:
    """A whole short program: connect, one call, close."""

    async def main() -> None:
        async with holdfast.connect(command) as server:
            result = await server.call_tool("echo", {"text": "hello"})
            assert result.text == "hello"

    asyncio.run(main())
