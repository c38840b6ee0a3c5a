"""The official suite's server scenarios, on a reference server directly and through ``serve``.

Nothing that passes directly may fail through it. The server is on stdio behind ``serve --http``; it
speaks all revisions.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conformance import reference_server
from tests.conformance.test_conformance import CACHE, suite

__all__ = ["suite"]

SERVER = [sys.executable, reference_server.__file__]
SERVE = [sys.executable, "-m", "holdfast", "serve", "--http", "0"]


@contextmanager
def listening(words: list[str]) -> Iterator[str]:
    """Yield the URL that a server prints first."""
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[0]
        finally:
            process.terminate()


def checks(suite: Path, url: str, version: str, out: Path) -> dict[str, str]:
    """Run all scenarios of a revision; return the status of each check."""
    path = f"{CACHE / 'node_modules' / 'node' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    words = [str(suite), "server", "--url", url, "--suite", "all", "--spec-version", version]
    subprocess.run(
        [*words, "-o", str(out)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    statuses: dict[str, str] = {}
    for file in sorted(out.rglob("checks.json")):
        # The name of the folder ends with the time of the run.
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", file.parent.name)
        for number, check in enumerate(json.loads(file.read_text())):
            key = f"{scenario}/{check['id']}/{check.get('name')}"
            statuses[key if key not in statuses else f"{key}/{number}"] = check["status"]
    return statuses


@pytest.mark.hang(700)
@pytest.mark.req("Y1")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_nothing_that_passes_directly_fails_through_a_relay(
    suite: Path,
    version: str,
    tmp_path: Path,
) -> None:
    with listening([*SERVER, "--http"]) as url:
        direct = checks(suite, url, version, tmp_path / "direct")
    with listening([*SERVE, "--", *SERVER]) as url:
        through = checks(suite, url, version, tmp_path / "through")
    passed = [key for key, status in direct.items() if status == "SUCCESS"]
    assert len(passed) > 70
    assert {key: through.get(key) for key in passed if through.get(key) != "SUCCESS"} == {}
