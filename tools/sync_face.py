"""Write the synchronous faces from the asynchronous ones: same verbs, same words, no copy by hand.

``python tools/sync_face.py`` writes; with ``--check`` it only says whether they are fresh.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src" / "holdfast"
HEAD = '''"""{title}

Written by tools/sync_face.py from {origin}: change that, and run it again.
"""

from __future__ import annotations

'''


@dataclass(frozen=True)
class Method:
    """One verb: its text, as far as it is the same on both sides, and its kind."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str = "_client"
    """The attribute that holds the asynchronous object."""

    @property
    def is_property(self) -> bool:
        return any(isinstance(one, ast.Name) and one.id == "property" for one in self._decorators)

    @property
    def _decorators(self) -> list[ast.expr]:
        return self.node.decorator_list

    @property
    def is_async(self) -> bool:
        return isinstance(self.node, ast.AsyncFunctionDef)

    @property
    def returns(self) -> str:
        assert self.node.returns is not None
        return ast.unparse(self.node.returns)

    def passed_on(self) -> str:
        """The arguments, as they are handed to the method of the same name."""
        given = self.node.args
        plain = [one.arg for one in (*given.posonlyargs, *given.args) if one.arg != "self"]
        named = [f"{one.arg}={one.arg}" for one in given.kwonlyargs]
        star = [f"**{given.kwarg.arg}"] if given.kwarg else []
        return ", ".join([*plain, *named, *star])

    def render(self) -> str:
        lines = [f"def {self.node.name}({ast.unparse(self.node.args)}) -> {self.returns}:"]
        if self.is_property:
            lines.insert(0, "@property")
        text = ast.get_docstring(self.node, clean=False)
        if text is not None:
            lines.append(f'    """{text}"""')
        lines += [f"    {line}" for line in self.body()]
        return "\n".join(f"    {line}" if line else "" for line in "\n".join(lines).split("\n"))

    def body(self) -> list[str]:
        call = f"self.{self.owner}.{self.node.name}"
        if self.is_property:
            return [f"return {call}"]
        call = f"{call}({self.passed_on()})"
        if self.node.name == "close":
            return [f"return self._portal.end(self.{self.owner}, {call})"]
        if self.returns == "Self":
            return [f"self._portal.run({call})", "return self"]
        if self.returns.startswith("RunningCall["):
            begun = f"self._portal.do(lambda: {call})"
            return [f"return RunningCall(self._portal, {begun})"]
        if self.returns == "Partial[ModelTool]":
            return [
                "from holdfast.sync.tools import bound",
                "",
                f"return bound(self._portal, self._portal.run({call}))",
            ]
        if self.node.name in ("on_notification", "on_log"):
            call = call.replace("(handler", "(in_thread(handler)")
        action = f"lambda: {call}" if self.passed_on() else call.removesuffix("()")
        work = f"self._portal.run({call})" if self.is_async else f"self._portal.do({action})"
        return [work if self.returns == "None" else f"return {work}"]


