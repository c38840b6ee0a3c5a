"""Servers for the command line's tests."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.types import Tool
from holdfast.types.base import decode, encode
from tests.cli.terminal import PATIENCE

HERE = Path(__file__).parent


def puppet(**told: Any) -> list[str]:
    """The command of a puppet (see puppet.py)."""
    return [sys.executable, "-I", "-S", str(HERE / "puppet.py"), json.dumps(told)]


def told(journal: Path, method: str) -> list[dict[str, Any]]:
    """The messages of one kind that a puppet has got."""
    if not journal.exists():
        return []
    lines = journal.read_text(encoding="utf-8").splitlines()
    return [one for one in map(json.loads, lines) if one.get("method") == method]


def wait_for(journal: Path, method: str) -> None:
    """Until a puppet has got a message."""
    deadline = time.monotonic() + PATIENCE
    while not told(journal, method):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def tools(*definitions: Any) -> list[Tool]:
    """Tools as they come from a server."""
    return [decode(encode(definition), Tool) for definition in definitions]
