"""The clients that are compared: what each is, where it lives, and how its driver is started."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).resolve().parents[2]
DRIVERS: Final = Path(__file__).resolve().parent / "drivers"
CACHE: Final = ROOT / ".cache" / "peers"

Source = Literal["tree", "pypi", "npm"]


@dataclass(frozen=True)
class Client:
    """One side of the comparison. ``pins`` are exactly what is installed for it."""

    name: str
    title: str
    source: Source
    pins: tuple[str, ...]
    driver: str
    colour: str

    @property
    def home(self) -> Path:
        return CACHE / self.name

    @property
    def version(self) -> str:
        """The pinned version; Holdfast is whatever the tree holds."""
        return self.pins[0].replace("==", "@").rpartition("@")[2] if self.pins else ""

    def command(self) -> list[str]:
        """What starts the driver; the order (``serve``, ``import``, ``cold``) comes after it."""
        script = str(DRIVERS / self.driver)
        match self.source:
            case "tree":
                return [sys.executable, "-P", script]
            case "pypi":
                return [str(self.home / "bin" / "python"), "-P", script]
            case "npm":
                return [shutil.which("node") or "node", "--expose-gc", script, str(self.home)]

    def environment(self) -> dict[str, str]:
        """The same for all; Python's find this package, and Holdfast from the tree."""
        path = [str(ROOT), *([str(ROOT / "src")] if self.source == "tree" else [])]
        return dict(os.environ, PYTHONPATH=os.pathsep.join(path))


CLIENTS: Final = (
    Client("holdfast", "Holdfast", "tree", (), "holdfast_driver.py", "#1b7f5c"),
    Client("mcp", "Python SDK 2", "pypi", ("mcp==2.3.0",), "mcp_driver.py", "#3f6fb5"),
    Client("mcp1", "Python SDK 1", "pypi", ("mcp==1.30.0",), "mcp1_driver.py", "#8fb0dd"),
    Client(
        "fastmcp",
        "FastMCP",
        "pypi",
        ("fastmcp-slim[client]==4.1.4",),
        "fastmcp_driver.py",
        "#b5532d",
    ),
    Client(
        "typescript",
        "TypeScript",
        "npm",
        ("@modelcontextprotocol/client@2.4.0",),
        "typescript_driver.mjs",
        "#8a8a8a",
    ),
)

OURS: Final = CLIENTS[0]


def chosen(only: str | None) -> list[Client]:
    """Clients by name; all of them by default. Ratios are to ours, so ours is always there."""
    known = {client.name: client for client in CLIENTS}
    names = only.split(",") if only else list(known)
    if unknown := [name for name in names if name not in known]:
        raise SystemExit(f"no such client: {', '.join(unknown)} (there are: {', '.join(known)})")
    return [client for client in CLIENTS if client is OURS or client.name in names]


def named(name: str) -> Client:
    return next(client for client in CLIENTS if client.name == name)
