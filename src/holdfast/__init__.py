"""Holdfast: the MCP client that holds on.

    import asyncio, holdfast

    async def main():
        async with holdfast.connect("uvx mcp-server-time") as client:
            result = await client.call_tool("get_current_time", {"timezone": "UTC"})
            print(result.text)

    asyncio.run(main())

Without ``await``: ``holdfast.sync.connect(...)``. Many servers: ``holdfast.Servers(...)``.
Documentation of each option: ``help(holdfast.connect)``.

Public, from the outside in:

    connect, Client, errors, policies, events, types    one server
    sync, servers, handles, agents                      without await; many; typed; for models
    langchain, openai_agents, pydantic_ai               under those frameworks
    config, lock, codegen, calllog                      files people have; what tools promise;
                                                        tools as Python; calls written down
    testing, cli, demo                                  a scripted server and a pytest plugin;
                                                        the command line; a server to try

Private, under ``_core``, each standing on those below it:

    calls, observers          one call as one function; who watches it
    driver, mailbox           event loop, clock, futures
    transports, auth          stdio, HTTP, SSE, memory; credentials
    engine                    states, requests in flight, recovery               pure
    server                    the server side of MCP                             pure
    eras                      everything that depends on the revision            pure
    boundary                  the values that pass between engine and shell      pure
    wire                      JSON-RPC messages and framing                      pure
    text, files, redact       shown text, safe files, hidden secrets

Private too is ``schema``: JSON Schema, its validation, cost, types and changes.
"""

from holdfast._lazy import lazily

TYPE_CHECKING = False  # as typing has it, which takes longer to load than all of this
# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast._version import __version__
    from holdfast import agents as agents
    from holdfast import calllog as calllog
    from holdfast import codegen as codegen
    from holdfast import config as config
    from holdfast import errors as errors
    from holdfast import events as events
    from holdfast import handles as handles
    from holdfast import langchain as langchain
    from holdfast import lock as lock
    from holdfast import openai_agents as openai_agents
    from holdfast import policies as policies
    from holdfast import pydantic_ai as pydantic_ai
    from holdfast import servers as servers
    from holdfast import stores as stores
    from holdfast import sync as sync
    from holdfast import testing as testing
    from holdfast import types as types
    from holdfast._connect import connect
    from holdfast._core.auth.browser import browser_login
    from holdfast._core.auth.options import (
        Bearer, ClientCredentials, EnterpriseManaged, LoginRequest, OAuth, WorkloadIdentity,
    )
    from holdfast._core.calls.cached_reads import Listing
    from holdfast._core.calls.invocation import Invocation
    from holdfast._core.calls.handlers import ApprovalRequest, Handlers, Notification
    from holdfast._core.calls.options import CallOptions
    from holdfast._core.calls.pending import PendingCall
    from holdfast._core.calls.call_values import RunningCall
    from holdfast._core.engine.state import State
    from holdfast._core.observers.audit import AuditRecord
    from holdfast._core.transports.http import Http
    from holdfast._core.transports.stdio import Stdio
    from holdfast.calllog.log import CallLog
    from holdfast.calllog.mock import MockServer
    from holdfast.client import Client
    from holdfast.errors import (
        ApprovalError, AuthError, BackpressureError, CancelledCallError, DiscoveryError, DriftError,
        GrantError, HandshakeRefused, HandshakeTimeout, HoldfastError, LoginFailed, LoginPending,
        LoginRequired, ProtocolError, RequestTimeout, ResourceNotFoundError, RpcError, ScopeError,
        ShutdownError, StateError, ToolError, TransportError, TrustError, ValidationError,
    )
    from holdfast.lock.guard import Lock
    from holdfast.policies import (
        Backoff, Cache, Identity, Limits, Observability, Redaction, Timeouts, ToolPolicy,
    )
    from holdfast.schema.faults import SchemaFault
    from holdfast.servers.group import Servers
    from holdfast.types.lifecycle import Progress
    from holdfast.types.resources import Prompt, PromptResult
    from holdfast.types.resources import ReadResult, Resource, ResourceTemplate
    from holdfast.types.tools import Tool, ToolResult


