"""The OS keyring, with a real one: gnome-keyring on a D-Bus of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

KEY = "login-0123456789abcdef"
USE = """
import asyncio, sys
from holdfast._core.auth.logins import default_store
async def main(what):
    store = default_store()
    if what == "write":
        await store.put(sys.argv[2], b"ACCESS-SECRET")
    print(await store.get(sys.argv[2]))
try:
    asyncio.run(main(sys.argv[1]))
except Exception as error:
    print(type(error).__name__, error)
"""
UNLOCK = "printf pass | gnome-keyring-daemon --unlock --components=secrets >/dev/null; "
PRESENT = "gnome-keyring-daemon --start --components=secrets >/dev/null; "


def run(
    folder: Path, script: str, *, store: str = "auto", bus: bool = True
) -> tuple[list[str], str]:
    """Run a shell on a D-Bus of its own, or on none; return the lines it wrote, and stderr."""
    if shutil.which("dbus-run-session") is None or shutil.which("gnome-keyring-daemon") is None:
        pytest.skip("gnome-keyring and dbus-run-session are not installed")
    use = folder / "use.py"
    use.write_text(USE)
    words = {"read": f"{sys.executable} {use} read {KEY};"}
    words["write"] = words["read"].replace(" read ", " write ")
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("DBUS", "XDG", "PYTHON_KEYRING", "DISPLAY", "WAYLAND"))
    }
    environ |= {"HOME": str(folder), "HOLDFAST_AUTH_STORE": store}
    command = ["sh", "-c", script.format(**words)]
    if bus:
        command = ["dbus-run-session", "--", *command]
    else:
        environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={folder}/none"
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    return done.stdout.splitlines(), done.stderr


@pytest.mark.req("B15", "A28")
def test_the_key_is_in_the_keyring_and_the_entry_is_sealed_with_it(tmp_path: Path) -> None:
    lines, _ = run(tmp_path, UNLOCK + "{write} {read}")
    assert lines == ["b'ACCESS-SECRET'"] * 2
    folder = tmp_path / ".local/share/holdfast/auth"
    assert (folder / "store").read_text() == "keyring\n"
    assert b"SECRET" not in (folder / f"{KEY}.entry").read_bytes()
    # Without the keyring it is an error, and not a silent change to files.
    (line,), _ = run(tmp_path, "{read}", bus=False)
    assert line.startswith("AuthError the keyring cannot be used")


@pytest.mark.req("B15")
def test_without_a_keyring_a_private_file_is_used_and_that_is_said(tmp_path: Path) -> None:
    lines, err = run(tmp_path, "{write} {read}", bus=False)
    assert lines == ["b'ACCESS-SECRET'"] * 2
    assert err.count("because there is no keyring") == 1
    assert (tmp_path / f".local/share/holdfast/auth/{KEY}.entry").stat().st_mode & 0o77 == 0


@pytest.mark.req("B15")
def test_a_locked_keyring_that_nobody_can_unlock_is_not_waited_for(tmp_path: Path) -> None:
    (line,), _ = run(tmp_path, PRESENT + "{write}", store="keyring")
    assert line.startswith("AuthError the keyring cannot be used")
    assert "HOLDFAST_AUTH_STORE" in line
