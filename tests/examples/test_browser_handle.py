"""The handle of the browser example is what is generated for its server's tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.browser import browser, mcp_tools
from holdfast.codegen import generate
from tests.codegen.material import recorded


def made(path: Path) -> str:
    """What is generated with the command that a module's own header names."""
    found = re.search(r"^Regenerate: (.+)$", path.read_text(encoding="utf-8"), re.M)
    assert found is not None
    return generate(recorded("playwright"), command=found[1]).source


@pytest.mark.req("V4")
def test_the_committed_handle_is_what_is_generated_now() -> None:
    path = Path(mcp_tools.__file__)
    assert path.read_text(encoding="utf-8") == made(path)


@pytest.mark.req("V4")
def test_it_says_how_to_make_it_again() -> None:
    here = Path(mcp_tools.__file__).relative_to(browser.PROJECT)
    server = browser.SERVER.relative_to(browser.PROJECT)
    assert mcp_tools.REGISTRY.command == f"holdfast codegen --no-target -o {here} -- {server}"