__all__ = [
    "ApprovalError", "ApprovalRequest", "AuditRecord", "AuthError", "Backoff", "BackpressureError",
    "Bearer", "Cache", "CallLog", "CallOptions", "CancelledCallError", "Client",
    "ClientCredentials", "DiscoveryError", "DriftError", "EnterpriseManaged",
    "GrantError", "Handlers", "HandshakeRefused", "HandshakeTimeout", "HoldfastError", "Http",
    "Identity", "Invocation", "Limits", "Listing", "Lock", "LoginFailed", "LoginPending",
    "LoginRequest", "LoginRequired", "MockServer",
    "Notification", "OAuth", "Observability", "PendingCall", "Progress", "Prompt", "PromptResult",
    "ProtocolError", "ReadResult", "Redaction", "RequestTimeout", "Resource",
    "ResourceNotFoundError", "ResourceTemplate", "RpcError", "RunningCall", "SchemaFault",
    "ScopeError", "Servers", "ShutdownError", "State", "StateError", "Stdio",
    "Timeouts", "Tool", "ToolError",
    "ToolPolicy", "ToolResult", "TransportError", "TrustError", "ValidationError",
    "WorkloadIdentity", "__version__", "browser_login", "connect",
]

_HOMES = {
    "_core.auth.browser": ("browser_login",),
    "_core.auth.options": (
        "Bearer", "ClientCredentials", "EnterpriseManaged", "LoginRequest", "OAuth",
        "WorkloadIdentity",
    ),
    "_core.observers.audit": ("AuditRecord",),
    "_core.calls.handlers": ("ApprovalRequest", "Handlers", "Notification"),
    "_core.calls.options": ("CallOptions",),
    "schema.faults": ("SchemaFault",),
    "_core.calls.cached_reads": ("Listing",),
    "_core.calls.call_values": ("RunningCall",),
    "_core.calls.invocation": ("Invocation",),
    "_core.calls.pending": ("PendingCall",),
    "client": ("Client",),
    "_version": ("__version__",),
    "policies": (
        "Backoff", "Cache", "Identity", "Limits", "Redaction", "Observability", "Timeouts",
        "ToolPolicy",
    ),
    "_connect": ("connect",),
    "_core.engine.state": ("State",),
    "errors": (
        "ApprovalError", "AuthError", "ScopeError", "LoginRequired", "LoginPending", "LoginFailed",
        "GrantError", "DiscoveryError", "BackpressureError", "CancelledCallError", "DriftError",
        "HandshakeRefused", "HandshakeTimeout", "HoldfastError", "ProtocolError", "RequestTimeout",
        "ResourceNotFoundError", "RpcError", "ShutdownError", "StateError", "ToolError",
        "TransportError", "TrustError", "ValidationError",
    ),
    "lock.guard": ("Lock",),
    "servers.group": ("Servers",),
    "calllog.log": ("CallLog",),
    "calllog.mock": ("MockServer",),
    "_core.transports.http": ("Http",),
    "_core.transports.stdio": ("Stdio",),
    "types.lifecycle": ("Progress",),
    "types.resources": ("Prompt", "PromptResult", "ReadResult", "Resource", "ResourceTemplate"),
    "types.tools": ("Tool", "ToolResult"),
}
# isort: on
# fmt: on
"""Where each public name lives. It is loaded when it is first used, not before."""

_MODULES = (
    "codegen",
    "policies",
    "config",
    "errors",
    "handles",
    "langchain",
    "lock",
    "openai_agents",
    "pydantic_ai",
    "servers",
    "stores",
    "sync",
    "agents",
    "calllog",
    "events",
    "testing",
    "types",
)
"""Parts that can be reached as ``holdfast.<part>`` without an import of their own."""

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES, _MODULES)
