"""Holdfast: the MCP client that holds on.

    client · targets                     what you use
    calls/      pipeline · inputs        one call, start to end
    runtime/    driver · mailbox         the loop, the clock, the futures
    engine/     connection · inflight    the machine: states, requests, recovery   (pure)
    eras/       negotiation              what depends on the protocol revision     (pure)
    transports/ stdio · memory           ways to a server
    wire/       jsonrpc · framing        bytes and messages                        (pure)
    boundary                             the values that pass between these        (pure)
    types/ · errors · config             what you read, catch and set              (pure)
    testing/                             a scripted server, a contract for transports
    demo_server                          a server to try things with

Imports point downwards; the pure parts know no clock, no loop and no descriptor.
"""

from __future__ import annotations

from holdfast.calls.audit import AuditRecord
from holdfast.calls.handlers import Handlers, Notification
from holdfast.calls.invocation import Invocation
from holdfast.calls.misfits import Misfit
from holdfast.calls.reading import is_stale
from holdfast.calls.running import RunningCall
from holdfast.calls.store import CacheEntry, MemoryStore, Store
from holdfast.client import Client, connect
from holdfast.config import (
    Backoff,
    Cache,
    Identity,
    Limits,
    Redaction,
    Telemetry,
    Timeouts,
    Tools,
)
from holdfast.engine.state import State
from holdfast.errors import (
    AuthError,
    BackpressureError,
    CancelledCallError,
    DriftError,
    HandshakeTimeout,
    HoldfastError,
    ProtocolError,
    RequestTimeout,
    ResourceNotFoundError,
    RpcError,
    ShutdownError,
    StateError,
    ToolError,
    TransportError,
    ValidationError,
)
from holdfast.transports.stdio import Stdio
from holdfast.types.progress import Progress
from holdfast.types.prompts import Prompt, PromptResult
from holdfast.types.resources import ReadResult, Resource, ResourceTemplate
from holdfast.types.tools import Tool, ToolResult

__version__ = "0.1.0"

__all__ = [
    "AuditRecord",
    "AuthError",
    "Backoff",
    "BackpressureError",
    "Cache",
    "CacheEntry",
    "CancelledCallError",
    "Client",
    "DriftError",
    "Handlers",
    "HandshakeTimeout",
    "HoldfastError",
    "Identity",
    "Invocation",
    "Limits",
    "MemoryStore",
    "Misfit",
    "Notification",
    "Progress",
    "Prompt",
    "PromptResult",
    "ProtocolError",
    "ReadResult",
    "Redaction",
    "RequestTimeout",
    "Resource",
    "ResourceNotFoundError",
    "ResourceTemplate",
    "RpcError",
    "RunningCall",
    "ShutdownError",
    "State",
    "StateError",
    "Stdio",
    "Store",
    "Telemetry",
    "Timeouts",
    "Tool",
    "ToolError",
    "ToolResult",
    "Tools",
    "TransportError",
    "ValidationError",
    "__version__",
    "connect",
    "is_stale",
]
