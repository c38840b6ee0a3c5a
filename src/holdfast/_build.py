"""A client on a transport: check its options, declare what its lock says, guard its tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Unpack

from msgspec.structs import replace

from holdfast._core.calls.handlers import NO_HANDLERS, Handlers
from holdfast.client import Client
from holdfast.errors import ValidationError
from holdfast.policies import POLICIES, Policy

if TYPE_CHECKING:
    from holdfast._core.boundary import Transport
    from holdfast._core.targets import Target
    from holdfast._options import ClientOptions, LockTarget
    from holdfast.calllog.log import CallLog
    from holdfast.lock.guard import Lock

_DEFAULTS: Final = Policy()
_WORDS: Final = ("name", "protocol")
"""Options that are strings."""


def build_client(
    transport: Transport,
    target: Target,
    transport_options: Mapping[str, Any],
    **options: Unpack[ClientOptions],
) -> Client:
    """Return a client on a transport. Nothing is started before its first use.

    Args:
        transport: How the server is started or reached.
        target: What it was made from, to be named in advice.
        transport_options: The options that were given with the target.
        **options: Those of the client; None is the same as not given.
    """
    name, handlers = options.get("name"), options.get("handlers")
    if handlers is not None and not isinstance(handlers, Handlers):
        from holdfast._options import wrong_type

        raise wrong_type("handlers", handlers, Handlers)
    policy = _policy(options)
    direct = transport
    if (shared := options.get("shared")) is not None:
        transport = _shared(transport, shared, policy, name)
    guard = arguments = None
    if (lock := options.get("lock")) is not None:
        guard = _lock(lock)
        arguments = _server_arguments(target, transport_options, policy.protocol)
        # Servers list other tools to other clients: declare what the lock was made with.
        locked = guard.capabilities(transport.name if name is None else name)
        policy = replace(policy, identity=policy.identity.declaring(locked))
    observers: tuple[CallLog, ...] = ()
    if (log := options.get("log")) is not None:
        from holdfast.calllog.log import open_log

        observers = (open_log(log, policy.observability.redaction),)

    trace = options.get("trace")

    personal = transport.authorizer is not None and transport.authorizer.personal
    # The limits are the server's: its accounts share them.
    gate = None
    if personal:
        from holdfast._core.limits import gate_for

        gate = gate_for(policy, transport)

    def make(transport: Transport) -> Client:
        client = Client(
            transport, policy, handlers or NO_HANDLERS, name=name, observers=observers, gate=gate
        )
        if transport is not direct and shared:
            _tell_daemon(transport, client)
        if guard is not None:
            client.guard_tools(guard.guard(client.name, arguments))
            client.guard_skills(guard.skill_guard(client.name, arguments))
        if trace is not None:
            from holdfast.trace.writer import open_trace

            open_trace(trace).watch(client)
        return client

    if not personal:
        return make(transport)
    from holdfast._accounts import AccountsClient

    return AccountsClient(transport, policy, make, name)


def _shared(transport: Transport, shared: Any, policy: Policy, name: str | None) -> Transport:
    """Return the transport through the daemon, where a server can be shared."""
    if not isinstance(shared, bool):
        raise ValidationError(f"shared={shared!r}: must be True or False")
    if not shared:
        return transport
    from holdfast._core.transports.stdio import Stdio

    if not isinstance(transport, Stdio):
        import logging

        log = logging.getLogger("holdfast")
        log.info("%s: not shared: only servers that a command starts are", transport.name)
        return transport
    from holdfast._core.transports.shared import Shared

    through = Shared(transport)
    through.protocol = policy.protocol
    through.name = name or transport.name
    return through


def _tell_daemon(transport: Any, client: Client) -> None:
    """Have the daemon told what a client can be asked."""
    from holdfast._core.eras.negotiation import declared

    # By the plan, which is changed before the first use, and not by the client: the two would
    # keep each other alive.
    opener = client._requester.opener
    transport.capabilities = lambda: declared(opener.plan, changes=True)


def _policy(options: ClientOptions) -> Policy:
    """Return the policy of some options, each of which must be of its type."""
    if [*options.values()].count(None) == len(options):
        return _DEFAULTS
    settings: dict[str, Any] = {
        option: value for option in POLICIES if (value := options.get(option)) is not None
    }
    for option, value in settings.items():
        if not isinstance(value, POLICIES[option]):
            from holdfast._options import wrong_type

            raise wrong_type(option, value, POLICIES[option])
    for option in _WORDS:
        value = options.get(option)
        if value is not None and not isinstance(value, str):
            raise ValidationError(f"{option}={value!r}: must be a string")
    for option in ("protocol", "when_down", "replay"):
        if (value := options.get(option)) is not None:
            settings[option] = value
    settings |= _ledger(options.get("ledger"))
    return Policy(**settings) if settings else _DEFAULTS


def _ledger(ledger: object) -> dict[str, Any]:
    """Return the setting of a ledger, which must be one; none without."""
    if ledger is None:
        return {}
    from holdfast._core.ledger.ledger import Ledger

    if not isinstance(ledger, Ledger):
        from holdfast._options import wrong_type

        raise wrong_type("ledger", ledger, Ledger)
    return {"ledger": ledger}


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
