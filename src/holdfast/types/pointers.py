"""Where a ``$ref`` leads: JSON pointers into the same document, and nowhere else.

Schemas are written by strangers: a list's index may be any text, and a number of any length.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote


def resolve(document: Any, reference: str) -> Any:
    """The schema that is meant, or None. What is elsewhere is never looked for."""
    if reference == "#":
        return document
    if not reference.startswith("#/"):
        return None
    found = document
    for step in unquote(reference[2:]).split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and key.isascii() and len(key) < 9:
            found = found[int(key)] if int(key) < len(found) else None
        else:
            return None
    return found
