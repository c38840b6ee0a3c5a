"""``holdfast install`` and ``uninstall``, as people type them."""

from __future__ import annotations

import errno
import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.verbs import install as verb
from holdfast.config import load
from holdfast.config.environment import ConfigEnvironment
from holdfast.hosts.backups import Backups
from holdfast.hosts.program import find_program, interpreter
from tests.cli.conftest import Cli, Configure, Open, stdio
from tests.relay import stdio_server

pytestmark = pytest.mark.req("Y6")

SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
CURSOR: dict[str, Any] = {
    "mcpServers": {
        "git": {
            "command": "uvx",
            "args": ["mcp-server-git"],
            "env": {"TOKEN": SECRET, "N": "é\n7"},
        },
        "web": {"url": "https://example.org/mcp"},
    }
}


@pytest.fixture
def cursor(home: Path) -> Path:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CURSOR, indent=2))
    return path


def entry(path: Path, name: str = "git") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())["mcpServers"][name]
    return found


def test_a_host_is_shown_asked_about_and_changed(terminal: Open, cursor: Path) -> None:
    before = cursor.read_bytes()
    one = terminal("install", "cursor")
    shown = one.expect("Write it?")
    assert '-      "command": "uvx"' in shown
    assert SECRET not in shown
    one.send("n\n")
    assert one.end() == 5
    assert cursor.read_bytes() == before
    one = terminal("install", "cursor")
    one.expect("Write it?")
    one.send("y\n")
    assert one.end() == 0
    assert entry(cursor)["args"][-1] == "mcp-server-git"
    assert entry(cursor)["env"] == CURSOR["mcpServers"]["git"]["env"]
    one = terminal("uninstall", "cursor")
    one.expect("Write it?")
    one.send("y\n")
    assert one.end() == 0
    assert cursor.read_bytes() == before


def test_nobody_to_ask_is_an_error_behind_the_change(cli: Cli, cursor: Path) -> None:
    before = cursor.read_bytes()
    done = cli("install", "cursor")
    assert done.code == 5
    assert "read the change, then add --yes" in done.err
    assert '"serve"' in done.err
    assert "without --json the change is shown" in cli("install", "cursor", "--json").err
    assert cursor.read_bytes() == before


def test_no_secret_is_shown(cli: Cli, cursor: Path) -> None:
    """Neither in lines nor in a file of one line, nor by escapes, nor in JSON.

    One line has all that the host keeps, and secrets of no known form or name with it.
    """
    one_line = json.dumps({**CURSOR, "session": {"refresh": "kkkk-9912-wwww"}})
    for text in (one_line, json.dumps(CURSOR, indent=1, ensure_ascii=False)):
        cursor.write_text(text)
        for words in (["install", "cursor", "-y"], ["uninstall", "cursor", "--yes"]):
            done = cli(*words)
            assert done.code == 0
            for piece in (SECRET, "é", "\\u00e9", "kkkk-9912-wwww"):
                assert piece not in done.out + done.err


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_lines_that_are_shown_are_those_of_the_file(
    cli: Cli, cursor: Path, newline: str
) -> None:
    """Whoever wrote a file does not write lines of the diff: all that is unseen is escaped."""
    lines = [
        '{"mcpServers": {',
        '"a\u2028+++ /safe\u202e\x85\x7f": {',
        '"command": "\u2028-harmless\u2029", "args": []}',
        "}}",
    ]
    cursor.write_bytes(newline.join(lines).encode())
    done = cli("install", "cursor", "-y", "--program", "holdfast")
    assert done.code == 0, done.err
    shown = [line for line in done.err.splitlines() if line.startswith(("-", "+", "@"))]
    assert shown[2:] == [
        "@@ line 3 @@",
        r'-"command": "\u2028-harmless\u2029", "args": []}',
        '+"command": "holdfast", "args": '
        r'["serve", "--inherit-env", "--name=a\u2028+++ /safe\u202e\x85\x7f", "--", '
        r'"\u2028-harmless\u2029"]}',
    ]


def test_twice_says_so(cli: Cli, cursor: Path) -> None:
    assert cli("install", "cursor", "-y").code == 0
    before = cursor.read_bytes()
    done = cli("install", "cursor", "-y")
    assert done.code == 0
    assert "git: through Holdfast already" in done.err
    assert "web: left as it is: is reached by a URL" in done.err
    assert cursor.read_bytes() == before
    assert cli("uninstall", "cursor", "-y").code == 0
    done = cli("uninstall", "cursor", "-y")
    assert "Nothing to do" in done.err


