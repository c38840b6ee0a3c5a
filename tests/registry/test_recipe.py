"""From entries of a registry to commands, and what is refused of them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.registry.entries import read_entry
from holdfast.registry.recipe import Recipe, RefusedEntryError, is_exact, recipes
from tests.registry.stub import listing, npm
from tests.rows import rows

pytestmark = pytest.mark.req("N6")


def ways(**facts: Any) -> list[Recipe | RefusedEntryError]:
    entry = read_entry(msgspec.json.encode(listing(**facts)))
    assert entry is not None
    return list(recipes(entry.server))


def recipe(package: dict[str, Any] | None = None, **facts: Any) -> Recipe:
    way = ways(packages=[package] if package else [], **facts)[0]
    assert isinstance(way, Recipe), way
    return way


def refusal(package: dict[str, Any] | None = None, **facts: Any) -> str:
    way = ways(packages=[package] if package else [], **facts)[0]
    assert isinstance(way, RefusedEntryError), way
    return str(way)


def words(made: Recipe) -> list[str]:
    return [
        "".join(piece if isinstance(piece, str) else f"<{piece.name}>" for piece in word)
        for word in made.command
    ]


def test_an_npm_package_is_pinned() -> None:
    assert words(recipe(npm())) == ["npx", "-y", "@owner/weather@1.2.3"]


def test_a_package_of_pypi_is_pinned() -> None:
    assert words(recipe({**npm("mcp-weather"), "registryType": "pypi"})) == [
        "uvx",
        "mcp-weather@1.2.3",
    ]


def test_an_image_is_pinned_and_gets_its_variables() -> None:
    variable = {"name": "KEY", "isRequired": True, "isSecret": True}
    package = {**npm("ghcr.io/owner/weather"), "registryType": "oci"}
    made = recipe({**package, "environmentVariables": [variable]})
    start = ["docker", "run", "-i", "--rm", "-e", "KEY"]
    assert words(made) == [*start, "ghcr.io/owner/weather:1.2.3"]
    digest = "ghcr.io/owner/weather@sha256:" + "a" * 64
    made = recipe({**package, "identifier": digest, "version": ""})
    assert words(made)[-1] == digest
    assert words(recipe({**package, "identifier": "owner/w:2.0.0"}))[-1] == "owner/w:2.0.0"


def test_arguments_are_set_or_asked_for() -> None:
    package = npm(
        runtimeArguments=[{"type": "positional", "value": "--yes"}],
        packageArguments=[
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--port", "value": "8080"},
            {"type": "named", "name": "--verbose"},
            {"type": "named", "name": "--key", "isRequired": True, "isSecret": True},
            {"type": "positional", "valueHint": "folder", "default": "/tmp"},
            {
                "type": "named",
                "name": "--dir",
                "value": "{base}/data",
                "variables": {"base": {"description": "Base", "isRequired": True}},
            },
        ],
        environmentVariables=[
            {"name": "LEVEL", "value": "info"},
            {"name": "UNITS", "choices": ["metric", "imperial"], "default": "metric"},
        ],
    )
    made = recipe(package)
    assert words(made)[3:] == [
        *("serve", "--port=8080", "--verbose", "--key=<--key>", "<folder>", "--dir=<base>/data")
    ]
    asked = {item.name: (item.is_required, item.is_secret) for item in made.questions()}
    assert asked == {
        "--key": (True, True),
        "folder": (False, False),
        "base": (True, False),
        "UNITS": (False, False),
    }
    assert made.env["LEVEL"] == ("info",)


def test_a_server_behind_a_url() -> None:
    remote = {
        "type": "streamable-http",
        "url": "https://{tenant}.example.org/mcp?v=1&x=2",
        "variables": {"tenant": {"isRequired": True}},
        "headers": [{"name": "X-Key", "value": "Bearer {key}", "variables": {"key": {}}}],
    }
    assert "does not name its host plainly" in refusal(remotes=[remote])
    made = recipe(remotes=[{**remote, "url": "https://example.org/{tenant}/mcp?v=1&x=2"}])
    assert (made.kind, made.source, made.transport) == ("remote", "example.org", "streamable")
    assert [item.name for item in made.questions()] == ["tenant", "key"]
    assert made.headers["X-Key"][0] == "Bearer "


HOSTILE: dict[str, dict[str, Any]] = {
    "is not the name of a package": npm("https://example.org/x.tgz"),
    "'-c' is not the name": npm("-c"),
    "'--call=sh' is not the name": npm("--call=sh"),
    "'x; rm -rf ~' is not": npm("x; rm -rf ~"),
    "'../x' is not": npm("../x"),
    "'x@y' is not": npm("x@y"),
    "'git+ssh://x' is not": npm("git+ssh://x"),
    "'latest' is not exact": npm(version="latest"),
    "'^1.2.3' is not exact": npm(version="^1.2.3"),
    "'1.x' is not exact": npm(version="1.x"),
    "'>=1' is not exact": npm(version=">=1"),
    "'none' is not exact": npm(version=""),
    "'1.0 || 2.0' is not exact": npm(version="1.0 || 2.0"),
    "'1.0;id' is not exact": npm(version="1.0;id"),
    "is not that of npm": npm(registryBaseUrl="https://npmjs.evil.example"),
    "'cargo' is not one of": {**npm(), "registryType": "cargo"},
    "'https://x/y.mcpb' is not": {**npm("https://x/y.mcpb"), "registryType": "pypi"},
    "'x:latest' has a tag": {**npm("x:latest"), "registryType": "oci"},
    "'sse' of a package": npm(transport={"type": "sse", "url": "https://x"}) | {},
    "'--registry' is not an option": npm(
        runtimeArguments=[{"type": "named", "name": "--registry", "value": "https://x"}]
    ),
    "'--privileged' is not an option": {
        **npm("x/y"),
        "registryType": "oci",
        "runtimeArguments": [{"type": "positional", "value": "--privileged"}],
    },
    "'-e X=1; id' is not a flag": npm(packageArguments=[{"type": "named", "name": "-e X=1; id"}]),
    "has shell syntax": npm(packageArguments=[{"type": "positional", "value": "$(id)"}]),
    "'a && b' has shell syntax": npm(packageArguments=[{"type": "positional", "value": "a && b"}]),
    "'${GITHUB_TOKEN}' has shell": npm(
        environmentVariables=[{"name": "X", "value": "${GITHUB_TOKEN}"}]
    ),
    "'NODE_OPTIONS' changes how programs": npm(
        environmentVariables=[{"name": "NODE_OPTIONS", "value": "--require ./x"}]
    ),
    "'LD_PRELOAD' changes": npm(environmentVariables=[{"name": "LD_PRELOAD", "isRequired": True}]),
    "'PATH' changes": npm(environmentVariables=[{"name": "PATH", "default": "/x"}]),
    "'A=B' is not the name of a variable": npm(environmentVariables=[{"name": "A=B"}]),
    "cannot be seen": npm(packageArguments=[{"type": "positional", "value": "a\x1b[2Jb"}]),
    "longer than 2,000": npm(packageArguments=[{"type": "positional", "value": "a" * 3000}]),
    "more than 50": npm(packageArguments=[{"type": "positional", "value": "a"}] * 51),
}


@rows("message", HOSTILE)
def test_what_is_not_plain_is_refused(message: str) -> None:
    text = refusal(HOSTILE[message])
    assert message in text
    assert len(text) < 300
    assert "\x1b" not in text


@rows(
    ("remote", "message"),
    [
        ({"type": "streamable-http", "url": "http://example.org"}, "must begin with https"),
        ({"type": "streamable-http", "url": "file:///etc/passwd"}, "must begin with https"),
        ({"type": "sse", "url": "https://user:pass@example.org"}, "name its host plainly"),
        ({"type": "sse", "url": "https://[::1"}, "is not a URL"),
        ({"type": "sse", "url": "https://{host}/x"}, "name its host plainly"),
        ({"type": "ftp", "url": "https://example.org"}, "'ftp' is not one of"),
        (
            {"type": "sse", "url": "https://x.example", "headers": [{"name": "Host"}]},
            "'Host' is not a header",
        ),
        (
            {
                "type": "sse",
                "url": "https://x.example",
                "headers": [{"name": "X", "value": "${AWS_SECRET_ACCESS_KEY}"}],
            },
            "has shell syntax",
        ),
    ],
)
def test_urls_that_are_not_plain_are_refused(remote: dict[str, Any], message: str) -> None:
    assert message in refusal(remotes=[remote])


def test_a_way_that_is_refused_leaves_the_others() -> None:
    made = ways(packages=[npm(version="latest"), npm("good")])
    assert isinstance(made[0], RefusedEntryError)
    assert isinstance(made[1], Recipe)


@rows("version", ["1.2.3", "1.0.0-beta.1", "2026.1.2", "1.0.0+build", "v3", "0", "1!2.0"])
def test_exact_versions(version: str) -> None:
    assert is_exact(version)


@rows(
    "data",
    [
        b"",
        b"[]",
        b'{"server": 1}',
        b'{"server": {"name": "bare"}}',
        b'{"server": {"name": "a/b/c"}}',
        b'{"server": {"name": "-a/b"}}',
        b'{"server": {"name": "a/\\u001b[2J"}}',
        b'{"server": {"name": "a/b", "packages": "x"}}',
        b'{"server": ' * 10_000,
    ],
)
def test_what_is_no_entry_is_none(data: bytes) -> None:
    assert read_entry(data) is None
