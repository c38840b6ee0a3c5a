"""The handle of the browser example drives a real browser, and is what is generated now."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from examples.browser import browser, mcp_tools
from examples.browser.shop import open_shop
from holdfast.codegen import generate
from holdfast.testing import Peer, ServerRequest
from tests.codegen.material import recorded


def require_browser() -> None:
    """Skip where there is no browser, or no server for it, unless all of it is wanted."""
    try:
        browser.chromium()
        browser.install()
    except browser.MissingError as error:
        if os.environ.get("HOLDFAST_REQUIRE_ALL") == "1":
            raise
        pytest.skip(str(error))


@pytest.mark.req("V4")
@pytest.mark.long
@pytest.mark.thorough(only=True)
async def test_the_handle_drives_a_real_browser(tmp_path: Path) -> None:
    require_browser()
    with open_shop() as port:
        target = browser.command(port, tmp_path)
        async with mcp_tools.connect(target=target, cwd=tmp_path) as page:
            await page.browser_navigate(url=browser.URL)
            await page.browser_type(target="#metres", text="12")
            await page.browser_click(target="text=Hemp, please", element="the hemp")
            shown = await page.browser_evaluate(function="e => e.textContent", target="#basket")
    assert "12 metres, 30.00 in all." in shown.text


@pytest.mark.req("V4")
async def test_its_methods_call_the_tools_of_their_names() -> None:
    calls: list[tuple[str, dict[str, Any]]] = []

    def called(incoming: ServerRequest) -> dict[str, Any]:
        calls.append((incoming.params["name"], incoming.params["arguments"]))
        return {"content": [{"type": "text", "text": f"did {incoming.params['name']}"}]}

    server = Peer("browser")
    server.capabilities = {"tools": {}}
    server.on("tools/list", {"tools": [tool.raw for tool in recorded("playwright")]})
    server.on("tools/call", called)
    async with mcp_tools.connect(target=server) as page:
        assert (await page.browser_navigate(url=browser.URL)).text == "did browser_navigate"
        await page.browser_type(target="#metres", text="12")
    assert calls == [
        ("browser_navigate", {"url": browser.URL}),
        ("browser_type", {"target": "#metres", "text": "12"}),
    ]


def made(path: Path) -> str:
    """What is generated with the command that a module's own header names."""
    found = re.search(r"^Regenerate: (.+)$", path.read_text(encoding="utf-8"), re.M)
    assert found is not None
    return generate(recorded("playwright"), command=found[1]).source


@pytest.mark.req("H1")
def test_the_committed_handle_is_what_is_generated_now() -> None:
    path = Path(mcp_tools.__file__)
    assert path.read_text(encoding="utf-8") == made(path)


@pytest.mark.req("H1")
def test_it_says_how_to_make_it_again() -> None:
    here = Path(mcp_tools.__file__).relative_to(browser.PROJECT)
    server = browser.SERVER.relative_to(browser.PROJECT)
    assert mcp_tools.REGISTRY.command == f"holdfast codegen --no-target -o {here} -- {server}"
