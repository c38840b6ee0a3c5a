"""The suite on the page about pytest passes; recorded, and replayed, as far as it can be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PROJECT, blocks
from tests.testing.suites import ASYNCIO, INI, run

pytest_plugins = ["pytester"]


@pytest.mark.req("F4")
def test_the_suite_on_the_page(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (PROJECT / "docs" / "how-to" / "pytest.md").read_text(encoding="utf-8")
    source = [block.text for block in blocks(text) if block.kind == "python"]
    pytester.makeini(INI + ASYNCIO.format(mode="auto"))
    pytester.makepyfile(test_page="\n".join(source))
    here = str(Path(sys.executable).parent)  # ``python`` on the page is the tests' own
    monkeypatch.setenv("PATH", here, prepend=os.pathsep)
    run(pytester, "--mcp-record=recordings").assert_outcomes(passed=5)
    log = Path(pytester.path) / "logs" / "calls.jsonl"
    assert len(log.read_text(encoding="utf-8").splitlines()) == 2
    monkeypatch.setenv("PATH", "")
    found = run(pytester, "--mcp-replay=recordings")
    found.assert_outcomes(passed=4, failed=1)
    assert "'resources/read': only tools and their calls are recorded" in found.stdout.str()
