"""Where logins are kept: private files, locks between processes, a keyring."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import FileLogins, MemoryLogins
from holdfast._core.auth.credentials import Login, Pointer, Registration, decode
from holdfast._core.auth.store import MAX_ENTRY, Keyring, KeyringUnusable, default_store
from holdfast.errors import AuthError
from tests.auth.talk import ISSUER, SERVER, client, server

KEY = "login-0123456789abcdef"


def login(**changes: Any) -> Login:
    settings: dict[str, Any] = {
        "auth_server": server(),
        "resource": SERVER,
        "account": "default",
        "server": SERVER,
        "client": client(client_secret="CLIENT-SECRET"),
        "access_token": "ACCESS-SECRET",
        "refresh_token": "REFRESH-SECRET",
        "dpop_key": "KEY-SECRET",
        "issued_at": 1000.0,
        "expires_at": 2000.0,
    }
    return Login(**{**settings, **changes})


@pytest.mark.req("B6")
@pytest.mark.parametrize(
    "entry", [login(), client(client_secret="x"), Pointer(issuer=ISSUER, resource=None)]
)
def test_an_entry_is_read_as_it_was_written(entry: Any) -> None:
    assert decode(msgspec.json.encode(entry), type(entry)) == entry


@pytest.mark.parametrize("data", [None, b"", b"{", b"[]", b"null", b"\xff", b"[" * 10_000])
def test_an_entry_that_cannot_be_read_is_none(data: bytes | None) -> None:
    assert decode(data, Login) is None


async def test_a_folder_that_cannot_be_looked_into_has_no_entries(tmp_path: Path) -> None:
    assert await FileLogins(tmp_path / ("x" * 300)).read(KEY) is None


@pytest.mark.req("B20")
def test_no_secret_stands_in_a_repr() -> None:
    import rich.pretty

    for one in (login(), login().client, Registration(client_id="c")):
        text = repr(one) + rich.pretty.pretty_repr(one)
        assert "SECRET" not in text


@pytest.mark.req("B7")
def test_a_token_is_due_a_minute_or_a_tenth_of_its_life_before_its_end() -> None:
    assert not login(issued_at=0, expires_at=3600).due(3539)
    assert login(issued_at=0, expires_at=3600).due(3541)
    assert not login(issued_at=0, expires_at=10).due(8.9)
    assert login(issued_at=0, expires_at=10).due(9.1)
    assert not login(expires_at=None).due(1e12)
    assert login(issued_at=0, expires_at=3600).due(3536, jitter=0.99)


@pytest.mark.req("A13", "B16")
def test_entries_are_keyed_by_issuer_resource_server_and_account() -> None:
    keys = {
        login(server="https://mcp.example/other").key,
        login().key,
        login(auth_server=server(issuer="https://b")).key,
        login(resource=None).key,
        login(account="b").key,
    }
    assert len(keys) == 5


@pytest.mark.req("B15", "A28")
async def test_files_are_private_and_replaced_whole(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "auth"
    store = FileLogins(folder)
    async with store.hold(KEY) as slot:
        assert await slot.read() is None
        await slot.write(b"one")
        assert await slot.read() == b"one"
    file = folder / f"{KEY}.json"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.stat().st_ino
    async with store.hold(KEY) as slot:
        await slot.write(b"two")
    assert file.stat().st_ino != before
    assert await store.read(KEY) == b"two"
    assert await store.keys() == [KEY]
    async with store.hold(KEY) as slot:
        await slot.write(None)
    assert await store.read(KEY) is None
    assert not list(folder.glob("*.tmp"))


@pytest.mark.req("B15")
async def test_a_folder_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    async with FileLogins(tmp_path).hold(KEY) as slot:
        await slot.write(b"x")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


async def test_a_link_in_the_place_of_an_entry_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    secret.write_bytes(b"not yours")
    folder = tmp_path / "auth"
    folder.mkdir()
    (folder / f"{KEY}.json").symlink_to(secret)
    (folder / f"{KEY}.lock").symlink_to(secret)
    store = FileLogins(folder)
    assert await store.read(KEY) is None
    with pytest.raises(AuthError):
        async with store.hold(KEY):
            pass


async def test_a_huge_entry_is_not_read(tmp_path: Path) -> None:
    (tmp_path / f"{KEY}.json").write_bytes(b"x" * (MAX_ENTRY + 1))
    assert await FileLogins(tmp_path).read(KEY) is None


@pytest.mark.parametrize("key", ["../x", "login-", "a/b", "", "login-xyz", "LOGIN-0123456789"])
async def test_only_keys_become_file_names(tmp_path: Path, key: str) -> None:
    with pytest.raises(ValueError, match="not a key"):
        await FileLogins(tmp_path).read(key)


async def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AuthError, match="cannot be kept"):
        async with FileLogins(tmp_path / "file").hold(KEY):
            pass


@pytest.mark.req("B2")
@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_an_entry_is_held_by_one_at_a_time(tmp_path: Path, kind: str) -> None:
    store = MemoryLogins() if kind == "memory" else FileLogins(tmp_path)
    inside, most = 0, 0

    async def count() -> None:
        nonlocal inside, most
        async with store.hold(KEY) as slot:
            inside += 1
            most = max(most, inside)
            number = int(await slot.read() or b"0")
            await asyncio.sleep(0)
            await slot.write(str(number + 1).encode())
            inside -= 1

    await asyncio.gather(*(count() for _ in range(20)))
    assert (most, await store.read(KEY)) == (1, b"20")


_COUNTER = """
import asyncio, sys
from holdfast import FileLogins
async def main():
    store = FileLogins(sys.argv[1])
    for _ in range(20):
        async with store.hold(sys.argv[2]) as slot:
            number = int(await slot.read() or b"0")
            await slot.write(str(number + 1).encode())
