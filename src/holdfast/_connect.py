"""``connect``: check the options, choose the transport, build the client.

The client and the event loop are loaded by the first call, not with this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias, TypedDict, Unpack

from msgspec.structs import replace

from holdfast.errors import ValidationError
from holdfast.policies import (
    Backoff,
    Cache,
    Identity,
    Limits,
    Observability,
    Policy,
    Replay,
    Timeouts,
    ToolPolicy,
    WhenDown,
)

if TYPE_CHECKING:
    from holdfast._core.auth.options import Auth
    from holdfast._core.boundary import Transport
    from holdfast._core.calls.handlers import Handlers
    from holdfast._core.targets import Target
    from holdfast._core.transports.http_client import Headers
    from holdfast._core.transports.stderr import Sink
    from holdfast.calllog.log import CallLog
    from holdfast.client import Client
    from holdfast.lock.guard import Lock

LogTarget: TypeAlias = "str | os.PathLike[str] | TextIO | Callable[[str], Any] | CallLog"
"""A file, a stream, a function that takes each line, or a `CallLog`."""
LockTarget: TypeAlias = "str | os.PathLike[str] | Lock"
"""A lock file, or a `Lock` with a policy of its own."""


_DEFAULTS: Final = Policy()


class Options(TypedDict, total=False):
    """Options of the transport: `holdfast.Stdio` and `holdfast.Http` document each of them."""

    url: str
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
    args: Iterable[str] | None
    auth: Auth
    env: Mapping[str, str] | None
    inherit_env: Iterable[str] | bool
    cwd: str | os.PathLike[str] | None
    stderr: Sink | Literal["inherit"]
    grace: float
    startup: float
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
        A `Client`, to be used with ``async with``, or closed by its ``close()``.

    Raises:
        ValidationError: An option is unknown, of a wrong type, or not for this kind of target.

    Example:
        ```python
        async with holdfast.connect("npx -y @modelcontextprotocol/server-everything") as client:
            print((await client.call_tool("echo", {"message": "hello"})).text)
        ```
    """
    from holdfast._core.calls.handlers import NO_HANDLERS, Handlers
    from holdfast._core.targets import transport_for
    from holdfast.client import Client

    if options:
        refuse_unknown(options)
    if handlers is not None and not isinstance(handlers, Handlers):
        raise _wrong_type("handlers", handlers, Handlers)
    policies: dict[str, Any] = {
        "timeouts": timeouts,
        "limits": limits,
        "backoff": backoff,
        "identity": identity,
        "tools": tools,
        "cache": cache,
        "observability": observability,
    }
    policies = {option: value for option, value in policies.items() if value is not None}
    for option, value in policies.items():
        if not isinstance(value, _POLICIES[option]):
            raise _wrong_type(option, value, _POLICIES[option])
    policy = _DEFAULTS
    if policies or protocol is not None or (when_down, replay) != ("fail", "never"):
        policy = Policy(protocol=protocol, when_down=when_down, replay=replay, **policies)
    for option, value in (("name", name), ("protocol", protocol)):
        if value is not None and not isinstance(value, str):
            raise ValidationError(f"{option}={value!r}: must be a string")
    transport = transport_for(target, options, os.environ)
    guard = server_arguments = None
    if lock is not None:
        guard, server_arguments = _lock(lock), _server_arguments(target, options, protocol)
        # Servers list other tools to other clients: declare what the lock was made with.
        locked = guard.capabilities(transport.name if name is None else name)
        policy = replace(policy, identity=policy.identity.declaring(locked))
    observers: tuple[CallLog, ...] = ()
    if log is not None:
        from holdfast.calllog.log import open_log

        observers = (open_log(log, policy.observability.redaction),)

    def make(transport: Transport) -> Client:
        client = Client(transport, policy, handlers or NO_HANDLERS, name=name, observers=observers)
        if guard is not None:
            client.guard_tools(guard.guard(client.name, server_arguments))
            client.guard_skills(guard.skill_guard(client.name, server_arguments))
        return client

    if transport.authorizer is None or not transport.authorizer.personal:
        return make(transport)
    from holdfast._accounts import AccountsClient

    return AccountsClient(transport, policy, make, name)


_POLICIES: Final[dict[str, Any]] = {
    "timeouts": Timeouts,
    "limits": Limits,
    "backoff": Backoff,
    "identity": Identity,
    "tools": ToolPolicy,
    "cache": Cache,
    "observability": Observability,
}
"""The type of each option that is a policy."""


