"""The loop of programs that relay: uvloop where it is installed, unless the user says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast._core.serve.loop import LOOP, fast_loop

pytestmark = pytest.mark.req("Y2")

_TELL = """
import sys
from holdfast.cli.main import main
code = main(sys.argv[1:])
print("uvloop" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


def test_without_uvloop_it_is_that_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LOOP, raising=False)
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert fast_loop() is None


@pytest.mark.parametrize("wish", ["", "asyncio"])
@pytest.mark.parametrize(
    "words",
    [
        ("serve", "--", sys.executable, "-m", "holdfast.demo.server"),
        ("daemon", "run", "--linger", "0.01"),
    ],
    ids=["serve", "daemon"],
)
def test_those_who_relay_take_the_fast_one(
    words: tuple[str, ...], wish: str, tmp_path: Path
) -> None:
    pytest.importorskip("uvloop")
    folders = {name: str(tmp_path) for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", _TELL, *words],
        env={**os.environ, **folders, LOOP: wish},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == str(wish != "asyncio")
