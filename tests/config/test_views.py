"""Showing, explaining and approving, as values that can be rendered."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.config import approve, explain, preview, revoke, show
from holdfast.config.views import EntryDisplay
from holdfast.errors import StateError, ValidationError
from tests.config.rig import DATA, World

pytestmark = pytest.mark.req("F3")


def test_all_servers_are_shown_with_where_they_come_from(world: World) -> None:
    world.own(git={"command": "own-git"}, db={"command": "db", "disabled": True})
    world.servers(
        ".mcp.json",
        git={"command": "git", "odd": 1},
        bad={"command": 5},
        web={"url": "https://x/mcp?token=hunter2"},
    )
    found = show(world.load())
    assert [
        (row.name, row.kind, row.scope, row.trust, row.disabled, len(row.shadows))
        for row in found.servers
    ] == [
        ("git", "stdio", "project", "untrusted", False, 1),
        ("bad", "stdio", "project", "untrusted", False, 0),
        ("web", "http", "project", "untrusted", False, 0),
        ("db", "stdio", "user", "own", True, 0),
    ]
    git, bad, web, _ = found.servers
    assert git.warnings == (f"{world.project}/.mcp.json: server 'git': odd: is not known here",)
    assert bad.problems[0].endswith("command: must be a string, not a number")
    assert web.target == "https://x/mcp?token=[redacted]"
    assert [file.servers for file in found.files] == [("git", "bad", "web"), ("git", "db")]


def test_everything_is_plain_enough_for_json(world: World) -> None:
    for name in ("vscode.mcp.json", "holdfast.mcp.json"):
        world.write(
            ".vscode/mcp.json" if "vscode" in name else "mcp.json", (DATA / name).read_bytes()
        )
    config = world.load()
    assert msgspec.json.encode(show(config))
    for name in config.servers:
        assert msgspec.json.encode([explain(config, name), preview(config, name)])


def test_an_explanation(world: World) -> None:
    world.environ |= {"SET": "hunter2"}
    world.own(one={"command": "own"})
    world.servers(
        ".mcp.json",
        one={
            "command": "server",
            "args": ["${SET}", "${UNSET}", "${OTHER:-x}", "${workspaceFolder}"],
            "env": {"TOKEN": "${SET}"},
            "holdfast": {"timeouts": 5, "deny": ["rm*"]},
        },
    )
    found = explain(world.load(), "one")
    assert found.shadows == (f"{world.home}/.config/holdfast/mcp.json",)
    assert found.settings == {"timeouts": 5, "deny": ["rm*"]}
    assert [(row.name, row.fields, row.is_set) for row in found.variables] == [
        ("SET", ("args[0]", "env.TOKEN"), True),
        ("UNSET", ("args[1]",), False),
        ("OTHER", ("args[2]",), True),
        ("workspaceFolder", ("args[3]",), True),
    ]
    assert found.trust == "untrusted"
    assert found.approve == "holdfast config trust one"
    assert "hunter2" not in str(msgspec.to_builtins(found))


def test_a_secret_of_the_settings_is_not_shown(world: World) -> None:
    world.own(
        one={"url": "https://a.example", "oauth": {"clientId": "me", "clientSecret": "zq9-kw7"}},
        two={"url": "https://a.example", "oauth": {"clientSecret": "${SECRET:-zq9-kw7}"}},
    )
    one, two = (explain(world.load(), name).settings["oauth"] for name in ("one", "two"))
    assert one == {"client_id": "me", "client_secret": "[redacted]"}
    assert two == {"client_secret": "[redacted]"}


def test_an_input_is_explained(world: World) -> None:
    world.write(".vscode/mcp.json", (DATA / "vscode.mcp.json").read_bytes())
    rows = {row.name: row for row in explain(world.load(), "perplexity").variables}
    key = rows["perplexity-key"]
    assert (key.kind, key.is_set) == ("input", False)
    assert rows["region"].is_set, "it has a default"


def test_a_broken_string_is_explained_too(world: World) -> None:
    entry = world.entry(command="a", args=["${", "${A}"])
    found = explain(world.load(), entry.name)
    assert [row.name for row in found.variables] == ["A"]
    assert "never closed" in found.problems[0]


def test_an_unknown_server_is_refused(world: World) -> None:
    for verb in (explain, preview, approve, revoke):
        with pytest.raises(ValidationError, match="no server 'x'"):
            verb(world.load(), "x")


def test_approving_and_taking_it_back(world: World) -> None:
    world.entry(command="a", args=["b"])
    config = world.load()
    before = preview(config, "one")
    assert (before.verdict, before.approved) == ("untrusted", False)
    assert approve(config, "one").approved
    assert preview(world.load(), "one").verdict == "trusted"
    world.entry(command="a", args=["c"])
    again = preview(world.load(), "one")
    assert (again.verdict, again.changes) == ("changed", ("args[0] is different",))
    assert revoke(config, "one")
    assert not revoke(config, "one")


def test_what_is_approved_is_seen_to_the_letter(world: World) -> None:
    """An approval that hides a part could hide the part that matters."""
    script = 'basic() { "$@"; }; basic /tmp/payload.sh; \x1b[8m --token hunter2'
    world.entry(command="bash", args=["-c", script], env={"TOKEN": "hunter2"})
    found = preview(world.load(), "one").definition
    assert found["args"] == ["-c", script.replace("\x1b", "\\x1b")]
    assert found["env"] == {"TOKEN": "hunter2"}


@pytest.mark.parametrize(
    ("raw", "caution"),
    [
        ({"command": "a", "env": {"LD_PRELOAD": "x"}}, "env.LD_PRELOAD can change which code runs"),
        ({"command": "a", "env": {"NODE_OPTIONS": "x"}}, "env.NODE_OPTIONS can change which"),
        ({"command": "a", "env": {"PATH": "x"}}, "env.PATH can change which code runs"),
        ({"command": "a", "envFile": "vars"}, "PYTHONPATH in the envFile can change which code"),
        ({"command": "/bin/sh", "args": ["-c", "x"]}, "the command is a shell"),
        ({"url": "http://x"}, "the URL is not encrypted"),
        ({"command": "a", "holdfast": {"inherit_env": True}}, "your whole environment"),
        ({"command": "a", "holdfast": {"log": "x"}}, "calls are written to a file"),
        ({"url": "https://x/${AWS_KEY}"}, "is given the values of: AWS_KEY"),
    ],
)
def test_what_deserves_a_second_look(world: World, raw: dict[str, Any], caution: str) -> None:
    world.write("vars", "PYTHONPATH=/evil\n")
    world.entry(**raw)
    (found,) = preview(world.load(), "one").cautions
    assert caution in found


def test_a_plain_entry_needs_no_second_look(world: World) -> None:
    world.entry(command="uvx", args=["server"], env={"LEVEL": "debug"})
    assert preview(world.load(), "one").cautions == ()


def test_only_what_was_seen_is_approved(world: World) -> None:
    world.write("vars", "A=1")
    world.entry(command="a", envFile="vars")
    config = world.load()
    seen = preview(config, "one")
    world.write("vars", "LD_PRELOAD=evil")
    with pytest.raises(StateError, match="has changed since it was shown"):
        approve(config, "one", seen=seen)
    assert not config["one"].trust().ok
    assert approve(config, "one", seen=preview(config, "one")).approved
    assert config["one"].trust().ok


# Redacted text


def shown(world: World, **raw: Any) -> Any:
    return EntryDisplay().definition(world.entry(**raw))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--token", "hunter2"], ["--token", "[redacted]"]),
        (["--api-key=hunter2"], ["--api-key=[redacted]"]),
        (["-e", "API_KEY=hunter2"], ["-e", "API_KEY=[redacted]"]),
        (["--header", "X-Api-Key: hunter2"], ["--header", "X-Api-Key: [redacted]"]),
        (["--header", "Authorization: Bearer ${T}"], ["--header", "Authorization: Bearer ${T}"]),
        (["--token", "${T}"], ["--token", "${T}"]),
        (["--token", "${T:-hunter2}"], ["--token", "[redacted]"]),
        (["--token", "${T"], ["--token", "[redacted]"]),
        (["postgres://me:hunter2@db/x"], ["postgres://[redacted]@db/x"]),
        (["--path", "/srv", "k=v"], ["--path", "/srv", "k=v"]),
        (["a\x1b[2Jb"], ["a\\x1b[2Jb"]),
    ],
)
def test_arguments(world: World, args: list[str], expected: list[str]) -> None:
    assert shown(world, command="a", args=args)["args"] == expected


def test_environment_and_headers(world: World) -> None:
    env = {"API_KEY": "hunter2", "TOKEN": "x${T}", "LEVEL": "debug", "LD_PRELOAD": "evil.so"}
    assert shown(world, command="a", env=env)["env"] == {
        "API_KEY": "[redacted]",
        "TOKEN": "[redacted]",
        "LEVEL": "debug",
        "LD_PRELOAD": "evil.so",
    }
    headers = {"Authorization": "Bearer hunter2", "X-Region": "eu"}
    assert shown(world, url="https://x", headers=headers)["headers"] == {
        "Authorization": "[redacted]",
        "X-Region": "eu",
    }


def test_a_url_has_no_secrets_in_it(world: World) -> None:
    url = "https://me:hunter2@x.example/mcp?api_key=hunter2&region=eu&token=${T}"
    assert shown(world, url=url)["url"] == (
        "https://[redacted]@x.example/mcp?api_key=[redacted]&region=eu&token=${T}"
    )


def test_one_line_for_a_list(world: World) -> None:
    entry = world.entry(command="uvx", args=["server", "a b", "${HOME}/x"])
    assert EntryDisplay().target(entry) == "uvx server 'a b' ${HOME}/x"


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["--password", "hunter2", "x"], "run --password [redacted] x"),
        (["-e", "API_KEY=hunter2"], "run -e API_KEY=[redacted]"),
        (["-p", "8080:80"], "run -p 8080:80"),
    ],
)
def test_a_secret_of_a_command_is_hidden(world: World, args: list[str], line: str) -> None:
    assert EntryDisplay().target(world.entry(command="run", args=args)) == line
