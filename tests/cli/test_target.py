"""Which server is meant: a name, a URL, or a command; the same for every verb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast._core import targets
from holdfast.cli import main
from tests.cli.conftest import DEMO, Cli, Configure, Open, stdio
from tests.cli.rig import puppet
from tests.cli.web import Web


@pytest.mark.req("F3")
def test_a_server_is_a_name_from_the_configuration(cli: Cli, configure: Configure) -> None:
    configure(demo=stdio(DEMO))
    assert cli("call", "demo.echo", "text=hi").out == "hi\n"
    assert "echo(text: str)\t" in cli("tools", "demo").out
    assert cli("read", "demo", "demo://tides").out.startswith("The tide")
    assert cli("prompt", "demo.greeting", "name=Bo").code == 0


def test_the_longest_name_is_meant(cli: Cli, configure: Configure) -> None:
    one, two = puppet(tools=["b.t"]), puppet(tools=["t"])
    configure(**{"a": stdio(one), "a.b": stdio(two)})
    assert cli("call", "a.b.t").code == 0
    assert cli("describe", "a.b.t").out.startswith("t()\n")


@pytest.mark.req("F3", "E2")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["resources"], "Which server? Configured: demo, web. Or give --url URL, or -- COMMAND."),
        (["tools", "dmo"], "There is no server 'dmo'. Did you mean 'demo'?"),
        (["tools", "xyzzy"], "There is no server 'xyzzy'. Configured: demo, web."),
        (["tools", "demo", "x"], "There is no server 'x'."),
        (["resources", "demo", "x"], "Not understood: x."),
        (["call", "demo"], "Which one of 'demo'? Write its name after it."),
        (["call", "demo."], "Which one of 'demo'? Write its name after it."),
        (["tools", "srv.py"], "There is no server 'srv.py'. There is no such file either."),
        (["tools", "localhost:80/mcp"], "is it http://localhost:80/mcp?"),
        (["call", "127.0.0.1:80", "add"], "A URL begins with http:// or https://"),
        (["call", "demo/echo"], "Did you mean 'demo.echo'?"),
        (["call", "demo:echo"], "Did you mean 'demo.echo'?"),
        (
            ["call", "dmo.echo"],
            "'dmo.echo' names no configured server: write SERVER.NAME. Did you mean 'demo'?",
        ),
        (["read"], "Which server?"),
        (["read", "demo"], "Missing: URI."),
        (["read", "demo://about"], "Which server?"),
        (["read", "demo", "a", "b"], "Not understood: b."),
        (["tools", "demo", "--header", "A:b"], "--header is for a URL"),
        (["tools", "web", "--env", "A=b"], "--env is for a command"),
        (["tools", "--cwd", "/", "--url", "http://127.0.0.1:1"], "--cwd is for a command"),
        (["tools", "--transport", "sse", "--", "x"], "--transport is for a URL"),
        (["tools", "--url", "x"], "--url 'x': a URL begins with http:// or https://."),
        (["tools", "--url", "http://x", "--", "y"], "Give --url or a command after --, not both."),
        (["tools", "--"], "There is no command after --."),
        (["tools", "demo", "--", "y"], "Not understood: demo (the server is given already)."),
        (["tools", "--config", "nope.json"], "nope.json: there is no such file"),
    ],
)
def test_a_server_that_is_not_clear_is_asked_for(
    cli: Cli, configure: Configure, words: list[str], said: str
) -> None:
    configure(demo=stdio(["never-started"]), web={"url": "http://127.0.0.1:1/mcp"})
    done = cli(*words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_without_any_server_it_says_how_to_give_one(cli: Cli) -> None:
    done = cli("tools", "git")
    assert done.code == 2
    assert "No server is configured: give --url URL, or a command after --" in done.err


@pytest.mark.req("F3", "E2")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["no-such-command-here"], 3, "command not found: 'no-such-command-here'"),
        (puppet(exit=3, stderr="cannot go on"), 3, "exited with code 3"),
        (puppet(exit=3, stderr="cannot go on"), 3, "cannot go on"),
    ],
)
def test_a_server_that_cannot_be_started_is_told(
    cli: Cli, command: list[str], code: int, said: str
) -> None:
    done = cli("tools", "--", *command)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_what_is_said_on_the_command_line_is_added_to_the_configuration(
    cli: Cli, configure: Configure
) -> None:
    script = "import os, sys; sys.exit(str([os.environ.get(k) for k in ('A_A', 'B_B')]))"
    configure(x=stdio([DEMO[0], "-c", script], env={"A_A": "1", "B_B": "1"}))
    assert "['1', '2']" in cli("tools", "x", "--env", "B_B=2").err


# MCP_SERVER_URL


@pytest.mark.req("L13", "F3")
def test_the_server_comes_from_the_environment(
    cli: Cli, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(other=stdio(puppet(tools=["else"])))
    monkeypatch.setenv("MCP_SERVER_URL", " ".join(DEMO))
    assert cli("call", "echo", "text=hi").out == "hi\n"
    assert cli("read", "demo://tides").out.startswith("The tide")
    assert cli("tools", "other").out.startswith("else()\t")
    assert "hello" in cli("tools", "--env", "A=b", "--", *puppet(exit=1, stderr="hello")).err
    assert "Not understood: nope" in cli("tools", "nope").err


@pytest.mark.req("L13", "F3")
def test_a_tool_of_the_server_from_the_environment_may_have_a_servers_name(
    cli: Cli, configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(echo=stdio(puppet(tools=["else"])))
    monkeypatch.setenv("MCP_SERVER_URL", " ".join(DEMO))
    assert cli("call", "echo", "text=hi").out == "hi\n"
    assert cli("call", "echo", "else").value == {}
    assert "Which one of 'http://x'?" in cli("call", "http://x").err


@pytest.mark.req("L13", "F3")
def test_a_url_from_the_environment_will_do(
    cli: Cli, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_SERVER_URL", web.url)
    assert cli("call", "echo", "x=1", "--header", "X-Mine: 1").value == {"x": "1"}
    assert web.seen["x-mine"] == "1"
    done = cli("tools", "http://127.0.0.1:1/mcp")
    assert (done.code, "Connection refused" in done.err) == (3, True)


# Over HTTP


@pytest.mark.req("F3")
def test_a_server_is_a_url(cli: Cli, web: Web, configure: Configure) -> None:
    words = ["call", "echo", "x=1", "--url", web.url, "--header", "Authorization: Bearer abc"]
    assert cli(*words).value == {"x": "1"}
    assert web.seen["authorization"] == "Bearer abc"
    assert cli("tools", web.url, "--transport", "streamable").out == "echo()\t\n"
    configure(web={"url": web.url, "headers": {"X-One": "1", "X-Two": "1"}})
    assert cli("call", "web.echo", "x=2", "--header", "X-Two: 2").value == {"x": "2"}
    assert (web.seen["x-one"], web.seen["x-two"]) == ("1", "2")


@pytest.mark.req("F3", "E2")
@pytest.mark.parametrize(("status", "code", "kind"), [(401, 5, "auth"), (500, 3, "transport")])
def test_a_url_that_refuses_is_told(cli: Cli, web: Web, status: int, code: int, kind: str) -> None:
    web.refuse = status
    done = cli("tools", "--url", web.url, "--json")
    assert (done.code, done.error["kind"]) == (code, kind)


# What a configuration leaves to its user


def test_an_input_is_asked_for_at_a_terminal(terminal: Open, home: Path, tmp_path: Path) -> None:
    script = "import os, sys; sys.exit('got ' + os.environ['PIN'])"
    entry = {**stdio([DEMO[0], "-c", script]), "env": {"PIN": "${input:pin}"}}
    asked = [{"id": "pin", "type": "promptString", "description": "The pin", "password": True}]
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"inputs": asked, "servers": {"x": entry}}), encoding="utf-8")
    one = terminal("tools", "x", "--config", str(path))
    one.expect("The pin: ")
    one.send("1234\n")
    one.expect("got 1234")
    assert one.end() == 3
    assert one.text.count("1234") == 1, "what is typed is not shown"


def test_an_input_is_a_fault_where_nobody_can_be_asked(cli: Cli, tmp_path: Path) -> None:
    entry = stdio(["never-started"], env={"PIN": "${input:pin}"})
    asked = [{"id": "pin", "type": "promptString"}]
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"inputs": asked, "servers": {"x": entry}}), encoding="utf-8")
    done = cli("tools", "x", "--config", str(path))
    assert done.code == 2
    assert "env.PIN" in done.err


@pytest.mark.req("F3", "E2")
def test_a_program_that_is_no_server_is_a_failure_to_connect(cli: Cli) -> None:
    done = cli("tools", "--", "cat")
    assert done.code == 3
    assert "it answered initialize with error" in done.err


def test_the_variable_is_the_librarys() -> None:
    """Written twice, so that asking whether it is set loads no transport."""
    assert main.VARIABLE == targets.VARIABLE


@pytest.fixture
def script(home: Path) -> str:
    """A script in the working folder."""
    Path("server.py").write_text(Path(puppet()[3]).read_text(encoding="utf-8"), encoding="utf-8")
    return "server.py"


@pytest.mark.req("N2")
def test_a_script_is_a_server(cli: Cli, script: str) -> None:
    assert cli("tools", script).out == "echo()\tDoes echo.\n"
    assert cli("call", f"./{script}", "echo", "a=1").out == '{"a": "1"}\n'
    described = cli("describe", script, "echo").out
    assert described.splitlines()[-1] == "holdfast call server.py echo"
    assert cli("tools", script, "--offline").out == "echo()\tDoes echo.\n"


def test_a_configured_server_counts_before_a_script(
    cli: Cli, script: str, configure: Configure
) -> None:
    configure(**{script: stdio(puppet(tools=["mine"]))})
    assert cli("tools", script).out == "mine()\tDoes mine.\n"


def test_a_script_that_fails_is_named(cli: Cli, home: Path) -> None:
    Path("broken.py").write_text("raise SystemExit(3)")
    assert cli("tools", "broken.py").err.startswith("holdfast: broken.py: ")
    assert "There is no server 'gone.py'" in cli("tools", "gone.py").err


@pytest.mark.req("N2")
def test_a_url_without_an_endpoint_gets_the_hint(cli: Cli, web: Web) -> None:
    web.refuse = 404
    done = cli("tools", web.url.removesuffix("/mcp"))
    assert done.code == 3
    assert "such as /mcp" in done.err
    assert done.err.count("404") == 1
    assert "such as" not in cli("tools", web.url).err
