"""``login``, ``logout`` and ``auth``, as a person types them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import aiohttp
import pytest

from holdfast.cli.output import Exit
from tests.auth.world import World, world
from tests.cli.terminal import Terminal

BROWSER = """#!{python}
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1]).read().decode())
"""


class Ended(NamedTuple):
    code: int | None
    out: str
    err: str


class Shell:
    """Runs command lines; a program takes the place of the browser."""

    def __init__(self, folder: Path, here: World) -> None:
        self.here = here
        browser = folder / "browser"
        browser.write_text(BROWSER.format(python=sys.executable))
        browser.chmod(0o700)
        self.environ = {
            **os.environ,
            "HOLDFAST_AUTH_STORE": str(folder / "auth"),
            "BROWSER": str(browser),
            "HOME": str(folder),
        }

    async def __call__(self, *words: str, **environ: str) -> Ended:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "holdfast",
            *(word.format(url=f"{self.here.url}/mcp") for word in words),
            env={**self.environ, **environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return Ended(process.returncode, out.decode(), err.decode())

    @contextmanager
    def terminal(self, *words: str, **environ: str) -> Iterator[Terminal]:
        command = [word.format(url=f"{self.here.url}/mcp") for word in words]
        environ = {**self.environ, "HOLDFAST_NO_BROWSER": "", "BROWSER": "/bin/false", **environ}
        run = [sys.executable, "-m", "holdfast", *command]
        found = Terminal(run, columns=200, **environ)  # type: ignore[arg-type]
        try:
            yield found
        finally:
            found.close()


async def visit(address: str) -> str:
    """Open an address as a person's browser does, elsewhere; return where it ends."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(address, allow_redirects=False) as response,
    ):
        return response.headers.get("Location", "")


async def expect(terminal: Terminal, text: str) -> str:
    return await asyncio.to_thread(terminal.expect, text)


async def address(terminal: Terminal) -> str:
    """Return the address that a person is to open."""
    await expect(terminal, "\n\n  http")
    return "http" + (await expect(terminal, "\n")).strip()


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    async with world() as here:
        yield Shell(tmp_path, here)


@pytest.mark.req("B22", "B13")
async def test_a_login_serves_every_later_command_until_the_logout(shell: Shell) -> None:
    refused = await shell("tools", "{url}")
    assert refused.code == Exit.AUTH
    assert f"run: holdfast login {shell.here.url}/mcp" in refused.err

    done = await shell("login", "{url}", "--scope", "read")
    assert done.code == 0, done.err
    assert "You are logged in" in done.err

    assert (await shell("tools", "{url}")).out.startswith("hello")
    assert (await shell("call", "hello", "--url", "{url}")).out.strip() == "hello"
    assert shell.here.count["authorization_code"] == 1

    status = await shell("auth", "status", "--json")
    (row,) = json.loads(status.out)
    assert (row["account"], row["scopes"], row["renewable"]) == ("default", ["read"], True)
    assert row["server"] == f"{shell.here.url}/mcp"

    assert (await shell("logout", "{url}")).code == 0
    assert shell.here.count["revoked"] == 2
    assert "Nobody is logged in" in (await shell("auth", "status")).err
    for ended in (refused, done, status):
        for secret in shell.here.secrets:
            # The address that a person may have to open is the one place for these.
            assert secret not in ended.out
            if ended is not done:
                assert secret not in ended.err


