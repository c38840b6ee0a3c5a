"""What Tab offers: from files alone, and nothing is started for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli import tool_cache
from holdfast.cli.main import main
from tests.cli.conftest import Configure
from tests.cli.rig import tools

Tab = Callable[..., list[str]]

TOOLS: list[dict[str, Any]] = [
    {
        "name": "git_log",
        "description": "Commits\nmore",
        "inputSchema": {
            "properties": {
                "repo": {"description": "Where"},
                "order": {"$ref": "#/$defs/order"},
                "all": {"type": "boolean"},
                "odd": True,
            },
            "$defs": {"order": {"enum": ["new", "old", 5]}},
        },
    },
    {"name": "git_show", "inputSchema": 5},
]


@pytest.fixture
def witness(home: Path, configure: Configure, tmp_path: Path) -> Path:
    """A file that is there once a server was started; some servers, one of them seen before."""
    path = tmp_path / "started"
    entry = {"command": "touch", "args": [str(path)]}
    configure(git=entry, files=entry, web={"url": "http://127.0.0.1:1"})
    project = Path.cwd() / ".mcp.json"
    project.write_text(json.dumps({"mcpServers": {"theirs": entry}}), encoding="utf-8")
    tool_cache.save("git", tools(*TOOLS))
    tool_cache.save("http://x", tools(*TOOLS[:1]))
    return path


@pytest.fixture
def tab(
    witness: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[str]]:
    """Press Tab after some words, as bash asks; the offers."""

    def press(*words: str, raw: bool = False) -> list[str]:
        monkeypatch.setenv("_HOLDFAST_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["holdfast", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            main([])
        out = capfd.readouterr().out
        assert not witness.exists(), "a server was started"
        lines = [line for line in out.splitlines() if line]
        return lines if raw else [line.partition(",")[2] or line for line in lines]

    return press


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (["too"], ["tools"]),
        (["tools", ""], ["theirs", "git", "files", "web"]),
        (["status", "f"], ["files"]),
        (["call", "g"], ["git.git_log", "git.git_show"]),
        (["call", "git.git_s"], ["git.git_show"]),
        (["describe", "fi"], ["files."]),
        (["call", "nope"], []),
        (["call", "git", ""], ["git_log", "git_show"]),
        (["call", "git", "git_s"], ["git_show"]),
        (["call", "git", "git_log", "o"], ["order=", "odd="]),
        (["describe", "git", "git_l"], ["git_log"]),
        (["describe", "git", "git_log", ""], []),
        (["call", "git.git_log", ""], ["repo=", "order=", "all=", "odd="]),
        (["call", "git.git_log", "repo=x", "o"], ["order=", "odd="]),
        (["call", "git.git_log", "repo:=1", "repo"], []),
        (["call", "git.git_log", "order", "=", ""], ["new", "old", "5"]),
        (["call", "git.git_log", "order", "="], ["new", "old", "5"]),
        (["call", "git.git_log", "order", "=", "n"], ["new"]),
        (["call", "git.git_log", "order=o"], ["order=old"]),
        (["call", "git.git_log", "all=t"], ["all=true"]),
        (["call", "git.git_log", "repo=x"], []),
        (["call", "git.git_show", ""], []),
        (["call", "nope.nope", ""], []),
        (["call", "--url", "http://x", "g"], ["git_log"]),
        (["call", "--url", "http://x", "git_log", "re"], ["repo="]),
        (["config", "trust", "th"], ["theirs"]),
        (["config", "trust", "theirs", "g"], []),
        (["tools", "git", "f"], []),
        (["prompt", "g"], ["git."]),
        (["tools", "--off"], ["--offline"]),
    ],
)
def test_tab_offers_what_fits(tab: Tab, words: list[str], offers: list[str]) -> None:
    assert tab(*words) == offers


ACTIVE = [
    "x$(touch m)",
    "x`m`",
    "x;m",
    "x'm",
    'x"m',
    "x\\m",
    "x!m",
    "~x",
    "x\nplain,m",
    "x|m",
    "x\u3164m",  # a letter that nobody sees: \\w takes it
    "x\u115fm",
]


@pytest.mark.req("F3")
@pytest.mark.parametrize("name", ACTIVE)
def test_a_word_that_a_shell_would_interpret_is_not_offered(
    tab: Tab, name: str, configure: Configure
) -> None:
    """Servers of an unapproved file, tools, parameters, values and files of a checkout."""
    config = Path.cwd() / ".mcp.json"
    config.write_text(json.dumps({"mcpServers": {name: {"command": "x"}}}), encoding="utf-8")
    offered = {"enum": [name, "fine"]}
    schema = {"properties": {name: {}, "choice": offered}}
    tool_cache.save("git", tools({"name": name}, {"name": "ok", "inputSchema": schema}))
    assert tab("tools", "") == ["git", "files", "web"]
    assert tab("describe", "git") == ["git.ok"]
    assert tab("call", "git.ok", "") == ["choice="]
    assert tab("call", "git.ok", "choice=") == ["choice=fine"]
    (Path.cwd() / "checkout").mkdir()
    (Path.cwd() / "checkout" / name).touch()
    assert tab("call", "git.ok", "choice=@checkout/") == []


@pytest.mark.req("F3")
def test_what_comes_after_the_dashes_is_left_to_the_shell(tab: Tab) -> None:
    assert tab("tools", "--", "pyth") == ["pyth"]


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    "words",
    [
        ["tools", "--config", "us"],
        ["call", "git.git_log", "--log", "us"],
        ["call", "git.git_log", "--lock", "us"],
        ["codegen", "git", "-o", "us"],
        ["import", "us"],
        ["log", "serve", "us"],
    ],
)
def test_files_are_left_to_the_shell(tab: Tab, words: list[str]) -> None:
    assert tab(*words, raw=True) == ["file,us"]


def test_folders_are_left_to_the_shell(tab: Tab) -> None:
    assert tab("call", "git.git_log", "--save", "us", raw=True) == ["dir,us"]
    assert tab("tools", "git", "--cwd", "us", raw=True) == ["dir,us"]


@pytest.mark.req("F3")
def test_files_are_offered_for_an_argument_that_is_one(tab: Tab) -> None:
    """bash takes the word apart, and completes what begins with the last sign."""
    for name in ("user.json", "used/inner", "other"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    call = ["call", "git.git_log"]
    assert tab(*call, "repo", "=@", "us") == ["@used/", "@user.json"]
    assert tab(*call, "repo", ":=@", "used/") == ["@used/inner"]
    assert tab(*call, "repo", "=@") == ["@other", "@used/", "@user.json"]
    assert tab(*call, "repo=@use") == ["repo=@used/", "repo=@user.json"]
    assert tab(*call, "repo:=@x*") == []


@pytest.mark.req("L13")
def test_the_server_of_the_environment_offers_its_tools(
    tab: Tab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_SERVER_URL", "http://x")
    assert tab("call", "git_") == ["git_log"]
    assert tab("call", "git_log", "re") == ["repo="]


def test_a_broken_configuration_offers_nothing_and_says_nothing(
    tab: Tab, capfd: pytest.CaptureFixture[str]
) -> None:
    assert tab("tools", "--config", "/nowhere", "") == []
    Path(".mcp.json").write_text("{")
    assert tab("tools", "g") == ["git"]
    assert capfd.readouterr().err == ""


def test_other_shells_are_told_what_a_tool_does(
    tab: Tab, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "holdfast call git.git_l")
    monkeypatch.setenv("COMP_CWORD", "2")
    with pytest.raises(SystemExit):
        main([])
    assert capfd.readouterr().out.split("\n")[:3] == ["plain", "git.git_log", "Commits"]
    tool_cache.save("git", tools({"name": "git_log", "description": "\x1b[2J\u202eevil"}))
    with pytest.raises(SystemExit):
        main([])
    assert capfd.readouterr().out.split("\n")[2] == "\\x1b[2J\\u202eevil"
