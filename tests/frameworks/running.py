"""The frameworks at pinned versions, and what came of a run on each."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.interop.install import PROJECT, install

CACHE: Final = PROJECT / ".cache" / "frameworks"
OURS: Final = ("aiohttp", "click", "jsonschema-rs", "msgspec")
"""What Holdfast needs; Holdfast itself is that of the tree."""
PINS: Final[dict[str, tuple[str, ...]]] = {
    "langchain": (
        "langchain==1.4.7",
        "langchain-core==1.7.2",
        "langgraph==1.2.20",
        "langchain-mcp-adapters==0.3.2",
    ),
    "openai_agents": ("openai-agents==0.24.0", "mcp==2.3.0"),
    "pydantic_ai": ("pydantic-ai-slim[mcp]==2.66.0", "mcp==2.3.0"),
}
"""An environment each: langchain-mcp-adapters needs mcp 1, the others bring mcp 2."""
OTHERS: Final = {
    "fastmcp": ("fastmcp==4.1.2", "mcp==2.3.0", "pydantic==2.14.3"),
    "locust": ("locust==2.47.0",),
    "workers": (
        "celery[redis]==5.7.0",
        "pandas==3.1.1",
        "rq==2.12.0",
        "temporalio==1.35.0",
    ),
    "providers": ("anthropic==2.9.0", "google-genai==3.3.0", "openai==3.51.0"),
}
"""For server objects alone, for Locust, for workers, and for the examples of model providers."""


def installed(name: str) -> Path:
    """Return the folder of an environment with one of the frameworks, installed if need be."""
    return install("pypi", name, (*{**PINS, **OTHERS}[name], *OURS), CACHE)


@cache
def report(name: str, script: str | None = None) -> dict[str, Any]:
    """Run a framework's script, in its own environment, and return what it prints."""
    home = installed(name)
    path = os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                home / "bin" / "python",
                "-m",
                f"tests.frameworks.scripts.{script or name}_run",
                folder,
            ],
            cwd=PROJECT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def latest(name: str) -> Path:
    """Return where the last report of a framework is kept, for the page."""
    return CACHE / f"{name}.report.json"