@pytest.mark.req("B9", "A10")
async def test_a_client_of_one_s_own_by_option_and_by_the_variables_of_other_clients(
    shell: Shell,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = {"MCP_OAUTH_CALLBACK_PORT": str(port), "MCP_CLIENT_SECRET": "CLIENT-SECRET"}
    done = await shell("login", "{url}", "--client-id", "mine", **told)
    assert done.code == 0, done.err
    assert shell.here.redirects == [f"http://localhost:{port}/callback"]
    assert shell.here.basic == ["mine:CLIENT-SECRET"]
    done = await shell("login", "{url}", "--client-id", "mine", "--port", str(port))
    assert done.code == 0, done.err
    assert shell.here.redirects[1:] == [f"http://127.0.0.1:{port}/callback"]
    wrong = await shell("login", "{url}", MCP_OAUTH_CALLBACK_PORT="many")
    assert wrong.code == Exit.USAGE


@pytest.mark.req("B16")
async def test_accounts_by_option_and_by_variable(shell: Shell) -> None:
    for name in ("work", "home"):
        assert (await shell("login", "{url}", "--account", name)).code == 0
    found = json.loads((await shell("auth", "status", "--json")).out)
    assert sorted(row["account"] for row in found) == ["home", "work"]
    assert (await shell("tools", "{url}")).code == Exit.AUTH
    assert (await shell("tools", "{url}", HOLDFAST_ACCOUNT="work")).code == 0
    wanted = await shell("tools", "{url}", HOLDFAST_ACCOUNT="other")
    assert "--account other" in wanted.err


async def test_errors_are_json_where_json_is_asked_for(shell: Shell) -> None:
    ended = await shell("tools", "{url}", "--json")
    assert (ended.code, json.loads(ended.err)["error"]["kind"]) == (Exit.AUTH, "auth")


async def test_a_command_has_no_login(shell: Shell) -> None:
    ended = await shell("login", "--", sys.executable, "-m", "holdfast.demo_server")
    assert ended.code == Exit.AUTH
    assert "no login for this kind of server" in ended.err


async def test_doctor_shows_each_step_of_the_discovery_and_who_is_logged_in(shell: Shell) -> None:
    ended = await shell("doctor", "{url}", "--json")
    assert ended.code == Exit.AUTH
    steps = [one for one in json.loads(ended.out)["findings"] if one["step"] == "login"]
    prm, metadata, summary = (one["text"] for one in steps)
    assert prm.startswith(f"{shell.here.url}/.well-known/oauth-protected-resource")
    assert '"authorization_servers"' in prm
    assert metadata.startswith(f"{shell.here.url}/.well-known/oauth-authorization-server")
    assert "registration: dynamic" in summary
    assert "PKCE: S256" in summary

    shell.here.metadata = {"issuer": "https://evil.example"}
    ended = await shell("doctor", "{url}")
    assert "its issuer is another one" in ended.out
    shell.here.metadata = {}

    await shell("login", "{url}")
    ended = await shell("doctor", "{url}")
    assert f"as ada at {shell.here.url}" in ended.out


# At a terminal.


@pytest.mark.req("B12")
async def test_over_ssh_the_address_is_pasted_back(shell: Shell) -> None:
    ssh = "10.0.0.9 5000 10.0.0.7 22"
    with shell.terminal("login", "{url}", "--no-browser", SSH_CONNECTION=ssh) as terminal:
        there = await address(terminal)
        back = await visit(there)
        port = urlsplit(back).port
        await expect(terminal, f"ssh -L {port}:127.0.0.1:{port} 10.0.0.7")
        await expect(terminal, "press Enter:")
        terminal.send("\n  \n" + back + "\n")
        await expect(terminal, "You are logged in")
        assert await asyncio.to_thread(terminal.end) == 0


@pytest.mark.req("B12", "A16")
async def test_a_wrong_address_is_told_and_another_is_asked_for(shell: Shell) -> None:
    with shell.terminal("login", "{url}", "--no-browser") as terminal:
        back = await visit(await address(terminal))
        await expect(terminal, "press Enter:")
        terminal.send(back.replace("state=", "state=x") + "\n")
        await expect(terminal, "it belongs to another login")
        await expect(terminal, "press Enter:")
        terminal.send(back + "\n")
        await expect(terminal, "You are logged in")
        assert await asyncio.to_thread(terminal.end) == 0


@pytest.mark.req("B12")
async def test_wrong_addresses_are_not_asked_for_without_end(shell: Shell) -> None:
    with shell.terminal("login", "{url}", "--no-browser") as terminal:
        for _ in range(5):
            await expect(terminal, "press Enter:")
            terminal.send("y\n")
        assert await asyncio.to_thread(terminal.end) == Exit.AUTH
        assert "the address given back cannot be used" in terminal.text


@pytest.mark.req("B12")
async def test_a_login_by_a_code_on_another_device(shell: Shell) -> None:
    with shell.terminal("login", "{url}", "--device") as terminal:
        page = await address(terminal)
        await expect(terminal, "enter the code: ")
        code = (await expect(terminal, "\n")).strip()
        await visit(f"{page}?user_code={code}")
        await expect(terminal, "You are logged in")
        assert await asyncio.to_thread(terminal.end) == 0


@pytest.mark.req("B13", "B12")
async def test_at_a_terminal_other_verbs_offer_the_login_and_go_on(shell: Shell) -> None:
    with shell.terminal("tools", "{url}") as terminal:
        await expect(terminal, "Log in now?")
        terminal.send("\n")
        back = await visit(await address(terminal))
        await expect(terminal, "press Enter:")
        terminal.send(back + "\n")
        assert await asyncio.to_thread(terminal.end) == 0
        assert "hello" in terminal.text
    with shell.terminal("tools", "{url}", HOLDFAST_ACCOUNT="other") as terminal:
        await expect(terminal, "Log in now?")
        terminal.send("n\n")
        assert await asyncio.to_thread(terminal.end) == Exit.AUTH
