"""A locustfile: each user makes the same calls, and waits in the last until it is stopped."""

from __future__ import annotations

import os
import sys
from typing import Any, ClassVar

from locust import task

from holdfast.load import McpUser

ADDITIONS = 20


class Visitor(McpUser):
    """Adds, asks wrongly, loses the server, and adds once more."""

    target: ClassVar[list[str]] = [sys.executable, "-m", "holdfast.demo.server"]
    options: ClassVar[dict[str, Any]] = {
        "env": {
            name: os.environ[name]
            for name in ("PYTHONPATH", "HOLDFAST_INTEROP_MARK")
            if name in os.environ
        },
        "when_down": "wait",
    }

    @task
    def visit(self) -> None:
        for number in range(ADDITIONS):
            outcome = self.call_tool("add", {"a": number, "b": 1}, timeout=60)
            assert outcome.result == {"sum": number + 1}, outcome
        assert not self.call_tool("add", {"a": "x"}, label="add, wrongly").ok
        assert self.call_tool("crash", {}, timeout=60).outcome == "unknown"
        assert self.call_tool("add", {"a": 1, "b": 1}, timeout=60).ok
        self.call_tool("sleep", {"seconds": 3600}, timeout=7200)
