"""How the browser's MCP server is started: ``@playwright/mcp`` over Debian's Chromium."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HOME = PROJECT / ".cache" / "browser"
PIN = "@playwright/mcp@0.0.83"
SERVER = HOME / "node_modules" / ".bin" / "playwright-mcp"

URL = "http://rope.test/"
"""Where the shop is for the browser, whatever its port: calls that are recorded stay the same."""

QUIET = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


class MissingError(Exception):
    """Something has to be installed first; says what."""


def chromium() -> str:
    """The browser's program."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/bin"):
            return found
    raise MissingError("there is no Chromium; on Debian or Ubuntu: apt-get install chromium")


def install() -> None:
    """Have npm put the server into .cache, unless it is there."""
    note = HOME / "installed"
    if SERVER.exists() and note.exists() and note.read_text() == PIN:
        return
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise MissingError("there is no npm; on Debian or Ubuntu: apt-get install nodejs npm")
    HOME.mkdir(parents=True, exist_ok=True)
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    subprocess.run([npm, "install", "--prefix", str(HOME), *options, PIN], check=True)
    note.write_text(PIN)


def command(port: int, folder: Path) -> list[str]:
    """Starts the server with a browser of its own, which knows the shop and nothing else."""
    rules = f"MAP rope.test 127.0.0.1:{port}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    launch = {
        "executablePath": chromium(),
        "headless": True,
        "chromiumSandbox": os.geteuid() != 0,
        "args": [*QUIET, f"--host-resolver-rules={rules}"],
    }
    context = {"viewport": {"width": 800, "height": 640}, "locale": "en-GB"}
    config = {
        "browser": {
            "browserName": "chromium",
            "isolated": True,
            "launchOptions": launch,
            "contextOptions": context,
        },
        "outputDir": str(folder),
        # Without these, answers have names of files in them, and those the time.
        "snapshot": {"mode": "none"},
        "imageResponses": "only",
    }
    path = folder / "config.json"
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")
    return [str(SERVER), "--config", str(path)]
