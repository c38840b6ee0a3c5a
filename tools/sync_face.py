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
RUNNING = "RunningCall["
TOOLS = "Partial[ModelTool]"
MANY = "Outcomes"


@dataclass(frozen=True)
class Method:
    """One verb: its text, as far as it is the same on both sides, and its kind."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: str
    """The asynchronous class, by its name here."""

    @property
    def is_property(self) -> bool:
        decorators = self.node.decorator_list
        return any(isinstance(one, ast.Name) and one.id == "property" for one in decorators)

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
        name = self.node.name
        if not self.is_property and not self.differs:
            is_async = isinstance(self.node, ast.AsyncFunctionDef)
            face = "closing" if name == "close" else "blocking" if is_async else "on_loop"
            heard = ", handler=True" if name in HEARD else ""
            return f"    {name}: Final = {face}({self.owner}.{name}{heard})"
        lines = [f"def {name}({ast.unparse(self.node.args)}) -> {self.returns}:"]
        if self.is_property:
            lines.insert(0, "@property")
        lines += [f'    """{ast.get_docstring(self.node, clean=False)}"""', f"    {self.body()}"]
        text = "\n".join(f"    {line}" if line else "" for line in "\n".join(lines).split("\n"))
        return f"\n{text}\n"

    @property
    def differs(self) -> bool:
        """Whether it returns something else here."""
        return self.returns.startswith((RUNNING, MANY)) or self.returns in (TOOLS, "Self")

    def body(self) -> str:
        call = f"self._inner.{self.node.name}"
        if self.is_property:
            return f"return {call}"
        call = f"{call}({self.passed_on()})"
        if self.returns == "Self":
            return f"self._portal.run({call})\n    return self"
        if self.returns.startswith(MANY):
            return f"return in_batches(self._portal, lambda rows: {call}, rows)"
        if self.returns.startswith(RUNNING):
            return f"return RunningCall(self._portal.do(lambda: {call}), self._portal)"
        return f"return bound(self._portal.run({call}), self._portal)"


HEARD = ("on_notification", "on_log")
"""Verbs whose handler runs in a thread. Progress does not: all of it precedes the result."""


def class_of(tree: ast.Module, name: str) -> ast.ClassDef:
    (found,) = (one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    return found


def verbs(tree: ast.Module, name: str, owner: str) -> str:
    """The public methods and properties of a class, in their order."""
    methods = [
        Method(node, owner)
        for node in class_of(tree, name).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return "\n".join(one.render() for one in methods if not one.node.name.startswith("_"))


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
    """The client, and a call under way, whose result is asked for."""
    tree = parsed("client.py")
    running = verbs(parsed("_core", "calls", "call_values.py"), "RunningCall", "AsyncRunningCall")
    body = f'''
class Client(SyncWrapper[AsyncClient]):
    """One server, for as long as you need it. May be shared by threads.

    ``with`` closes it at the end; the server starts at the first use.
    """

    def __init__(self, client: AsyncClient, portal: Portal) -> None:
        super().__init__(client, portal)
        self.name: str = client.name
        portal.closables.add(client)
{CONTEXT}
{verbs(tree, "Client", "AsyncClient")}


class RunningCall(SyncWrapper[AsyncRunningCall[R]], Generic[R]):
    """A call under way. ``result()`` waits for it; ``cancel()`` ends it and tells the server.

    ``for`` gives its progress, until it ends.
    """

    def __iter__(self) -> Iterator[types.Progress]:
        while (progress := self._portal.run(self._inner._next_progress())) is not None:
            yield progress

{running}

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


def bound(tools: Partial[Any], portal: Portal) -> Partial[ModelTool]:
    """Return tools whose calls run on the portal's loop."""
    from holdfast.agents.listing import Partial, SyncModelTool

    calls = (SyncModelTool(tool.server, tool.tool, tool.name, tool, portal.run) for tool in tools)
    return Partial(calls, tools.failures)


def _returning_client(connect: Callable[P, AsyncClient]) -> Callable[P, Client]:
    @wraps(connect)
    def connected(*args: P.args, **options: P.kwargs) -> Client:
        return Client(connect(*args, **with_threads(options)), portal())

    return connected


