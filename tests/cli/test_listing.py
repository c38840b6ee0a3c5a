"""tools, describe, ping: looking around, with a server or from memory."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from holdfast.cli import tool_cache
from tests.cli.conftest import DEMO, Cli, Configure, stdio
from tests.cli.rig import puppet, tools
from tests.cli.web import Web


@pytest.mark.req("F3")
def test_tools_are_shown_from_memory_without_the_server(
    cli: Cli, configure: Configure, tmp_path: Path
) -> None:
    path = configure(git=stdio(puppet(tools=["log", "status"])))
    first = cli("tools", "git")
    witness = tmp_path / "started"
    configure(git=stdio(["touch", str(witness)]))
    done = cli("tools", "git", "--offline")
    assert done.out == first.out == "log()\tDoes log.\nstatus()\tDoes status.\n"
    assert done.err.startswith("as seen on 20")
    assert str(path) in done.err
    assert cli("tools", "git", "--offline", "--json").value["tools"][0]["name"] == "log"
    assert not witness.exists()


@pytest.mark.req("F3")
def test_a_command_is_remembered_by_its_words(cli: Cli) -> None:
    assert cli("tools", "--offline", "--", *puppet()).code == 2
    assert cli("tools", "--", *puppet()).code == 0
    assert cli("tools", "--offline", "--", *puppet()).out == "echo()\tDoes echo.\n"
    assert cli("tools", "--offline", "--", *puppet(tools=[])).code == 2


def test_what_was_never_seen_is_told_offline(cli: Cli) -> None:
    done = cli("tools", "git", "--offline", "--json")
    assert done.code == 2
    assert "git: not seen yet" in done.error["message"]


def test_a_server_is_listed_through_all_its_pages(cli: Cli) -> None:
    assert len(cli("tools", "--", *DEMO, "--page-size", "5").out.splitlines()) == 12


@pytest.mark.req("F3")
def test_a_tool_is_described_with_the_line_that_calls_it(cli: Cli) -> None:
    done = cli("describe", "add", "--", *DEMO)
    assert done.out.endswith(f"\n\nholdfast call add a=1 b=1 -- {' '.join(DEMO)}\n")
    assert cli("describe", "add", "--json", "--", *DEMO).value["name"] == "add"
    done = cli("describe", "nope", "--", *DEMO)
    assert (done.code, done.err) == (2, "holdfast: There is no tool 'nope'. Did you mean 'note'?\n")


def test_a_url_is_part_of_that_line(cli: Cli, web: Web) -> None:
    url = f"{web.url}?a=1&b"
    done = cli("describe", "echo", "--url", url)
    assert f"holdfast call echo --url '{url}'\n" in done.out


def test_the_options_of_the_server_are_part_of_that_line(cli: Cli) -> None:
    options = ["--env", "X=it's", "--protocol", "2025-06-18"]
    done = cli("describe", "echo", *options, "--", *puppet())
    called = done.out.splitlines()[-1].removeprefix("holdfast ")
    assert shlex.split(called) == ["call", "echo", *options, "--", *puppet()]


@pytest.mark.req("F3")
def test_a_server_that_is_given_has_a_state_too(cli: Cli) -> None:
    done = cli("status", "--", *DEMO)
    assert done.out.startswith("python -m holdfast.demo.server\tready\t12 tools, ")
    (facts,) = cli("status", "--json", "--", *puppet()).value["servers"]
    assert (facts["server"], facts["protocol"]) == ("puppet 1", "2025-11-25")
    assert facts["ms"] >= 0
    assert cli("status", "x", "--", *DEMO).code == 2


@pytest.mark.req("F3")
@pytest.mark.parametrize("verb", ["tools", "resources", "prompts"])
def test_a_server_without_them_says_so(cli: Cli, configure: Configure, verb: str) -> None:
    configure(git=stdio(puppet(tools=None)))
    done = cli(verb, "git")
    assert (done.code, done.out, done.err) == (0, "", f"git has no {verb}.\n")
    assert cli(verb, "git", "--json").value[verb] == []


@pytest.mark.req("F3")
def test_a_server_without_tools_is_no_failure_among_others(cli: Cli, configure: Configure) -> None:
    configure(git=stdio(puppet(tools=None)), demo=stdio(DEMO))
    done = cli("tools")
    assert (done.code, done.err) == (0, "git has no tools.\n")
    assert "demo.echo(text: str)" in done.out
    assert cli("search", "echo").out.startswith("demo.echo(")
    found = cli("status", "--json").value["servers"]
    assert [(one["state"], one["tools"]) for one in found] == [("ready", None), ("ready", 12)]


@pytest.mark.req("F3")
def test_offline_the_servers_that_were_seen_are_shown_together(
    cli: Cli, configure: Configure
) -> None:
    configure(git=stdio(["never-started"]), new=stdio(["never-started"]))
    tool_cache.save("git", tools({"name": "log"}))
    done = cli("tools", "--offline")
    assert (done.code, done.out) == (2, "git.log()\t\n")
    assert "git: as seen on 20" in done.err
    assert "new: offline: not seen yet" in done.err
    found = cli("tools", "--offline", "--json").value["servers"]
    assert [(one["name"], one["tools"]) for one in found] == [
        ("git", [{"name": "log"}]),
        ("new", None),
    ]


@pytest.mark.req("E2")
def test_a_search_without_servers_says_how_to_add_one(cli: Cli) -> None:
    done = cli("search", "echo")
    assert (done.code, done.out) == (1, "")
    assert "No server is configured. Add one: holdfast add" in done.err


@pytest.mark.req("T8", "F3")
def test_a_tool_that_cannot_be_read_costs_no_other(cli: Cli) -> None:
    number = {"type": "object", "properties": {"x": {"maximum": "@1e400@"}}}
    digits = {"readOnlyHint": True, "x": f"@{'9' * 5000}@"}
    odd = [
        {"name": "number", "inputSchema": number},
        {"name": "digits", "annotations": digits},
        {"name": "type", "annotations": {"readOnlyHint": "perhaps"}, "description": 7},
    ]
    server = puppet(tools=[*odd, "log"])
    assert len(cli("tools", "--", *server).out.splitlines()) == 4
    assert cli("describe", "log", "--", *server).out.startswith("log()\nDoes log.")
    assert cli("search", "log", "--", *server).out == "log()\tDoes log.\n"
    assert cli("call", "log", "--", *server).out == "{}\n"
    assert cli("call", "number", "x=1", "--", *server).out == '{"x": "1"}\n'
    assert cli("lock", "--as", "odd", "--", *server).code == 0
    assert "holdfast" not in cli("doctor", "--", *server).err


@pytest.mark.req("F3")
def test_a_server_without_tools_is_told_so_by_every_verb_that_looks_for_one(cli: Cli) -> None:
    none = ["--", *puppet(tools=None)]
    done = cli("describe", "add", *none)
    assert (done.code, done.out) == (2, "")
    assert "There is no tool 'add'. The server has no tools at all." in done.err
    done = cli("search", "add", *none)
    assert (done.code, done.out, done.err) == (1, "", "No tool fits.\n")


def test_only_configured_servers_are_listed_side_by_side(cli: Cli, configure: Configure) -> None:
    configure(one=stdio(puppet(tools=["a"])))
    done = cli("tools", "one", "http://127.0.0.1:1/mcp")
    assert (done.code, done.out) == (2, "")
    assert "http://127.0.0.1:1/mcp is not configured: name it alone." in done.err


@pytest.mark.req("F3")
def test_a_search_falls_back_to_what_was_last_seen(cli: Cli, configure: Configure) -> None:
    configure(demo=stdio(DEMO))
    assert cli("tools", "demo").code == 0
    configure(demo=stdio(["no-such-program"]), other=stdio(DEMO))
    done = cli("search", "echo")
    assert done.code == 0
    assert "demo.echo(" in done.out
    assert "other.echo(" in done.out
    assert "demo: offline: " in done.err
    assert "demo: its tools are shown as seen on 20" in done.err
    hits = {hit["tool"]: hit for hit in cli("search", "echo", "--json").value["tools"]}
    assert hits["demo.echo"]["lastSeen"] is True
    assert "lastSeen" not in hits["other.echo"]


@pytest.mark.req("F3")
@pytest.mark.parametrize("how", ["disabled", "not approved", "of another file", "never seen"])
def test_a_search_shows_no_tools_that_are_not_the_servers_own(
    cli: Cli, configure: Configure, how: str
) -> None:
    configure(demo=stdio(DEMO))
    if how != "never seen":
        assert cli("tools", "demo").code == 0
    gone = stdio(["no-such-program"])
    configure(demo={**gone, "disabled": how == "disabled"})
    if how in ("not approved", "of another file"):
        configure()
        text = json.dumps({"mcpServers": {"demo": gone}})
        Path(".mcp.json").write_text(text, encoding="utf-8")
    if how == "of another file":
        assert cli("config", "trust", "demo", "--yes").code == 0
    done = cli("search", "echo")
    assert (done.code, done.out) == (1, "")
