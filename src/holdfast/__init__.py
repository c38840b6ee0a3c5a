"""Holdfast: the MCP client that holds on.

    cli/ · testing/                      the command line; a scripted server, a pytest plugin
    handles/ · servers/ · sync/          typed handles; many servers; all without await
    configuration/                       servers by name, from the files people have
    connecting · client · targets        what you use
    tape/ · registry/ · codegen/         calls written down; tools compared; tools as Python
    calls/      pipeline · inputs        one call, start to end
    runtime/    driver · mailbox         the loop, the clock, the futures
    engine/     connection · inflight    the machine: states, requests, recovery   (pure)
    eras/       negotiation              what depends on the protocol revision     (pure)
    transports/ stdio · http · memory    ways to a server
    wire/       jsonrpc · framing        bytes and messages                        (pure)
    boundary                             the values that pass between these        (pure)
    types/ · errors · config             what you read, catch and set              (pure)
    demo_server                          a server to try things with

Imports point downwards; the pure parts know no clock, no loop and no descriptor.
"""

from __future__ import annotations

from holdfast.lazy import lazily

TYPE_CHECKING = False  # as typing has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Final

    from holdfast import codegen as codegen
    from holdfast import config as config
    from holdfast import configuration as configuration
    from holdfast import errors as errors
    from holdfast import handles as handles
    from holdfast import registry as registry
    from holdfast import servers as servers
    from holdfast import sync as sync
    from holdfast import tape as tape
    from holdfast import telemetry as telemetry
    from holdfast import testing as testing
    from holdfast import types as types
    from holdfast.calls.audit import AuditRecord
    from holdfast.calls.handlers import Handlers, Notification
    from holdfast.calls.invocation import Invocation
    from holdfast.calls.misfits import Misfit
    from holdfast.calls.reading import is_stale
    from holdfast.calls.running import RunningCall
    from holdfast.calls.store import CacheEntry, MemoryStore, Store
    from holdfast.client import Client
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
    from holdfast.connecting import connect
    from holdfast.engine.state import State
    from holdfast.errors import (
        AuthError,
        BackpressureError,
        CancelledCallError,
        DriftError,
        HandshakeRefused,
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
        TrustError,
        ValidationError,
    )
    from holdfast.registry.lock import Lock
    from holdfast.servers.many import Servers
    from holdfast.tape.calllog import CallLog
    from holdfast.tape.mock import MockServer
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
    "CallLog",
    "CancelledCallError",
    "Client",
    "DriftError",
    "Handlers",
    "HandshakeRefused",
    "HandshakeTimeout",
    "HoldfastError",
    "Identity",
    "Invocation",
    "Limits",
    "Lock",
    "MemoryStore",
    "Misfit",
    "MockServer",
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
    "Servers",
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
    "TrustError",
    "ValidationError",
    "__version__",
    "connect",
    "is_stale",
]

_HOMES: Final = {
    "calls.audit": ("AuditRecord",),
    "calls.handlers": (
        "Handlers",
        "Notification",
    ),
    "calls.invocation": ("Invocation",),
    "calls.misfits": ("Misfit",),
    "calls.reading": ("is_stale",),
    "calls.running": ("RunningCall",),
    "calls.store": (
        "CacheEntry",
        "MemoryStore",
        "Store",
    ),
    "client": ("Client",),
    "config": (
        "Backoff",
        "Cache",
        "Identity",
        "Limits",
        "Redaction",
        "Telemetry",
        "Timeouts",
        "Tools",
    ),
    "connecting": ("connect",),
    "engine.state": ("State",),
    "errors": (
        "AuthError",
        "BackpressureError",
        "CancelledCallError",
        "DriftError",
        "HandshakeRefused",
        "HandshakeTimeout",
        "HoldfastError",
        "ProtocolError",
        "RequestTimeout",
        "ResourceNotFoundError",
        "RpcError",
        "ShutdownError",
        "StateError",
        "ToolError",
        "TransportError",
        "TrustError",
        "ValidationError",
    ),
    "registry.lock": ("Lock",),
    "servers.many": ("Servers",),
    "tape.calllog": ("CallLog",),
    "tape.mock": ("MockServer",),
    "transports.stdio": ("Stdio",),
    "types.progress": ("Progress",),
    "types.prompts": (
        "Prompt",
        "PromptResult",
    ),
    "types.resources": (
        "ReadResult",
        "Resource",
        "ResourceTemplate",
    ),
    "types.tools": (
        "Tool",
        "ToolResult",
    ),
}
"""Where each public name lives. It is loaded when it is first used, not before."""

_MODULES: Final = (
    "codegen",
    "config",
    "configuration",
    "errors",
    "handles",
    "registry",
    "servers",
    "sync",
    "tape",
    "telemetry",
    "testing",
    "types",
)
"""Parts that can be reached as ``holdfast.<part>`` without an import of their own."""

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES, _MODULES)
