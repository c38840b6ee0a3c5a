"""Gemini's ``settings.json``."""

from __future__ import annotations

import pytest

from tests.config.rig import read_data, read_one, warnings

pytestmark = pytest.mark.req("F3")


def test_a_file_of_gemini() -> None:
    servers = read_data("gemini", "gemini.settings.json")
    python, streaming, events, experiment = servers.values()
    assert python.settings["timeouts"] == {"request": 15}
    assert warnings(python) == {"trust": "has no effect here"}
    assert (streaming.kind, streaming.transport) == ("http", "streamable")
    assert (streaming.settings["allow"], streaming.settings["deny"]) == (
        ["safe", "reader"],
        ["reader"],
    )
    assert streaming.settings["timeouts"] == {"request": 900}
    assert (events.url, events.transport) == ("http://localhost:8080/sse", "auto")
    assert experiment.disabled
    assert not python.disabled


def test_variables_without_braces_are_variables() -> None:
    python = read_data("gemini", "gemini.settings.json")["python-tools"]
    assert python.args[-1] == "${MODE}"
    assert python.env == {
        "DATABASE_URL": "${DB_CONNECTION}",
        "API_KEY": "${EXTERNAL_KEY}",
        "PRICE": "$$5",
    }


def test_the_streamable_url_wins() -> None:
    raw = {"httpUrl": "https://new", "url": "https://old"}
    assert read_one("gemini", {"mcpServers": {"one": raw}}).url == "https://new"


def test_only_the_allowed_servers_are_on() -> None:
    servers = {"one": {"command": "a"}}
    assert read_one("gemini", {"mcp": {"allowed": ["two"]}, "mcpServers": servers}).disabled
    assert not read_one("gemini", {"mcp": {"allowed": ["one"]}, "mcpServers": servers}).disabled
