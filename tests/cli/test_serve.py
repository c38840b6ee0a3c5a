"""``holdfast serve``: a host on stdio, a server behind it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import RpcError
from tests.cli.conftest import Cli
from tests.relay import stdio_server

pytestmark = [pytest.mark.req("X2"), pytest.mark.hang(60)]

REVISIONS = pytest.mark.parametrize("protocol", ["2025-11-25", "2026-07-28"])


def command(*options: str) -> list[str]:
    """Return the command of a host's file."""
    server = [sys.executable, stdio_server.__file__]
    return [sys.executable, "-m", "holdfast", "serve", *options, "--", *server]


@REVISIONS
async def test_a_host_outlives_its_server(protocol: str) -> None:
    async with holdfast.connect(command(), protocol=protocol) as host:
        await host.open()
        assert host.server_info is not None
        assert host.server_info.name == "real"
        first = (await host.call_tool("pid")).text
        assert (await host.call_tool("pid")).text == first
        with pytest.raises(RpcError) as caught:
            await host.call_tool("die")
        assert caught.value.data == {"kind": "transport", "outcomeUnknown": True}
        assert (await host.call_tool("pid")).text != first


@REVISIONS
async def test_a_call_that_asks_runs_once(tmp_path: Path, protocol: str) -> None:
    runs = tmp_path / "runs"
    handlers = holdfast.Handlers(roots=["file:///a"])
    line = command("--env", f"RUNS={runs}")
    async with holdfast.connect(line, protocol=protocol, handlers=handlers) as host:
        assert (await host.call_tool("ask")).text == "file:///a"
    assert runs.read_text() == "run\n"


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
