"""``connect``, for code without a loop.

Written by tools/sync_face.py from _connect.py: change that, and run it again.
"""

from __future__ import annotations

from typing import Unpack

from holdfast import _connect
from holdfast._connect import LockTarget, LogTarget, Options
from holdfast._core.calls.handlers import Handlers
from holdfast._core.targets import Target
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
from holdfast.sync.handlers import in_threads
from holdfast.sync.portal import portal


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
    telemetry: Observability | None = None,
    log: LogTarget | None = None,
    lock: LockTarget | None = None,
    **options: Unpack[Options],
) -> Client:
    """A client for ``target``; nothing is started before its first use.

    ``target`` is a command (a string, or a list of words), a URL, a `holdfast.Stdio`, a server
    in memory such as `holdfast.testing.Peer`, or None for what ``MCP_SERVER_URL`` says.
    ``log`` writes every tool call down as JSON lines; ``lock`` holds the server's tools to
    what a lock file says of them.
    """
    client = _connect.connect(
        target,
        name=name,
        protocol=protocol,
        timeouts=timeouts,
        limits=limits,
        backoff=backoff,
        identity=identity,
        handlers=in_threads(handlers),
        when_down=when_down,
        replay=replay,
        tools=tools,
        cache=cache,
        telemetry=telemetry,
        log=log,
        lock=lock,
        **options,
    )
    return Client(client, portal())
