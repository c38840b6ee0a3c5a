"""Stored logins: what an entry is, who holds it, the keyring."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast._core.auth.credentials import Login, Pointer, Registration, decode
from holdfast._core.auth.keyring import Keyring, KeyringUnusable, SealedStore
from holdfast._core.auth.logins import Logins, default_store
from holdfast.errors import AuthError
from holdfast.stores import FileStore, MemoryStore
from tests.auth.talk import ISSUER, SERVER, client, server
from tests.rows import rows

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


@rows("data", [None, b"", b"{", b"[]", b"null", b"\xff", b"[" * 10_000])
def test_an_entry_that_cannot_be_read_is_none(data: bytes | None) -> None:
    assert decode(data, Login) is None


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


@pytest.mark.req("B2", "B15")
async def test_a_login_is_read_and_written_by_whoever_holds_it(tmp_path: Path) -> None:
    logins = Logins(FileStore(tmp_path))
    async with logins.hold(KEY) as slot:
        assert await slot.read() is None
        await slot.write(b"one")
        assert await slot.read() == b"one"
    assert (await logins.read(KEY), await logins.keys()) == (b"one", [KEY])
    async with logins.hold(KEY) as slot:
        await slot.write(None)
    assert await logins.read(KEY) is None


@pytest.mark.req("B2")
async def test_a_login_is_never_dropped_for_room() -> None:
    logins = Logins(MemoryStore(entries=1, bytes=1))
    for number in range(5):
        async with logins.hold(f"login-{number}") as slot:
            await slot.write(b"x" * 1000)
    assert len(await logins.keys()) == 5


async def test_a_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    logins = Logins(FileStore(tmp_path / "file"))
    with pytest.raises(AuthError, match=r"logins cannot be kept: .*file: "):
        async with logins.hold(KEY):
            pass


@pytest.mark.req("B2", "B14")
async def test_a_login_that_is_held_for_too_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins, others = Logins(FileStore(tmp_path)), Logins(FileStore(tmp_path))
    async with others.hold(KEY):
        with monkeypatch.context() as hasty:
            hasty.setattr("holdfast._core.auth.logins.LOCK_TIMEOUT", 0.01)
            with pytest.raises(AuthError, match="held the stored login for too long"):
                async with logins.hold(KEY):
                    pass
    async with logins.hold(KEY) as slot:
        assert await slot.read() is None


# The keyring.


def _none() -> bytes:
    raise KeyringUnusable("none was found")


def _key() -> bytes:
    return b"k" * 32


@pytest.mark.req("B15")
async def test_entries_are_sealed_by_the_key_in_the_keyring(tmp_path: Path) -> None:
    ring = Keyring(_key)
    behind = FileStore(tmp_path)
    store = SealedStore(behind, lambda: ring.cipher(tmp_path))
    await store.put(KEY, b"ACCESS-SECRET")
    assert b"SECRET" not in (tmp_path / f"{KEY}.entry").read_bytes()
    assert await store.get(KEY) == b"ACCESS-SECRET"
    assert await store.keys() == [KEY]
    # An entry that is put in the place of another one is not accepted, nor one that is not sealed.
    other_key = KEY.replace("0123", "3210")
    await behind.put(other_key, await behind.get(KEY) or b"")
    assert await store.get(other_key) is None
    await behind.put(other_key, b"plain")
    assert await store.get(other_key) is None
    async with store.lock(KEY):
        await store.delete(KEY)
    assert await store.get(KEY) is None


@pytest.mark.req("B15")
def test_without_a_keyring_files_are_used_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert Keyring(_none).cipher(tmp_path) is None
    assert Keyring(_none).cipher(tmp_path) is None
    assert len([one for one in caplog.records if "logins are kept in" in one.message]) == 1


@pytest.mark.req("B15")
def test_a_keyring_that_fails_later_is_an_error_and_not_a_change(tmp_path: Path) -> None:
    assert Keyring(_key).cipher(tmp_path) is not None
    with pytest.raises(AuthError, match="HOLDFAST_AUTH_STORE to 'file'"):
        Keyring(_none).cipher(tmp_path)


@pytest.mark.req("B15")
def test_a_keyring_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    never = threading.Event()

    def stuck() -> bytes:
        never.wait(30)
        return b""

    with pytest.raises(AuthError, match="did not answer"):
        Keyring(stuck, patience=0.05).cipher(tmp_path, required=True)
    never.set()


@pytest.mark.parametrize(
    ("value", "kind"), [("memory", MemoryStore), ("file", FileStore), ("auto", SealedStore)]
)
def test_the_store_is_chosen_by_a_variable(
    monkeypatch: pytest.MonkeyPatch, value: str, kind: type
) -> None:
    monkeypatch.setenv("HOLDFAST_AUTH_STORE", value)
    assert isinstance(default_store(), kind)


def test_a_wrong_variable_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_AUTH_STORE", "cloud")
    with pytest.raises(AuthError, match="HOLDFAST_AUTH_STORE"):
        default_store()
