"""Everything that a server offers, with None for what it does not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from holdfast import Client

T = TypeVar("T")


@dataclass(frozen=True)
class Offer:
    """A server in short."""

    name: str
    server: str | None
    protocol: str | None
    instructions: str | None
    tools: list[dict[str, Any]] | None
    resources: list[dict[str, Any]] | None
    templates: list[dict[str, Any]] | None
    prompts: list[dict[str, Any]] | None


async def offered(client: Client) -> Offer:
    """Ask an open client for everything."""
    info = client.server_info
    return Offer(
        name=client.name,
        server=None if info is None else f"{info.name} {info.version}",
        protocol=client.protocol_version,
        instructions=client.instructions,
        tools=await raw(client.list_tools()),
        resources=await raw(client.list_resources()),
        templates=await raw(client.list_resource_templates()),
        prompts=await raw(client.list_prompts()),
    )


async def raw(listing: Awaitable[Sequence[Any]]) -> list[dict[str, Any]] | None:
    """Return a list as the server sent it; None if the server does not know the method."""
    found = await known(listing)
    return None if found is None else [one.raw for one in found]


async def known(listing: Awaitable[Sequence[T]]) -> Sequence[T] | None:
    """Return a list; None if the server does not know the method."""
    try:
        return await listing
    except RpcError as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        return None
