"""One server among many: from what was said of it to a client."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import StateError, TransportError, ValidationError
from holdfast.config import load
from holdfast.servers import Servers
from holdfast.servers.member import Failure, Member, Status, members
from holdfast.testing import Peer
from tests.rows import rows
from tests.servers.processes import DEMO


@pytest.fixture
def calm() -> Peer:
    peer = Peer()
    peer.tool("echo")(lambda: "done")
    return peer


def only(config: Any, **overrides: Any) -> Member:
    (member,) = members(config, overrides).values()
    return member


@rows(
    ("given", "name"),
    [
        ("python -m x", "s"),
        (["python", "-m", "x"], "s"),
        ({"target": "python -m x"}, "s"),
        ({"target": "python -m x", "name": "mine"}, "mine"),
        ({"command": "python", "args": ["-m", "x"]}, "s"),
        ({"command": "python", "args": "x"}, "s"),
        ({"url": "https://example.com/mcp"}, "s"),
    ],
)
def test_a_server_can_be_said_in_many_ways(given: Any, name: str) -> None:
    client = only({"s": given}).obtain()
    assert (client.name, str(client.state)) == (name, "new")


@rows(
    ("config", "options", "message"),
    [
        (3, {}, r"Servers\(3\): must be a mapping"),
        (["x"], {}, r"Servers\(\['x'\]\): must be a mapping"),
        ({3: "x"}, {}, r"Servers\(\{3: …\}\): a server needs a name, a string"),
        ({"": "x"}, {}, r"a server needs a name, a string"),
        ({"a": "x"}, {"tiemouts": 1}, r"not an option of Servers; did you mean timeouts=…\?"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused(config: Any, options: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Servers(config, **options)


def test_a_client_is_taken_as_it_is(calm: Peer) -> None:
    client = holdfast.connect(calm, name="other")
    member = only({"s": client})
    assert member.obtain() is member.obtain() is client


def test_a_mapping_s_own_options_count_more_than_those_for_all(calm: Peer) -> None:
    config = {"a": {"target": calm, "when_down": "wait"}, "b": calm}
    found = members(config, {"when_down": "fail", "protocol": "2025-11-25"})
    policies = [member.obtain()._policy for member in found.values()]
    assert [(one.when_down, one.protocol) for one in policies] == [
        ("wait", "2025-11-25"),
        ("fail", "2025-11-25"),
    ]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"target": "x", "colour": "red"}, "s: .*colour"),
        ({"target": 5}, "s: target of type int"),
        ({"target": ["x"], "when_down": "cry"}, "s: when_down='cry'"),
    ],
)
def test_what_makes_no_client_is_refused_when_it_is_wanted(given: Any, why: str) -> None:
    member = only({"s": given})
    assert member.status().state == "not started"
    with pytest.raises(ValidationError, match=why):
        member.obtain()
    assert member.status().failure is not None


# From a file


def write(folder: Path, servers: dict[str, Any]) -> Path:
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return path


@pytest.mark.req("F3")
async def test_servers_come_from_a_file(tmp_path: Path) -> None:
    command, *args = DEMO
    path = write(
        tmp_path,
        {
            "demo": {"command": command, "args": args},
            "off": {"command": "x", "disabled": True},
            "unset": {"command": "${HOLDFAST_NO_SUCH_VARIABLE}"},
        },
    )
    async with Servers(path, when_down="wait") as servers:
        assert [(one.name, one.state) for one in servers.statuses] == [
            ("demo", "not started"),
            ("off", "disabled"),
            ("unset", "invalid"),
        ]
        assert servers.status("demo").source == str(path)
        assert "HOLDFAST_NO_SUCH_VARIABLE" in str(servers.status("unset").error)
        assert (await servers.call_tool("demo.add", {"a": 1, "b": 2})).structured == {"sum": 3}
        assert servers["demo"]._policy.when_down == "wait"
        tools = await servers.list_tools()
        assert [failure.server for failure in tools.failures] == ["unset"]


@pytest.mark.req("F3")
async def test_a_project_s_own_servers_are_listed_and_not_started(tmp_path: Path) -> None:
    """A project that somebody else wrote says: run this."""
    project, home, mark = tmp_path / "project", tmp_path / "home", tmp_path / "mark"
    project.mkdir()
    home.mkdir()
    write(project, {"evil": {"command": "/bin/sh", "args": ["-c", f"touch {mark}"]}})
    found = load(start=project, environ={"HOME": str(home)}, home=home)
    async with Servers(found) as servers:
        (status,) = servers.statuses
        assert (status.name, status.state) == ("evil", "untrusted")
        (status,) = await servers.open()
        assert status.state == "untrusted"
        assert "holdfast config trust evil" in str(status.error)
        tools = await servers.list_tools()
        assert (list(tools), [one.server for one in tools.failures]) == ([], ["evil"])
        with pytest.raises(StateError, match="not trusted"):
            await servers.call_tool("evil.anything")
    assert not mark.exists()


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
