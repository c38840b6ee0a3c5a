"""How a server is doing, as a value and as a line."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast import TransportError
from holdfast.servers.member import Failure, Status

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOST = Failure(server="git", error=TransportError("git: lost", stderr_tail="x"), time=NOON)


def test_a_status_reads_as_a_line() -> None:
    ready = Status(name="git", state="ready", tools=1, server="mcp-git 1.2")
    assert str(ready) == "git  ready  1 tool  mcp-git 1.2"
    assert str(Status(name="git", state="not started")) == "git  not started"
    down = Status(name="git", state="backoff", tools=3, failure=LOST)
    assert str(down) == "git  backoff  3 tools  git: lost"


def test_a_ready_server_may_have_failed_before() -> None:
    status = Status(name="git", state="ready", failure=LOST)
    assert status.is_ready
    assert status.error is LOST.error
    assert str(status) == "git  ready"


def test_a_failure_names_its_server_once() -> None:
    assert str(LOST).startswith("git: lost\n")
    assert str(Failure(server="a", error=TransportError("lost"), time=NOON)) == "a: lost"
