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
from holdfast.lock.commands import capabilities, reach
from holdfast.lock.guard import Lock, LockedServer, LockFile, write
from holdfast.policies import Identity
from holdfast.testing import Peer


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


def choosy() -> Peer:
    """A server that offers one tool more to clients that can be asked."""
    server = Peer("choosy")

    @server.tool()
    def plain() -> str:
        return "plain"

    return server


@pytest.mark.req("H8")
async def test_a_lock_has_its_capabilities_declared_again(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.lock"
    server = choosy()
    async with holdfast.connect(server, identity=Identity(capabilities=capabilities())) as client:
        found = LockedServer.of(await client.list_tools(), client.instructions, capabilities())
    write(path, LockFile({"choosy": found}))
    for handlers in (Handlers(), Handlers(sampling=lambda _: {})):
        seen: list[Any] = []
        async with holdfast.connect(server, lock=path, handlers=handlers) as client:
            await client.list_tools()
            policy = client._policy
            seen.append(sorted(policy.identity.capabilities))
        assert seen == [["elicitation", "roots", "sampling"]]


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
