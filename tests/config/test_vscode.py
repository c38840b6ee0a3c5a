"""VS Code's ``mcp.json``."""

from __future__ import annotations

import pytest

from holdfast.config import ConfigInput
from tests.config.rig import faults, read_data, read_one, warnings

pytestmark = pytest.mark.req("F3")


def test_a_file_of_vs_code() -> None:
    servers = read_data("vscode", "vscode.mcp.json")
    perplexity = servers["perplexity"]
    assert perplexity.env == {"PERPLEXITY_API_KEY": "${input:perplexity-key}"}
    assert perplexity.inputs["perplexity-key"] == ConfigInput(
        id="perplexity-key", description="Perplexity API key", password=True
    )
    assert perplexity.inputs["region"].options == ("eu", "us")
    assert warnings(perplexity) == {"dev": "has no effect here"}
    assert servers["fetch"].cwd == "tools"
    assert servers["remote"].kind == "http"
    assert not any(entry.errors for entry in servers.values())


def test_an_entry_has_the_inputs_that_it_uses() -> None:
    servers = read_data("vscode", "vscode.mcp.json")
    assert set(servers["perplexity"].inputs) == {"perplexity-key", "region"}
    assert set(servers["computed"].inputs) == {"computed"}
    assert servers["fetch"].inputs == {}


def test_a_server_without_a_way_to_it() -> None:
    entry = read_one("vscode", {"servers": {"one": {"type": "http"}}})
    assert faults(entry) == {"url": "is missing"}