@pytest.fixture
def two_files(home: Path) -> list[Path]:
    """The files of VS Code and of its Insiders."""
    folder = Path(os.environ["XDG_CONFIG_HOME"])
    paths = [folder / f"{name}/User/mcp.json" for name in ("Code", "Code - Insiders")]
    for path in paths:
        path.parent.mkdir(parents=True)
        path.write_text('{"servers": {"a": {"command": "a"}}}')
    return paths


def test_of_several_files_one_that_is_read_only_stops_all(cli: Cli, two_files: list[Path]) -> None:
    two_files[1].chmod(0o444)
    done = cli("install", "vscode", "-y")
    assert done.code == 3
    assert "is read-only; nothing was written" in done.err
    assert all("holdfast" not in path.read_text() for path in two_files)


def test_what_was_written_before_an_error_is_said(cli: Cli, two_files: list[Path]) -> None:
    backup = Backups("vscode", str(two_files[1]), ConfigEnvironment()).save(b"")
    backup.unlink()
    backup.parent.rmdir()
    backup.parent.write_text("in the way")
    done = cli("install", "vscode", "-y")
    assert done.code == 3
    assert f"a: through Holdfast now, in {two_files[0]}" in done.err
    assert f"{two_files[1]}: cannot be written: File exists ({backup.parent})" in done.err
    assert ["holdfast" in path.read_text() for path in two_files] == [True, False]


