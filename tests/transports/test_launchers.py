"""Commands that download or build a server first, and whether they are at work."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from holdfast._core.system import HAS_LINUX
from holdfast._core.transports.launchers import is_launcher
from holdfast._core.transports.spawn import activity
from tests.rows import rows


@pytest.mark.req("N1")
@rows(
    "command",
    [
        "npx -y server",
        "/usr/local/bin/npx server",
        "C:\\nodejs\\npx.cmd -y server",
        "npm exec -- server",
        "npm x server",
        "bunx server",
        "bun x server",
        "pnpm dlx server",
        "yarn dlx server",
        "uvx server",
        "uv run server.py",
        "uv --directory /srv run server",
        "uv tool run server",
        "pipx run server",
        "docker run -i --rm image",
        "docker --context far container run image",
        "podman run image",
        "deno run -A npm:server",
        "go run ./cmd",
        "env A=1 -u B npx server",
        "/usr/bin/env uvx server",
        "nice -n 5 uvx server",
    ],
)
def test_launchers_are_recognised(command: str) -> None:
    assert is_launcher(command.split(" "))


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    "script",
    ["npx -y server", "cd /srv && exec npx server", "A=1 uvx 'my server'; true", "(npx x)"],
)
@pytest.mark.parametrize("shell", [["sh", "-c"], ["/bin/bash", "-lc"], ["cmd.exe", "/c"]])
def test_launchers_are_recognised_in_a_script(shell: list[str], script: str) -> None:
    assert is_launcher([*shell, script])


@pytest.mark.req("N1")
@rows(
    "command",
    [
        ["python", "server.py"],
        ["node", "npx.js"],
        ["docker", "exec", "-i", "box", "server"],
        ["uv", "--version"],
        ["server", "npx"],
        ["sh", "-c", "python 'server"],
        ["sh", "-c", "echo 'npx server'"],
        [""],
        [],
    ],
)
def test_other_commands_are_not_launchers(command: list[str]) -> None:
    assert not is_launcher(command)


@pytest.mark.req("N1")
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc")
def test_children_that_use_the_processor_show() -> None:
    spin = f"{sys.executable} -c 'while True: pass'"
    with subprocess.Popen(["sh", "-c", f"{spin} & echo $!; wait"], stdout=subprocess.PIPE) as shell:
        assert shell.stdout is not None
        child = int(shell.stdout.readline())
        try:
            before = activity(shell.pid)
            if not HAS_LINUX:
                assert before == {}, "not known"
                return
            assert child in before
            until = time.monotonic() + 30
            while activity(shell.pid)[child] <= before[child]:
                assert time.monotonic() < until
        finally:
            os.kill(child, 9)
    assert activity(shell.pid) == activity(-1)
