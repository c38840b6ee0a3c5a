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

Written by tools/sync_face.py from {origin}: change those instead.
"""

from __future__ import annotations

'''
BREAK = "\n\n"
INNER = "self._inner"
"""The asynchronous object."""


@dataclass(frozen=True)
class Method:
    """One verb: its text, as far as it is the same on both sides, and its kind."""

    node: ast.FunctionDef | ast.AsyncFunctionDef

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
            # The summary alone: `Blocking` gives a method the whole text when it is loaded.
            lines.append(f'    """{text.partition(BREAK)[0].strip()}"""')
        lines += [f"    {line}" for line in self.body()]
        return "\n".join(f"    {line}" if line else "" for line in "\n".join(lines).split("\n"))

    def body(self) -> list[str]:
        call = f"{INNER}.{self.node.name}"
        if self.is_property:
            return [f"return {call}"]
        call = f"{call}({self.passed_on()})"
        if self.node.name == "close":
            return [f"return self._portal.end({INNER}, {call})"]
        if self.returns == "Self":
            return [f"self._portal.run({call})", "return self"]
        if self.returns.startswith("RunningCall["):
            begun = f"self._portal.do(lambda: {call})"
            return [f"return RunningCall({begun}, self._portal)"]
        if self.returns == "Partial[ModelTool]":
            return [f"return bound(self._portal.run({call}), self._portal)"]
        if self.node.name in ("on_notification", "on_log"):
            call = call.replace("(handler", "(in_thread(handler)")
        action = f"lambda: {call}" if self.passed_on() else call.removesuffix("()")
        work = f"self._portal.run({call})" if self.is_async else f"self._portal.do({action})"
        return [work if self.returns == "None" else f"return {work}"]


def class_of(tree: ast.Module, name: str) -> ast.ClassDef:
    (found,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    return found


def verbs(tree: ast.Module, *names: str) -> str:
    """The public methods and properties of some classes, in their order."""
    methods = [
        Method(node)
        for name in names
        for node in class_of(tree, name).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return BREAK.join(one.render() for one in methods if not one.node.name.startswith("_"))


def parsed(*path: str) -> ast.Module:
    return ast.parse(SRC.joinpath(*path).read_text())


def imports_for(tree: ast.Module, used: set[str], own: str, typed: str = "") -> str:
    """The import statements of a module, reduced to the names that are used here, and ``own``.

    ``typed`` are more for type checkers alone.
    """
    plain, guarded = [], []
    for node in tree.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            guarded += list(_reduced(node.body, used))
        else:
            plain += list(_reduced([node], used))
    lines = [*(ast.unparse(one) for one in plain), own]
    more = [*(ast.unparse(one) for one in guarded), *typed.split("\n")]
    if any(more):
        lines += ["if TYPE_CHECKING:", *(f"    {one}" for one in more)]
    return "\n".join(lines)


def _reduced(nodes: list[ast.stmt], used: set[str]) -> Iterator[ast.stmt]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            node.names = [one for one in node.names if (one.asname or one.name) in used]
            if node.names:
                yield node


def names_in(source: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


CONTEXT = """
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
"""


def client_face() -> str:
    """The client; a call under way, whose result is asked for; tools whose call is not awaited."""
    tree = parsed("client.py")
    tools = parsed("agents", "listing.py")
    body = f'''
class Client(Blocking[AsyncClient], of=AsyncClient):
    """One server, for as long as you need it. May be shared by threads.

    ``with`` closes it at the end; the server starts at the first use. A method takes, returns and
    raises what the method of `holdfast.Client` does.
    """

    def __init__(self, client: AsyncClient, portal: Portal) -> None:
        super().__init__(client, portal)
        self.name: str = client.name
        portal.keep(client)
{CONTEXT}
{verbs(tree, "Client")}


class RunningCall(Blocking[AsyncRunningCall[R]], Generic[R], of=AsyncRunningCall):
    """A call under way. ``result()`` waits for it; ``cancel()`` ends it and tells the server."""

{verbs(parsed("_core", "calls", "running.py"), "RunningCall")}

    def result(self, timeout: float | None = None) -> R:
        """Wait for the result.

        Args:
            timeout: Seconds to wait; the call goes on if they pass: ask again, or cancel it.

        Raises:
            TimeoutError: There is no result yet.
        """
        return self._portal.run(self._wait(), timeout)

    async def _wait(self) -> R:
        return await self._inner  # Shielded: a wait that is given up leaves the call alone.


class ModelTool(Blocking["AsyncModelTool"]):
    """A tool that a language model can be given, for code without a loop."""

    def __init__(self, tool: AsyncModelTool, portal: Portal) -> None:
        super().__init__(tool, portal)
        self.server: str = tool.server
        self.tool: Tool = tool.tool
        self.name: str = tool.name

{verbs(tools, "ServerTool", "ModelTool")}


def bound(tools: Partial[AsyncModelTool], portal: Portal) -> Partial[ModelTool]:
    """Return tools whose calls run on the portal's loop."""
    from holdfast.agents.listing import Partial

    return Partial((ModelTool(tool, portal) for tool in tools), tools.failures)