def test_a_full_disk_is_named(cli: Cli, cursor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one of the backups: the file of the host is on another."""

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = cursor.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    done = cli("install", "cursor", "-y")
    assert done.code == 3
    place = Path(os.environ["XDG_STATE_HOME"], "holdfast/hosts")
    assert f"{cursor}: cannot be written: No space left on device ({place}/cursor-" in done.err
    assert cursor.read_bytes() == before


def test_the_words_that_a_host_gets(cli: Cli, cursor: Path) -> None:
    done = cli(
        *("install", "cursor", "-y", "--trace-file", "t-{name}.jsonl", "--log", "l.jsonl"),
        *("--timeout", "9", "--program", "/opt/holdfast", "--allow", "git_*", "--allow", "x"),
    )
    assert done.code == 0, done.err
    here = os.getcwd()
    assert entry(cursor)["command"] == "/opt/holdfast"
    assert entry(cursor)["args"] == [
        *("serve", "--inherit-env", "--name=git", "--allow", "git_*", "--allow", "x"),
        *("--log", f"{here}/l.jsonl"),
        *("--timeout", "9", "--trace-file", f"{here}/t-git.jsonl"),
        *("--", "uvx", "mcp-server-git"),
    ]
    done = cli("install", "cursor", "-y", "--program", "/opt/holdfast")
    assert "with these options now" in done.err
    plain = ["serve", "--inherit-env", "--name=git", "--", "uvx", "mcp-server-git"]
    assert entry(cursor)["args"] == plain


def test_an_option_is_not_taken_for_the_end_of_them(cli: Cli, cursor: Path) -> None:
    before = cursor.read_bytes()
    done = cli("install", "cursor", "-y", "--program", "holdfast", "--deny", "--", "--allow", "-x")
    assert done.code == 0
    assert entry(cursor)["args"] == [
        *("serve", "--inherit-env", "--name=git", "--allow=-x", "--deny=--"),
        *("--", "uvx", "mcp-server-git"),
    ]
    assert cli("uninstall", "cursor", "-y").code == 0
    assert cursor.read_bytes() == before


@pytest.mark.parametrize("name", ["--", "-x", "", "two words", "é\n"])
def test_any_name_is_that_of_the_server(cli: Cli, cursor: Path, name: str) -> None:
    text = json.dumps({"mcpServers": {name: {"command": "a-server", "args": ["--", "b"]}}})
    cursor.write_text(text)
    assert cli("install", "cursor", "-y", "--program", "holdfast").code == 0
    words = ["serve", "--inherit-env", f"--name={name}", "--", "a-server", "--", "b"]
    assert entry(cursor, name)["args"] == words
    assert cli("uninstall", "cursor", "-y").code == 0
    assert cursor.read_text() == text


def test_wrong_words_are_refused(cli: Cli, cursor: Path) -> None:
    before = cursor.read_bytes()
    refusals = {
        ("emacs",): "no host 'emacs'; there are: claude-code",
        ("cursor", "gti"): "did you mean 'git'",
        ("cursor", "--program", "evil"): "not known as Holdfast",
        ("cursor", "--program", '"a b'): '--program "a b: no closing quotation',
        ("--log", "calls.jsonl"): "Which host?",
        (): "Which host?",
        ("zed",): "Zed has no file here",
        ("windsurf", "--project"): "Windsurf has no file in a project",
        # What `serve` would refuse: the host would only say that its server does not start.
        ("cursor", "--timeout", "nan"): "--timeout nan: must be more than 0, and finite",
        ("cursor", "--timeout", "0"): "--timeout 0: must be more than 0",
        ("cursor", "--protocol", "2024"): "--protocol 2024: there are 2026-07-28, 2025-",
        ("cursor", "--allow", ""): "--allow '': must be the name of a tool, or a pattern",
        ("cursor", "--deny", "x", "--deny", ""): "--deny '': must be the name of a tool",
        ("cursor", "--log", "/no/such/{name}.jsonl"): "--log: there is no folder /no/such",
        ("cursor", "--trace-file", "."): "--trace-file: there is no file ",
        ("cursor", "--lock", "no.lock"): "--lock: there is no file ",
    }
    for words, message in refusals.items():
        done = cli("install", *words, "-y")
        assert (done.code, message in done.err) == (2, True), done.err
    assert "did you mean 'git'" in cli("uninstall", "cursor", "gti", "-y").err
    assert cursor.read_bytes() == before


def test_what_is_here_is_listed(cli: Cli, cursor: Path, home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text("[mcp_servers")
    done = cli("install")
    assert done.code == 0
    assert f"cursor\tgit\tdirect\t{cursor}" in done.out
    assert "is reached by a URL" in done.out
    assert "codex\t\tis not TOML" in done.out
    assert "  holdfast install cursor" in done.out
    assert "install codex" not in done.out
    cli("install", "cursor", "-y")
    done = cli("install")
    assert "through Holdfast" in done.out
    assert "To put Holdfast before them" not in done.out


def test_a_server_of_one_s_own_is_added(cli: Cli, cursor: Path, configure: Configure) -> None:
    configure(mine=stdio(["srv"]))
    before = cursor.read_bytes()
    assert cli("install", "cursor", "mine", "-y", "--program", "holdfast").code == 0
    assert entry(cursor, "mine") == {"command": "holdfast", "args": ["serve", "mine"]}
    assert entry(cursor) == CURSOR["mcpServers"]["git"]
    # It leads back to this configuration, and is no server beside it.
    assert load()["mine"].source.file.endswith("holdfast/mcp.json")
    assert cli("uninstall", "cursor", "-y").code == 0
    assert cursor.read_bytes() == before


def test_a_host_without_a_file_gets_one(cli: Cli, home: Path, configure: Configure) -> None:
    configure(mine=stdio(["srv"]))
    done = cli("install", "kiro", "mine", "-y")
    assert "Kiro is not set up here" in done.err
    (home / ".kiro/settings").mkdir(parents=True)
    assert cli("install", "kiro", "mine", "-y").code == 0
    path = home / ".kiro/settings/mcp.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert cli("uninstall", "kiro", "-y").code == 0
    assert not path.exists()


def test_a_server_that_nobody_approved_is_not_added(cli: Cli, cursor: Path) -> None:
    Path(".mcp.json").write_text('{"mcpServers": {"theirs": {"command": "x"}}}')
    done = cli("install", "cursor", "theirs", "-y")
    assert (done.code, "nobody approved it" in done.err) == (5, True)


def test_a_name_that_serve_takes_for_an_option_is_not_added(
    cli: Cli, cursor: Path, configure: Configure
) -> None:
    configure(**{"-x": {"command": "a"}})
    before = cursor.read_bytes()
    done = cli("install", "cursor", "-y", "--", "-x")
    assert (done.code, done.err) == (
        2,
        "holdfast: '-x': 'serve' would take it for an option; rename it\n",
    )
    assert cursor.read_bytes() == before


def test_a_project_names_no_path_of_mine(cli: Cli) -> None:
    Path(".git").mkdir()
    Path(".mcp.json").write_text('{"mcpServers": {"a": {"command": "./a.sh"}}}')
    assert cli("install", "claude-code", "--project", "-y").code == 0
    found = entry(Path(".mcp.json"), "a")
    assert (found["command"], found["args"][-2:]) == ("holdfast", ["--", "./a.sh"])
    assert cli("uninstall", "claude-code", "--project", "-y").code == 0
    assert Path(".mcp.json").read_text() == '{"mcpServers": {"a": {"command": "./a.sh"}}}'


def test_a_project_s_file_names_paths_from_the_project_on(cli: Cli, tmp_path: Path) -> None:
    """The file is shared: what lies outside of the project is said before it is written."""
    Path(".git").mkdir()
    Path("logs").mkdir()
    text = '{"mcpServers": {"a": {"command": "a"}}}'
    Path(".mcp.json").write_text(text)
    outside = tmp_path / "elsewhere.jsonl"
    words = ["--log", "logs/{name}.jsonl", "--trace-file", str(outside)]
    done = cli("install", "claude-code", "--project", "-y", *words)
    assert done.code == 0, done.err
    assert entry(Path(".mcp.json"), "a")["args"] == [
        *("serve", "--inherit-env", "--name=a", "--log", "logs/a.jsonl"),
        *("--trace-file", str(outside), "--", "a"),
    ]
    warning = f"Outside of the project: {outside}. Others who use it do not have that path."
    assert done.err.startswith(warning)
    assert cli("uninstall", "claude-code", "--project", "-y").code == 0
    assert Path(".mcp.json").read_text() == text
    Path(".vscode").mkdir()
    Path(".vscode/mcp.json").write_text('{"servers": {"a": {"command": "a"}}}')
    done = cli("install", "vscode", "--project", "-y", "--log", "logs/l.jsonl")
    args = json.loads(Path(".vscode/mcp.json").read_text())["servers"]["a"]["args"]
    assert args[3:5] == ["--log", "${workspaceFolder}/logs/l.jsonl"]
    assert "Outside" not in done.err


def test_a_moved_project_is_as_before_again(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, configure: Configure
) -> None:
    """Copies belong to a path: those of the old one are asked. What was added there is left."""
    configure(mine=stdio(["srv"]))
    before = '{"mcpServers": {"a": {"command": "./a.sh"}}}'
    for folder in ("old", "other"):
        Path(folder, ".git").mkdir(parents=True)
        Path(folder, ".mcp.json").write_text(before.replace("a.sh", f"{folder}.sh"))
        monkeypatch.chdir(folder)
        assert cli("install", "claude-code", "--project", "-y").code == 0
        monkeypatch.chdir("..")
    Path("old").rename("new")
    monkeypatch.chdir("new")
    done = cli("uninstall", "claude-code", "--project", "-y")
    assert (done.code, "no copy" in done.err) == (0, False)
    assert Path(".mcp.json").read_text() == before.replace("a.sh", "old.sh")
    assert cli("install", "claude-code", "a", "mine", "--project", "-y").code == 0
    monkeypatch.chdir("..")
    Path("new").rename("newer")
    monkeypatch.chdir("newer")
    done = cli("uninstall", "claude-code", "--project", "-y")
    assert "mine: left as it is: goes through Holdfast, but not by an 'install' here" in done.err
    assert cli("uninstall", "claude-code", "mine", "--project", "-y").code == 0
    assert json.loads(Path(".mcp.json").read_text()) == json.loads(before.replace("a.sh", "old.sh"))


def test_what_a_person_wrote_is_left(cli: Cli, cursor: Path, configure: Configure) -> None:
    configure(mine=stdio(["srv"]), added=stdio(["srv"]))
    servers = dict(CURSOR["mcpServers"], mine={"command": "holdfast", "args": ["serve", "mine"]})
    cursor.write_text(json.dumps({"mcpServers": servers}))
    before = cursor.read_bytes()
    assert cli("install", "cursor", "git", "added", "-y").code == 0
    done = cli("uninstall", "cursor", "-y")
    assert "mine: left as it is: goes through Holdfast, but not by an 'install' here" in done.err
    assert cursor.read_bytes() == before
    # The host writes its file anew: what was added is known all the same.
    assert cli("install", "cursor", "added", "-y").code == 0
    cursor.write_text(json.dumps(json.loads(cursor.read_text()), indent=4))
    assert "added: removed from" in cli("uninstall", "cursor", "-y").err
    assert list(json.loads(cursor.read_text())["mcpServers"]) == ["git", "web", "mine"]
    assert "mine: removed from" in cli("uninstall", "cursor", "mine", "-y").err


def test_holdfast_itself_sees_through_it(cli: Cli, cursor: Path) -> None:
    before = load()["git"]
    cli("install", "cursor", "-y")
    after = load()["git"]
    assert (after.command, after.args, after.env) == (before.command, before.args, before.env)


def _as_claude_code(home: Path, entry: dict[str, Any]) -> Path:
    """Write the file as Claude Code does: whole, two spaces, the type first, among its state."""
    path = home / ".claude.json"
    state = {"numStartups": 3, "projects": {"/w": {"mcpServers": {}}}, "userID": "0" * 64}
    servers = {"mcpServers": {"real": {"type": "stdio", **entry}}}
    path.write_text(json.dumps({**state, **servers}, indent=2))
    return path


def _as_codex(home: Path, entry: dict[str, Any]) -> Path:
    """Write the file as Codex does: a table each, variables in a table below."""
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    env = "\n".join(f"{name} = {json.dumps(value)}" for name, value in entry["env"].items())
    path.write_text(
        f"model = 'x'\n\n[mcp_servers.real]\ncommand = {json.dumps(entry['command'])}\n"
        f"args = {json.dumps(entry['args'])}\n\n[mcp_servers.real.env]\n{env}\n"
    )
    return path


@pytest.mark.parametrize(
    ("host", "write"), [("claude-code", _as_claude_code), ("codex", _as_codex)]
)
async def test_the_command_of_the_file_works(
    cli: Cli, home: Path, tmp_path: Path, host: str, write: Any
) -> None:
    """As a host starts it: the variables of the entry reach the server, in the entry's folder."""
    server = stdio([sys.executable, stdio_server.__file__])
    path = write(home, {**server, "env": {"RUNS": str(tmp_path / "runs"), "PYTHONSAFEPATH": "1"}})
    before = path.read_bytes()
    assert cli("install", host, "-y").code == 0
    is_json = path.suffix == ".json"
    read = json.loads(path.read_text()) if is_json else tomllib.loads(path.read_text())
    written = read["mcpServers" if is_json else "mcp_servers"]["real"]
    assert written["command"] == sys.executable
    command = [written["command"], *written["args"]]
    handlers = holdfast.Handlers(roots=["file:///a"])
    async with holdfast.connect(
        command, env=written["env"], cwd=str(tmp_path), handlers=handlers
    ) as client:
        first = (await client.call_tool("pid")).text
        with pytest.raises(holdfast.errors.RpcError) as caught:
            await client.call_tool("die")
        assert caught.value.data == {"kind": "transport", "outcomeUnknown": True}
        assert (await client.call_tool("pid")).text != first
        assert (await client.call_tool("cwd")).text == str(tmp_path.resolve())
        assert (await client.call_tool("ask")).text == "file:///a"
    assert (tmp_path / "runs").read_text() == "run\n"
    assert cli("uninstall", host, "-y").code == 0
    assert path.read_bytes() == before


# The program


def test_the_program_lasts(tmp_path: Path) -> None:
    script = tmp_path / "venv/bin/holdfast"
    script.parent.mkdir(parents=True)
    script.write_text("")
    script.chmod(0o755)
    assert find_program(str(script), "/py", "").words == (str(script),)
    assert not find_program(str(script), "/py", "").note
    (tmp_path / "venv/pyvenv.cfg").write_text("")
    assert "before you remove that" in find_program(str(script), "/py", "").note
    # The link that lasts is named, not what it leads to today.
    link = tmp_path / "bin/holdfast"
    link.parent.mkdir()
    link.symlink_to(script)
    assert find_program(str(script), "/py", str(link.parent)).words == (str(link),)
    assert find_program("/x/holdfast/__main__.py", "/py", "").words == interpreter("/py")


def test_a_copy_in_a_cache_is_not_named(tmp_path: Path) -> None:
    script = tmp_path / "uv/archive-v0/abc/bin/holdfast"
    script.parent.mkdir(parents=True)
    script.write_text("")
    assert "is cleaned" in find_program(str(script), "/py", "").note
    uvx = tmp_path / "uvx"
    uvx.write_text("")
    uvx.chmod(0o755)
    program = find_program(str(script), "/py", str(tmp_path))
    assert program.words == (str(uvx), f"holdfast=={holdfast.__version__}")


def test_hosts_are_completed() -> None:
    assert verb._hosts(None, None, "cl") == ["claude-code", "claude-desktop"]  # type: ignore[arg-type]
