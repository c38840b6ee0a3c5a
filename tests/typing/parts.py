"""The parts of the package as type checkers see them, by ``import holdfast`` alone. Never run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import holdfast
from holdfast.agents import Hit, Partial, ServerTool, Toolset
from holdfast.calllog.compare import Difference, compare
from holdfast.calllog.log import CallLog
from holdfast.calllog.mock import MockServer
from holdfast.calllog.replay import ReplayReport, replay, run_sequence
from holdfast.codegen import Generated, SessionTools, generate
from holdfast.config import Configuration, ServerEntry, load
from holdfast.handles import Handle, ParameterSession, SessionAdapter
from holdfast.lock import changes, fingerprint, guard
from holdfast.servers import Servers, Status


def attributes() -> None:
    """The package says that its parts need no import of their own: checkers must know it too."""
    assert_type(holdfast.sync.connect("python server.py"), holdfast.sync.Client)
    assert_type(holdfast.testing.Peer().name, str)
    assert_type(holdfast.types.TextContent(text="x").text, str)
    assert_type(holdfast.errors.ToolError("x").message, str)
    assert_type(holdfast.policies.Timeouts().request, float)
    assert_type(holdfast.events.RequestStop.name, str)
    assert_type(holdfast.servers.Servers(), Servers)
    assert_type(holdfast.handles.ParameterSession(), ParameterSession)
    assert_type(holdfast.config.load(), Configuration)
    assert_type(holdfast.codegen.SessionTools(), SessionTools)
    assert_type(holdfast.agents.Toolset, type[Toolset])
    assert_type(holdfast.calls.State("ready"), holdfast.calls.State)
    assert_type(holdfast.auth.OAuth, type[holdfast.auth.OAuth])


# Calls on tape


async def tapes(client: holdfast.Client) -> None:
    log = CallLog("calls.jsonl", sidecars=True, redaction=holdfast.policies.Redaction(on=False))
    holdfast.connect("python server.py", log=log)
    holdfast.connect("python server.py", log=print)
    report = await replay(client, "calls.jsonl", stop=False, fill={"password": "x"})
    assert_type(report, ReplayReport)
    assert_type(report.ok, bool)
    assert_type(await run_sequence(client, Path("sums.jsonl"), stop=False), ReplayReport)
    assert_type(compare("a.jsonl", "b.jsonl"), Difference)
    assert_type(holdfast.connect(MockServer("calls.jsonl")), holdfast.Client)


# Locks


def locks(tools: list[holdfast.Tool]) -> None:
    holdfast.connect("python server.py", lock=guard.Lock("mcp.lock", "warn", "files"))
    assert_type(guard.read("mcp.lock"), guard.LockFile)
    assert_type(fingerprint.registry_hash(tools), str)
    assert_type(fingerprint.definition(tools[0]), dict[str, Any])
    found = changes.compare({}, guard.definitions(tools))
    assert_type(found, changes.Changes)
    assert_type(found.breaking, bool)
    for change in found.items:
        assert_type(change.details, tuple[str, ...])


# Many servers


async def many(config: Configuration) -> None:
    async with Servers({"a": "python server.py", "b": {"target": ["x"]}}) as servers:
        assert_type(servers, Servers)
        assert_type(await servers.open(["a"], timeout=3), list[Status])
        assert_type(await servers.list_tools(), Partial[ServerTool])
        assert_type(await servers.search("files", limit=3), Partial[Hit])
        assert_type(await servers.call_tool("a.add", {"a": 1}), holdfast.ToolResult)
        assert_type(await servers.toolset("openai"), Toolset)
        assert_type(servers["a"], holdfast.Client)
        assert_type(servers.status("a").error, holdfast.HoldfastError | None)
    assert_type(Servers(config), Servers)


def configured() -> None:
    config = load("mcp.json", environ={"HOME": "/home/me"})
    entry = assert_type(config["files"], ServerEntry)
    assert_type(entry.connect(), holdfast.Client)
    assert_type(config.servers, Mapping[str, ServerEntry])


# Handles


async def handled() -> None:
    adapter: SessionAdapter = ParameterSession("sessionName", "session.open", None, reopen=False)
    async with Handle("python server.py", session="trip", adapter=adapter) as handle:
        assert_type(handle, Handle)
        assert_type(handle.client, holdfast.Client)
        result = await handle.call_tool("nav.goto", {"url": "x"}, parallel=True, timeout=3)
        assert_type(result, holdfast.ToolResult)
    assert_type(await handle.close(), bool)


def generated(tools: list[holdfast.Tool]) -> None:
    made = generate(tools, target=["python", "server.py"], sync=True, session=SessionTools())
    assert_type(made, Generated)
    assert_type(made.source, str)
