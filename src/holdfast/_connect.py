"""``connect``: find out what a target is, and build the client.

The client and the event loop are loaded by the first call, not with this module.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from holdfast.errors import ValidationError
from holdfast.policies import (
    Backoff,
    Cache,
    Identity,
    Limits,
    Observability,
    Replay,
    Timeouts,
    ToolPolicy,
    WhenDown,
)

if TYPE_CHECKING:
    from holdfast._core.calls.handlers import Handlers
    from holdfast._core.ledger.ledger import Ledger
    from holdfast._core.targets import Target
    from holdfast._options import ClientOptions, LockTarget, LogTarget, Options, TraceTarget
    from holdfast.client import Client
    from holdfast.config.entry import ServerEntry


def connect(
    target: Target = None,
    *,
    name: str | None = None,
    protocol: str | None = None,
    timeouts: Timeouts | None = None,
    limits: Limits | None = None,
    backoff: Backoff | None = None,
    identity: Identity | None = None,
    handlers: Handlers | None = None,
    when_down: WhenDown | None = None,
    replay: Replay | None = None,
    tools: ToolPolicy | None = None,
    cache: Cache | None = None,
    observability: Observability | None = None,
    log: LogTarget | None = None,
    lock: LockTarget | None = None,
    trace: TraceTarget | None = None,
    shared: bool | None = None,
    ledger: Ledger | None = None,
    **options: Unpack[Options],
) -> Client:
    """Return a client for one server. Nothing is started before its first use.

    Args:
        target: The server: a name from the configuration, a command (a string, or a list of
            words), a script (``"server.py"`` or a `pathlib.Path`), a URL, a `holdfast.Stdio` or
            `holdfast.Http`, or a server in memory: a `holdfast.testing.Peer`, or a server object
            of FastMCP or the official SDK. A single word that is configured is that server, even
            if there is a program of that name; ``["git"]`` is always the program. None reads the
            environment variable ``MCP_SERVER_URL``.
        name: The server's name in errors, logs and events. Default: its program or its host.
        protocol: Pin one protocol revision instead of negotiating the newest.
        timeouts: Seconds for requests, the handshake and whole calls.
        limits: Bounds on memory and on what a server can make the client do.
        backoff: Delays between attempts to bring back a lost server.
        identity: The client's own name, version and capabilities, as declared to servers.
        handlers: Functions that answer a server's questions and receive its notifications.
        when_down: A call while the server is down fails at once (``"fail"``), or waits for it
            within its own deadline (``"wait"``). Default: as configured, else ``"fail"``.
        replay: After a lost connection, nothing is repeated (``"never"``), or reads, lists and
            tools that are annotated read-only or idempotent are, once (``"safe"``). Default: as
            configured, else ``"never"``.
        tools: Allowed tools, their timeouts, and how arguments and results are checked.
        cache: Times to live of lists and resources, and the store that holds them.
        observability: Audit records, OpenTelemetry, and what is redacted in both.
        log: Write every tool call as JSON lines to a file, a stream or a function.
        lock: Refuse a server whose tools or skills differ from a lock file.
        trace: Write every message, state and line of stderr to a file, for ``holdfast view``.
        shared: Use the server of the daemon (``holdfast daemon start``), which all programs of
            this user share; where none runs, one of its own. Default: as configured, else False.
        ledger: Where calls with ``once=`` are recorded. Default: a file in the user's state folder,
            for the processes of one machine.
        **options: Options of the transport. For a command: ``args``, ``env``, ``inherit_env``,
            ``cwd``, ``stderr``, ``grace``, ``startup``, ``shutdown_request``,
            ``threads`` (see `holdfast.Stdio`). For a URL: ``headers``, ``transport``, ``base_url``,
            ``sse_endpoint``, ``message_endpoint``, ``ca``, ``cert``, ``proxy``, ``trust_env``,
            ``connections``, ``auth`` (see `holdfast.Http`).

    Returns:
        A `Client`, to be used with ``async with``, or closed by its ``close()``.

    Raises:
        ValidationError: An option is unknown, of a wrong type, or not for this kind of target.
        TrustError: The server is configured in a project's file, and nobody approved it.

    Example:
        ```python
        async with holdfast.connect("npx -y @modelcontextprotocol/server-everything") as client:
            print((await client.call_tool("echo", {"message": "hello"})).text)
        ```
    """
    from holdfast._build import build_client
    from holdfast._core.targets import VARIABLE, is_bare_word, near_names, transport_for

    if options:
        from holdfast._options import refuse_unknown

        refuse_unknown(options)
    client_options: ClientOptions = {
        "name": name,
        "protocol": protocol,
        "timeouts": timeouts,
        "limits": limits,
        "backoff": backoff,
        "identity": identity,
        "handlers": handlers,
        "when_down": when_down,
        "replay": replay,
        "tools": tools,
        "cache": cache,
        "observability": observability,
        "log": log,
        "lock": lock,
        "trace": trace,
        "shared": shared,
        "ledger": ledger,
    }
    if isinstance(target, Mapping):
        raise _not_a_target(target)
    word = os.environ.get(VARIABLE) if target is None else target
    servers: Mapping[str, ServerEntry] | None = None
    alone = options.keys().isdisjoint(("args", "url", "base_url"))
    if alone and isinstance(word, str) and is_bare_word(word):
        from holdfast.config.loading import load

        servers = load().servers
        if (entry := servers.get(word)) is not None:
            overrides: dict[str, Any] = {**client_options, **options}
            overrides = {option: value for option, value in overrides.items() if value is not None}
            return entry.connect(**overrides)
    transport: Any = transport_for(target, options, os.environ)
    if servers is not None and hasattr(transport, "near_names"):
        transport.near_names = partial(near_names, tuple(servers))
    return build_client(transport, target, options, **client_options)


def _not_a_target(target: Mapping[Any, Any]) -> ValidationError:
    """Return the error for a mapping: what to do with it, and none of its values."""
    from holdfast._core.text import visible

    if "command" in target or "url" in target:
        key = "command" if "command" in target else "url"
        use = "connect([command, *args], env=…)" if key == "command" else "connect(url, headers=…)"
        text = f"has one server's options; use {use}, or Servers({{name: {{{key!r}: …}}}})"
    else:
        text = "has several servers; connect is for one, holdfast.Servers for many: Servers({…})"
    keys = ", ".join(f"{visible(str(key), 40)!r}: …" for key in [*target][:3])
    return ValidationError(f"target {{{keys}}}: a mapping {text}")
