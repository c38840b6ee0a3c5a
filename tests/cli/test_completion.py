"""The script for the shell, tried in the shell."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import tool_cache
from tests.cli.conftest import Cli, Configure, Open
from tests.cli.rig import tools
from tests.cli.terminal import PATIENCE, Terminal, interruptible

TRY = r"""
eval "$(holdfast completion bash)"
compopt() { echo "compopt $1 $2"; }
try() {
    COMP_WORDS=(holdfast "$@"); COMP_CWORD=$#; COMPREPLY=()
    _holdfast_completion holdfast
    echo "${COMPREPLY[*]}"
}
try call gi
try call git.log re
try call git.log
try tools -- x
try call git.log place = y
try call git.log place = ""
try call git.log place = \"
"""


@pytest.mark.req("F3")
def test_bash_completes_words(home: Path, configure: Configure, tmp_path: Path) -> None:
    configure(git={"command": "x"})
    tool = {
        "name": "log",
        "inputSchema": {
            "properties": {"repo": {}, "place": {"enum": ["york", "New York", "$(id)"]}}
        },
    }
    tool_cache.save("git", tools(tool))
    holdfast = tmp_path / "bin" / "holdfast"
    holdfast.parent.mkdir()
    holdfast.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast "$@"\n')
    holdfast.chmod(0o755)
    env = {**os.environ, "PATH": f"{holdfast.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", TRY], env=env, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "git.log",
        "compopt -o nospace",
        "repo=",
        "git.log",
        "compopt -o default",
        "",
        "york",
        "york New\\ York",
        "york New York",
    ]


TYPED = ["holdfast call gi\t", "log re\t", "x place=N\t"]
SHOWN = ["call git.", "git.log repo=", "place=New"]


@pytest.mark.req("F3")
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_keys_at_a_terminal_become_a_command(
    cli: Cli, home: Path, configure: Configure, tmp_path: Path, shell: str
) -> None:
    """Half words go on without a space, and a choice with a space in it is one word."""
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    configure(git={"command": "x"}, other={"command": "y"})
    properties = {
        "repo": {"description": "Where: it is"},
        "place": {"enum": ["york", "New York", "$(id)"]},
    }
    log: dict[str, Any] = {"name": "log", "inputSchema": {"properties": properties}}
    tool_cache.save("git", tools(log, {"name": "grep"}))
    called, holdfast = tmp_path / "called", tmp_path / "bin" / "holdfast"
    holdfast.parent.mkdir()
    holdfast.write_text(
        f'#!/bin/sh\n[ -n "$_HOLDFAST_COMPLETE" ] || {{ printf "%s\\n" "$@" > {called}; exit; }}\n'
        f'exec "{sys.executable}" -m holdfast "$@"\n'
    )
    holdfast.chmod(0o755)
    assert cli("completion", "install", shell).code == 0
    start = home / "config/fish/config.fish" if shell == "fish" else home / f".{shell}rc"
    prompt = "function fish_prompt; echo 'READY '; end\n" if shell == "fish" else "PS1='READY '\n"
    start.write_text(prompt + (start.read_text() if start.exists() else ""))
    path = f"{holdfast.parent}:{os.environ['PATH']}"
    # A new fish reads all manual pages of the machine, in a process that it leaves behind.
    one = Terminal(
        [program, "-i"], PATH=path, ZDOTDIR=str(home), HISTFILE="", FISH_UNIT_TESTS_RUNNING="1"
    )
    try:
        one.see("READY")
        for keys, shown in zip(TYPED, SHOWN, strict=True):
            one.send(keys)
            one.see(shown)
        one.send("\rexit\r")
        one.end()
    finally:
        one.close()
    assert called.read_text().splitlines() == ["call", "git.log", "repo=x", "place=New York"]


@pytest.mark.req("N3")
def test_fish_shows_descriptions_beyond_a_comma(
    cli: Cli, home: Path, configure: Configure, tmp_path: Path
) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not installed")
    configure(git={"command": "x"})
    log = {"properties": {"repo": {"description": "A path, or a URL"}, "sort": {"enum": ["a,b"]}}}
    tool_cache.save("git", tools({"name": "log", "inputSchema": log}))
    assert cli("completion", "install", "fish").code == 0
    (tmp_path / "holdfast").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m holdfast "$@"\n')
    (tmp_path / "holdfast").chmod(0o755)
    asked = 'complete -C "holdfast call git.log r"; complete -C "holdfast call git.log sort="'
    path = f"{tmp_path}:{os.environ['PATH']}"
    out = subprocess.check_output(
        [fish, "-c", asked], env={**os.environ, "PATH": path}, text=True, timeout=PATIENCE
    )
    assert out.splitlines() == ["repo=\tA path, or a URL", "sort=a,b"]


@pytest.mark.req("F3")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(cli: Cli, shell: str) -> None:
    done = cli("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_HOLDFAST_COMPLETE={shell}_complete" in done.out


@pytest.mark.req("N3")
@pytest.mark.parametrize(
    ("shell", "script", "start"),
    [
        ("bash", ".local/share/holdfast/completion.bash", ".bashrc"),
        ("zsh", ".local/share/holdfast/completion.zsh", ".zshrc"),
        ("fish", "config/fish/completions/holdfast.fish", None),
    ],
)
def test_completion_is_installed_once(  # noqa: PLR0917
    cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, shell: str, script: str, start: str
) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("ZDOTDIR", raising=False)
    monkeypatch.setenv("SHELL", f"/bin/{shell}")
    if start:
        (home / start).write_text("alias x=y")
    for _ in range(2):
        done = cli("completion", "install")
        assert (done.code, done.out) == (0, "")
        assert "is installed" in done.err
    assert (home / script).read_text() == cli("completion", shell).out
    if start:
        first, mark, line = (home / start).read_text().splitlines()
        assert (first, mark) == ("alias x=y", "# holdfast: shell completion")
        assert line == f"[ -r {home / script} ] && . {home / script}"


def test_completion_is_installed_only_with_a_yes(terminal: Open, home: Path) -> None:
    one = terminal("completion", "install", "bash")
    one.expect("Install it? [y/N]: ")
    one.send("n\n")
    assert one.end() == 130
    assert not (home / ".bashrc").exists()


def test_the_shell_is_that_of_the_user(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert cli("completion").out == cli("completion", "zsh").out
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert "No completion for the shell 'tcsh': name bash, zsh or fish." in cli("completion").err


@pytest.mark.req("F3")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_ctrl_c_at_tab_prints_nothing(cli: Cli, home: Path, shell: str) -> None:
    assert "2>/dev/null" in cli("completion", shell).out
    interrupt = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    code = (
        "import sys\nfrom holdfast.cli import tool_cache\nfrom holdfast.cli.main import main\n"
        f"def load(key, **options):\n    {interrupt}\n"
        "tool_cache.load = load\nsys.exit(main([]))"
    )
    words = {"COMP_WORDS": "holdfast call git.", "COMP_CWORD": "2"}
    file = home / "config" / "holdfast" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": {"git": {"command": "x"}}}', encoding="utf-8")
    done = subprocess.run(
        interruptible([sys.executable, "-c", code]),
        env={**os.environ, **words, "_HOLDFAST_COMPLETE": f"{shell}_complete"},
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
