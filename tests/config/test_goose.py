"""Goose's ``config.yaml``."""

from __future__ import annotations

import pytest

from tests.config.rig import faults, read_data, read_one

pytestmark = pytest.mark.req("F3")


def test_a_file_of_goose() -> None:
    servers = read_data("goose", "goose.config.yaml")
    assert list(servers) == ["search", "remote", "events", "nested"], "built-in ones are no servers"
    search, remote, events, nested = servers.values()
    assert (search.command, search.args) == ("npx", ("-y", "search-server"))
    assert search.env == {"LEVEL": "debug", "RETRIES": "3"}
    assert search.settings["inherit_env"] == ["SEARCH_API_KEY"]
    assert search.settings["timeouts"] == {"request": 600}
    assert search.settings["allow"] == ["find"]
    assert remote.headers == {"Authorization": "Bearer ${TOKEN}", "X-Region": "eu"}
    assert (remote.disabled, remote.transport) == (True, "streamable")
    assert events.kind == "sse"
    assert nested.command == "nested-server"
    assert not any(entry.problems for entry in servers.values())


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ({"type": "stdio"}, {"cmd": "is missing"}),
        ({"type": "sse"}, {"uri": "is missing"}),
        ({"type": "carrier"}, {"type": "'carrier' is not supported (stdio, http or sse)"}),
    ],
)
def test_what_is_wrong_is_told_by_field(raw: dict[str, str], found: dict[str, str]) -> None:
    assert faults(read_one("goose", {"extensions": {"one": raw}})) == found
