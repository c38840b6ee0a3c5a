"""What ``connect`` accepts, and the transport that each leads to: decided in this one place."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from holdfast._core.boundary import Transport
from holdfast._core.transports.memory import Memory, Server
from holdfast._core.transports.stdio import Stdio
from holdfast.errors import ValidationError

VARIABLE = "MCP_SERVER_URL"

Target: TypeAlias = "str | Iterable[str] | Transport | Server | None"


def transport_for(
    target: Target, options: Mapping[str, Any], environment: Mapping[str, str]
) -> Transport:
    """The transport for a target: a command, a server in memory, or a ready transport."""
    options = dict(options)
    if target is None:
        target = options.pop("base_url", None) or environment.get(VARIABLE)
        if not target:
            raise ValidationError(f"no target: give a command or a URL, or set {VARIABLE}")
    if isinstance(target, str) and target.lower().startswith(("http://", "https://")):
        from holdfast._core.transports.http import Http

        return Http(target, **_fitting(options, Http, target))
    if isinstance(target, str) and "://" in target.partition(" ")[0]:
        raise ValidationError(f"target {target!r}: a URL begins with http:// or https://")
    if isinstance(target, str | list | tuple):
        return Stdio(target, **_fitting(options, Stdio, target))
    if options:
        named = ", ".join(sorted(options))
        raise ValidationError(f"{named}: only for a command; {target!r} has its own settings")
    if hasattr(target, "accept"):
        return Memory(target)  # type: ignore[arg-type]
    if hasattr(target, "open") and hasattr(target, "key"):
        return target  # type: ignore[return-value]
    kind = type(target).__name__
    raise ValidationError(
        f"target of type {kind}: give a command (string or list), a URL, holdfast.Stdio, "
        f"holdfast.testing.Peer, or nothing and set {VARIABLE}"
    )


def _fitting(options: dict[str, Any], kind: type, target: object) -> dict[str, Any]:
    """The options, if this kind of target has them all."""
    if not options:
        return options
    parameters = inspect.signature(kind).parameters.values()
    known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            fitting = ", ".join(known)
            raise ValidationError(f"{name}=…: not an option for {target!r} (it takes {fitting})")
    return options
