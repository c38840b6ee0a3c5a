"""From an entry to a client."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from holdfast.config import ConfigInput, ServerEntry, approve, preview
from holdfast.errors import StateError, ValidationError
from holdfast.policies import Backoff, Limits, Timeouts, ToolPolicy
from tests.config.rig import DATA, World

DEMO = {"command": sys.executable, "args": ["-m", "holdfast.demo.server"]}


def own(world: World, **raw: Any) -> ServerEntry:
    """A server of the user's own."""
    world.own(one=raw)
    return world.load()["one"]


@pytest.mark.req("F3", "L13")
async def test_a_configured_server_is_called(world: World) -> None:
    world.environ["GREETING"] = "ahoy"
    entry = own(world, **DEMO, env={"GREETING": "${GREETING}"})
    async with entry.connect(timeouts=Timeouts(request=20)) as client:
        assert client.name == "one"
        result = await client.call_tool("echo", {"text": "configured"})
    assert result.text == "configured"


@pytest.mark.req("F3")
def test_variables_are_expanded_in_every_string(world: World) -> None:
    world.environ |= {"A": "a", "B": "b"}
    value = "${A}-${env:B}-${C:-c}"
    entry = own(
        world,
        command=value,
        args=[value],
        env={"X": value},
        cwd=value,
        holdfast={
            "protocol": value,
            "allow": [value],
            "deny": [value],
            "lock": value,
            "log": value,
            "inherit_env": [value],
        },
    )
    found = entry.resolve()
    home = str(world.home)
    assert found.command == ("a-b-c", "a-b-c")
    assert found.env == {"X": "a-b-c"}
    said = found.options
    assert said["protocol"] == "a-b-c"
    assert said["tools"] == ToolPolicy(allow=("a-b-c",), deny=("a-b-c",))
    assert (said["lock"].path, said["log"]) == (f"{home}/a-b-c", f"{home}/a-b-c")
    assert found.transport_options == {
        "env": {"X": "a-b-c"},
        "cwd": f"{home}/a-b-c",
        "inherit_env": ("a-b-c",),
    }

    entry = own(
        world,
        url=f"https://x/{value}",
        headers={"X": value},
        holdfast={"ca": value, "cert": value, "key": value, "proxy": f"http://{value}"},
    )
    remote = entry.resolve()
    assert remote.url == "https://x/a-b-c"
    assert remote.transport_options == {
        "headers": {"X": "a-b-c"},
        "ca": f"{home}/a-b-c",
        "cert": (f"{home}/a-b-c", f"{home}/a-b-c"),
        "proxy": "http://a-b-c",
    }


@pytest.mark.req("F3", "E2")
def test_every_unset_variable_is_named_with_file_server_and_field(world: World) -> None:
    entry = own(world, command="${A}", args=["x", "${B}"], env={"TOKEN": "${C}"})
    with pytest.raises(ValidationError) as caught:
        entry.resolve()
    where = f"{world.home}/.config/holdfast/mcp.json: server 'one'"
    said = "is not set (set it, or give a default:"
    first, second, third = str(caught.value).splitlines()
    assert first.startswith(f"{where}: command: the environment variable A {said}")
    assert second.startswith(f"{where}: args[1]: the environment variable B {said}")
    assert third.startswith(f"{where}: env.TOKEN: the environment variable C {said}")
    assert [problem.field for problem in caught.value.data] == ["command", "args[1]", "env.TOKEN"]


def test_all_settings_reach_the_client(world: World) -> None:
    world.write(world.home / ".config/holdfast/mcp.json", (DATA / "holdfast.mcp.json").read_bytes())
    resolved = world.load()["git"].resolve()
    options = resolved.options
    lock = options.pop("lock", None)
    assert lock is not None
    assert options == {
        "name": "git",
        "timeouts": Timeouts(request=60, handshake=20),
        "backoff": Backoff(first=0.5, attempts=3),
        "limits": Limits(frame_bytes=1048576),
        "tools": ToolPolicy(
            timeouts={"git_clone": 600.0},
            allow=("git_*",),
            deny=("git_push",),
            validate="always",
            results="raise",
            approve={"git_push": "always"},
            budget={"git_log": 8000},
        ),
        "protocol": "2025-11-25",
        "when_down": "wait",
        "replay": "safe",
        "log": f"{world.home}/calls.jsonl",
    }
    assert resolved.transport_options == {"inherit_env": ("SSH_AUTH_SOCK",), "grace": 5.0}


