"""Advice that can be pasted, and capabilities that are declared alike by lock, codegen and use."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import DriftError, Handlers
from holdfast._core.eras.revisions import CLIENT_CAPABILITIES, HANDSHAKE, STATELESS
from holdfast.lock.commands import capabilities, reach
from holdfast.lock.guard import Lock, LockedServer, LockFile, write
from holdfast.policies import Identity
from holdfast.testing import Incoming, Peer


@pytest.mark.req("H8")
def test_a_command_line_leads_to_the_same_server() -> None:
    words = reach(["python", "a b.py"], env={"HOME": "/x y"}, cwd="/tmp/q'", protocol="p")
    assert shlex.split(words) == [
        *("--env", "HOME=/x y", "--cwd", "/tmp/q'", "--protocol", "p", "--", "python", "a b.py")
    ]
    words = reach("https://x/mcp?a=1&b", headers={"X-Team": "a b"}, transport="sse")
    assert shlex.split(words) == [
        *("--url", "https://x/mcp?a=1&b", "--header", "X-Team: a b", "--transport", "sse")
    ]


@pytest.mark.req("H8")
def test_a_secret_is_a_variable_of_the_shell() -> None:
    words = reach("https://x", headers={"Authorization": "Bearer abc"})
    assert "abc" not in words
    script = f"AUTHORIZATION='Bearer abc'; printf '%s\\n' {words}"
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "Authorization: Bearer abc"


def choosy(version: str) -> Peer:
    """A server that offers one tool for each thing that its client can be asked for."""
    server = Peer("choosy", versions=[version])

    def offered(incoming: Incoming) -> dict[str, Any]:
        meta = incoming.params.get("_meta", {})
        greetings = [one.params for one in server.received if one.method == "initialize"]
        declared = greetings[0]["capabilities"] if greetings else meta[CLIENT_CAPABILITIES]
        names = ["plain", *sorted(declared)]
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}

    server.capabilities = {"tools": {}}
    server.on("tools/list", offered)
    server.on("tools/call", {"content": [{"type": "text", "text": "done"}]})
    return server


@pytest.mark.req("H8", "P4")
@pytest.mark.parametrize("version", [STATELESS[0], HANDSHAKE[0]])
async def test_a_lock_has_its_capabilities_declared_again(tmp_path: Path, version: str) -> None:
    path = tmp_path / "holdfast.lock"
    declared = Identity(capabilities=capabilities())
    async with holdfast.connect(choosy(version), identity=declared) as client:
        found = LockedServer.of(await client.list_tools(), client.instructions, capabilities())
    write(path, LockFile({"choosy": found}))
    asked = Handlers(sampling=lambda _: {})
    for handlers, names in ((Handlers(), ["plain"]), (asked, ["plain", "sampling"])):
        async with holdfast.connect(choosy(version), handlers=handlers) as client:
            assert [tool.name for tool in await client.list_tools()] == names
        async with holdfast.connect(choosy(version), lock=path, handlers=handlers) as client:
            assert (await client.call_tool("elicitation")).text == "done"


@pytest.mark.req("H8")
async def test_advice_names_the_command_that_the_client_started(tmp_path: Path) -> None:
    path = tmp_path / "a b.lock"
    write(path, LockFile({"demo": LockedServer.of([])}))
    server = [sys.executable, "-m", "holdfast.demo.server"]
    with pytest.raises(DriftError) as caught:
        async with holdfast.connect(server, lock=Lock(path)) as client:
            await client.list_tools()
    line = next(one for one in str(caught.value).splitlines() if "accept it with" in one)
    words = shlex.split(line.partition("with: ")[2])
    assert words == ["holdfast", "lock", "--lock", str(path), "--as", "demo", "--", *server]
