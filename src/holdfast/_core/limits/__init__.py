"""The limits of a server: how many calls at once, how many in a time, and none while it says so.

queue       the order of those who wait: fair among callers
limiter     places and tokens of one limit, in this process
shares      how processes divide one limit between them
shared      a limit that processes share by a store
gate        all limits of one server, and what it says of later
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast._core.boundary import Transport
    from holdfast._core.limits.gate import Gate
    from holdfast.policies import Policy


def gate_for(policy: Policy, transport: Transport) -> Gate | None:
    """Return the gate of a server; None, and nothing is loaded, if nothing is limited."""
    limits, tools = policy.limits, policy.tools
    if limits.concurrent is None and limits.rate is None and not tools.is_limited:
        return None
    from holdfast._core.limits.gate import make_gate

    return make_gate(limits, tools, _name(transport))


def _name(transport: Transport) -> Hashable:
    """Return what leads to a server, in all processes alike, without the secrets of an `env`."""
    key = transport.key
    if isinstance(key, tuple):
        return key[:2]
    return transport.name if key is None else key