asyncio.run(main())
"""


@pytest.mark.req("B2")
async def test_processes_do_not_overwrite_each_other(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _COUNTER, str(tmp_path), KEY]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    assert await FileLogins(tmp_path).read(KEY) == b"60"


_KILLED = """
import asyncio, os, signal, sys
from holdfast import FileLogins
async def main():
    async with FileLogins(sys.argv[1]).hold(sys.argv[2]) as slot:
        print("held", flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.mark.req("B2")
async def test_a_process_that_is_killed_frees_its_lock_and_spoils_nothing(tmp_path: Path) -> None:
    store = FileLogins(tmp_path)
    async with store.hold(KEY) as slot:
        await slot.write(b"whole")
    command = [sys.executable, "-c", _KILLED, str(tmp_path), KEY]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        os.kill(holder.pid, signal.SIGKILL)
    async with store.hold(KEY) as slot:
        assert await slot.read() == b"whole"


# The keyring.


def _none() -> bytes:
    raise KeyringUnusable("none was found")


def _key() -> bytes:
    return b"k" * 32


@pytest.mark.req("B15")
async def test_entries_are_sealed_by_the_key_in_the_keyring(tmp_path: Path) -> None:
    ring = Keyring(_key)
    store = FileLogins(tmp_path, seal=lambda: ring.seal_for(tmp_path))
    async with store.hold(KEY) as slot:
        await slot.write(b"ACCESS-SECRET")
    assert b"SECRET" not in (tmp_path / f"{KEY}.json").read_bytes()
    assert await store.read(KEY) == b"ACCESS-SECRET"
    # An entry that is put in the place of another one is not accepted.
    other = KEY.replace("0123", "3210")
    (tmp_path / f"{other}.json").write_bytes((tmp_path / f"{KEY}.json").read_bytes())
    assert await store.read(other) is None


@pytest.mark.req("B15")
def test_without_a_keyring_files_are_used_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert Keyring(_none).seal_for(tmp_path) is None
    assert Keyring(_none).seal_for(tmp_path) is None
    assert len([one for one in caplog.records if "logins are kept in" in one.message]) == 1


@pytest.mark.req("B15")
def test_a_keyring_that_fails_later_is_an_error_and_not_a_change(tmp_path: Path) -> None:
    assert Keyring(_key).seal_for(tmp_path) is not None
    with pytest.raises(AuthError, match="HOLDFAST_AUTH_STORE to 'file'"):
        Keyring(_none).seal_for(tmp_path)


@pytest.mark.req("B15")
def test_a_keyring_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    never = threading.Event()

    def stuck() -> bytes:
        never.wait(30)
        return b""

    with pytest.raises(AuthError, match="did not answer"):
        Keyring(stuck, patience=0.05).seal_for(tmp_path, required=True)
    never.set()


@pytest.mark.parametrize(("value", "kind"), [("memory", MemoryLogins), ("file", FileLogins)])
def test_the_store_is_chosen_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, value: str, kind: type
) -> None:
    monkeypatch.setenv("HOLDFAST_AUTH_STORE", value)
    assert isinstance(default_store(), kind)


def test_a_wrong_variable_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AUTH_STORE", "cloud")
    with pytest.raises(AuthError, match="HOLDFAST_AUTH_STORE"):
        default_store()
