"""``holdfast serve``: servers on stdio or HTTP, for hosts, over connections that are restored."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import re
import secrets
import signal
import sys
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from holdfast._core.serve.loop import fast_loop
from holdfast._pool import raise_first
from holdfast.cli.app import ALLOW, DENY
from holdfast.cli.completers import servers as suggest_servers
from holdfast.cli.output import Exit
from holdfast.cli.target import NO_SERVER, ServerTarget, ServerVerb
from holdfast.errors import HoldfastError, ValidationError
from holdfast.policies import Cache, Observability, Timeouts, ToolPolicy

if TYPE_CHECKING:
    from holdfast import Client
    from holdfast.relay.serving import ServedRelays

TOKEN: Final = "HOLDFAST_SERVE_TOKEN"
"""The variable with the bearer token for anything but loopback."""
LAST_CALLS: Final = 2.0
"""Seconds that calls have left when the host's messages have ended, as long as hosts wait for a
server before they end it: ``printf … | holdfast serve`` is answered, too."""


@click.command(cls=ServerVerb, loop=fast_loop)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=suggest_servers)
@click.option("--http", metavar="[HOST:]PORT", help="Serve over HTTP, on loopback unless named.")
@click.option("--finder", is_flag=True, help="Offer search, describe and call for all tools.")
@ALLOW
@DENY
@click.option("--name", metavar="NAME", help="Call the server so, in errors and records.")
@click.option("--audit", metavar="FILE", help="Append a record of each call, as JSON lines.")
@click.option(
    "--cache",
    type=float,
    metavar="SECONDS",
    help="Keep lists and resources, so long if the server does not say.",
)
async def serve(
    target: ServerTarget,
    *,
    names: tuple[str, ...],
    http: str | None,
    finder: bool,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    name: str | None,
    audit: str | None,
    cache: float | None,
) -> int:
    """Serve servers to hosts, and hold the connections to them.

    For the configuration of a host (an editor, an agent): it starts this command instead of the
    server, which is spoken to on standard input and output. A server that dies is started again;
    the call that it had is answered with an error that says whether it may have run, and the next
    one works. Of several servers, tools are SERVER.TOOL; without a name, all that are configured.

    \b
    holdfast serve git
    holdfast serve -- python server.py
    holdfast serve git time --http 8080
    """
    from holdfast.relay.serving import ServedRelays
    from holdfast.relay.sharing import RELAYED, SharedRelay

    address = None if http is None else _address(http)
    if name is not None:
        _call_it(target, name)
    # Standard input is the host's: nobody can be asked, and stdout is the protocol's.
    target.options.setdefault("when_down", "wait")
    # What passes between the two directly must not be too much for what is between them.
    target.usual_limits = dict(RELAYED)
    if (timeouts := target.options.get("timeouts")) is not None:
        # Of a relayed call there is only its whole time.
        seconds = timeouts.request
        target.options["timeouts"] = Timeouts(request=seconds, handshake=seconds, total=seconds)
    if cache is not None:
        if not 0 <= cache < math.inf:
            raise click.UsageError(f"--cache {cache:g}: must be a number of seconds, 0 or more.")
        target.options["cache"] = Cache(ttl=cache)
    async with AsyncExitStack() as stack:
        if audit is not None:
            from holdfast.cli.audit_file import AuditFile

            records = AuditFile(audit)
            stack.callback(records.close)
            target.options["observability"] = Observability(audit=records)
        clients = _clients(target, names)
        stack.push_async_callback(close_all, [*clients.values()])
        relays = {
            server: SharedRelay(
                client, _rules(server, allow, deny, [*clients]), is_cached=cache is not None
            )
            for server, client in clients.items()
        }
        served = ServedRelays(relays, finder=finder)
        stack.push_async_callback(served.close)
        await _until_terminated(
            _serve_stdio(served) if address is None else _serve_http(served, *address, [*relays])
        )
    return Exit.OK


def _call_it(target: ServerTarget, name: str) -> None:
    """Give a server the name that its host has for it."""
    if not target.is_given:
        raise click.UsageError("--name is for one server, behind -- or --url.")
    target.options["name"] = name or None  # the host may have none


def _servers(target: ServerTarget, names: Sequence[str]) -> Sequence[str | None]:
    """Return the words for the servers; None stands for the one that an option gives."""
    if target.is_given and names:
        raise click.UsageError(f"Not understood: {' '.join(names)} (the server is given already).")
    if names:
        return list(dict.fromkeys(names))
    if not target.is_open:
        return [None]
    servers = target.configuration.servers
    enabled = [name for name, entry in servers.items() if not entry.disabled]
    if not enabled:
        raise ValidationError(NO_SERVER)
    return enabled


def _clients(target: ServerTarget, names: Sequence[str]) -> dict[str, Client]:
    """Return a client for each server; of several, one that cannot be made costs only its own."""
    clients: dict[str, Client] = {}
    failures: list[HoldfastError] = []
    for name in _servers(target, names):
        try:
            client = target.at(name).client(ask=False)
        except HoldfastError as error:
            failures.append(error)
            continue
        alike = [other for other in clients if _plain(other) == _plain(client.name)]
        if alike:
            called = " and ".join(dict.fromkeys(map(repr, [*alike, client.name])))
            raise ValidationError(f"two servers are called {called}: serve them apart")
        clients[client.name] = client
    if not clients:
        raise failures[0]
    for failure in failures:
        target.output.note(f"not served: {failure}")
    return clients


def _plain(name: str) -> str:
    """Return a name without the dots that full names of tools may need: ``a..b`` is ``a.b``."""
    return re.sub(r"\.+", ".", name).rstrip(".")


async def close_all(clients: Sequence[Client]) -> None:
    """End the servers side by side: hosts wait some two seconds before they kill what is left."""
    ends = (client.close() for client in clients)
    results = await asyncio.gather(*ends, return_exceptions=True)
    raise_first(result for result in results if isinstance(result, BaseException))


def _rules(name: str, allow: Sequence[str], deny: Sequence[str], names: list[str]) -> ToolPolicy:
    """Return the rules for the tools of one of some servers.

    A rule that begins with the name of a server, or with ``*.``, is about ``server.tool``; any
    other about the tools of all servers.
    """

    def of_server(patterns: Sequence[str]) -> list[str]:
        elsewhere = tuple(f"{server}." for server in names if server != name)
        inner = [
            pattern[len(prefix) :]
            for pattern in patterns
            for prefix in (f"{name}.", f"{name}..", "*.")
            if pattern.startswith(prefix)
        ]
        return inner + [pattern for pattern in patterns if not pattern.startswith(elsewhere)]

    return ToolPolicy(allow=of_server(allow) if allow else None, deny=of_server(deny))


async def _until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Do some work until it ends, or SIGTERM or SIGHUP ends it."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":  # where loops have no signal handlers
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        loop.add_signal_handler(signal.SIGHUP, task.cancel)
    try:
        await asyncio.wait([task])
    finally:
        # Ctrl-C cancels the wait.
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _serve_stdio(served: ServedRelays) -> None:
    from holdfast._core.serve import stdio

    await stdio.serve(served.join().server, patience=LAST_CALLS)


async def _serve_http(served: ServedRelays, host: str, port: int, names: list[str]) -> None:
    """Serve until cancelled; print where."""
    from holdfast._core.serve.http import HttpServer, is_loopback

    token = os.environ.get(TOKEN) or None
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
        click.echo(f"token: {token}")
    endpoints = served.endpoints()
    server = HttpServer(endpoints, host, token)
    try:
        bound = await server.start(port)
    except OSError as error:
        raise ValidationError(_unusable(host, port, error)) from None
    try:
        shown = f"[{host}]" if ":" in host else host
        for path, name in zip(endpoints, [", ".join(names), *names], strict=True):
            click.echo(f"http://{shown}:{bound}{path}  {name}")
        await asyncio.get_running_loop().create_future()
    finally:
        await server.close()


def _unusable(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"--http {host}:{port}: the port is in use; choose another, or 0 for any"
    return f"--http {host}:{port}: cannot listen there: {error.strerror or error}"


def _address(text: str) -> tuple[str, int]:
    """Return host and port of ``[HOST:]PORT``."""
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port) > 65535 or text.startswith(":"):
        raise click.UsageError(f"--http {text!r}: must be PORT or HOST:PORT, such as 8080.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)
