"""``mcpServers``, as Claude Desktop, Claude Code, Cursor and Holdfast write it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config.rig import faults, read_data, read_one, warnings
from tests.rows import rows

pytestmark = pytest.mark.req("F3")


def read(**raw: Any) -> Any:
    return read_one("mcpServers", {"mcpServers": {"one": raw}})


def test_a_file_of_claude_desktop() -> None:
    servers = read_data("mcpServers", "claude_desktop_config.json")
    assert list(servers) == ["filesystem", "weather"]
    assert servers["filesystem"].command == "npx"
    assert servers["filesystem"].args[-1] == "/srv/papers"
    assert servers["weather"].env == {"WEATHER_KEY": "not-a-real-key", "PORT": "8080"}
    assert all(entry.problems == () for entry in servers.values())


def test_a_file_of_claude_code() -> None:
    servers = read_data("mcpServers", "claude_code.mcp.json")
    tracker, events, database = servers.values()
    assert (tracker.kind, tracker.transport) == ("http", "auto")
    assert tracker.url == "${TRACKER_URL:-https://tracker.example}/mcp"
    assert tracker.headers == {"Authorization": "Bearer ${TRACKER_TOKEN}"}
    assert (events.kind, events.transport) == ("sse", "sse")
    assert database.settings["timeouts"] == {"request": 60.0}
    assert all(entry.problems == () for entry in servers.values())


def test_a_file_of_cursor_with_comments_and_trailing_commas() -> None:
    servers = read_data("mcpServers", "cursor.mcp.json")
    assert servers["server-name"].env_file == "${workspaceFolder}/.env"
    assert servers["remote"].kind == "http"
    assert servers["remote"].settings["oauth"]["client_id"]
    assert warnings(servers["remote"]) == {}


def test_a_file_of_holdfast() -> None:
    git, secure = read_data("mcpServers", "holdfast.mcp.json").values()
    assert git.problems == ()
    said = git.settings
    assert said["timeouts"] == {"request": 60, "handshake": 20}
    assert said["tool_timeouts"] == {"git_clone": 600}
    assert (said["protocol"], said["allow"], said["deny"]) == (
        "2025-11-25",
        ["git_*"],
        ["git_push"],
    )
    assert git.settings["lock"] == {"path": "mcp.lock", "mode": "warn"}
    assert git.settings["log"] == "~/calls.jsonl"
    assert said["backoff"] == {"first": 0.5, "attempts": 3}
    assert said["limits"] == {"frame_bytes": 1048576}
    assert (said["when_down"], said["replay"], said["grace"]) == ("wait", "safe", 5)
    assert said["inherit_env"] == ["SSH_AUTH_SOCK"]
    assert (secure.settings["ca"], secure.settings["key"]) == ("ca.pem", "me.key")


@rows(
    ("raw", "field", "message"),
    [
        ({}, "command", "is missing, and so is a URL"),
        ({"command": ""}, "command", "must not be empty"),
        ({"command": []}, "command", "must not be empty"),
        ({"command": ["", "a"]}, "command", "must not be empty"),
        ({"command": 5}, "command", "must be a string, not a number"),
        ({"command": "a", "args": "b"}, "args", "must be a list, not a string"),
        ({"command": "a", "args": ["b", 1]}, "args", "must be a string, not a number (at [1])"),
        ({"command": "a", "env": []}, "env", "must be an object, not a list"),
        ({"command": "a", "env": {"X": {}}}, "env.X", "must be a string or a number"),
        ({"command": "a", "env": {"A=B": "1"}}, "env.A=B", "is no name for a variable"),
        ({"command": "a", "disabled": "yes"}, "disabled", "must be true or false, not a string"),
        ({"command": "a", "timeout": "1"}, "timeout", "must be a number, more than 0"),
        ({"command": "a\0b"}, "command", "must not have a zero character in it"),
        ({"command": "a\ud800b"}, "command", "must not have half a character in it"),
        ({"type": "stdio", "url": "https://x"}, "command", "is missing"),
        ({"type": "http", "command": "a"}, "url", "is missing"),
        ({"type": "ws", "url": "https://x"}, "type", "'ws' is not supported (stdio, http or sse)"),
        ({"url": "ftp://x"}, "url", "must begin with http:// or https://"),
        ({"url": "https://x", "headers": {"a b": "c"}}, "headers.a b", "is no name for a header"),
        (
            {"url": "https://x", "headers": {"a": "b\r\nc: d"}},
            "headers.a",
            "must be one line without control characters",
        ),
        (
            {"url": "https://x", "command": "a"},
            "url",
            "there is both a command and a URL; leave one out",
        ),
        ({"command": "a", "args": ["${A"]}, "args[0]", None),
        ({"command": "a", "holdfast": []}, "holdfast", "must be an object, not a list"),
        (
            {"command": "a", "holdfast": {"timeouts": {"request": 0}}},
            "holdfast.timeouts",
            "Timeouts(request=0.0): must be a number, more than 0",
        ),
        (
            {"command": "a", "holdfast": {"allow": "x"}},
            "holdfast.allow",
            "must be a list, not a string",
        ),
    ],
)
@pytest.mark.req("E2")
def test_what_is_wrong_is_told_by_field(
    raw: dict[str, Any], field: str, message: str | None
) -> None:
    found = faults(read(**raw))
    assert list(found) == [field]
    assert message is None or found[field] == message


def test_an_entry_that_is_no_object_is_told() -> None:
    entry = read_one("mcpServers", {"mcpServers": {"one": "npx server"}})
    assert faults(entry)[None] == "must be an object, not a string"


@rows(
    ("raw", "warned"),
    [
        (
            {"command": "a", "arguments": []},
            {"arguments": "is not known here; did you mean 'args'?"},
        ),
        ({"command": "a", "url": "https://x", "type": "stdio"}, {"url": "has no effect here"}),
        ({"url": "https://x", "env": {"A": "b"}}, {"env": "has no effect here"}),
        (
            {"command": "a b"},
            {"command": "has a space in it; arguments belong in args, one by one"},
        ),
        (
            {"command": "a", "timeout": 30},
            {"timeout": "seconds or milliseconds? Not used; set holdfast.timeouts (in seconds)"},
        ),
        (
            {"command": "a", "holdfast": {"timeouts": {"reqest": 3}}},
            {"holdfast.timeouts.reqest": "is not known here"},
        ),
        (
            {"command": "a", "holdfast": {"allows": []}},
            {"holdfast.allows": "is not known here; did you mean 'allow'?"},
        ),
    ],
)
def test_what_is_not_understood_is_a_warning(raw: Any, warned: dict[str, str]) -> None:
    entry = read(**raw)
    assert entry.errors == ()
    assert warnings(entry) == warned


def test_a_command_may_be_one_list() -> None:
    entry = read(command=["uvx", "server"], args=["-v"])
    assert (entry.command, entry.args) == ("uvx", ("server", "-v"))


@pytest.mark.parametrize(
    ("kind", "transport"),
    [("http", "auto"), ("streamable-http", "streamable"), ("streamableHttp", "streamable")],
)
def test_the_types_of_http(kind: str, transport: str) -> None:
    assert read(type=kind, url="https://x").transport == transport


def test_disabled_is_said_in_two_ways() -> None:
    assert read(command="a", disabled=True).disabled
    assert read(command="a", enabled=False).disabled
    assert not read(command="a").disabled


def test_inputs_may_stand_beside_the_servers() -> None:
    document = {
        "mcpServers": {"one": {"command": "a", "args": ["${input:x}"]}, "two": {"command": "b"}},
        "inputs": [{"id": "x", "type": "promptString"}, {"id": "y"}, 5, {"id": 6}],
    }
    from holdfast.config import dialects
    from tests.config.rig import source

    (one, two), _ = dialects.read(document, source())
    assert list(one.inputs) == ["x"]
    assert two.inputs == {}
