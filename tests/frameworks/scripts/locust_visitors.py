"""A locustfile: each user makes the same calls, and waits in the last until it is stopped."""

from __future__ import annotations

from typing import Any, ClassVar

from locust import task

from holdfast.load import McpUser

ADDITIONS = 20
LONGEST = 300


class Visitor(McpUser):
    """Adds, asks wrongly, loses the server, and adds once more."""

    target = "demo"
    options: ClassVar[dict[str, Any]] = {"when_down": "wait"}

    @task
    def visit(self) -> None:
        for number in range(ADDITIONS):
            outcome = self.call_tool("add", {"a": number, "b": 1}, timeout=LONGEST)
            assert outcome.result == {"sum": number + 1}, outcome
        assert not self.call_tool("add", {"a": "x"}, label="add, wrongly").ok
        assert self.call_tool("crash", {}, timeout=LONGEST).outcome == "unknown"
        assert self.call_tool("add", {"a": 1, "b": 1}, timeout=LONGEST).ok
        self.call_tool("sleep", {"seconds": 3600}, timeout=7200)
