"""Holdfast: the MCP client that holds on.

    import asyncio, holdfast

    async def main():
        async with holdfast.connect("uvx mcp-server-time") as client:
            result = await client.call_tool("get_current_time", {"timezone": "UTC"})
            print(result.text)

    asyncio.run(main())

Without ``await``: ``holdfast.sync.connect(...)``. A name from a configuration (``connect("git")``)
is a server too. Many servers: ``holdfast.Servers(...)``. Each option: ``help(holdfast.connect)``.

Here is what most programs need; the rest is in these modules, from the outside in:

    errors, policies, types, events        all errors, options, what servers send, what happens
    calls, auth                            what calls take and give; ways to log in
    sync, servers, handles, agents         without await; many; typed; for models
    langchain, openai_agents, pydantic_ai  under those frameworks
    config, lock, codegen, calllog         files people have; what tools promise; tools as
                                           Python; calls written down
    stores, testing, cli, demo             what is kept; a scripted server and a pytest plugin;
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
    from holdfast import auth as auth
    from holdfast import calllog as calllog
    from holdfast import calls as calls
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
    from holdfast._core.auth.options import Bearer, OAuth
    from holdfast._core.calls.handlers import Handlers
    from holdfast._core.ledger.ledger import Ledger
    from holdfast._core.transports.http import Http
    from holdfast._core.transports.stdio import Stdio
    from holdfast.client import Client
    from holdfast.errors import (
        AuthError, DriftError, HoldfastError, OutcomeUnknown, ProtocolError, RequestTimeout,
        RpcError, StateError, ToolError, TransportError, ValidationError,
    )
    from holdfast.policies import Backoff, Cache, Limits, Observability, Timeouts, ToolPolicy
    from holdfast.servers.group import Servers
    from holdfast.types.lifecycle import Progress
    from holdfast.types.resources import PromptResult, ReadResult
    from holdfast.types.tools import Tool, ToolResult


__all__ = [
    "AuthError", "Backoff", "Bearer", "Cache", "Client", "DriftError", "Handlers", "HoldfastError",
    "Http", "Ledger", "Limits", "OAuth", "Observability", "OutcomeUnknown", "Progress",
    "PromptResult", "ProtocolError", "ReadResult", "RequestTimeout", "RpcError", "Servers",
    "StateError", "Stdio", "Timeouts", "Tool", "ToolError", "ToolPolicy", "ToolResult",
    "TransportError", "ValidationError", "__version__", "connect",
]

_HOMES = {
    "_connect": ("connect",),
    "_core.auth.options": ("Bearer", "OAuth"),
    "_core.calls.handlers": ("Handlers",),
    "_core.ledger.ledger": ("Ledger",),
    "_core.transports.http": ("Http",),
    "_core.transports.stdio": ("Stdio",),
    "_version": ("__version__",),
    "client": ("Client",),
    "errors": (
        "AuthError", "DriftError", "HoldfastError", "OutcomeUnknown", "ProtocolError",
        "RequestTimeout", "RpcError",
        "StateError", "ToolError", "TransportError", "ValidationError",
    ),
    "policies": ("Backoff", "Cache", "Limits", "Observability", "Timeouts", "ToolPolicy"),
    "servers.group": ("Servers",),
    "types.lifecycle": ("Progress",),
    "types.resources": ("PromptResult", "ReadResult"),
    "types.tools": ("Tool", "ToolResult"),
}
# isort: on
# fmt: on
"""Where each name lives: what most programs need. It is loaded when it is first used, not before.
The others are in their modules, as the table at the top has them."""

_MODULES = (
    "auth",
    "calls",
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
