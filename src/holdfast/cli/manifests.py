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
from typing import Any, NamedTuple

from holdfast.errors import ValidationError


def folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "holdfast" / "manifests"


def path_for(key: str) -> Path:
    """A file of its own for each: a configured server's by its name, others by a hash."""
    if len(key) <= 60 and key.isascii() and key.replace("-", "").replace("_", "").isalnum():
        return folder() / f"server-{key}.json"
    from hashlib import sha256

    return folder() / f"{sha256(key.encode()).hexdigest()[:32]}.json"


class Manifest(NamedTuple):
    """The tools of a server, when they were seen, and the file that named the server, if any."""

    tools: list[dict[str, Any]]
    seen: float
    source: str

    def __str__(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.seen))
        return f"as seen on {when}{f', configured in {self.source}' if self.source else ''}"


def save(key: str, tools: Iterable[dict[str, Any]], source: str = "") -> None:
    """Keep a list of tools; quietly not, where that cannot be done."""
    from holdfast.cli.files import renew

    path = path_for(key)
    facts = {"server": key, "seen": time.time(), "source": source, "tools": list(tools)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        renew(path, json.dumps(facts), lambda _: True, "a manifest")
    except (OSError, UnicodeError, ValidationError):
        return


def recall(key: str) -> Manifest | None:
    """What a server was last seen with; None if it never was."""
    try:
        found = json.loads(path_for(key).read_bytes())
        tools, seen, source = found["tools"], float(found["seen"]), str(found["source"])
        time.localtime(seen)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    if not isinstance(tools, list):
        return None
    sound = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
    return Manifest(sound, seen, source)


def require(key: str) -> Manifest:
    """The same, where there is nothing to go on without it."""
    found = recall(key)
    if found is None:
        raise ValidationError(
            f"{key}: not seen yet, so nothing is known of it offline; "
            "list its tools once without --offline"
        )
    return found
