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

from holdfast.calls.handlers import Handlers, Notification
from holdfast.calls.running import RunningCall
from holdfast.client import Client, connect
from holdfast.config import Backoff, Identity, Limits, Timeouts
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
    "AuthError",
    "Backoff",
    "BackpressureError",
    "CancelledCallError",
    "Client",
    "DriftError",
    "Handlers",
    "HandshakeTimeout",
    "HoldfastError",
    "Identity",
    "Limits",
    "Notification",
    "Progress",
    "Prompt",
    "PromptResult",
    "ProtocolError",
    "ReadResult",
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
    "Timeouts",
    "Tool",
    "ToolError",
    "ToolResult",
    "TransportError",
    "ValidationError",
    "__version__",
    "connect",
]
