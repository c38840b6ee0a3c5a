"""``holdfast tools NAME --offline`` into a pipe: stored lines, at the speed of starting Python."""

from __future__ import annotations

import os
import sys

from holdfast.cli.tool_cache import load


def stored_lines(words: list[str]) -> str | None:
    """Return the tools of one named server as they were last seen, and say when on stderr.

    None if there are other words, or a terminal to draw on: then the verb itself is needed.
    """
    names = [word for word in words if word not in ("tools", "--offline")]
    if len(names) != 1 or len(words) != 3 or sys.stdout.encoding != "utf-8":
        return None
    if sys.stdout.isatty() or sys.stderr.isatty():
        return None
    name = names[0]
    if name.startswith("-") or ":" in name or not name.isascii() or os.path.exists(name):
        return None  # an option, a URL, a script
    found = load(name, only_lines=True)
    note = str(found)
    if found is None or not (note.isascii() and note.isprintable()):
        return None
    print(note, file=sys.stderr, flush=True)
    return found.lines