def _wrong_type(option: str, value: object, kind: type) -> ValidationError:
    hint = f"holdfast.{kind.__name__}(…)"
    if isinstance(value, int | float) and kind is Timeouts:
        hint = f"holdfast.Timeouts(request={value!r})"
    return ValidationError(
        f"{option}={value!r}: must be a holdfast.{kind.__name__}, such as {hint}"
    )


_ELSEWHERE: Final = {
    "timeout": "timeouts=Timeouts(request={value})",
    "initialize_timeout": "timeouts=Timeouts(handshake={value})",
    "client_info": "identity=Identity(name=…, version=…)",
    "capabilities": "identity=Identity(capabilities={value})",
    "telemetry": "observability={value}",
    "command": "the target, connect({value})",
    "on_log": "client.on_log({value})",
    "log_handler": "client.on_log({value})",
    "on_notification": "handlers=Handlers(notification={value})",
    "on_progress": "handlers=Handlers(progress={value})",
    "progress_handler": "handlers=Handlers(progress={value})",
    "retries": "backoff=Backoff(attempts={value})",
    "max_retries": "backoff=Backoff(attempts={value})",
    "auth_token": "the option auth, with holdfast.Bearer(…)",
    "token": "the option auth, with holdfast.Bearer(…)",
    "bearer": "the option auth, with holdfast.Bearer(…)",
    "api_key": "the option auth, with holdfast.Bearer(…)",
    "oauth": 'auth="oauth"',
    "sampling_callback": "handlers=Handlers(sampling={value})",
    "elicitation_callback": "handlers=Handlers(elicitation={value})",
    "sampling_handler": "handlers=Handlers(sampling={value})",
    "elicitation_handler": "handlers=Handlers(elicitation={value})",
    "list_roots_callback": "handlers=Handlers(roots={value})",
    "logging_callback": "client.on_log({value})",
    "message_handler": "handlers=Handlers(notification={value})",
    "request_timeout": "timeouts=Timeouts(request={value})",
    "read_timeout_seconds": "timeouts=Timeouts(request={value})",
    "init_timeout": "timeouts=Timeouts(handshake={value})",
    "verify": "ca=…",
}
"""Options under names that other clients use, and the right form here."""


def refuse_unknown(options: Mapping[str, Any], *, of: str = "connect") -> None:
    """Raise `ValidationError` for an unknown option, and suggest the nearest known one."""
    own = connect.__annotations__.keys() - {"target", "options", "return"}
    known = Options.__annotations__.keys() | (() if of == "connect" else own)
    for name, value in options.items():
        if name not in known:
            hint = _hint(name, value, own | known)
            raise ValidationError(f"{name}=…: not an option of {of}{hint}")


def _hint(name: str, value: object, options: Iterable[str]) -> str:
    """Return a suggestion: the option, the field of a policy or the form of the nearest name."""
    from holdfast._core.calls.handlers import Handlers
    from holdfast._core.text import close_matches

    forms = dict(_ELSEWHERE)
    for option, kind in {**_POLICIES, "handlers": Handlers}.items():
        for field in kind.__struct_fields__:
            forms.setdefault(field, f"{option}={kind.__name__}({field}={{value}})")
    forms.update((option, f"{option}=…") for option in options)
    near = [name] if name in forms else close_matches(name, forms)
    # Anything but a number may be long, or a secret.
    shown = repr(value) if isinstance(value, int | float) else "…"
    return f"; did you mean {forms[near[0]].format(value=shown)}?" if near else ""


def _lock(lock: LockTarget) -> Lock:
    from holdfast.lock.guard import Lock

    if isinstance(lock, Lock):
        return lock
    if not isinstance(lock, str | os.PathLike):
        raise ValidationError(f"lock={lock!r}: must be a path or a holdfast.lock.Lock")
    return Lock(os.fspath(lock))


def _server_arguments(
    target: Target, options: Mapping[str, Any], protocol: str | None
) -> str | None:
    """Return the arguments of a command line that lead to the same server."""
    from holdfast.lock.commands import server_arguments

    settings = {
        name: getattr(target, name, None) or options.get(name)
        for name in ("env", "inherit_env", "cwd", "headers", "transport")
    }
    if callable(settings["headers"]):
        settings["headers"] = None
    server: Any = getattr(target, "command", None) or getattr(target, "url", None) or target
    if isinstance(server, os.PathLike):
        server = [os.fspath(server)]
    if not isinstance(server, (str, list, tuple)):
        return None
    return server_arguments(server, protocol=protocol, **settings)
