"""``holdfast serve``: a host on stdio, a server behind it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.cli.verbs.serve import close_all
from holdfast.errors import RpcError
from tests.cli.conftest import Cli
from tests.relay import stdio_server

pytestmark = [pytest.mark.req("X2"), pytest.mark.hang(400)]

REVISIONS = pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])


def command(*options: str) -> list[str]:
    """Return the command of a host's file."""
    server = [sys.executable, stdio_server.__file__]
    return [sys.executable, "-m", "holdfast", "serve", *options, "--", *server]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@REVISIONS
async def test_a_host_outlives_its_server(protocol: str, loop: str) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    env = {"HOLDFAST_LOOP": loop}
    async with holdfast.connect(command(), protocol=protocol, env=env) as host:
        await host.open()
        assert host.server_info is not None
        assert host.server_info.name == "real"
        first = (await host.call_tool("pid")).text
        assert (await host.call_tool("pid")).text == first
        with pytest.raises(RpcError) as caught:
            await host.call_tool("die")
        assert caught.value.data == {"kind": "transport", "outcomeUnknown": True}
        assert (await host.call_tool("pid")).text != first


@pytest.mark.req("Y1")
def test_a_host_that_sends_everything_and_closes_its_output_is_answered() -> None:
    client = {"name": "printf", "version": "1"}
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": info},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "pid"}},
        {"id": 3, "method": "tools/list", "params": None},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    done = subprocess.run(command(), input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers if "id" in answer) == [1, 2, 3]
    assert all("error" not in answer for answer in answers)


@REVISIONS
async def test_a_call_that_asks_runs_once(tmp_path: Path, protocol: str) -> None:
    runs = tmp_path / "runs"
    handlers = holdfast.Handlers(roots=["file:///a"])
    line = command("--env", f"RUNS={runs}")
    async with holdfast.connect(line, protocol=protocol, handlers=handlers) as host:
        assert (await host.call_tool("ask")).text == "file:///a"
    assert runs.read_text() == "run\n"


async def test_errors_have_the_name_that_the_host_gave() -> None:
    async with holdfast.connect(command("--name=my git")) as host:
        with pytest.raises(RpcError, match=r"^.*my git: tools/call 'die'"):
            await host.call_tool("die")


async def test_the_options_of_every_verb_hold(tmp_path: Path) -> None:
    log, trace = tmp_path / "calls.jsonl", tmp_path / "trace.jsonl"
    line = command("--log", str(log), "--trace-file", str(trace), "--cwd", str(tmp_path))
    async with holdfast.connect(line) as host:
        assert (await host.call_tool("cwd")).text == str(tmp_path.resolve())
    rows = [json.loads(row) for row in log.read_text().splitlines()]
    assert [(row["name"], row.get("_ok")) for row in rows] == [("cwd", None), ("cwd", True)]
    assert "tools/call" in trace.read_text()


async def test_a_lock_file_holds_for_the_host(tmp_path: Path, process: Cli) -> None:
    lock = str(tmp_path / "holdfast.lock")
    done = process("lock", "--lock", lock, "--", sys.executable, stdio_server.__file__)
    assert done.code == 0, done.err
    async with holdfast.connect(command("--lock", lock)) as host:
        assert (await host.call_tool("pid")).text
    async with holdfast.connect(command("--lock", lock, "--env", "DRIFT=1")) as host:
        for method in ("tools/list", "tools/call"):
            with pytest.raises(RpcError) as caught:
                await host.request(method, {"name": "pid"})
            assert caught.value.data["kind"] == "drift"


@pytest.mark.req("Y3")
async def test_calls_are_recorded_without_secrets_and_lists_are_kept(tmp_path: Path) -> None:
    audit, trace = tmp_path / "audit.jsonl", tmp_path / "trace.jsonl"
    line = command("--audit", str(audit), "--cache", "60", "--trace-file", str(trace))
    async with holdfast.connect(line) as host:
        arguments = {"password": "hunter2-hunter2", "note": "plain"}
        await host.request("tools/call", {"name": "pid", "arguments": arguments})
        with pytest.raises(RpcError):
            await host.request("tools/call", {"name": "die"})
        await host.request("tools/call", {"name": "pid"})  # lists are asked for anew after a crash
        for _ in range(3):
            assert (await host.request("tools/list"))["tools"]
    assert "hunter2" not in audit.read_text()
    rows = [json.loads(row) for row in audit.read_text().splitlines()]
    assert [(row["tool"], row["outcome"], row["outcome_unknown"]) for row in rows] == [
        ("pid", "ok", False),
        ("die", "transport", True),
        ("pid", "ok", False),
    ]
    assert rows[0]["arguments"]["note"] == "plain"
    assert audit.stat().st_mode & 0o077 == 0
    sent = [row for row in trace.read_text().splitlines() if '"tools/list"' in row]
    assert len(sent) == 1, sent


