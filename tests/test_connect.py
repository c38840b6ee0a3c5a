"""Options of ``connect``: checked when it is called, refused by name and value."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Http, Servers, Stdio, TransportError, ValidationError
from holdfast.handles import Handle
from holdfast.policies import POLICIES
from holdfast.testing import Peer
from tests.rows import rows

connect: Any = holdfast.connect


@rows(
    ("options", "message"),
    [
        ({"timeouts": 30}, "must be a holdfast.Timeouts, such as holdfast.Timeouts(request=30)"),
        ({"tools": ["echo"]}, "tools=['echo']: must be a holdfast.ToolPolicy"),
        ({"cache": True}, "cache=True: must be a holdfast.Cache"),
        ({"handlers": print}, "must be a holdfast.Handlers"),
        ({"identity": "me"}, "identity='me': must be a holdfast.policies.Identity"),
        ({"name": 7}, "name=7: must be a string"),
        ({"protocol": 2025}, "protocol=2025: must be a string"),
        ({"when_down": "later"}, "when_down='later': must be 'fail' or 'wait'"),
    ],
)  # fmt: skip
def test_an_option_of_a_wrong_type_is_refused_by_name_and_value(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        connect(Peer(), **options)
    assert message in str(caught.value)


@rows("option", POLICIES)
def test_the_type_that_an_option_should_have_is_found_where_the_error_says(option: str) -> None:
    kind = POLICIES[option]
    with pytest.raises(ValidationError) as caught:
        connect(Peer(), **{option: "odd"})
    place = "holdfast" if kind.__name__ in holdfast.__all__ else kind.__module__
    assert f"must be a {place}.{kind.__name__}, such as" in str(caught.value)


@rows(
    ("options", "suggestion"),
    [
        ({"timeout": 5}, "did you mean timeouts=Timeouts(request=5)?"),
        ({"initialize_timeout": 2.5}, "did you mean timeouts=Timeouts(handshake=2.5)?"),
        ({"client_info": {"name": "me"}}, "did you mean identity=Identity(name=…, version=…)?"),
        ({"capabilities": {}}, "did you mean identity=Identity(capabilities=…)?"),
        ({"handshake": 3}, "did you mean timeouts=Timeouts(handshake=3)?"),
        ({"frame_bytes": 10}, "did you mean limits=Limits(frame_bytes=10)?"),
        ({"sampling": print}, "did you mean handlers=Handlers(sampling=…)?"),
        ({"header": {}}, "did you mean headers=…?"),
        ({"obserability": None}, "did you mean observability=…?"),
        ({"timout": 1}, "did you mean timeouts=Timeouts(request=1)?"),
        ({"requst": 3}, "did you mean timeouts=Timeouts(request=3)?"),
        ({"retries": 3}, "did you mean backoff=Backoff(attempts=3)?"),
        ({"token": "s3cret"}, "did you mean the option auth, with holdfast.Bearer(…)?"),
        ({"on_log": print}, "did you mean client.on_log(…)?"),
        ({"logging_callback": print}, "did you mean client.on_log(…)?"),
        ({"log_handler": print}, "did you mean client.on_log(…)?"),
        ({"progress_handler": print}, "did you mean handlers=Handlers(progress=…)?"),
        ({"request_timeout": 3}, "did you mean timeouts=Timeouts(request=3)?"),
    ],
)
def test_a_near_miss_is_answered_with_the_right_form(
    options: dict[str, Any], suggestion: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        connect(Peer(), **options)
    (name,) = options
    assert str(caught.value).startswith(f"{name}=…: not an option of connect")
    assert suggestion in str(caught.value)


def test_an_unknown_option_without_a_near_name_is_refused_without_its_value() -> None:
    with pytest.raises(ValidationError) as caught:
        connect(Peer(), zzz="s3cret")
    assert str(caught.value) == "zzz=…: not an option of connect"


# Names from the configuration

DEMO = [sys.executable, "-m", "holdfast.demo.server"]
Write = Callable[..., Path]


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a user's file, or a project's: the servers by name."""
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".config" / "holdfast").mkdir(parents=True)
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "HOLDFAST_CONFIG", "MCP_SERVER_URL"):
        monkeypatch.delenv(variable, raising=False)

    def write(servers: dict[str, Any], *, by_project: bool = False) -> Path:
        user_file = home / ".config" / "holdfast" / "mcp.json"
        file = project / ".mcp.json" if by_project else user_file
        file.write_text(json.dumps({"mcpServers": servers}))
        return file

    return write


def demo(**settings: Any) -> dict[str, Any]:
    return {"command": DEMO[0], "args": DEMO[1:], **settings}


@pytest.mark.req("N5")
async def test_a_word_that_is_configured_is_that_server(configured: Write) -> None:
    configured({"git": demo()})
    async with holdfast.connect("git") as client:
        assert client.name == "git"
        assert (await client.call_tool("echo", {"text": "hello"})).text == "hello"
    async with holdfast.connect("git", name="mine") as client:
        assert client.name == "mine"


@pytest.mark.req("N5")
@pytest.mark.parametrize(
    ("target", "options", "command"),
    [
        (["git"], {}, ("git",)),
        (("git",), {}, ("git",)),
        (Stdio("git"), {}, ("git",)),
        ("git status", {}, ("git", "status")),
        ("git", {"args": ["status"]}, ("git", "status")),
        ("./git", {}, ("./git",)),
        ("/usr/bin/git", {}, ("/usr/bin/git",)),
        (Path("git"), {}, ("./git",)),
        ("other", {}, ("other",)),
        ("Git", {}, ("Git",)),
    ],
)
def test_anything_but_a_single_configured_word_is_a_command(
    configured: Write, target: Any, options: dict[str, Any], command: tuple[str, ...]
) -> None:
    configured({"git": {"url": "https://example.org/mcp"}})
    assert connect(target, **options).transport.command == command


