"""What tools and resources give back, for a person or a pipe: text as text, the rest as files."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast._core.files import reason, resolve_output
from holdfast.cli.output import Output, write
from holdfast.errors import ProtocolError, ValidationError

MOST_INLINE: Final = 4 * 1024 * 1024
"""Bytes of a picture that a terminal is made to draw."""

MOST_FLAT: Final = 72
"""Characters of JSON in a text that stay on one line."""

ENDINGS: Final = {
    "audio/ogg": ".ogg",
    "audio/wav": ".wav",
    "image/webp": ".webp",
    "text/markdown": ".md",
}
"""Kinds that Python's own table lacks, or knows by other names."""


class Contents:
    """Shows contents one after the other; what is no text is saved as ``stem-N.ext``.

    Without a folder, in a temporary one. What is there, or a link of that name, is left alone.
    """

    def __init__(self, output: Output, folder: str | None, stem: str) -> None:
        self._output = output
        self._folder = folder
        self._stem = re.sub(r"[^A-Za-z0-9._-]+", "_", stem).strip("._")[:80] or "content"
        self._count = 0

    def show(self, contents: Iterable[Any]) -> None:
        """Show contents in order."""
        for one in contents:
            content = msgspec.to_builtins(one)
            inner = content.get("resource")
            if content.get("type") == "resource" and isinstance(inner, dict):
                content = inner
            text, data = content.get("text"), content.get("data", content.get("blob"))
            if isinstance(text, str):
                if not (self._output.is_terminal and self._show_json(text)):
                    self._output.content(text)
            elif isinstance(data, str):
                self._save(data, str(content.get("mimeType") or "application/octet-stream"))
            elif content.get("type") == "resource_link":
                self._output.content(str(content.get("uri")))
            else:
                self._output.value(content)

    def _show_json(self, text: str) -> bool:
        """Show JSON highlighted, and indented if it is long; return False if it is none."""
        if text.lstrip()[:1] not in ("{", "["):
            return False
        try:
            msgspec.json.decode(text)
            self._output.json_text(text.encode(), indent=len(text) > MOST_FLAT)
        except (ValueError, RecursionError):  # it only looks like JSON
            return False
        return True

    def _save(self, data: str, kind: str) -> None:
        try:
            found = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ProtocolError(f"the server sent {kind} that is not base64") from None
        if self._output.is_terminal and kind.startswith("image/"):
            draw(found, kind)
        import mimetypes  # slow to load, and most results are text

        plain = kind.partition(";")[0].strip().lower()
        ending = ENDINGS.get(plain) or mimetypes.guess_extension(plain) or ".bin"
        path = self.add(found, ending)
        more = f" ({kind}, {human_size(len(found))})" if self._output.is_terminal else ""
        self._output.text(f"{path}{more}")

    def add(self, data: bytes, ending: str) -> Path:
        """Write a new file and return its path."""
        if self._folder is None:
            import tempfile  # slow to load, and most results are text

            self._folder = tempfile.mkdtemp(prefix="holdfast-")
        folder = Path(self._folder)
        try:
            os.makedirs(resolve_output(folder), exist_ok=True)
            while True:
                self._count += 1
                path = folder / f"{self._stem}-{self._count}{ending}"
                with suppress(FileExistsError), path.open("xb") as file:
                    file.write(data)
                    return path
        except OSError as error:
            raise ValidationError(f"{folder}: cannot be written: {reason(error)}") from None


def human_size(count: int) -> str:
    """Return a number of bytes for a person."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def draw(data: bytes, kind: str) -> None:
    """Draw a picture in the terminal, by the protocol that this one knows, if any."""
    if len(data) > MOST_INLINE:
        return
    encoded = base64.standard_b64encode(data)
    program = _terminal(os.environ)
    if program in ("kitty", "ghostty") and kind == "image/png":
        for at in range(0, len(encoded), 4096):
            head = b"" if at else b"a=T,f=100,"
            more = at + 4096 < len(encoded)
            write(b"\x1b_G%bm=%d;%b\x1b\\" % (head, more, encoded[at : at + 4096]))
        write(b"\n")
    elif program in ("iTerm.app", "iTerm2", "WezTerm", "mintty"):
        write(b"\x1b]1337;File=inline=1;size=%d:%b\x07\n" % (len(data), encoded))


def _terminal(environ: Mapping[str, str]) -> str | None:
    """Return the terminal's name; programs started in one inherit its variables.

    Multiplexers (tmux, screen) do too, and know none of its protocols. Over SSH only TERM and LC_*
    are passed on.
    """
    term = environ.get("TERM", "")
    if term.startswith(("tmux", "screen", "dumb")) or environ.get("TMUX") or environ.get("STY"):
        return None
    if term in ("xterm-kitty", "xterm-ghostty"):
        return term.removeprefix("xterm-")
    program = environ.get("TERM_PROGRAM") or environ.get("LC_TERMINAL")
    return program or ("kitty" if environ.get("KITTY_WINDOW_ID") else None)
