"""The options of ``connect``: their types, and what is said of one that is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias, TypedDict

from holdfast.errors import ValidationError
from holdfast.policies import (
    POLICIES,
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
    from holdfast._core.auth.options import Auth
    from holdfast._core.calls.handlers import Handlers
    from holdfast._core.ledger.ledger import Ledger
    from holdfast._core.transports.http_client import Headers
    from holdfast._core.transports.stderr import Sink
    from holdfast.calllog.log import CallLog
    from holdfast.lock.guard import Lock
    from holdfast.trace.writer import TraceFile

LogTarget: TypeAlias = "str | os.PathLike[str] | TextIO | Callable[[str], Any] | CallLog"
"""A file, a stream, a function that takes each line, or a `CallLog`."""
LockTarget: TypeAlias = "str | os.PathLike[str] | Lock"
"""A lock file, or a `Lock` with a policy of its own."""
TraceTarget: TypeAlias = "str | os.PathLike[str] | TraceFile"
"""A file, or a `TraceFile` that several clients share."""


class ClientOptions(TypedDict, total=False):
    """Options of the client: `holdfast.connect` documents each of them."""

    name: str | None
    protocol: str | None
    timeouts: Timeouts | None
    limits: Limits | None
    backoff: Backoff | None
    identity: Identity | None
    handlers: Handlers | None
    when_down: WhenDown | None
    replay: Replay | None
    tools: ToolPolicy | None
    cache: Cache | None
    observability: Observability | None
    log: LogTarget | None
    lock: LockTarget | None
    trace: TraceTarget | None
    shared: bool | None
    ledger: Ledger | None


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
    threads: bool | None


def wrong_type(option: str, value: object, kind: type) -> ValidationError:
    """Return the error for a value that is not of the type of its option."""
    place = "holdfast.policies" if kind is Identity else "holdfast"
    hint = f"{place}.{kind.__name__}(…)"
    if isinstance(value, int | float) and kind is Timeouts:
        hint = f"holdfast.Timeouts(request={value!r})"
    return ValidationError(f"{option}={value!r}: must be a {place}.{kind.__name__}, such as {hint}")


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
    of_client, of_transport = ClientOptions.__annotations__.keys(), Options.__annotations__.keys()
    # Those of the client are parameters of `connect`, and do not come here from there.
    expected = of_transport if of == "connect" else of_transport | of_client
    for name, value in options.items():
        if name not in expected:
            hint = _hint(name, value, of_client | of_transport)
            raise ValidationError(f"{name}=…: not an option of {of}{hint}")


def _hint(name: str, value: object, options: Iterable[str]) -> str:
    """Return a suggestion: the option, the field of a policy or the form of the nearest name."""
    from holdfast._core.calls.handlers import Handlers
    from holdfast._core.text import close_matches

    forms = dict(_ELSEWHERE)
    for option, kind in {**POLICIES, "handlers": Handlers}.items():
        for field in kind.__struct_fields__:
            forms.setdefault(field, f"{option}={kind.__name__}({field}={{value}})")
    forms.update((option, f"{option}=…") for option in options)
    near = [name] if name in forms else close_matches(name, forms)
    # Anything but a number may be long, or a secret.
    text = repr(value) if isinstance(value, int | float) else "…"
    return f"; did you mean {forms[near[0]].format(value=text)}?" if near else ""
