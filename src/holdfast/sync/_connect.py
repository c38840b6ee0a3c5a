"""``connect``, for code without a loop.

Written by tools/sync_face.py from _connect.py: change those instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from holdfast import _connect
from holdfast._connect import LockTarget, LogTarget, Options
from holdfast._core.calls.handlers import threaded
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
from holdfast.sync.client import Client
from holdfast.sync.portal import portal

if TYPE_CHECKING:
    from holdfast._core.calls.handlers import Handlers
    from holdfast._core.targets import Target


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
    when_down: WhenDown = "fail",
    replay: Replay = "never",
    tools: ToolPolicy | None = None,
    cache: Cache | None = None,
    observability: Observability | None = None,
    log: LogTarget | None = None,
    lock: LockTarget | None = None,
    **options: Unpack[Options],
) -> Client:
    """Return a client for one server. Nothing is started before its first use.

    Args:
        target: The server: a command (a string, or a list of words), a script (``"server.py"``
            or a `pathlib.Path`), a URL, a `holdfast.Stdio` or `holdfast.Http`, or a server in
            memory: a `holdfast.testing.Peer`, or a server object of FastMCP or the official SDK.
            None reads the environment variable ``MCP_SERVER_URL``.
        name: The server's name in errors, logs and events. Default: its program or its host.
        protocol: Pin one protocol revision instead of negotiating the newest.
        timeouts: Seconds for requests, the handshake and whole calls.
        limits: Bounds on memory and on what a server can make the client do.
        backoff: Delays between attempts to bring back a lost server.
        identity: The client's own name, version and capabilities, as declared to servers.
        handlers: Functions that answer a server's questions and receive its notifications.
        when_down: A call while the server is down fails at once (``"fail"``), or waits for it
            within its own deadline (``"wait"``).
        replay: After a lost connection, nothing is repeated (``"never"``), or reads, lists and
            tools that are annotated read-only or idempotent are, once (``"safe"``).
        tools: Allowed tools, their timeouts, and how arguments and results are checked.
        cache: Times to live of lists and resources, and the store that holds them.
        observability: Audit records, OpenTelemetry, and what is redacted in both.
        log: Write every tool call as JSON lines to a file, a stream or a function.
        lock: Refuse a server whose tools or skills differ from a lock file.
        **options: Options of the transport. For a command: ``args``, ``env``, ``inherit_env``,
            ``cwd``, ``stderr``, ``grace``, ``startup``, ``shutdown_request`` (see
            `holdfast.Stdio`). For a URL: ``headers``, ``transport``, ``base_url``,
            ``sse_endpoint``, ``message_endpoint``, ``ca``, ``cert``, ``proxy``, ``trust_env``,
            ``connections``, ``auth`` (see `holdfast.Http`).

    Returns:
        A `Client`, to be used with ``with``, or closed by its ``close()``.

    Raises:
        ValidationError: An option is unknown, of a wrong type, or not for this kind of target.

    Example:
        ```python
        with holdfast.sync.connect("npx -y @modelcontextprotocol/server-everything") as client:
            print((client.call_tool("echo", {"message": "hello"})).text)
        ```
    """
    client = _connect.connect(
        target,
        name=name,
        protocol=protocol,
        timeouts=timeouts,
        limits=limits,
        backoff=backoff,
        identity=identity,
        handlers=threaded(handlers),
        when_down=when_down,
        replay=replay,
        tools=tools,
        cache=cache,
        observability=observability,
        log=log,
        lock=lock,
        **options,
    )
    return Client(client, portal())
