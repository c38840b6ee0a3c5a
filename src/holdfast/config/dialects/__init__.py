"""Dialects: one reader for each way in which products write down their servers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import DialectResult
from holdfast.config.entry import EntrySource

DIALECTS: Final = {
    "mcpServers": "mcpservers",
    "vscode": "mcpservers",
    "gemini": "mcpservers",
    "zed": "mcpservers",
    "codex": "codex",
    "goose": "goose",
}
"""The module that reads each; only the one that is needed is loaded."""


def read(dialect: str, document: Mapping[str, Any], source: EntrySource) -> DialectResult:
    """Return the servers that a document describes in a dialect."""
    from importlib import import_module

    module = import_module(f"{__name__}.{DIALECTS[dialect]}")
    found: DialectResult = getattr(module, f"read_{dialect.lower()}")(document, source)
    return found


def detect(path: str, document: Mapping[str, Any]) -> str | None:
    """Return the dialect of a file, by its place and its content; None if it is in none."""
    folder, name = os.path.split(path)
    ending = os.path.splitext(name)[1].lower()
    if ending == ".toml":
        return "codex" if "mcp_servers" in document else None
    if ending in (".yaml", ".yml"):
        return "goose" if "extensions" in document else None
    if "mcpServers" in document:
        return "gemini" if os.path.basename(folder) == ".gemini" else "mcpServers"
    part = document.get("mcp")
    if "servers" in document or (isinstance(part, Mapping) and "servers" in part):
        return "vscode"
    return "zed" if "context_servers" in document else None