def test_what_is_not_said_is_left_to_the_client(world: World) -> None:
    for raw in ({"command": "a"}, {"url": "https://x"}):
        found = own(world, **raw).resolve()
        assert found.options == {"name": "one"}
        assert found.transport_options == {}
    sse = own(world, type="sse", url="https://x").resolve()
    assert sse.transport_options == {"transport": "sse"}
    lock = own(world, command="a", holdfast={"lock": "/l"}).resolve().options["lock"]
    assert (lock.path, lock.mode) == ("/l", "block")


def test_a_project_s_server_starts_in_its_folder(world: World) -> None:
    (world.project / "below").mkdir()
    world.servers(".mcp.json", one={"command": "./run"}, two={"command": "a", "cwd": "sub"})
    found = world.load(start=world.project / "below")
    assert found["one"].resolve().transport_options["cwd"] == str(world.project)
    assert found["two"].resolve().transport_options["cwd"] == str(world.project / "sub")


def test_the_user_s_own_server_starts_where_we_are(world: World) -> None:
    found = own(world, command="~/bin/run").resolve()
    assert "cwd" not in found.transport_options
    assert found.command == (f"{world.home}/bin/run",)


@pytest.mark.req("E2")
def test_a_broken_entry_is_refused_with_all_its_faults(world: World) -> None:
    entry = own(world, command="a", args="b", env=5)
    with pytest.raises(ValidationError) as caught:
        entry.connect()
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.req("E2")
def test_a_misspelt_field_is_told_with_what_it_broke(world: World) -> None:
    with pytest.raises(ValidationError, match="did you mean 'command'"):
        own(world, comand="a").connect()


def test_a_path_with_half_a_character_is_refused_and_breaks_no_view(world: World) -> None:
    entry = world.entry(command="a", cwd="x\ud800", envFile="\ud800")
    with pytest.raises(ValidationError, match="no path can have"):
        entry.resolve()
    assert preview(world.load(), "one").definition["envFile (content)"] == "cannot be found"


def test_a_disabled_entry_is_refused(world: World) -> None:
    with pytest.raises(StateError, match=r"server 'one' is disabled in .*mcp\.json"):
        own(world, command="a", disabled=True).connect()


def test_a_file_of_variables_is_read_and_env_wins(world: World) -> None:
    world.write(world.home / "vars", "A=file\nB=file\n")
    entry = own(world, command="a", envFile="vars", env={"B": "entry"})
    assert entry.resolve().env == {"A": "file", "B": "entry"}


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "envFile: .*vars does not exist"),
        ("rm -rf", "envFile: .*vars line 1 is not NAME=value"),
        (b"\xff", "envFile: .*vars is not text"),
    ],
)
def test_a_file_of_variables_that_cannot_be_used(world: World, content: Any, message: str) -> None:
    if content is not None:
        world.write(world.home / "vars", content)
    with pytest.raises(ValidationError, match=message):
        own(world, command="a", envFile="vars").resolve()
    with pytest.raises(ValidationError, match="environment variable NOWHERE is not set"):
        own(world, command="a", envFile="${NOWHERE}").resolve()


@pytest.mark.req("F3")
def test_an_input_is_asked_for_through_the_face(world: World) -> None:
    world.write(".vscode/mcp.json", (DATA / "vscode.mcp.json").read_bytes())
    config = world.load()
    approve(config, "perplexity")
    asked: list[ConfigInput] = []

    def prompt(wanted: ConfigInput) -> str | None:
        asked.append(wanted)
        return "typed" if wanted.password else None

    found = config["perplexity"].resolve(prompt=prompt)
    assert found.env == {"PERPLEXITY_API_KEY": "typed"}
    assert found.command[-1] == "eu"
    assert {wanted.id for wanted in asked} == {"perplexity-key", "region"}
    assert "typed" not in repr(found)


def test_overrides_win(world: World) -> None:
    entry = own(world, command="a", holdfast={"timeouts": 5})
    client = entry.connect(name="other")
    assert client.name == "other"
