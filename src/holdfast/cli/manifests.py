"""What servers were last seen to offer, kept so that completion and ``--offline`` need no server.

One small file per server in the user's cache folder. It may be missing, old or broken at any
time, so it is only ever a convenience.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.errors import ValidationError


def folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "holdfast" / "manifests"


def path_for(key: str) -> Path:
    from hashlib import sha256

    return folder() / f"{sha256(key.encode()).hexdigest()[:32]}.json"


def save(key: str, tools: Iterable[dict[str, Any]]) -> None:
    """Keep a list of tools; quietly not, where that cannot be done."""
    path = path_for(key)
    from tempfile import mkstemp

    text = json.dumps({"server": key, "saved": time.time(), "tools": list(tools)})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = mkstemp(dir=path.parent)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except (OSError, UnicodeError):
        return


def recall(key: str) -> list[dict[str, Any]] | None:
    """The tools that a server was last seen with; None if it never was."""
    try:
        found = json.loads(path_for(key).read_bytes())
        tools = found["tools"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(tools, list):
        return None
    return [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]


def require(key: str) -> list[dict[str, Any]]:
    """The same, where there is nothing to go on without it."""
    tools = recall(key)
    if tools is None:
        raise ValidationError(
            f"{key}: not seen yet, so nothing is known of it offline; "
            "list its tools once without --offline"
        )
    return tools