@pytest.mark.req("N5")
def test_a_configured_name_may_be_a_url(configured: Write) -> None:
    configured({"docs": {"url": "https://example.org/mcp", "headers": {"X-Team": "sea"}}})
    transport = connect("docs", headers={"X-Mine": "1"}).transport
    assert isinstance(transport, Http)
    assert transport.headers == {"X-Team": "sea", "X-Mine": "1"}


@pytest.mark.req("N5", "F3")
async def test_a_project_s_server_needs_its_approval_by_name_too(configured: Write) -> None:
    configured({"git": demo()}, by_project=True)
    for start in (holdfast.connect, holdfast.sync.connect):
        with pytest.raises(holdfast.errors.TrustError, match="git"):
            start("git")
    async with Servers({"mine": "git"}) as servers:
        assert servers.status("mine").state == "not started"
        with pytest.raises(holdfast.errors.TrustError, match="git"):
            await servers.call_tool("mine.echo", {"text": "x"})


@pytest.mark.req("N5")
def test_a_disabled_server_is_not_replaced_by_a_program(configured: Write) -> None:
    configured({"git": demo(disabled=True)})
    with pytest.raises(holdfast.StateError, match="'git' is disabled"):
        connect("git")


@pytest.mark.req("N5")
def test_options_win_over_the_configuration_and_the_others_stay(configured: Write) -> None:
    settings = {"when_down": "wait", "replay": "safe"}
    configured({"git": demo(env={"A": "1", "B": "1"}, holdfast=settings)})
    policy = connect("git")._policy
    assert (policy.when_down, policy.replay) == ("wait", "safe")
    client = connect("git", when_down="fail", env={"B": "2"}, grace=7)
    assert (client._policy.when_down, client._policy.replay) == ("fail", "safe")
    assert client.transport.env == {"A": "1", "B": "2"}
    assert client.transport.grace == 7
    with pytest.raises(ValidationError, match="headers"):
        connect("git", headers={})


@pytest.mark.req("N5")
async def test_a_name_will_do_wherever_a_target_does(
    configured: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured({"git": demo()})
    with holdfast.sync.connect("git") as client:
        assert client.call_tool("echo", {"text": "hello"}).text == "hello"
    async with Servers({"a": "git", "b": {"target": "git"}}) as servers:
        assert (await servers.call_tool("b.echo", {"text": "hello"})).text == "hello"
        assert servers["a"].transport.command == tuple(DEMO)
    async with Handle("git") as handle:
        assert (await handle.call("echo", {"text": "hello"})).text == "hello"
    monkeypatch.setenv("MCP_SERVER_URL", "git")
    assert connect().transport.command == tuple(DEMO)


@pytest.mark.req("N5")
async def test_a_word_that_is_neither_suggests_servers_and_programs(
    configured: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured({"weather": demo(), "tides": demo()})
    program = tmp_path / "bin" / "weathers"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/nowhere")
    with pytest.raises(TransportError) as caught:
        async with holdfast.connect("wether") as client:
            await client.open()
    text = "did you mean the configured server 'weather' or the program 'weathers'?"
    assert text in str(caught.value)
    with pytest.raises(TransportError) as caught:
        async with holdfast.connect("zzzzzz") as client:
            await client.open()
    assert "did you mean" not in str(caught.value)
    with pytest.raises(TransportError) as caught:
        async with holdfast.connect(["wether"]) as client:
            await client.open()
    assert "configured" not in str(caught.value), "a list is a command"


# Mappings


@pytest.mark.req("N5")
@rows(
    ("mapping", "advice"),
    [
        ({"mcpServers": {"a": {"command": "x", "env": {"T": "s3cret"}}}}, "holdfast.Servers"),
        ({"a": {"command": "s3cret"}}, "holdfast.Servers"),
        ({"a": "s3cret", "b": "x", "c": "x", "d": "x"}, "holdfast.Servers"),
        ({}, "holdfast.Servers"),
        ({"command": "x", "env": {"T": "s3cret"}}, "connect([command, *args], env=…)"),
        ({"url": "https://s3cret@example.org"}, "connect(url, headers=…)"),
    ],
)
def test_a_mapping_is_answered_with_what_takes_it(mapping: dict[str, Any], advice: str) -> None:
    for start in (connect, holdfast.sync.connect):
        with pytest.raises(ValidationError) as caught:
            start(mapping)
        assert advice in str(caught.value)
        assert "s3cret" not in str(caught.value)


@pytest.mark.req("N5")
async def test_servers_take_a_mapping_as_a_file_has_it() -> None:
    entries = {
        "demo": {"type": "stdio", "command": DEMO[0], "args": DEMO[1:], "env": {"A": "1"}},
        "old": {"type": "sse", "url": "https://example.org/sse"},
        "new": {"type": "http", "url": "https://example.org/mcp"},
    }
    async with Servers({"mcpServers": entries}) as servers:
        assert list(servers) == ["demo", "old", "new"]
        assert (await servers.call_tool("demo.echo", {"text": "hello"})).text == "hello"
        kinds = [servers[name].transport._transport for name in ("old", "new")]
        assert kinds == ["sse", "auto"]
    with pytest.raises(ValidationError, match="mcpServers"):
        Servers({"mcpServers": ["x"]})


async def test_an_error_of_a_server_s_options_names_the_server() -> None:
    async with Servers({"mine": {"target": "x", "timeouts": 3}}) as servers:
        with pytest.raises(ValidationError, match=r"^mine: timeouts=3: must be"):
            _ = servers["mine"]
