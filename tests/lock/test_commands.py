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
from holdfast._core.text import has_unseen
from holdfast.lock.commands import capabilities, server_arguments
from holdfast.lock.guard import Lock, LockedServer, LockFile, write
from holdfast.policies import Identity
from holdfast.testing import Peer, ServerRequest
from tests.rows import rows


@pytest.mark.req("H8")
def test_a_command_line_leads_to_the_same_server() -> None:
    words = server_arguments(
        ["python", "a b.py"], env={"HOME": "/x y"}, cwd="/tmp/q'", protocol="p"
    )
    assert shlex.split(words) == [
        *("--env", "HOME=/x y", "--cwd", "/tmp/q'", "--protocol", "p", "--", "python", "a b.py")
    ]
    for given, word in ((True, "--inherit-env=*"), (["A", "b"], "--inherit-env=A,b")):
        assert shlex.split(server_arguments(["x"], inherit_env=given)) == [word, "--", "x"]
    words = server_arguments("https://x/mcp?a=1&b", headers={"X-Team": "a b"}, transport="sse")
    assert shlex.split(words) == [
        *("--url", "https://x/mcp?a=1&b", "--header", "X-Team: a b", "--transport", "sse")
    ]


@pytest.mark.req("H8")
def test_a_secret_is_a_variable_of_the_shell() -> None:
    words = server_arguments("https://x", headers={"Authorization": "Bearer abc"})
    assert "abc" not in words
    script = f"AUTHORIZATION='Bearer abc'; printf '%s\\n' {words}"
    shown = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "Authorization: Bearer abc"


@pytest.mark.req("H8")
@pytest.mark.parametrize(
    ("target", "secret"),
    [
        ("https://me:hunter2@x.example/mcp", "hunter2"),
        ("https://x.example/mcp?token=hunter2", "hunter2"),
        (["npx", "server", "--api-key", "hunter2", "a  b"], "hunter2"),
        (["server", "--db=postgres://me:hunter2@h/d"], "hunter2"),
    ],
)
def test_a_secret_of_a_url_or_a_command_is_one_too(target: str | list[str], secret: str) -> None:
    words = server_arguments(target)
    assert secret not in words
    shown = str(DriftError(f"accept it with: holdfast lock {words}"))
    assert shown.endswith(f"holdfast lock {words}"), "the error shows it as it is to be pasted"
    found = subprocess.run(
        [
            "bash",
            "-c",
            f"SECRET={'me:' if 'me:' in str(target) else ''}hunter2; printf '%s\\0' {words}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    given = [target] if isinstance(target, str) else target
    assert found.stdout.split("\0")[1:-1] == given


@pytest.mark.req("H8")
def test_headers_in_an_error_can_be_pasted() -> None:
    headers = {"Authorization": "Bearer abc", "X-Api-Key": "k", "X-Plain": "a'b"}
    words = server_arguments("https://x.example", headers=headers)
    assert str(DriftError(f"with: {words}")) == f"with: {words}"


@pytest.mark.req("H8")
@rows("word", ["a\nb", "it's\t\\n", "x\u200by", "\x1b[31m", "$(id) `id`"])
def test_a_command_stays_on_one_line_and_is_seen(word: str) -> None:
    words = server_arguments(["server", word])
    assert not has_unseen(words)
    found = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True
    )
    assert found.stdout.decode().split("\0")[1:-1] == ["server", word]


def choosy(version: str) -> Peer:
    """A server that offers one tool for each thing that its client can be asked for."""
    server = Peer("choosy", versions=[version])

    def offered(incoming: ServerRequest) -> dict[str, Any]:
        meta = incoming.params.get("_meta", {})
        greetings = [one.params for one in server.received if one.method == "initialize"]
        declared = greetings[0]["capabilities"] if greetings else meta[CLIENT_CAPABILITIES]
        url = ["url"] if "url" in declared.get("elicitation", {}) else []
        names = ["plain", *sorted(declared), *url]
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
    some = Identity(capabilities={"elicitation": {"form": {}}})
    async with holdfast.connect(choosy(version), lock=path, identity=some) as client:
        assert (await client.call_tool("url")).text == "done"


@pytest.mark.req("H8", "P4")
@pytest.mark.parametrize("name", [None, "choosy"])
async def test_the_capabilities_of_a_lock_with_several_servers_are_declared(
    tmp_path: Path, name: str | None
) -> None:
    """The entry is found by the client's name, also if that is the server's own."""
    path = tmp_path / "holdfast.lock"
    server = choosy(STATELESS[0])
    declared = Identity(capabilities=capabilities())
    async with holdfast.connect(server, identity=declared) as client:
        assert client.name == "choosy"
        locked = LockedServer.of(await client.list_tools(), client.instructions, capabilities())
    write(path, LockFile({"another": LockedServer.of([]), "choosy": locked}))
    async with holdfast.connect(server, lock=path, name=name) as client:
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