def verbs(tree: ast.Module, name: str, owner: str = "_client") -> Iterator[Method]:
    """The public methods and properties of a class, in their order."""
    (found,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    for node in found.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not node.name.startswith("_"):
            yield Method(node, owner)


def imports_for(tree: ast.Module, used: set[str], own: str) -> str:
    """The import statements of a module, reduced to the names that are used here, and ``own``."""
    plain, guarded = [], []
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            guarded += list(_reduced(node.body, used))
        else:
            plain += list(_reduced([node], used))
    lines = [*(ast.unparse(one) for one in plain), own]
    if guarded:
        lines += ["if TYPE_CHECKING:", *(f"    {ast.unparse(one)}" for one in guarded)]
    return "\n".join(lines)


def _reduced(nodes: list[ast.stmt], used: set[str]) -> Iterator[ast.stmt]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            node.names = [one for one in node.names if (one.asname or one.name) in used]
            if node.names:
                yield node


def names_in(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def client_face() -> str:
    tree = ast.parse((SRC / "client.py").read_text())
    methods = "\n\n".join(method.render() for method in verbs(tree, "Client"))
    body = f'''
class Client:
    """One server, for as long as you need it. May be shared by threads.

    ``with`` closes it at the end; the server starts at the first use.
    """

    def __init__(self, client: AsyncClient, portal: Portal) -> None:
        self._client = client
        self._portal = portal
        self.name: str = client.name
        portal.keep(client)

    def __repr__(self) -> str:
        return repr(self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

{methods}
'''
    own = """
from holdfast.client import Client as AsyncClient
from holdfast._core.calls.handlers import in_thread
from holdfast.sync.portal import Portal
from holdfast.sync.running import RunningCall
if TYPE_CHECKING:
    from holdfast.sync.tools import ModelTool
"""
    used = names_in(body) | {"TYPE_CHECKING"}
    found = imports_for(tree, used - {"RunningCall", "ModelTool"}, own)
    head = HEAD.format(title="The client's verbs, for code without a loop.", origin="client.py")
    return head + found + body


def servers_face() -> str:
    tree = ast.parse((SRC / "servers" / "group.py").read_text())
    methods = "\n\n".join(method.render() for method in verbs(tree, "Servers", "_servers"))
    (found,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "Servers")
    (made,) = (one for one in found.body if getattr(one, "name", "") == "__init__")
    assert isinstance(made, ast.FunctionDef)
    body = f'''
class Servers:
    """{ast.get_docstring(found, clean=False)}"""

    def __init__({ast.unparse(made.args)}) -> None:
        if "handlers" in overrides:
            overrides["handlers"] = threaded(overrides["handlers"])
        self._portal = portal()
        self._servers = self._portal.do(lambda: AsyncServers({Method(made).passed_on()}))
        self._portal.keep(self._servers)

    def __repr__(self) -> str:
        return repr(self._servers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._servers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._servers)

    def __contains__(self, name: object) -> bool:
        return name in self._servers

    def __getitem__(self, name: str) -> Client:
        """The client of a server."""
        return Client(self._portal.do(lambda: self._servers[name]), self._portal)

{methods}
'''
    own = """
from holdfast.servers.group import Servers as AsyncServers
from holdfast.sync.client import Client
from holdfast._core.calls.handlers import threaded
from holdfast.sync.portal import portal
if TYPE_CHECKING:
    from holdfast.sync.tools import ModelTool
"""
    used = (names_in(body) | {"TYPE_CHECKING"}) - {"Client", "ModelTool"}
    head = HEAD.format(title="Many servers, for code without a loop.", origin="servers/group.py")
    return head + imports_for(tree, used, own) + body


def running_face() -> str:
    """The one verb that differs: a call under way is not awaited, its result is asked for."""
    tree = ast.parse((SRC / "_core" / "calls" / "running.py").read_text())
    methods = "\n\n".join(method.render() for method in verbs(tree, "RunningCall", "_call"))
    body = f'''
R = TypeVar("R")


class RunningCall(Generic[R]):
    """A call under way. ``result()`` waits for it; ``cancel()`` ends it and tells the server."""

    def __init__(self, portal: Portal, call: AsyncRunningCall[R]) -> None:
        self._portal = portal
        self._call = call

    def __repr__(self) -> str:
        return repr(self._call)

{methods}

    def result(self, timeout: float | None = None) -> R:
        """Wait for the result.

        Args:
            timeout: Seconds to wait; the call goes on if they pass: ask again, or cancel it.

        Raises:
            TimeoutError: There is no result yet.
        """
        return self._portal.run(self._wait(), timeout)

    async def _wait(self) -> R:
        return await self._call  # Shielded: a wait that is given up leaves the call alone.
'''
    own = """
from typing import Generic, TypeVar

from holdfast._core.calls.running import RunningCall as AsyncRunningCall
from holdfast.sync.portal import Portal
from holdfast.types.lifecycle import Task
"""
    title = "A call under way, seen from a thread."
    return HEAD.format(title=title, origin="_core/calls/running.py") + own + body


def tools_face() -> str:
    """Tools for models whose call is not awaited."""
    tree = ast.parse((SRC / "agents" / "listing.py").read_text())
    kinds = ("ServerTool", "ModelTool")
    methods = "\n\n".join(m.render() for kind in kinds for m in verbs(tree, kind, "_tool"))
    body = f'''
class ModelTool:
    """A tool that a language model can be given, for code without a loop."""

    def __init__(self, portal: Portal, tool: AsyncModelTool) -> None:
        self._portal = portal
        self._tool = tool
        self.server: str = tool.server
        self.tool: Tool = tool.tool
        self.name: str = tool.name

    def __repr__(self) -> str:
        return repr(self._tool)

{methods}


def bound(portal: Portal, tools: Partial[AsyncModelTool]) -> Partial[ModelTool]:
    """Return tools whose calls run on the portal's loop."""
    return Partial((ModelTool(portal, tool) for tool in tools), tools.failures)
'''
    own = """
from holdfast.agents.listing import ModelTool as AsyncModelTool, Partial
from holdfast.sync.portal import Portal
"""
    title = "Tools for language models, for code without a loop."
    head = HEAD.format(title=title, origin="agents/listing.py")
    return head + imports_for(tree, names_in(body) - {"ModelTool"}, own) + body


def connect_face() -> str:
    tree = ast.parse((SRC / "_connect.py").read_text())
    (node,) = (
        one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "connect"
    )
    method = Method(node)
    signature = f"def connect({ast.unparse(node.args)}) -> Client:"
    text = ast.get_docstring(node, clean=False)
    given = method.passed_on().replace("handlers=handlers", "handlers=threaded(handlers)")
    body = f'''
{signature}
    """{text}"""
    client = _connect.connect({given})
    return Client(client, portal())
'''
    own = """
from holdfast import _connect
from holdfast._connect import LockTarget, LogTarget, Options
from holdfast.sync.client import Client
from holdfast._core.calls.handlers import threaded
from holdfast.sync.portal import portal
"""
    found = imports_for(tree, (names_in(body) | {"TYPE_CHECKING"}) - {"Client"}, own)
    title = "``connect``, for code without a loop."
    return HEAD.format(title=title, origin="_connect.py") + found + body


def handles_face() -> str:
    tree = ast.parse((SRC / "handles" / "handle.py").read_text())
    source = (SRC / "handles" / "results.py").read_text()
    methods = "\n\n".join(method.render() for method in verbs(tree, "Handle", "_handle"))
    body = f'''
T = TypeVar("T")


class SyncHandle:
    """A `Handle` for code without a loop. It may be shared by threads."""

    _REGISTRY: ClassVar[Registry]
    _NAMESPACES: ClassVar[Mapping[str, type[SyncNamespace]]] = {{}}

    def __init__(
        self,
        target: Target | sync.Client = None,
        *,
        session: str | None = None,
        adapter: SessionAdapter | None = None,
        drift: Drift = "raise",
        log: Log = None,
        open_arguments: Mapping[str, object] | None = None,
        registry: Registry | None = None,
        **options: Any,
    ) -> None:
        check_settings(session, adapter, open_arguments, drift)
        own = getattr(self, "_REGISTRY", None) if registry is None else registry
        options = options if log is None else {{**options, "log": log}}
        client = client_for(target, sync.Client, sync.connect, own, options)
        self._face: SyncHandle = self
        self.client: sync.Client = client
        self._portal = client._portal
        self._handle = Handle(
            client._client,
            session=session,
            adapter=adapter,
            drift=drift,
            open_arguments=open_arguments,
            registry=own,
        )
        self.registry: Registry | None = self._handle.registry
        self.adapter: SessionAdapter | None = self._handle.adapter
        for attribute, kind in self._NAMESPACES.items():
            setattr(self, attribute, kind(self))
        # A program that ends without closing: the session first, then the client.
        self._portal.drop(client._client)
        self._portal.keep(self._handle)

    def __repr__(self) -> str:
        return repr(self._handle).replace("<Handle", f"<{{type(self).__name__}}", 1)

    def __getitem__(self, name: str) -> SyncNamespace:
        """Return a namespace by the part before the first dot; ``_root`` for tools without."""
        found: SyncNamespace = getattr(self, attribute_for(self._NAMESPACES, name))
        return found

    def __enter__(self) -> Self:
        self._portal.run(self._handle.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._portal.end(self._handle, self._handle.__aexit__(kind, error, traceback))

{methods}


{_blocking(source, "Calls")}


{_blocking(source, "Namespace")}
'''
    own = """
from collections.abc import Callable
from typing import TypeVar

from holdfast import sync
from holdfast.handles.handle import PATIENCE, Handle, Log, check_settings, client_for
from holdfast.handles.results import Methods, attribute_for
from holdfast.handles.results import HandleResult, structured
"""
    found = imports_for(tree, names_in(body) - {"Namespace"}, own)
    title = "Handles, for code without a loop."
    return HEAD.format(title=title, origin="handle.py and results.py") + found + body


def _blocking(source: str, name: str) -> str:
    """Return a class of ``handles/results.py`` without its ``await``."""
    (node,) = (
        one for one in ast.parse(source).body if isinstance(one, ast.ClassDef) and one.name == name
    )
    text = "\n".join(source.split("\n")[node.lineno - 1 : node.end_lineno])
    text = text.replace("async def", "def").replace("await ", "").replace("Awaitable[Any]", "Any")
    text = text.replace("self._handle", "self._face").replace("_handle: Handle", "_face: Handle")
    text = text.replace("-> T:  # pyright", "-> T:  # type: ignore[type-var]  # pyright")
    return re.sub(r"\b(Handle|Calls|Namespace)\b", r"Sync\1", text)


FACES = {
    SRC / "sync" / "running.py": running_face,
    SRC / "sync" / "tools.py": tools_face,
    SRC / "sync" / "client.py": client_face,
    SRC / "sync" / "_connect.py": connect_face,
    SRC / "sync" / "servers.py": servers_face,
    SRC / "handles" / "sync.py": handles_face,
}


def tidy(source: str) -> str:
    """As the project's own formatter would leave it."""
    name = str(SRC / "face.py")  # in full: of a bare name ruff does not find the settings
    for arguments in (["check", "--fix", "--quiet", "--select=I,F401"], ["format", "--quiet"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", name, "-"]
        done = subprocess.run(
            command, input=source, capture_output=True, text=True, check=False, cwd=SRC.parent
        )
        if done.returncode:
            raise SystemExit(done.stderr or done.stdout)
        source = done.stdout
    return source


def main(arguments: list[str]) -> int:
    """0 if all is fresh now; 1 if ``--check`` found that it was not."""
    stale, check = 0, "--check" in arguments
    for path, face in FACES.items():
        wanted = tidy(face())
        if path.exists() and path.read_text() == wanted:
            continue
        stale = 1
        print(f"{path.relative_to(SRC.parent)}: {'not fresh' if check else 'written'}")
        if not check:
            path.write_text(wanted)
    return stale if check else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
