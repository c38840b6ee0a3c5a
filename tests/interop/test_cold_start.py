"""A launcher with an empty cache: real ``npx``, which downloads the server before it starts it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal
from tests.interop.catalogue import HELLO_WORLD
from tests.interop.install import NotHere, verdict

LONGEST = 200.0
"""Seconds for a download over a slow network, on a busy machine."""


@pytest.mark.req("N1")
def test_npx_with_an_empty_cache_is_waited_for_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("npx") is None:
        pytest.skip("npx is not installed")
    monkeypatch.setattr("tests.cli.terminal.PATIENCE", LONGEST)
    monkeypatch.setenv("NPM_CONFIG_CACHE", str(tmp_path / "npm"))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    server = ["npx", "-y", f"{HELLO_WORLD.package}@{HELLO_WORLD.version}"]
    one = Terminal([sys.executable, "-m", "holdfast", "tools", "-v", "--", *server], columns=100)
    try:
        code = one.end()
    finally:
        one.close()
    if code and isinstance(reason := verdict(server, one.text), NotHere):
        pytest.skip(str(reason))
    assert code == 0, one.text
    assert "npx … " in one.text, "the wait was not shown"
    assert one.text.count("→ starting") == 1, "it was killed and started again"
    assert any(line.startswith("echo(message: str)") for line in one.screen.lines)
