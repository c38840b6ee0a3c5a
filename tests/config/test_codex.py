"""Codex's ``config.toml``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.config.rig import faults, read_data, read_one, warnings
from tests.rows import rows

pytestmark = pytest.mark.req("F3")


def test_a_file_of_codex() -> None:
    servers = read_data("codex", "codex.config.toml")
    context, designs, old = servers["context"], servers["designs"], servers["old"]
    assert context.problems == ()
    assert (context.command, context.cwd) == ("npx", "/srv/context")
    assert context.env == {"LEVEL": "debug"}
    assert context.settings["inherit_env"] == ["CONTEXT_TOKEN", "REGION"]
    assert context.settings["timeouts"] == {"handshake": 20, "tools": 600}
    assert (context.settings["allow"], context.settings["deny"]) == (
        ["search", "fetch"],
        ["fetch"],
    )
    assert designs.headers == {
        "X-Region": "eu",
        "X-Tenant": "${env:DESIGNS_TENANT}",
        "Authorization": "Bearer ${env:DESIGNS_TOKEN}",
    }
    assert designs.transport == "streamable"
    assert designs.settings["timeouts"] == {"handshake": 5}
    assert warnings(designs) == {"tools": "has no effect here"}
    assert old.disabled


@rows(
    ("raw", "found"),
    [
        ({}, {"command": "is missing, and so is a URL"}),
        (
            {"command": "a", "url": "https://x"},
            {"url": "there is both a command and a URL; leave one out"},
        ),
        (
            {"url": "https://x", "bearer_token": "abc"},
            {"bearer_token": "is not taken; name a variable in bearer_token_env_var"},
        ),
        ({"command": "a", "env_vars": "HOME"}, {"env_vars": "must be a list, not a string"}),
        ({"command": "a", "env_vars": [{}]}, {"env_vars": "must be a string, not null (at [0])"}),
        (
            {"command": "a", "tool_timeout_sec": -1},
            {"tool_timeout_sec": "must be a number, more than 0"},
        ),
    ],
)
def test_what_is_wrong_is_told_by_field(raw: dict[str, Any], found: dict[str, str]) -> None:
    assert faults(read_one("codex", {"mcp_servers": {"one": raw}})) == found


def test_headers_that_codex_would_ignore_are_told() -> None:
    entry = read_one("codex", {"mcp_servers": {"one": {"url": "https://x", "headers": {"a": "b"}}}})
    assert "headers" in warnings(entry)
    assert entry.headers == {}
