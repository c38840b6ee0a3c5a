"""What can be read: a few fixed things, and the notes that the `note` tool writes."""

from __future__ import annotations

import re
import threading
from typing import Any

from .picture import base64_text, gradient
from .wire import Json

NOTE_PREFIX = "demo://note/"
NOTE_NAME = "^[A-Za-z0-9_-]{1,64}$"

_ABOUT = """This is the demo server that comes with Holdfast.
It runs no model, opens no file and no connection; its notes live until it ends.
"""
_TIDES = """The tide comes in, the tide goes out,
the weed holds on to the stone.
"""
_PLANETS = '{"inner": ["Mercury", "Venus", "Earth", "Mars"], "outer": ["Jupiter", "Saturn"]}\n'

_TEXTS = {
    "demo://about": ("about", "What this server is", "text/plain", _ABOUT),
    "demo://tides": ("tides", "A short poem", "text/plain", _TIDES),
    "demo://planets": ("planets", "Some planets, as JSON", "application/json", _PLANETS),
}
_PICTURE = "demo://picture"

TEMPLATES: list[Json] = [
    {
        "uriTemplate": NOTE_PREFIX + "{name}",
        "name": "note",
        "description": "A note written with the `note` tool",
        "mimeType": "text/plain",
    }
]


class Shelf:
    """All resources. Tools write notes from their own threads, hence the lock."""

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}
        self._lock = threading.Lock()

    def listed(self) -> list[Json]:
        fixed = [
            _entry(uri, name, description, mime)
            for uri, (name, description, mime, _) in _TEXTS.items()
        ]
        picture = _entry(_PICTURE, "picture", "A colour gradient", "image/png")
        return [*fixed, picture, *map(_note_entry, self.note_names())]

    def note_names(self) -> list[str]:
        with self._lock:
            return list(self._notes)

    def knows(self, uri: str) -> bool:
        """Whether the uri names something here, or a note that may yet be written."""
        return uri in _TEXTS or uri == _PICTURE or note_name(uri) is not None

    def read(self, uri: str) -> Json | None:
        """The result of reading a resource, or None if there is none."""
        if uri in _TEXTS:
            _, _, mime, text = _TEXTS[uri]
            return _contents(uri, mime, 60_000, "public", text=text)
        if uri == _PICTURE:
            data = base64_text(gradient(64, 64))
            return _contents(uri, "image/png", 60_000, "public", blob=data)
        note = self._notes.get(note_name(uri) or "")
        return None if note is None else _contents(uri, "text/plain", 0, "private", text=note)

    def write(self, name: str, text: str) -> bool:
        """Keeps a note; says whether it is a new one."""
        with self._lock:
            is_new = name not in self._notes
            self._notes[name] = text
        return is_new


def note_name(uri: str) -> str | None:
    """The name in a note's uri, or None if it is not one."""
    name = uri.removeprefix(NOTE_PREFIX)
    return name if name != uri and re.fullmatch(NOTE_NAME, name) else None


def _entry(uri: str, name: str, description: str, mime: str) -> Json:
    return {"uri": uri, "name": name, "description": description, "mimeType": mime}


def _note_entry(name: str) -> Json:
    return _entry(NOTE_PREFIX + name, name, "A note", "text/plain")


def _contents(uri: str, mime: str, ttl: int, scope: str, **body: Any) -> Json:
    contents = [{"uri": uri, "mimeType": mime, **body}]
    return {"contents": contents, "ttlMs": ttl, "cacheScope": scope}
