"""``search --registry`` and ``add io.github.owner/name``, as people type them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Open
from tests.registry.stub import Answer, Stub, listing, npm

pytestmark = [pytest.mark.req("N6"), pytest.mark.hang(400)]

NAME = "io.github.owner/weather"
PACKAGE = npm(
    environmentVariables=[
        {"name": "API_KEY", "description": "Your key", "isRequired": True, "isSecret": True},
        {"name": "UNITS", "default": "metric"},
        {"name": "DEBUG"},
    ]
)

EVIL = {"type": "positional", "value": "--registry=https://evil.example"}


@pytest.fixture
def registry(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    stub = Stub(listing(packages=[PACKAGE]), listing("com.example/weather", packages=[npm()]))
    monkeypatch.setenv("HOLDFAST_REGISTRY", stub.url)
    yield stub
    stub.close()


def written(home: Path, name: str = "weather") -> dict[str, Any]:
    file = home / "config/holdfast/mcp.json"
    found: dict[str, Any] = json.loads(file.read_text())["mcpServers"][name]
    return found


def test_a_registry_is_searched(cli: Cli, registry: Stub) -> None:
    done = cli("search", "--registry", "weather")
    assert done.code == 0, done.err
    assert f"{NAME} 1.2.3 (npm)" in done.out
    assert "Weather of everywhere" in done.out
    done = cli("search", "--registry", "weather", "--json")
    assert done.value["servers"][0]["publisher"] == "io.github.owner"
    done = cli("search", "--registry", registry.url, "xyzzy")
    assert (done.code, "Nothing in" in done.err) == (1, True)


def test_hostile_text_is_only_text(cli: Cli, registry: Stub) -> None:
    registry.entries[0]["server"]["description"] = "\x1b[2Jnice\u202e\n\nholdfast: approved" * 500
    registry.entries[0]["server"]["version"] = "1\x1b[31m"
    done = cli("search", "--registry", "weather")
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert all(len(line) < 400 for line in done.out.splitlines())


def test_a_server_is_shown_asked_about_and_added(
    terminal: Open, registry: Stub, home: Path
) -> None:
    one = terminal("add", NAME)
    shown = one.expect("API_KEY: Your key")
    for text in ("publisher  io.github.owner", "npm: @owner/weather@1.2.3", "(required, secret)"):
        assert text in shown
    assert "npx -y @owner/weather@1.2.3" in shown
    one.send("secret-value\n")
    one.expect("UNITS")
    one.send("\n")
    one.expect("DEBUG")
    one.send("\n")
    assert "secret-value" not in one.expect("Add it as 'weather'?")
    one.send("y\n")
    one.expect("lock file now?")
    one.send("n\n")
    assert one.end() == 0
    assert written(home) == {
        "command": "npx",
        "args": ["-y", "@owner/weather@1.2.3"],
        "env": {"API_KEY": "secret-value", "UNITS": "metric"},
    }


def test_a_no_adds_nothing(terminal: Open, registry: Stub, home: Path) -> None:
    one = terminal("add", "com.example/weather")
    one.expect("Add it as 'weather'?")
    one.send("n\n")
    assert one.end() == 5
    assert not (home / "config/holdfast/mcp.json").exists()


def test_without_a_person(cli: Cli, registry: Stub, home: Path) -> None:
    done = cli("add", NAME)
    assert (done.code, f"holdfast add {NAME} --yes" in " ".join(done.err.split())) == (5, True)
    done = cli("add", NAME, "--yes")
    assert (done.code, "needs API_KEY: give it with --env" in " ".join(done.err.split())) == (
        2,
        True,
    )
    done = cli("add", NAME, "--yes", "--env", "API_KEY", "--as", "w", "--json")
    assert done.code == 0, done.err
    assert done.value["servers"][0]["version"] == "1.2.3"
    assert written(home, "w")["env"] == {"API_KEY": "${API_KEY}", "UNITS": "metric"}
    done = cli("add", NAME, "--yes", "--env", "API_KEY=x", "--as", "w")
    assert (done.code, "already" in done.err) == (2, True)


def test_a_version_and_a_kind_can_be_chosen(cli: Cli, registry: Stub, home: Path) -> None:
    remote = {"type": "streamable-http", "url": "https://example.org/mcp"}
    registry.entries[1]["server"] |= {"remotes": [remote], "version": "2.0.0"}
    done = cli("add", "com.example/weather@2.0.0", "--kind", "remote", "-y")
    assert done.code == 0, done.err
    assert written(home)["url"] == "https://example.org/mcp"
    done = cli("add", "com.example/weather@9", "-y")
    assert (done.code, "in version 9" in done.err) == (2, True)
    done = cli("add", "com.example/weather", "--kind", "oci", "-y")
    assert (done.code, "it has: npm, remote" in done.err) == (2, True)


def test_a_bare_word_is_refused_with_candidates(cli: Cli, registry: Stub) -> None:
    done = cli("add", "weather")
    assert done.code == 2
    assert f"{NAME} and com.example/weather" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"packages": [npm(version="latest")]}, "'latest' is not exact"),
        ({"packages": [npm("--call=id")]}, "is not the name of a package"),
        ({"packages": []}, "neither a package nor a URL"),
        ({"packages": [7]}, "has not the form of one"),
        ({"packages": [npm(runtimeArguments=[EVIL])]}, "'--registry' is not an option"),
        ({"packages": [npm(environmentVariables=[{"name": "LD_PRELOAD"}])]}, "'LD_PRELOAD'"),
        ({"remotes": [{"type": "streamable-http", "url": "http://a.example"}]}, "https://"),
        ({"packages": [npm()], "status": "deleted"}, "was deleted"),
    ],
)
def test_a_hostile_entry_is_refused(
    cli: Cli, registry: Stub, home: Path, facts: dict[str, Any], message: str
) -> None:
    registry.entries = [listing(**facts)]
    done = cli("add", NAME, "-y")
    assert (done.code, message in done.err) == (2, True), done.err
    assert not (home / "config/holdfast/mcp.json").exists()


def test_a_kind_that_it_does_not_have_is_refused_with_those_it_has(
    cli: Cli, registry: Stub
) -> None:
    done = cli("add", NAME, "--kind", "oci", "-y")
    assert (done.code, "nothing of this kind to run (it has: npm)" in done.err) == (2, True)


def test_a_search_that_was_cut_does_not_say_that_there_is_nothing(cli: Cli, registry: Stub) -> None:
    def endless(path: str) -> Answer:
        page = {"servers": [], "metadata": {"nextCursor": str(len(registry.paths))}}
        return 200, {}, json.dumps(page).encode()

    registry.answer = endless
    done = cli("search", "--registry", "weather")
    assert (done.code, len(registry.paths)) == (1, 10)
    assert f"Nothing in the first 10 pages of {registry.url} fits." in " ".join(done.err.split())


def test_a_deprecated_entry_is_marked(cli: Cli, registry: Stub) -> None:
    registry.entries = [
        listing(packages=[npm()], status="deprecated", statusMessage="use\x1b[2J other")
    ]
    done = cli("add", NAME, "-y")
    assert done.code == 0
    assert "careful    deprecated: use" in done.err
    assert "\x1b" not in done.err


def test_options_for_a_url_are_refused(cli: Cli, registry: Stub) -> None:
    done = cli("add", NAME, "--cwd", "/x")
    assert (done.code, "--cwd needs a URL or a command" in done.err) == (2, True)
