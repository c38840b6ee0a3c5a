"""``holdfast servers``: what is configured, without starting any of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import golden
from tests.cli.conftest import Cli, Configure, Seen, stdio


@pytest.fixture
def several(configure: Configure, tmp_path: Path) -> Path:
    """Servers of all standings; the file that is there once one was started."""
    path = tmp_path / "started"
    entry = stdio(["touch", str(path)])
    configure(
        git=stdio(["uvx", "mcp-server-git", "--repository", "."]),
        off=stdio(["x"], disabled=True),
        broken={"command": 5},
        web={"url": "https://example.org/mcp"},
    )
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": entry}}))
    return path


@pytest.mark.req("F3")
def test_each_server_has_its_standing(cli: Cli, several: Path) -> None:
    done = cli("servers")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[:2] for row in rows] == [
        ["theirs", "not trusted"],
        ["git", "yours"],
        ["off", "disabled"],
        ["broken", "broken"],
        ["web", "yours"],
    ]
    assert rows[1][2] == "uvx mcp-server-git --repository ."
    assert "command" in done.err
    assert not several.exists()
    assert len(cli("servers", "--json").value["servers"]) == 5


@pytest.mark.req("F3")
@pytest.mark.parametrize("columns", [120, 80, 40])
def test_they_fit_the_window(seen: Seen, configure: Configure, columns: int) -> None:
    git = stdio(["uvx", "mcp-server-git", "--repository", "."])
    configure(git=git, web={"url": "https://example.org/mcp"})
    golden.check(f"servers-{columns}", seen("servers", columns=columns).lines)


@pytest.mark.req("N3")
def test_the_path_of_ones_own_file_is_not_taken_apart(
    seen: Seen, cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    cli("add", "notfound", "--", "python", "-m", "some.package.with.a.server")
    Path(".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}', encoding="utf-8")
    assert "~/.config/holdfast/mcp.json" in "\n".join(seen("servers").lines)


def test_none_is_told_with_what_to_do(cli: Cli) -> None:
    done = cli("servers")
    assert (done.code, done.out) == (0, "")
    assert "No server is configured. Add one: holdfast add NAME" in done.err


def test_a_file_that_cannot_be_read_is_told(cli: Cli) -> None:
    Path(".mcp.json").write_text("{")
    done = cli("servers")
    assert done.err.splitlines()[-1].startswith(f"{Path.cwd()}/.mcp.json: is not JSON")