@pytest.mark.req("Y3")
@pytest.mark.parametrize("options", [("--audit", "/"), ("--cache", "-1")])
def test_a_file_or_a_time_that_cannot_be_is_refused(options: tuple[str, str], cli: Cli) -> None:
    done = cli("serve", *options, "--", sys.executable, stdio_server.__file__)
    assert done.code != 0
    assert options[0] in done.err


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A configuration of two servers and one that cannot start."""
    path = tmp_path / "servers.json"
    server = {"command": sys.executable, "args": [stdio_server.__file__]}
    servers = {"a": server, "b": server, "broken": {"command": "false"}}
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def serving(*words: str) -> list[str]:
    return [sys.executable, "-m", "holdfast", "serve", *words]


@pytest.mark.req("Y3")
async def test_several_servers_are_served_as_one(config: str) -> None:
    async with holdfast.connect(serving("a", "b", "--config", config)) as host:
        names = [tool.name for tool in await host.list_tools()]
        assert names == [f"{server}.{tool}" for server in "ab" for tool in stdio_server.TOOLS]
        assert (await host.call_tool("a.pid")).text != (await host.call_tool("b.pid")).text
        with pytest.raises(RpcError):
            await host.call_tool("a.die")
        assert (await host.call_tool("a.pid")).text


@pytest.mark.req("Y3")
async def test_servers_end_side_by_side() -> None:
    """Each may take two seconds, and hosts do not wait for one after the other."""

    class Slow:
        def __init__(self, own: asyncio.Event, other: asyncio.Event) -> None:
            self._own, self._other = own, other

        async def close(self) -> None:
            self._own.set()
            await self._other.wait()

    first, second = asyncio.Event(), asyncio.Event()
    clients: list[Any] = [Slow(first, second), Slow(second, first)]
    await close_all(clients)


async def test_rules_hold_before_anything_is_sent(config: str, tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    rules = ["--allow", "*.pid", "--allow", "b.cwd", "--deny", "b.pid", "--log", str(log)]
    async with holdfast.connect(serving("a", "b", "--config", config, *rules)) as host:
        assert [tool.name for tool in await host.list_tools()] == ["a.pid", "b.cwd"]
        for denied in ("b.pid", "a.die"):
            with pytest.raises(RpcError) as caught:
                await host.request("tools/call", {"name": denied})
            assert caught.value.data == {"kind": "validation", "outcomeUnknown": False}
        await host.call_tool("a.pid")
    rows = [json.loads(row) for row in log.read_text().splitlines()]
    assert {row["name"] for row in rows} == {"pid"}


@pytest.mark.req("Y3")
async def test_names_of_servers_with_dots(tmp_path: Path) -> None:
    """Rules know the name that a host sees; names that no dot keeps apart are refused."""
    server = {"command": sys.executable, "args": [stdio_server.__file__]}
    dotted = {**server, "env": {"TOOLS_BEGIN": "b."}}
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"a": dotted, "a.b": server, "a.": server}}))
    rules = ["--allow", "*.pid", "--allow", "a..b.*", "--deny", "a..b.die"]
    async with holdfast.connect(serving("a", "a.b", "--config", str(file), *rules)) as host:
        names = [tool.name for tool in await host.list_tools()]
        assert names == ["a..b.pid", "a..b.cwd", "a..b.ask", "a.b.pid"]
        assert (await host.call_tool("a..b.pid")).text != (await host.call_tool("a.b.pid")).text
    words = serving("a", "a.", "--config", str(file))
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert b"two servers are called 'a' and 'a.': serve them apart" in done.stderr


@pytest.mark.req("Y3")
async def test_a_finder_stands_for_the_tools(config: str) -> None:
    async with holdfast.connect(serving("a", "--finder", "--config", config)) as host:
        assert len(await host.list_tools()) == 3
        assert (await host.call_tool("call_tool", {"name": "pid"})).text.isdigit()


@pytest.mark.req("Y3")
async def test_http_ends_cleanly_with_its_servers(config: str) -> None:
    words = serving("a", "b", "--config", config, "--http", "0")
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    lines = [(await process.stdout.readline()).decode().split() for _ in range(3)]
    assert [line[1:] for line in lines] == [["a,", "b"], ["a"], ["b"]]
    root, first, _ = (line[0] for line in lines)
    async with holdfast.connect(first) as host:
        pid = int((await host.call_tool("pid")).text)
    async with holdfast.connect(root) as host:
        assert int((await host.call_tool("a.pid")).text) == pid
    taken = await asyncio.create_subprocess_exec(
        *serving("a", "--config", config, "--http", root.split(":")[-1].strip("/")),
        stderr=asyncio.subprocess.PIPE,
    )
    assert b"the port is in use" in (await taken.communicate())[1]
    assert taken.returncode == 2
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.req("Y3")
async def test_a_token_is_printed_for_other_addresses(config: str) -> None:
    words = serving("a", "--config", config, "--http", "0.0.0.0:0")
    env = {**os.environ, "HOLDFAST_SERVE_TOKEN": ""}
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, env=env)
    assert process.stdout is not None
    token = (await process.stdout.readline()).decode().removeprefix("token: ").strip()
    url = (await process.stdout.readline()).decode().split()[0].replace("0.0.0.0", "127.0.0.1")
    async with holdfast.connect(url, auth=holdfast.Bearer(token)) as host:
        assert (await host.call_tool("pid")).text
    async with holdfast.connect(url) as host:
        with pytest.raises(holdfast.HoldfastError):
            await host.open()
    process.send_signal(signal.SIGHUP)
    assert await process.wait() == 0


@pytest.mark.req("Y3")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--http", "eighty"], "must be PORT or HOST:PORT"),
        (["--http", ":80"], "must be PORT or HOST:PORT"),
        (["--http", "70000"], "must be PORT or HOST:PORT"),
        (["none"], "There is no server 'none'"),
        (["a", "--allow", ""], "--allow '': must be the name of a tool"),
        (["a", "--deny", "x", "--deny", " "], "--deny '': must be the name of a tool"),
        (["a", "--", "true"], "the server is given already"),
    ],
)
def test_a_wrong_command_line_is_refused(
    process: Cli, config: str, words: list[str], text: str
) -> None:
    done = process("serve", "--config", config, *words)
    assert done.code == 2
    assert text in done.err
