"""``--json``: all of it on stdout, and one line on stderr for a command that failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.main import VERBS
from tests.cli.conftest import DEMO, Cli, Configure, stdio
from tests.cli.rig import puppet

TALKERS = {"serve", "completion", "demo"}
"""Verbs that speak to a shell, to a person, to a client."""

SECONDS = {"watch", "login", "tasks"}
"""Verbs that do not end by themselves, need a person, or a task: see their own tests."""

GOOD = [
    ["servers"],
    ["status", "demo"],
    ["search", "add", "demo"],
    ["add", "new", "--", "x"],
    ["remove", "demo"],
    ["import", "mcp.json", "--yes"],
    ["resources", "none"],
    ["prompts", "none"],
    ["tools", "demo"],
    ["tools", "demo", "--offline"],
    ["describe", "demo.add"],
    ["resources", "demo"],
    ["prompts", "demo"],
    ["status", "demo"],
    ["doctor", "demo"],
    ["call", "demo.add", "a=1", "b=2"],
    ["call", "demo.picture", "width=1", "height=1"],
    ["call", "demo.countdown", "steps=1", "--as-task"],
    ["read", "demo", "tide-watch"],
    ["read", "demo", "skill://tide-watch/style.md"],
    ["read", "demo", "demo://about"],
    ["prompt", "demo.tour"],
    ["prompt", "demo", "greeting", "--suggest", "style=p"],
    ["read", "demo", "demo://note/{name}", "--suggest", "name"],
    ["shell", "demo"],
    ["codegen", "demo"],
    ["codegen", "demo", "-o", "module.py"],
    ["lock", "demo"],
    ["check", "demo"],
    ["log", "replay", "demo", "log.jsonl"],
    ["log", "run", "demo", "log.jsonl"],
    ["log", "diff", "log.jsonl", "log.jsonl"],
    ["logout", "web"],
    ["auth", "status"],
    ["servers", "--files"],
    ["config", "explain", "demo"],
    ["config", "trust", "demo"],
    ["config", "untrust", "demo"],
    ["view", "run.jsonl"],
    ["map", "demo.echo", "rows.jsonl", "-o", "out.jsonl"],
    ["load", "demo", "log.jsonl", "--for", "0.1", "--yes"],
    ["once", "show"],
    ["daemon", "stop"],
    ["install"],
    ["cli", "demo"],
    ["cli", "demo", "-o", "tool"],
    ["install", "cursor", "--project", "--yes"],
    ["uninstall", "cursor", "--project", "--yes"],
]

BAD = [
    (["servers", "--config", "nowhere"], 2, "validation"),
    (["tools", "nowhere"], 2, "validation"),
    (["tools", "dead"], 3, "transport"),
    (["tools", "dead", "--offline"], 2, "validation"),
    (["tools", "off"], 3, "state"),
    (["tools", "theirs"], 5, "trust"),
    (["tools", "unset"], 2, "validation"),
    (["tools", "demo", "--nope"], 2, "usage"),
    (["tools", "demo", "--log", "/nowhere/x"], 2, "validation"),
    (["describe", "demo.nope"], 2, "validation"),
    (["resources", "dead"], 3, "transport"),
    (["prompts", "dead"], 3, "transport"),
    (["status", "dead"], 3, "status"),
    (["search"], 2, "usage"),
    (["search", "xyzzy"], 1, "search"),
    (["search", "--registry", "x"], 3, "transport"),
    (["add", "io.github.owner/name"], 3, "transport"),
    (["add", "word"], 2, "usage"),
    (["add", "demo", "--", "x"], 2, "validation"),
    (["remove", "nowhere"], 2, "validation"),
    (["import", "nowhere"], 2, "validation"),
    (["import", "mcp.json"], 5, "trust"),
    (["doctor", "dead"], 3, "doctor"),
    (["call", "demo.fail"], 1, "tool"),
    (["call", "demo.crash"], 3, "transport"),
    (["call", "demo.sleep", "seconds=9", "--timeout", "1"], 4, "timeout"),
    (["call", "demo.add"], 2, "validation"),
    (["call", "demo.add", "a=1", "b=2", "--lock", "nowhere.lock"], 6, "drift"),
    (["call", "demo.picture", "--protocol", "1999-01-01"], 2, "validation"),
    (["read", "demo", "demo://nowhere"], 1, "jsonrpc"),
    (["read", "demo", "refunds"], 2, "validation"),
    (["tasks", "get", "demo", "id"], 1, "jsonrpc"),
    (["tasks", "wait", "demo", "id"], 1, "jsonrpc"),
    (["tasks", "get", "none", "id"], 3, "state"),
    (["prompt", "demo.nope"], 2, "validation"),
    (["prompt", "demo", "greeting", "--suggest", "nope="], 1, "jsonrpc"),
    (["watch", "dead"], 3, "transport"),
    (["shell", "dead"], 3, "transport"),
    (["codegen", "dead"], 3, "transport"),
    (["codegen", "demo", "-o", "missing.py", "--check"], 6, "drift"),
    (["lock", "dead"], 3, "transport"),
    (["check", "none", "--as", "demo"], 6, "drift"),
    (["check", "dead", "--as", "demo"], 3, "check"),
    (["log", "replay", "none", "log.jsonl", "--yes"], 1, "replay"),
    (["log", "run", "dead", "log.jsonl", "--yes"], 3, "replay"),
    (["log", "diff", "log.jsonl", "other.jsonl"], 1, "difference"),
    (["tasks", "nope"], 2, "usage"),
    (["view", "nowhere.jsonl"], 2, "validation"),
    (["read", "none", "x"], 2, "validation"),
    (["read", "dead", "x"], 3, "transport"),
    (["log"], 2, "usage"),
    (["login", "demo"], 5, "auth"),
    (["logout", "demo"], 5, "auth"),
    (["auth"], 2, "usage"),
    (["auth", "nope"], 2, "usage"),
    (["config"], 2, "usage"),
    (["servers", "--files", "--config", "nowhere"], 2, "validation"),
    (["config", "explain", "nope"], 2, "validation"),
    (["config", "untrust", "nope"], 2, "validation"),
    (["map", "demo.echo", "nowhere.jsonl"], 2, "validation"),
    (["load", "demo", "nowhere.jsonl"], 2, "validation"),
    (["once", "show", "nowhere"], 2, "validation"),
    (["once"], 2, "usage"),
    (["daemon"], 2, "usage"),
    (["install", "nowhere"], 2, "validation"),
    (["cli", "nowhere"], 2, "validation"),
    (["install", "cursor", "--project"], 5, "trust"),
    (["uninstall", "cursor"], 2, "validation"),
]


@pytest.fixture
def place(cli: Cli, configure: Configure) -> Path:
    """A folder with everything that the commands above are about."""
    configure(
        demo=stdio(DEMO),
        none=stdio(puppet(tools=["echo"])),
        dead=stdio(["no-such-command"]),
        web={"url": "http://127.0.0.1:9/mcp"},
        off=stdio(["x"], disabled=True),
        unset=stdio(["x", "${NO_SUCH_VARIABLE}"]),
    )
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": stdio(["x"])}}))
    Path(".cursor").mkdir()
    Path(".cursor/mcp.json").write_text('{"mcpServers": {"near": {"command": "y"}}}')
    Path("mcp.json").write_text('{"mcpServers": {"x": {"command": "y"}}}')
    call = {"name": "echo", "arguments": {"text": "a"}, "_seq": 1}
    after = {"_phase": "after", "_ok": True, "_ms": 1, "_result": "a"}
    lines = [json.dumps({**call, **facts}) for facts in ({"_phase": "before"}, after)]
    Path("log.jsonl").write_text("\n".join(lines))
    Path("other.jsonl").write_text("")
    Path("rows.jsonl").write_text('{"text": "a"}\n')
    Path("run.jsonl").write_text('{"holdfast-trace": 1}\n')
    return Path.cwd()


@pytest.mark.req("F3")
@pytest.mark.parametrize("words", GOOD, ids=" ".join)
def test_a_result_is_json_and_stderr_is_empty(cli: Cli, place: Path, words: list[str]) -> None:
    prepare(cli, words)
    done = cli(*with_json(words), stdin="state\n")
    assert (done.code, done.err) == (0, "")
    assert isinstance(done.value, dict | list | str)
    assert done.out.count("\n") == 1


@pytest.mark.req("F3", "E2")
@pytest.mark.parametrize(("words", "code", "kind"), BAD, ids=lambda one: str(one)[:60])
def test_a_failure_is_one_line_of_json_on_stderr(
    cli: Cli, place: Path, words: list[str], code: int, kind: str
) -> None:
    prepare(cli, words)
    done = cli(*with_json(words))
    assert (done.code, done.error["kind"]) == (code, kind)
    assert done.error["message"]
    for line in done.out.splitlines():
        json.loads(line)


def with_json(words: list[str]) -> list[str]:
    """The words with the option, which stands before a command."""
    at = words.index("--") if "--" in words else len(words)
    return [*words[:at], "--json", *words[at:]]


def prepare(cli: Cli, words: list[str]) -> None:
    """What must have been done before."""
    if "--offline" in words and "demo" in words:
        cli("tools", "demo")
    if words[0] == "check" or words[:2] == ["cli", "demo"]:
        cli("lock", "demo")


def test_every_verb_is_tried() -> None:
    for tried in ({words[0] for words in GOOD}, {words[0] for words, _, _ in BAD}):
        assert tried | TALKERS | SECONDS == VERBS.keys()
