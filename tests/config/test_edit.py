"""Adding, removing and importing servers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.config import (
    ConfigEnvironment,
    ServerEntry,
    add,
    import_products,
    remove,
)
from holdfast.config.dialects import read
from holdfast.config.edit import plan_import
from holdfast.config.entry import definition, input_definition
from holdfast.config.files import JsonFile, parse
from holdfast.errors import StateError, ValidationError
from tests.config.rig import DATA, World, read_data, read_one, source
from tests.rows import rows
from tests.thorough import THOROUGH

pytestmark = pytest.mark.req("F3")


def own_file(world: World) -> Path:
    return world.home / ".config/holdfast/mcp.json"


def around(world: World) -> ConfigEnvironment:
    return world.around()


def test_a_server_is_added_to_the_user_s_own_file(world: World) -> None:
    done = add(
        "git",
        command="uvx",
        args=["mcp-server-git"],
        env={"LEVEL": "${LEVEL:-1}"},
        settings={"timeouts": 5},
        environment=around(world),
    )
    assert done.file == str(own_file(world))
    assert own_file(world).stat().st_mode & 0o777 == 0o600
    entry = world.load()["git"]
    assert (entry.command, entry.args) == ("uvx", ("mcp-server-git",))
    assert entry.trust().verdict == "own"
    add("web", url="https://x/mcp", headers={"X-A": "b"}, environment=around(world))
    assert list(world.load().servers) == ["git", "web"]


def test_what_is_added_to_a_project_is_approved_by_that(world: World) -> None:
    world.servers(".mcp.json", other={"command": "evil"})
    add("mine", command="mine", scope="project", environment=around(world))
    found = world.load()
    assert found["mine"].trust().verdict == "trusted"
    assert found["other"].trust().verdict == "untrusted"
    remove("mine", environment=around(world))
    world.servers(".mcp.json", mine={"command": "mine"})
    assert world.load()["mine"].trust().verdict == "untrusted", "the approval went with it"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("", '{\n  "mcpServers": {\n    "new": {\n      "command": "x"\n    }\n  }\n}\n'),
        ("{}", '{\n  "mcpServers": {\n    "new": {\n      "command": "x"\n    }\n  }\n}'),
        (
            '{\n\t// mine\n\t"mcpServers": {\n\t\t"a": {"command": "a"}, // why\n'
            '\t},\n\t"z": 1\n}\n',
            '{\n\t// mine\n\t"mcpServers": {\n\t\t"a": {"command": "a"},\n'
            '\t\t"new": {\n\t\t\t"command": "x"\n\t\t}, // why\n\t},\n\t"z": 1\n}\n',
        ),
        (
            '{"mcpServers": {"a": {"command": "}"}}, "z": [1,2]}',
            '{"mcpServers": {"a": {"command": "}"}, "new": {"command": "x"}}, "z": [1,2]}',
        ),
        (
            '\ufeff{\r\n    "mcpServers": {}\r\n}',
            '{\r\n    "mcpServers": {\r\n        "new": {\r\n            "command": "x"\r\n'
            "        }\r\n    }\r\n}",
        ),
        (
            '{\n  "theme": "dark" /* , */\n}\n',
            '{\n  "theme": "dark",\n  "mcpServers": {\n    "new": {\n      "command": "x"\n    }\n'
            "  } /* , */\n}\n",
        ),
    ],
)
def test_the_rest_of_the_file_stays_as_it_is(world: World, text: str, after: str) -> None:
    world.write(own_file(world), text.encode())
    add("new", command="x", environment=around(world))
    assert own_file(world).read_bytes().decode() == after
    remove("new", environment=around(world))
    assert parse("x.json", own_file(world).read_bytes()) == {
        "mcpServers": {},
        **parse("x.json", text.encode()),
    }


def test_a_server_is_removed_with_its_line_and_nothing_else(world: World) -> None:
    text = """{
  // all mine
  "mcpServers": {
    "a": {"command": "a"}, // first
    "b": {
      "command": "b"
    },
    /* last */
    "c": {"command": "c"}
  }
}
"""
    world.write(own_file(world), text)
    remove("b", environment=around(world))
    after = text.replace('    "b": {\n      "command": "b"\n    },\n', "")
    assert own_file(world).read_text() == after
    remove("c", environment=around(world))
    assert '"a": {"command": "a"} // first' in own_file(world).read_text()
    remove("a", environment=around(world))
    assert world.load().servers == {}
    assert "// all mine" in own_file(world).read_text()


_NAMES = st.text(alphabet='ab"\\/{}[],:é ', min_size=1, max_size=6)
_COMMA = st.sampled_from(["", ","])
_SPACE = st.sampled_from(["", " ", "\n", "\n  ", "/* } , */", "// ]\n"])


@pytest.mark.thorough
@settings(max_examples=150 if THOROUGH else 100)
@given(st.data(), st.lists(_NAMES, unique=True, max_size=4), _NAMES)
def test_any_file_is_edited_and_back(data: Any, names: list[str], new: str) -> None:
    def space() -> str:
        found: str = data.draw(_SPACE)
        return found

    members = [
        f'{space()}{json.dumps(name)}{space()}:{space()}{{"command":{space()}{json.dumps(name)}}}'
        for name in names
    ]
    comma = "," if members and data.draw(_COMMA) else ""
    inner = f"{','.join(members)}{space()}{comma}{space()}"
    text = f'{space()}{{{space()}"mcpServers":{space()}{{{inner}}}}}'
    before = parse("x.json", text.encode())
    file = JsonFile(text.encode())
    file.change("mcpServers", new, {"command": "x"})
    assert parse("x.json", file.data)["mcpServers"] == {
        **before["mcpServers"],
        new: {"command": "x"},
    }
    file.change("mcpServers", new, None)
    left = {name: value for name, value in before["mcpServers"].items() if name != new}
    assert parse("x.json", file.data) == {"mcpServers": left}


@pytest.mark.req("E2")
@pytest.mark.parametrize(
    ("name", "what", "message"),
    [
        ("a\u200b", {"command": "x"}, "characters in it that cannot be seen"),
        ("a", {}, "command: is missing, and so is a URL"),
        ("a", {"url": "ftp://x"}, "url: must begin with http"),
        ("a", {"url": "https://x", "command": "y"}, "a command or a URL, not both"),
        ("a", {"url": "https://x", "headers": {"A": "b\nc"}}, "headers.A: must be one line"),
        ("a", {"command": "x", "settings": {"timeouts": -1}}, "holdfast.timeouts: "),
        ("there", {"command": "x"}, "has a server 'there' already"),
    ],
)
def test_what_could_not_be_used_is_not_written(
    world: World, name: str, what: dict[str, Any], message: str
) -> None:
    world.own(there={"command": "a"})
    before = own_file(world).read_bytes()
    with pytest.raises(ValidationError, match=message):
        add(name, **what, environment=around(world))
    assert own_file(world).read_bytes() == before


@pytest.mark.parametrize(
    "odd", [{"command": "a\ud800"}, {"command": "a", "settings": {"tool_timeouts": {"\ud800": 1}}}]
)
def test_half_a_character_is_not_written(world: World, odd: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="half a character"):
        add("one", **odd, environment=around(world))
    assert not own_file(world).exists()


def test_a_name_that_is_taken_is_replaced_only_if_asked(world: World) -> None:
    world.own(one={"command": "old", "env": {"A": "b"}})
    add("one", command="new", overwrite=True, environment=around(world))
    entry = world.load()["one"]
    assert (entry.command, entry.env) == ("new", {})


@pytest.mark.req("E2")
def test_an_unknown_server_is_not_removed(world: World) -> None:
    world.own(github={"command": "a"})
    with pytest.raises(ValidationError, match=r"no server 'gihub' in .*did you mean 'github'\?"):
        remove("gihub", environment=around(world))


@pytest.mark.req("E2")
@pytest.mark.parametrize("text", ["{", "[]", '{"mcpServers": []}', '{"a": 1, "a": 2}', "\x00"])
def test_a_file_that_cannot_be_read_is_not_written(world: World, text: str) -> None:
    world.write(own_file(world), text)
    with pytest.raises(ValidationError):
        add("one", command="x", environment=around(world))
    assert own_file(world).read_text() == text


def test_a_change_by_somebody_else_is_not_overwritten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.own(one={"command": "a"})
    real = JsonFile.change

    def slow(self: JsonFile, *args: Any) -> None:
        real(self, *args)
        world.own(theirs={"command": "b"})

    monkeypatch.setattr(JsonFile, "change", slow)
    with pytest.raises(StateError, match="was changed meanwhile"):
        add("two", command="x", environment=around(world))
    assert list(world.load().servers) == ["theirs"]


def test_the_user_s_link_stays_and_a_project_s_is_not_written_through(world: World) -> None:
    kept = world.write(world.root / "dotfiles/mcp.json", {"mcpServers": {}})
    own_file(world).parent.mkdir(parents=True)
    own_file(world).symlink_to(kept)
    add("one", command="x", environment=around(world))
    assert own_file(world).is_symlink()
    assert "one" in json.loads(kept.read_text())["mcpServers"]
    victim = world.write(world.root / "victim.json", "{}")
    (world.project / ".mcp.json").symlink_to(victim)
    with pytest.raises((StateError, ValidationError)):
        add("two", command="x", scope="project", environment=around(world))
    assert victim.read_text() == "{}"


def test_the_home_is_no_project(world: World) -> None:
    here = ConfigEnvironment(start=world.home, environ={}, home=world.home)
    with pytest.raises(ValidationError, match="home folder is not a project"):
        add("one", command="x", scope="project", environment=here)


# Importing


def products(world: World) -> None:
    text = (DATA / "claude_code.claude.json").read_text().replace("@PROJECT@", "/elsewhere")
    world.write(world.home / ".claude.json", text)
    for name, place in {
        "cursor.mcp.json": ".cursor/mcp.json",
        "vscode.mcp.json": ".config/Code/User/mcp.json",
        "codex.config.toml": ".codex/config.toml",
        "gemini.settings.json": ".gemini/settings.json",
        "goose.config.yaml": ".config/goose/config.yaml",
        "claude_desktop_config.json": ".config/Claude/claude_desktop_config.json",
    }.items():
        world.write(world.home / place, (DATA / name).read_bytes())
    world.servers(world.home / ".codeium/windsurf/mcp_config.json", surf={"serverUrl": "https://s"})


def test_the_files_of_installed_products_are_found(world: World) -> None:
    products(world)
    found: dict[str, list[str]] = {}
    for entry in plan_import(environment=around(world)).entries:
        found.setdefault(entry.source.product, []).append(entry.name)
    assert set(found) == {
        *("Claude Code", "Claude Desktop", "Cursor", "VS Code", "Codex", "Gemini", "Goose"),
        "Windsurf",
    }
    assert found["Windsurf"] == ["surf"]


def test_all_servers_are_imported_in_one_step(world: World) -> None:
    products(world)
    world.own(surf={"command": "mine"})
    done = import_products(environment=around(world))
    assert done.skipped["surf"] == "a server of this name exists already"
    assert any("has no effect here" in lost for lost in done.lost)
    own = json.loads(own_file(world).read_text())
    assert set(own["mcpServers"]) == {"surf", *done.servers}
    assert own["mcpServers"]["weather"] == {
        "command": "uvx",
        "args": ["weather-server"],
        "env": {"WEATHER_KEY": "not-a-real-key", "PORT": "8080"},
    }
    assert {one["id"] for one in own["inputs"]} >= {"perplexity-key"}
    config = world.load(own_file(world))
    assert not any(entry.errors for entry in config)
    again = import_products(environment=around(world))
    assert again.servers == ()


def test_one_product_a_file_or_some_servers_can_be_chosen(world: World) -> None:
    products(world)
    done = import_products(["goose"], names=["nested"], environment=around(world))
    assert done.servers == ("nested",)
    path = world.servers(world.root / "their.json", theirs={"command": "./x", "cwd": "sub"})
    done = import_products([str(path)], environment=around(world))
    assert done.servers == ("theirs",)
    assert world.load()["theirs"].cwd == str(world.root / "sub")
    with pytest.raises(ValidationError, match="no product or file 'Curser': did you mean 'Cursor'"):
        import_products(["Curser"], environment=around(world))


def test_a_broken_file_of_a_product_is_reported_and_the_others_are_imported(world: World) -> None:
    products(world)
    path = world.write(world.home / ".cursor/mcp.json", "{")
    done = import_products(environment=around(world))
    assert "is not JSON" in done.skipped[str(path)]
    assert "surf" in done.servers
    assert os.path.exists(done.file)


FILES = {
    "claude_desktop_config.json": "mcpServers",
    "claude_code.mcp.json": "mcpServers",
    "cursor.mcp.json": "mcpServers",
    "holdfast.mcp.json": "mcpServers",
    "vscode.mcp.json": "vscode",
    "codex.config.toml": "codex",
    "gemini.settings.json": "gemini",
    "goose.config.yaml": "goose",
}


HERE = source()


def bare(entry: ServerEntry) -> ServerEntry:
    return replace(entry, source=HERE, problems=())


def again(entries: list[ServerEntry]) -> list[ServerEntry]:
    """Return the entries as they are read after they were written."""
    document: dict[str, Any] = {"mcpServers": {one.name: definition(one) for one in entries}}
    inputs = [asked for entry in entries for asked in entry.inputs.values()]
    document["inputs"] = list(map(input_definition, inputs))
    text = json.dumps(document, ensure_ascii=False)
    return read(parse("x.json", text.encode()), source())[0]


@rows(("name", "dialect"), FILES.items())
def test_nothing_that_is_understood_is_lost(name: str, dialect: str) -> None:
    entries = list(read_data(dialect, name).values())
    assert [bare(entry) for entry in again(entries)] == [bare(entry) for entry in entries]


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_every_product_is_imported(world: World, name: str) -> None:
    folder = ".gemini" if name.startswith("gemini") else "."
    path = world.write(f"{folder}/{name}", (DATA / name).read_bytes())
    done = import_products([str(path)], environment=around(world))
    config = world.load(own_file(world))
    assert tuple(config.servers) == done.servers
    assert not any(entry.errors for entry in config)


def test_what_was_lost_is_told(world: World) -> None:
    path = world.write("codex.toml", (DATA / "codex.config.toml").read_bytes())
    done = import_products([str(path)], environment=around(world))
    assert done.lost == (f"{path}: server 'designs': tools: has no effect here",)


def test_relative_paths_become_absolute_and_variables_stay(world: World) -> None:
    """From another folder ``./run`` would be whatever a stranger calls so there."""
    one = {"command": "./x", "cwd": "sub", "envFile": "${userHome}/e"}
    path = world.servers("a/mcp.json", one=one, two={"command": "./run"}, three={"command": "npx"})
    import_products([str(path)], environment=around(world))
    config = world.load(own_file(world))
    assert (config["one"].cwd, config["one"].env_file) == (
        str(world.project / "a/sub"),
        "${userHome}/e",
    )
    assert config["two"].command == f"{world.project}/a/run"
    assert config["three"].command == "npx"


def test_a_server_without_a_way_to_it_is_left_out_and_told(world: World) -> None:
    path = world.servers("x.json", bad={"type": "ws"}, good={"command": "a"})
    done = import_products([str(path)], environment=around(world))
    assert done.servers == ("good",)
    assert "'ws' is not supported" in done.skipped["bad"]


def test_another_server_of_the_same_name_is_told_of(world: World) -> None:
    same = {"command": "npx", "args": ["same"]}
    desktop = world.home / ".config/Claude/claude_desktop_config.json"
    world.servers(desktop, files={"command": "npx", "args": ["/a"]}, same=same)
    cursor = world.home / ".cursor/mcp.json"
    world.servers(cursor, files={"command": "npx", "args": ["/b"]}, same=same)
    done = import_products(environment=around(world))
    assert done.servers == ("files", "same")
    assert done.skipped == {f"files of {cursor}": f"{desktop} has another of this name"}


@pytest.mark.parametrize("word", ["vscode", "VS Code", "vs-code", "VSCODE", "lmstudio", "copilot"])
def test_products_are_called_as_people_write_them(world: World, word: str) -> None:
    for place, servers in (
        (".config/Code/User/mcp.json", "servers"),
        (".lmstudio/mcp.json", "mcpServers"),
        (".copilot/mcp-config.json", "mcpServers"),
    ):
        world.write(world.home / place, {servers: {place[1:4]: {"command": "x"}}})
    assert len(import_products([word], environment=around(world)).servers) == 1


_TEXT = st.text(alphabet="ab$é \"'\\/{", min_size=1, max_size=6).filter(lambda t: "${" not in t)
_TABLE = st.dictionaries(st.sampled_from(["A", "B-C", "d"]), _TEXT, max_size=2)
_OWN = st.fixed_dictionaries(
    {},
    optional={
        "timeouts": st.fixed_dictionaries({}, optional={"request": st.floats(0.1, 99)}),
        "allow": st.lists(_TEXT, max_size=2),
        "deny": st.lists(_TEXT, max_size=2),
        "lock": _TEXT | st.fixed_dictionaries({"path": _TEXT, "mode": st.just("warn")}),
        "inherit_env": st.lists(_TEXT, max_size=2) | st.booleans(),
        "when_down": st.sampled_from(["fail", "wait"]),
    },
)
_SERVER = st.fixed_dictionaries(
    {"command": _TEXT},
    optional={
        "args": st.lists(_TEXT, max_size=3),
        "env": _TABLE,
        "cwd": _TEXT,
        "disabled": st.booleans(),
        "holdfast": _OWN,
    },
) | st.fixed_dictionaries(
    {"url": _TEXT.map("https://x/".__add__), "type": st.sampled_from(["http", "sse"])},
    optional={"headers": _TABLE, "holdfast": _OWN},
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(_SERVER)
def test_writing_and_reading_again_changes_nothing(raw: dict[str, Any]) -> None:
    entry = read_one("mcpServers", {"mcpServers": {"one": raw}})
    (same,) = again([entry])
    assert bare(same) == bare(entry)
