"""The tools of many servers at once, and everything that one server offers."""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from holdfast.cli.exit_codes import Exit, exit_for
from holdfast.cli.output import as_said
from holdfast.cli.progress import status
from holdfast.cli.target import ServerTarget, known
from holdfast.errors import AuthError, HoldfastError, TrustError

if TYPE_CHECKING:
    from holdfast import Client

State = Literal["ready", "offline", "needs login", "not approved", "disabled", "broken"]


@dataclass(frozen=True)
class ServerHealth:
    """One server: whether it could be used, how long that took, and its tools."""

    name: str
    state: State
    ms: float | None = None
    reason: str = ""
    exit: Exit = Exit.OK
    tools: Sequence[dict[str, Any]] | None = None
    """As the server describes them; None if it has none, or cannot be used."""
    server: str | None = None
    protocol: str | None = None

    @property
    def remedy(self) -> str:
        """Return the command that makes it usable, or else why it is not, with its last words."""
        if self.state == "not approved":
            from holdfast.config.trust import approving

            return approving(self.name)
        if self.state == "needs login":
            return f"holdfast login {shlex.quote(self.name)}"
        first, *rest = self.reason.splitlines() or [""]
        # Node's last line is its version.
        errors = (line for line in reversed(rest) if re.search(r"(?i)error\b|fatal|panic", line))
        last = next(errors, rest[-1] if rest else "").strip()
        return f"{first}: {last}" if last else first


async def visit(
    target: ServerTarget,
    names: Sequence[str],
    done: Callable[[ServerHealth], None] | None = None,
) -> list[ServerHealth]:
    """List the tools of every server, a few at a time, and store them; nobody is asked anything.

    Args:
        target: The command line.
        names: The configured servers.
        done: Called with each standing, as they come; None: the status line shows the wait.

    Returns:
        A standing for each name, in the order of the names.
    """
    import asyncio

    if done is None:
        status.begin(f"asking {len(names)} server{'s' * (len(names) != 1)}")
    room = asyncio.Semaphore(max(4, 2 * (os.cpu_count() or 1)))

    async def one(name: str) -> ServerHealth:
        async with room:
            standing = await _visit(target, name)
        if done is not None:
            done(standing)
        return standing

    return list(await asyncio.gather(*map(one, names)))


async def _visit(target: ServerTarget, name: str) -> ServerHealth:
    entry = target.configuration.servers.get(name)
    if entry is not None and entry.disabled:
        return ServerHealth(name, "disabled", reason=f"in {entry.source.file}")
    began = time.perf_counter()
    try:
        async with target.client(name, ask=False) as client:
            await client.open()
            tools = await known(target.list_tools(name, client))
            elapsed = round((time.perf_counter() - began) * 1000, 1)
            facts = (tools, identity(client), client.protocol_version)
        return ServerHealth(name, "ready", elapsed, "", Exit.OK, *facts)
    except HoldfastError as error:
        elapsed = round((time.perf_counter() - began) * 1000, 1)
        broken = entry is not None and bool(entry.errors)
        state = "broken" if broken else _state(error)
        reason = as_said(str(error)).removeprefix(f"{name}: ")
        return ServerHealth(name, state, elapsed, reason, exit=exit_for(error))


def _state(error: HoldfastError) -> State:
    if isinstance(error, TrustError):
        return "not approved"
    return "needs login" if isinstance(error, AuthError) else "offline"


# Of one server


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


def identity(client: Client) -> str | None:
    """Return a server's own name and version, if it says them."""
    info = client.server_info
    return None if info is None else f"{info.name} {info.version}"


async def offered(client: Client) -> Offer:
    """Ask an open client for everything."""
    return Offer(
        name=client.name,
        server=identity(client),
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
