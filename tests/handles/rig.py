"""A server in memory that keeps sessions, and handles for it as generation writes them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, NotRequired, TypedDict

import msgspec

from holdfast import Backoff, Timeouts, Tool, ToolResult
from holdfast.calls import State
from holdfast.events import Transition
from holdfast.handles import UNSET, Handle, Namespace, ParameterSession, Registry, Unset
from holdfast.testing import Peer, ServerRequest

COMMAND = "holdfast codegen -o mcp_tools.py -- szkrabok"
AT_ONCE = Backoff(first=0.001, max=0.001)
OPTIONS: dict[str, Any] = {"timeouts": Timeouts(request=20), "backoff": AT_ONCE}
SESSION = ParameterSession()


def schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


TEXT = {"type": "string"}
COUNT = {"type": "object", "properties": {"passed": {"type": "integer"}}, "required": ["passed"]}


class Desk:
    """The sessions of a peer, what was called in which order, and gates to hold calls at."""

    def __init__(self, **settings: Any) -> None:
        self.peer = Peer("szkrabok", **settings)
        self.sessions: list[str] = []
        self.story: list[str] = []
        self.gates: dict[str, asyncio.Future[str]] = {}
        self.offer("session.open", sessionName=TEXT, url=TEXT)(self.open)
        self.offer("session.close", sessionName=TEXT)(self.close)
        self.offer("nav.goto", "url", sessionName=TEXT, url=TEXT)(self.goto)
        self.offer("browser.run.file", sessionName=TEXT, path=TEXT)(self.run_file)
        self.offer("health")(self.health)
        tool = self.peer.tool(
            "browser.run_test", input_schema=schema(sessionName=TEXT), output_schema=COUNT
        )
        tool(lambda **_: {"passed": 1})

    def offer(self, name: str, *required: str, **properties: Any) -> Any:
        return self.peer.tool(name, input_schema=schema(*required, **properties))

    def open(self, sessionName: str, url: str = "") -> str:  # noqa: N803
        self.story.append(f"open {sessionName}{url}")
        if sessionName in self.sessions or sessionName == "refused":
            raise ValueError("cannot be opened")
        self.sessions.append(sessionName)
        return "opened"

    def close(self, sessionName: str) -> str:  # noqa: N803
        self.story.append(f"close {sessionName}")
        if sessionName == "crashed":
            raise ValueError("the browser is gone")
        self.sessions.remove(sessionName)
        return "closed"

    async def goto(self, url: str, sessionName: str = "none") -> str:  # noqa: N803
        self.story.append(f"goto {sessionName} {url}")
        if url in self.gates:
            return await self.gates[url]
        if url == "bad":
            raise ValueError("no such page")
        return url

    def run_file(self, sessionName: str, path: str = "") -> str:  # noqa: N803
        return f"{sessionName} ran {path}"

    def health(self, **arguments: Any) -> str:
        self.story.append(f"health {arguments}")
        return "well"

    def gate(self, url: str) -> asyncio.Future[str]:
        """Hold the calls for a page until the future is set."""
        self.gates[url] = asyncio.get_running_loop().create_future()
        return self.gates[url]

    async def reached(self, count: int) -> ServerRequest:
        """Wait until the peer has got so many calls."""
        return await self.peer.expect("tools/call", count)

    def crash(self) -> None:
        """The server ends, and its sessions with it."""
        self.sessions.clear()
        self.peer.hang_up("crashed")

    def registry(self) -> Registry:
        """What a handle generated now would carry."""
        listed = [tool.definition for tool in self.peer.catalog.tools.values()]
        tools = msgspec.json.decode(msgspec.json.encode(listed), type=list[Tool])
        return Registry.of(tools, COMMAND)


class Count(TypedDict):
    passed: int
    failed: NotRequired[int]


class Nav(Namespace):
    _NAME: ClassVar[str] = "nav"
    _METHODS: ClassVar[Mapping[str, str]] = {"goto": "goto"}

    async def goto(
        self, *, url: str | Unset = UNSET, parallel: bool = False, timeout: float | None = None
    ) -> ToolResult:
        return await self._call("nav.goto", {"url": url}, parallel=parallel, timeout=timeout)


class Browser(Namespace):
    _NAME: ClassVar[str] = "browser"
    _METHODS: ClassVar[Mapping[str, str]] = {"run_test": "run_test", "run.file": "run_file"}

    async def run_test(self) -> Count:
        return await self._structured("browser.run_test", {})

    async def run_file(self, *, path: str | Unset = UNSET) -> ToolResult:
        return await self._call("browser.run.file", {"path": path})


class Root(Namespace):
    _NAME: ClassVar[str] = "_root"
    _METHODS: ClassVar[Mapping[str, str]] = {"health": "health"}

    async def health(self) -> ToolResult:
        return await self._call("health", {})


class Tools(Handle):
    _NAMESPACES: ClassVar[Mapping[str, type[Namespace]]] = {
        "_root": Root,
        "browser": Browser,
        "nav": Nav,
    }

    _root: Root
    browser: Browser
    nav: Nav


def next_state(mcp: Handle, wanted: State) -> asyncio.Future[None]:
    """Done when the handle's client next comes into a state."""
    reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def moved(event: Transition) -> None:
        if event.new == wanted and not reached.done():
            reached.set_result(None)

    mcp.client.events.subscribe(moved, Transition.name)
    return reached


def handle(desk: Desk, session: str | None = "p4n-test", **settings: Any) -> Tools:
    """What a generated ``connect`` gives."""
    settings = {"adapter": SESSION, "registry": desk.registry(), **OPTIONS, **settings}
    return Tools(desk.peer, session=session, **settings)
