"""The cached tool lists of servers, for completion, suggestions and ``--offline``.

One small file per server in the user's cache folder, which may be missing, stale or broken. The
lines that ``tools`` writes to a pipe are cached with the tools, so that ``tools NAME --offline``
needs neither click nor the schemas: this module imports next to nothing.
"""

from __future__ import annotations

import json
import os
import sys

from holdfast._core.files import make_private_folder, read_bytes, write_atomic, xdg_path
from holdfast._version import __version__

TYPE_CHECKING = False  # as typing has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Final

    from holdfast.types.tools import Tool


# A file has three lines: facts, the tools as JSON, and the text that ``tools`` writes to a pipe.
# The first is small, so that a reader who wants the third parses next to nothing. An entry is
# found by the name of its server: a project may have another server of the same name, so the file
# that configured it is kept along, and shown or compared wherever the tools are taken for
# somebody's.
#
# What is in here came from servers. It is offered at Tab and searched, and never run: a call lists
# the tools anew.

MOST_BYTES: Final = 64 * 1024 * 1024


def path_for(key: str) -> str:
    """Return the file of a server: by name if configured, else by a hash."""
    folder = os.path.join(xdg_path("cache"), "holdfast", "manifests")
    if len(key) <= 60 and key.isascii() and key.replace("-", "").replace("_", "").isalnum():
        return os.path.join(folder, f"server-{key}.json")
    from hashlib import sha256

    return os.path.join(folder, f"{sha256(key.encode()).hexdigest()[:32]}.json")


class CachedTools:
    """The tools of a server, when they were listed, and the file that configured it, if any.

    ``raw`` has them as the server described them: completion reads no types.
    """

    def __init__(self, raw: list[dict[str, Any]], lines: str, seen: float, source: str) -> None:
        self.raw, self.lines, self.seen, self.source = raw, lines, seen, source

    @property
    def tools(self) -> list[Tool]:
        """The tools."""
        from holdfast.types.base import decode, encode
        from holdfast.types.tools import Tool

        return [decode(encode(definition), Tool) for definition in self.raw]

    def __str__(self) -> str:
        import time

        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.seen))
        return f"as seen on {when}{f', configured in {self.source}' if self.source else ''}"


def save(key: str, tools: Sequence[Tool], source: str = "") -> None:
    """Store a list of tools; ignore a failure. An unchanged list only gets a new time.

    It is stored without the secrets that the server was given: `load` does not know them.
    """
    path = path_for(key)
    head = {"server": key, "source": source, "version": __version__}
    try:
        from holdfast._core.redact.known import KNOWN

        raw = KNOWN.hide_in([tool.raw for tool in tools])
        data = b"%b\n%b\n" % (json.dumps(head).encode(), json.dumps(raw).encode())
        if os.path.isfile(path) and read_bytes(path, MOST_BYTES).startswith(data):
            os.utime(path)
            return
        from holdfast.cli.views import tool_lines

        make_private_folder(os.path.dirname(path))
        shown = CachedTools(raw, "", 0.0, source).tools
        lines = json.dumps(tool_lines((tool.name, tool) for tool in shown)).encode()
        write_atomic(path, data + lines, private=True)
    except (OSError, UnicodeError, RecursionError):
        return


def load(key: str, *, only_lines: bool = False) -> CachedTools | None:
    """Return the cached tools of a server; None if there are none.

    With ``only_lines`` the tools are not parsed, and a file that another version of holdfast wrote
    is ignored: its lines may look different.
    """
    path = path_for(key)
    try:
        head, tools, lines = read_bytes(path, MOST_BYTES).split(b"\n")
        facts, seen = json.loads(head), os.stat(path).st_mtime
        if only_lines and facts["version"] != __version__:
            return None
        raw = [
            tool
            for tool in ([] if only_lines else json.loads(tools))
            if isinstance(tool, dict) and isinstance(tool.get("name"), str)
        ]
        return CachedTools(raw, str(json.loads(lines)), seen, str(facts["source"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def stored_lines(words: list[str]) -> str | None:
    """Return what ``tools NAME --offline`` writes to a pipe; say on stderr when it was seen.

    At the speed of starting Python. None if there are other words, or a terminal to draw on: then
    the verb itself is needed.
    """
    names = [word for word in words if word not in ("tools", "--offline")]
    if len(names) != 1 or len(words) != 3 or not (_is_pipe() and _is_only_a_name(names[0])):
        return None
    cached = load(names[0], only_lines=True)
    if cached is None or not ((note := str(cached)).isascii() and note.isprintable()):
        return None
    print(note, file=sys.stderr, flush=True)
    return cached.lines


def _is_pipe() -> bool:
    return not (sys.stdout.isatty() or sys.stderr.isatty()) and sys.stdout.encoding == "utf-8"


def _is_only_a_name(word: str) -> bool:
    """Return False for what may be an option, a URL or a script."""
    return word.isascii() and not (word.startswith("-") or ":" in word or os.path.exists(word))


def seen_with(servers: Iterable[str], tool: str) -> str:
    """Return ``Did you mean …?`` with the servers that have a tool, or one of a near name."""
    from holdfast._core.text import close_matches

    places: dict[str, list[str]] = {}
    for server in servers:
        cached = load(server)
        for definition in cached.raw if cached is not None else ():
            name = definition["name"]
            places.setdefault(name, []).append(f"{server}.{name}")
    near = [tool] if tool in places else close_matches(tool, places, 1)
    return f"Did you mean {' or '.join(map(repr, places[near[0]][:3]))}?" if near else ""