'''
    own = """
from typing import Generic, TypeVar
from holdfast.client import Client as AsyncClient
from holdfast._core.calls.handlers import in_thread
from holdfast._core.calls.running import RunningCall as AsyncRunningCall
from holdfast.sync.portal import Blocking, Portal
"""
    typed = """
from holdfast.agents.listing import ModelTool as AsyncModelTool
from holdfast.agents.outcome import ToolOutcome
from holdfast.schema.walk import Schema
from holdfast.types.tools import ToolAnnotations
"""
    used = (names_in(body) | {"TYPE_CHECKING"}) - {"RunningCall", "ModelTool"}
    origin = "client.py, running.py and listing.py"
    head = HEAD.format(title="The client's verbs, for code without a loop.", origin=origin)
    return head + imports_for(tree, used, own, typed) + '\n\nR = TypeVar("R")\n' + body


def servers_face() -> str:
    tree = parsed("servers", "group.py")
    found = class_of(tree, "Servers")
    (made,) = (one for one in found.body if getattr(one, "name", "") == "__init__")
    assert isinstance(made, ast.FunctionDef)
    text = without_await(ast.get_docstring(found, clean=False) or "")
    body = f'''
class Servers(Blocking[AsyncServers], of=AsyncServers):
    """{text}"""

    def __init__({ast.unparse(made.args)}) -> None:
        if "handlers" in overrides:
            overrides["handlers"] = threaded(overrides["handlers"])
        loop = portal()
        super().__init__(loop.do(lambda: AsyncServers({Method(made).passed_on()})), loop)
        loop.keep(self._inner)
{CONTEXT}
    def __len__(self) -> int:
        return len(self._inner)

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __contains__(self, name: object) -> bool:
        return name in self._inner

    def __getitem__(self, name: str) -> Client:
        """The client of a server."""
        return Client(self._portal.do(lambda: self._inner[name]), self._portal)

{verbs(tree, "Servers")}
'''
    own = """
from holdfast.servers.group import Servers as AsyncServers
from holdfast.sync.client import Client, bound
from holdfast._core.calls.handlers import threaded
from holdfast.sync.portal import Blocking, portal
"""
    used = (names_in(body) | {"TYPE_CHECKING"}) - {"Client", "ModelTool"}
    head = HEAD.format(title="Many servers, for code without a loop.", origin="servers/group.py")
    typed = "from holdfast.sync.client import ModelTool"
    return head + imports_for(tree, used, own, typed) + body


def without_await(text: str) -> str:
    """An example of the asynchronous face as one of the synchronous."""
    text = text.replace("async with", "with").replace("await ", "")
    return re.sub(r"holdfast\.(connect|Servers)\(", r"holdfast.sync.\1(", text)


def connect_face() -> str:
    tree = parsed("_connect.py")
    (node,) = (
        one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "connect"
    )
    method = Method(node)
    signature = f"def connect({ast.unparse(node.args)}) -> Client:"
    text = without_await(ast.get_docstring(node, clean=False) or "")
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
    tree = parsed("handles", "handle.py")
    source = (SRC / "handles" / "results.py").read_text()
    body = f'''
T = TypeVar("T")


class SyncHandle(Blocking[Handle], of=Handle):
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
        own = registry or getattr(self, "_REGISTRY", None)
        client = client_for(target, sync.Client, sync.connect, own, options, log=log)
        inner = Handle(
            client._inner,
            session=session,
            adapter=adapter,
            drift=drift,
            open_arguments=open_arguments,
            registry=own,
        )
        super().__init__(inner, client._portal)
        self._handle: SyncHandle = self
        self.client: sync.Client = client
        self.registry: Registry | None = own
        self.adapter: SessionAdapter | None = adapter
        for attribute, kind in self._NAMESPACES.items():
            setattr(self, attribute, kind(self))
        # A program that ends without closing: the session first, then the client.
        self._portal.drop(client._inner)
        self._portal.keep(inner)

    def __repr__(self) -> str:
        return repr(self._inner).replace("<Handle", f"<{{type(self).__name__}}", 1)

    def __getitem__(self, name: str) -> SyncNamespace:
        """Return a namespace by the part before the first dot; ``_root`` for tools without."""
        found: SyncNamespace = getattr(self, attribute_for(self._NAMESPACES, name))
        return found

    def __enter__(self) -> Self:
        self._portal.run(self._inner.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._portal.end(self._inner, self._inner.__aexit__(kind, error, traceback))

{verbs(tree, "Handle")}


{_blocking(source, "Calls")}


{_blocking(source, "Namespace")}
'''
    own = """
from collections.abc import Callable
from typing import TypeVar

from holdfast import sync
from holdfast.handles.handle import PATIENCE, Handle, Log, client_for
from holdfast.handles.results import Methods, attribute_for
from holdfast.handles.results import HandleResult, structured
from holdfast.sync.portal import Blocking
"""
    found = imports_for(tree, names_in(body) - {"Namespace"}, own)
    title = "Handles, for code without a loop."
    return HEAD.format(title=title, origin="handle.py and results.py") + found + body


def _blocking(source: str, name: str) -> str:
    """Return a class of ``handles/results.py`` without its ``await``."""
    node = class_of(ast.parse(source), name)
    text = "\n".join(source.split("\n")[node.lineno - 1 : node.end_lineno])
    text = text.replace("async def", "def").replace("await ", "").replace("Awaitable[Any]", "Any")
    text = text.replace("-> T:  # pyright", "-> T:  # type: ignore[type-var]  # pyright")
    return re.sub(r"\b(Handle|Calls|Namespace)\b", r"Sync\1", text)


FACES = {
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
