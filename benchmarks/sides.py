"""The clients that are measured, all driven by the same verbs and without a wrapper."""

from __future__ import annotations

import compileall
import importlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from benchmarks import http_peer
from benchmarks.server import Target

ROOT = Path(__file__).resolve().parent.parent


class Session(Protocol):
    """What a row may ask of a client: the verbs that holdfast and the floor share."""

    async def open(self) -> Any: ...
    async def close(self) -> Any: ...
    async def list_tools(self) -> list[Any]: ...
    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, on_progress: Any = None
    ) -> Any: ...


@dataclass(frozen=True)
class Side:
    name: str
    family: str
    legacy: bool
    imports: str
    proof: str  # fails if what was imported is not the real thing
    wire: str | None = None  # the only one that it is measured on

    @property
    def python(self) -> str:
        return str(http_peer.python()) if self.family == "mcp" else sys.executable

    def session(self, target: Target) -> Session:
        """A new client; its module is imported here, so that one side can run alone."""
        if self.family == "raw":
            made = self.module(target).KINDS[self.name](target)
        else:
            made = self.module().client(target)
        return cast(Session, made)

    def module(self, target: Target = "") -> Any:
        floor = "http_raw" if isinstance(target, str) else "raw"
        name = {"raw": floor, "mcp": "http_peer"}.get(self.family, "holdfast_side")
        return importlib.import_module(f"benchmarks.{name}")

    def check(self, session: Session) -> None:
        if self.family != "raw":
            self.module().check_era(session, self.legacy)

    def cold_code(self, command: Target) -> str:
        if self.family == "raw":
            return f"from benchmarks import raw; raw.cold({self.name!r}, {command!r})"
        return f"from benchmarks import holdfast_side; holdfast_side.cold({command!r})"


SIDES = (
    Side("raw", "raw", True, "asyncio, msgspec", "msgspec.json.decode"),
    Side("raw-fd", "raw", True, "asyncio, msgspec", "msgspec.json.decode", "stdio"),
    Side("raw-stateless", "raw", False, "asyncio, msgspec", "msgspec.json.decode", "http"),
    Side("holdfast-handshake", "holdfast", True, "holdfast", "holdfast.connect"),
    Side("holdfast-stateless", "holdfast", False, "holdfast", "holdfast.connect"),
    Side("mcp-handshake", "mcp", True, "mcp", "mcp.Client", "http"),
    Side("mcp-stateless", "mcp", False, "mcp", "mcp.Client", "http"),
)


def compile_sources() -> None:
    """Bytecode for what is measured, as an installed package has it, even where none is kept."""
    for folder in ("src/holdfast", "benchmarks"):
        compileall.compile_dir(ROOT / folder, quiet=2)


def chosen(only: str | None, *, peers: bool = False) -> list[Side]:
    """Sides by name or family (``raw,raw-fd`` or ``holdfast``); all of ours by default."""
    if not only:
        return [side for side in SIDES if peers or side.family != "mcp"]
    names = only.split(",")
    known = {side.name for side in SIDES} | {side.family for side in SIDES}
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(
            f"no such side: {', '.join(unknown)} (there are: {', '.join(sorted(known))})"
        )
    # "raw" is a side and a family: as a name it means the side alone.
    return [
        side
        for side in SIDES
        if side.name in names or (side.family in names and side.family != "raw")
    ]


def python_path() -> list[str]:
    """What children need on their path: this package, and the tree where it is not installed."""
    installed = importlib.util.find_spec("holdfast") is not None
    return [str(ROOT)] if installed else [str(ROOT), str(ROOT / "src")]


def named(name: str) -> Side:
    return next(side for side in SIDES if side.name == name)
