"""Screens with several servers, as a person sees them at 80 and at 120 columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import golden
from tests.cli.conftest import DEMO, Configure, Open, Seen, stdio
from tests.cli.rig import puppet
from tests.cli.web import Web

LONG = "Reads the records of a station, newest first, and leaves out those that were withdrawn."
TOOLS = [
    {
        "name": "read_records",
        "description": LONG,
        "inputSchema": {
            "type": "object",
            "properties": {
                "station": {"type": "string"},
                "order": {"enum": ["newest", "oldest"], "default": "newest"},
                "limits": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["station"],
        },
    },
    {"name": "close", "inputSchema": {"type": "object"}},
]


@pytest.fixture
def servers(configure: Configure, web: Web) -> None:
    """A server in each state, ready ones apart: those show how long they took."""
    web.refuse = 401
    configure(
        records=stdio(puppet(tools=TOOLS)),
        gone=stdio(["no-such-command"]),
        web={"url": web.url},
    )
    text = json.dumps({"mcpServers": {"theirs": stdio(DEMO)}})
    Path(".mcp.json").write_text(text, encoding="utf-8")


@pytest.mark.req("N3")
@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize(
    "words",
    [
        ["status", "gone", "theirs", "web"],
        ["tools", "records", "gone"],
        ["describe", "records.read_records"],
    ],
    ids=lambda words: str(words[0]),
)
def test_a_screen_is_as_it_was_reviewed(
    seen: Seen, servers: None, words: list[str], columns: int
) -> None:
    lines = seen(*words, columns=columns).lines
    lines = sorted(lines) if words[0] == "status" else lines  # they stand as servers have answered
    golden.check(f"screen-{words[0]}-{columns}", lines)


@pytest.mark.req("N3")
@pytest.mark.parametrize("columns", [80, 120])
def test_tools_are_found_by_words(seen: Seen, configure: Configure, columns: int) -> None:
    missing = ["/usr/local/lib/stations/bin/start-the-server-of-all-the-stations-on-the-coast"]
    configure(records=stdio(puppet(tools=TOOLS)), gone=stdio(missing))
    golden.check(f"screen-search-{columns}", seen("search", "station", columns=columns).lines)


@pytest.mark.req("N2", "N3")
@pytest.mark.parametrize("columns", [80, 120])
def test_a_projects_server_is_approved_in_place(terminal: Open, home: Path, columns: int) -> None:
    entry = {"command": "python", "args": ["-c", "print(1)"], "env": {"TOKEN": "${TOKEN}"}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": entry}}), encoding="utf-8")
    one = terminal("tools", "theirs", columns=columns)
    one.expect("Approve it and go on? [y/N]: ")
    one.send("n\n")
    one.expect("theirs: not approved")
    assert one.end() == 5
    lines = one.screen.lines
    where = next(at for at, line in enumerate(lines) if "cwd (the project's folder)" in line)
    golden.check(f"screen-approve-{columns}", lines[lines.index("{") : where])
    said = lines[next(at for at, line in enumerate(lines) if line.startswith("careful")) :]
    golden.check(f"screen-approve-{columns}-question", said)
