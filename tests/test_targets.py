"""What ``connect`` accepts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import Stdio, ValidationError
from holdfast._core.targets import transport_for
from holdfast._core.transports.memory import Memory
from holdfast.testing import Peer
from tests.rows import rows


@pytest.mark.req("L13", "X1")
@pytest.mark.parametrize("target", ["python -m 'my server'", ["python", "-m", "my server"]])
def test_a_command_is_a_string_or_a_list(target: object) -> None:
    transport = transport_for(target, {}, {})  # type: ignore[arg-type]
    assert isinstance(transport, Stdio)
    assert transport.command == ("python", "-m", "my server")
    assert transport.name == "python"


@pytest.mark.req("L13")
def test_the_target_may_come_from_the_environment() -> None:
    transport = transport_for(None, {}, {"MCP_SERVER_URL": "node server.js"})
    assert isinstance(transport, Stdio)
    assert transport.command == ("node", "server.js")


@pytest.mark.req("L13")
async def test_a_client_without_a_target_uses_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_SERVER_URL", f"{sys.executable} -m holdfast.demo.server")
    async with holdfast.connect() as client:
        assert (await client.call_tool("echo", {"text": "hi"})).text == "hi"


@pytest.mark.req("L13")
@pytest.mark.parametrize("environment", [{}, {"MCP_SERVER_URL": ""}])
def test_no_target_at_all_says_what_to_give(environment: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="MCP_SERVER_URL"):
        transport_for(None, {}, environment)


@pytest.mark.req("X2", "X5")
def test_a_url_is_reached_by_http() -> None:
    transport = transport_for("https://example.com:8443/mcp", {"headers": {"A": "b"}}, {})
    assert transport.name == "example.com:8443"
    assert "https://example.com:8443/mcp" in repr(transport)


@pytest.mark.req("X5")
@pytest.mark.parametrize("url", ["http://", "https://?x", "http://[bad", "ftp://host/x"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="URL"):
        transport_for(url, {}, {})


@pytest.mark.req("X5")
def test_an_option_of_the_other_kind_of_target_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match=r"headers=.*env, inherit_env"):
        transport_for("python x.py", {"headers": {}}, {})
    with pytest.raises(ValidationError, match=r"cwd=.*headers, transport"):
        transport_for("http://x/", {"cwd": "/"}, {})


@pytest.mark.req("X5")
def test_the_places_of_an_old_server_can_be_given() -> None:
    places = {"base_url": "http://x:1/a/", "sse_endpoint": "/s", "message_endpoint": "/m"}
    assert "http://x:1/s" in repr(transport_for(None, places, {}))
    with pytest.raises(ValidationError, match="same origin"):
        transport_for(None, {**places, "message_endpoint": "http://y/m"}, {})


@pytest.mark.req("X5")
def test_an_unknown_transport_is_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="carrier-pigeon"):
        transport_for("http://x/", {"transport": "carrier-pigeon"}, {})


@pytest.mark.req("X4")
def test_a_server_in_memory_and_a_transport_are_taken_as_they_are() -> None:
    assert isinstance(transport_for(Peer(), {}, {}), Memory)
    stdio = Stdio("x")
    assert transport_for(stdio, {}, {}) is stdio


def test_options_for_a_command_do_not_fit_other_targets() -> None:
    with pytest.raises(ValidationError, match="cwd, env"):
        transport_for(Peer(), {"env": {}, "cwd": "/"}, {})


def test_anything_else_is_refused_by_its_type() -> None:
    with pytest.raises(ValidationError, match="int"):
        transport_for(5, {}, {})  # type: ignore[arg-type]


@pytest.mark.req("L13", "N1")
@rows(
    ("target", "command"),
    [
        ("server.py", (sys.executable, "server.py")),
        (
            "./tools/server.py --fast 'two words'",
            (sys.executable, "./tools/server.py", "--fast", "two words"),
        ),
        (Path("server.py"), (sys.executable, "server.py")),
        (Path("a dir/server.PY"), (sys.executable, "a dir/server.PY")),
        ("server.mjs", ("node", "server.mjs")),
        (Path("server.ts"), ("node", "server.ts")),
        (Path("/opt/server.jar"), ("java", "-jar", "/opt/server.jar")),
        (Path("server"), ("./server",)),
        (Path("/usr/bin/server"), ("/usr/bin/server",)),
        ("server", ("server",)),
        (["server.py"], ("server.py",)),
    ],
)
def test_a_script_is_run_by_its_kind(target: object, command: tuple[str, ...]) -> None:
    transport = transport_for(target, {}, {})  # type: ignore[arg-type]
    assert isinstance(transport, Stdio)
    assert transport.command == command


@pytest.mark.req("L13")
def test_a_file_in_the_working_directory_does_not_replace_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ls").write_text("")
    transport = transport_for("ls -l", {}, {})
    assert isinstance(transport, Stdio)
    assert transport.command == ("ls", "-l")


@pytest.mark.req("L13")
def test_a_script_with_blanks_in_its_name_is_one_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my server.py").write_text("")
    transport = transport_for("my server.py", {}, {})
    assert isinstance(transport, Stdio)
    assert transport.command == (sys.executable, "my server.py")


@pytest.mark.req("X1", "X5")
@rows(
    "target",
    [
        "http:/host/mcp",
        "https:host",
        " ftp://host/",
        "localhost:8000/mcp",
        "example.com:443",
        "ws://x",
    ],
)
def test_what_is_meant_as_a_url_never_becomes_a_command(target: str) -> None:
    with pytest.raises(ValidationError, match=r"http://"):
        transport_for(target, {}, {})


@pytest.mark.req("X1")
def test_a_command_may_have_its_arguments_apart() -> None:
    transport = transport_for("my program", {"args": ["--port", "1"]}, {})
    assert isinstance(transport, Stdio)
    assert transport.command == ("my program", "--port", "1")


@pytest.mark.req("X5")
def test_a_url_may_be_given_in_parts() -> None:
    whole = transport_for("  https://host/api/mcp ", {}, {})
    assert transport_for(None, {"url": "https://host/api/mcp"}, {}).key == whole.key
    assert transport_for("mcp", {"base_url": "https://host/api/"}, {}).key == whole.key
    assert transport_for(None, {"url": "mcp", "base_url": "https://host/api/"}, {}).key == whole.key
