"""``connect``: from what a person says of a server to a client for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias, TypedDict, Unpack

from holdfast._core.calls.handlers import Handlers
from holdfast._core.calls.tools import Recorder
from holdfast._core.targets import Target, transport_for
from holdfast._core.transports.stderr import Sink
from holdfast.client import Client
from holdfast.policies import (
    Backoff,
    Cache,
    Identity,
    Limits,
    Observability,
    Policy,
    Redaction,
    Replay,
    Timeouts,
    ToolPolicy,
    WhenDown,
)

if TYPE_CHECKING:
    from holdfast._core.transports.http_client import Headers
    from holdfast.calllog.log import CallLog
    from holdfast.lock.guard import Lock

LogTarget: TypeAlias = "str | os.PathLike[str] | TextIO | Callable[[str], Any] | CallLog"
"""Where a call log goes: a file, a stream, or a function that takes each line."""
LockTarget: TypeAlias = "str | os.PathLike[str] | Lock"


class Options(TypedDict, total=False):
    """What a command can be started with (`holdfast.Stdio`), or a URL reached (`Http`)."""

    headers: Headers | None
    transport: Literal["auto", "streamable", "sse"]
    base_url: str
    sse_endpoint: str | None
    message_endpoint: str | None
    ca: str | None
    cert: str | tuple[str, str] | None
    proxy: str | None
    trust_env: bool
    connections: int
    env: Mapping[str, str] | None
    inherit_env: Iterable[str] | bool
    cwd: str | os.PathLike[str] | None
    stderr: Sink | Literal["inherit"]
    grace: float
    shutdown_request: bool


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
    policy = Policy(
        timeouts=timeouts or Timeouts(),
        limits=limits or Limits(),
        backoff=backoff or Backoff(),
        identity=identity or Identity(),
        protocol=protocol,
        when_down=when_down,
        replay=replay,
        tools=tools or ToolPolicy(),
        cache=cache or Cache(),
        telemetry=telemetry or Observability(),
    )
    transport = transport_for(target, options, os.environ)
    recorder = None if log is None else _recorder(log, policy.telemetry.redaction)
    client = Client(transport, policy, handlers or Handlers(), name=name, recorder=recorder)
    if lock is not None:
        _guard(client, lock)
    return client


def _recorder(log: LogTarget, redaction: Redaction) -> Recorder:
    from holdfast.calllog.log import open_log

    return open_log(log, redaction)


def _guard(client: Client, lock: LockTarget) -> None:
    from holdfast.lock.guard import Lock

    policy = lock if isinstance(lock, Lock) else Lock(os.fspath(lock))
    client.guard_tools(policy.guard(client.name))