connect: Final = _returning_client(_connect.connect)
"""Return a synchronous client. Takes what `holdfast.connect` takes."""
'''
    own = """
from functools import wraps
from typing import Final, Generic, ParamSpec, TypeVar
from collections.abc import Iterator
from holdfast import _connect
from holdfast.client import Client as AsyncClient
from holdfast._core.calls.call_values import RunningCall as AsyncRunningCall
from holdfast.sync.portal import Portal, SyncWrapper, blocking, closing, on_loop, portal
from holdfast.sync.iteration import Outcomes, in_batches
from holdfast.sync.portal import with_threads
"""
    typed = "from holdfast.agents.listing import SyncModelTool as ModelTool"
    used = (names_in(body) | {"TYPE_CHECKING"}) - {"RunningCall", "ModelTool", MANY}
    origin = "client.py and call_values.py"
    head = HEAD.format(title="The client's verbs, for code without a loop.", origin=origin)
    variables = '\n\nP = ParamSpec("P")\nR = TypeVar("R")\n'
    return head + imports_for(tree, used, own, typed) + variables + body


def servers_face() -> str:
    tree = parsed("servers", "group.py")
    found = class_of(tree, "Servers")
    (made,) = (one for one in found.body if getattr(one, "name", "") == "__init__")
    assert isinstance(made, ast.FunctionDef)
    text = without_await(ast.get_docstring(found, clean=False) or "")
    given = Method(made, "AsyncServers").passed_on()
    body = f'''
class Servers(SyncWrapper[AsyncServers]):
    """{text}"""

    def __init__({ast.unparse(made.args)}) -> None:
        overrides = with_threads(overrides)
        if isinstance(config, Mapping):
            config = {{name: with_threads(server) for name, server in config.items()}}
        loop = portal()
        super().__init__(loop.do(lambda: AsyncServers({given})), loop)
        loop.closables.add(self._inner)
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

{verbs(tree, "Servers", "AsyncServers")}
'''
    own = """
from typing import Final
from holdfast.servers.group import Servers as AsyncServers
from holdfast.sync.iteration import Outcomes, in_batches
from holdfast.sync.client import Client, bound
from holdfast.sync.portal import SyncWrapper, blocking, closing, on_loop, portal, with_threads
"""
    used = (names_in(body) | {"TYPE_CHECKING"}) - {"Client", "ModelTool", MANY}
    head = HEAD.format(title="Many servers, for code without a loop.", origin="servers/group.py")
    typed = "from holdfast.agents.listing import SyncModelTool as ModelTool"
    return head + imports_for(tree, used, own, typed) + body


def without_await(text: str) -> str:
    """An example of the asynchronous face as one of the synchronous."""
    text = text.replace("async with", "with").replace("await ", "")
    return text.replace("holdfast.Servers(", "holdfast.sync.Servers(")


def handles_face() -> str:
    tree = parsed("handles", "handle.py")
    source = (SRC / "handles" / "results.py").read_text()
    body = f'''
T = TypeVar("T")


class SyncHandle(SyncWrapper[Handle]):
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
        expected = registry or getattr(self, "_REGISTRY", None)
        client = client_for(target, sync.Client, sync.connect, expected, options, log=log)
        inner = Handle(
            client._inner,
            session=session,
            adapter=adapter,
            drift=drift,
            open_arguments=open_arguments,
            registry=expected,
        )
        super().__init__(inner, client._portal)
        self._handle: SyncHandle = self
        self.client: sync.Client = client
        self.registry: Registry | None = expected
        self.adapter: SessionAdapter | None = adapter
        self.session: str | None = session
        for attribute, kind in self._NAMESPACES.items():
            setattr(self, attribute, kind(self))
        # A program that ends without closing: the session first, then the client.
        self._portal.closables.discard(client._inner)
        self._portal.closables.add(inner)

    def __repr__(self) -> str:
        return repr(self._inner).replace("<Handle", f"<{{type(self).__name__}}", 1)

    def __getitem__(self, name: str) -> SyncNamespace:
        """Return a namespace by the part before the first dot; ``_root`` for tools without."""
        namespace: SyncNamespace = getattr(self, attribute_for(self._NAMESPACES, name))
        return namespace

    def __enter__(self) -> Self:
        self._portal.run(self._inner.__aenter__())
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._portal.end(self._inner, self._inner.__aexit__(kind, error, traceback))

{verbs(tree, "Handle", "Handle")}


{_blocking(source, "Calls")}


{_blocking(source, "Namespace")}
'''
    own = """
from collections.abc import Callable
from typing import Final, TypeVar

from holdfast import sync
from holdfast.handles.handle import Handle, Log, client_for
from holdfast.handles.results import Methods, attribute_for
from holdfast.handles.results import HandleResult, structured
from holdfast.sync.portal import SyncWrapper, blocking, closing
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
