"""What tools and resources give back, for a person or a pipe: text as text, the rest as files."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.cli.output import Output, write
from holdfast.errors import ProtocolError, ValidationError

MOST_INLINE: Final = 4 * 1024 * 1024
"""Bytes of a picture that a terminal is made to draw."""

ENDINGS: Final = {
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/webp": ".webp",
    "text/markdown": ".md",
}
"""Kinds that Python's own table lacks, or knows by other names."""


class Contents:
    """Shows contents one after the other; what is no text is saved under ``stem-N.ext``."""

    def __init__(self, output: Output, folder: str | None, stem: str) -> None:
        self._output = output
        self._folder = folder
        self._stem = re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._")[:80] or "content"
        self._count = 0

    def show(self, contents: Iterable[Any]) -> None:
        for content in contents:
            self._show(msgspec.to_builtins(content))

    def _show(self, content: dict[str, Any]) -> None:
        inner = content.get("resource")
        if content.get("type") == "resource" and isinstance(inner, dict):
            content = inner
        text, data = content.get("text"), content.get("data", content.get("blob"))
        if isinstance(text, str):
            self._output.text(text)
        elif isinstance(data, str):
            self._save(data, str(content.get("mimeType") or "application/octet-stream"))
        elif content.get("type") == "resource_link":
            self._output.text(str(content.get("uri")))
        else:
            self._output.value(content)

    def _save(self, data: str, kind: str) -> None:
        try:
            found = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ProtocolError(f"the server sent {kind} that is not base64") from None
        if self._output.is_terminal and kind.startswith("image/"):
            _draw(found, kind)
        self._output.text(str(self._file(found, kind)))

    def _file(self, data: bytes, kind: str) -> Path:
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="holdfast-")
        folder = Path(self._folder)
        plain = kind.partition(";")[0].strip().lower()
        ending = ENDINGS.get(plain) or mimetypes.guess_extension(plain) or ".bin"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            while True:
                self._count += 1
                path = folder / f"{self._stem}-{self._count}{ending}"
                if _written(path, data):
                    return path
        except OSError as error:
            raise ValidationError(f"{folder}: cannot be written: {error.strerror}") from None


def _written(path: Path, data: bytes) -> bool:
    """A new file. One that is there, or a link of that name, is left alone: False."""
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        return False
    return True


def _draw(data: bytes, kind: str) -> None:
    """A picture in the terminal, by the protocol that this one knows, if any."""
    if len(data) > MOST_INLINE:
        return
    encoded = base64.standard_b64encode(data)
    if os.environ.get("KITTY_WINDOW_ID") or os.environ.get("TERM_PROGRAM") == "ghostty":
        if kind == "image/png":
            write(_kitty(encoded))
    elif os.environ.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm"):
        write(b"\x1b]1337;File=inline=1;size=%d:%b\x07\n" % (len(data), encoded))
    sys.stdout.flush()


def _kitty(encoded: bytes) -> bytes:
    chunks = [encoded[at : at + 4096] for at in range(0, len(encoded), 4096)]
    parts = [
        b"\x1b_G%bm=%d;%b\x1b\\" % (b"a=T,f=100," if not at else b"", at < len(chunks) - 1, chunk)
        for at, chunk in enumerate(chunks)
    ]
    return b"".join(parts) + b"\n"
