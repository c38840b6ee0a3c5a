"""``login``, ``logout`` and ``auth``, as a person types them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.cli.exit_codes import Exit
from tests.auth.world import World, world

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

    status = await shell("auth", "status", "--output", "json")
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


@pytest.mark.req("B16")
async def test_accounts_by_option_and_by_variable(shell: Shell) -> None:
    for name in ("work", "home"):
        assert (await shell("login", "{url}", "--account", name)).code == 0
    found = json.loads((await shell("auth", "status", "--output", "json")).out)
    assert sorted(row["account"] for row in found) == ["home", "work"]
    assert (await shell("tools", "{url}")).code == Exit.AUTH
    assert (await shell("tools", "{url}", HOLDFAST_ACCOUNT="work")).code == 0
    wanted = await shell("tools", "{url}", HOLDFAST_ACCOUNT="other")
    assert "--account other" in wanted.err


async def test_errors_are_json_where_json_is_asked_for(shell: Shell) -> None:
    ended = await shell("tools", "{url}", "--output", "json")
    assert (ended.code, json.loads(ended.err)["error"]["kind"]) == (Exit.AUTH, "auth")


async def test_a_command_has_no_login(shell: Shell) -> None:
    ended = await shell("login", "--", sys.executable, "-m", "holdfast.demo_server")
    assert ended.code == Exit.AUTH
    assert "no login for this kind of server" in ended.err


@pytest.mark.req("A11")
async def test_the_client_metadata_document_repeats_its_address(shell: Shell) -> None:
    address = "https://app.example/client.json"
    document = json.loads((await shell("auth", "client-metadata", address)).out)
    assert document["client_id"] == address
    assert document["client_name"]
    assert all("127.0.0.1" in one or "localhost" in one for one in document["redirect_uris"])
    assert "refresh_token" in document["grant_types"]
    assert (await shell("auth", "client-metadata", "http://app.example/x")).code == Exit.USAGE


async def test_doctor_shows_each_step_of_the_discovery_and_who_is_logged_in(shell: Shell) -> None:
    ended = await shell("doctor", "{url}", "--output", "json")
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
