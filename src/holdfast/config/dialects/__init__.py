"""The dialects: how each product writes down its servers. One reader each, all of them pure."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import Reading
from holdfast.config.entry import Source

DIALECTS: Final = ("mcpServers", "vscode", "codex", "gemini", "goose")


def read(dialect: str, document: Mapping[str, Any], source: Source) -> Reading:
    """What a document says, in a dialect. Only the reader that is needed is loaded."""
    from importlib import import_module

    found: Reading = import_module(f"{__name__}.{dialect.lower()}").read(document, source)
    return found


def detect(path: str, document: Mapping[str, Any]) -> str | None:
    """The dialect of a file that somebody names, by its place and what is in it."""
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
    return None
