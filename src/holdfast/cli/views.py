"""Lists and contents of servers, for a terminal, a pipe, or as JSON.

A terminal shows columns, a pipe gets tab-separated lines. Pictures and other data become files.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from holdfast._core.files import reason, resolve_output
from holdfast._core.text import visible, visible_lines
from holdfast.cli.arguments import allowed_values
from holdfast.cli.main import columns_of_terminal
from holdfast.cli.output import (
    Output,
    color,
    hanging_indent,
    without_secrets,
    wrap_words,
    write,
)
from holdfast.cli.progress import cells
from holdfast.errors import ProtocolError, ValidationError
from holdfast.schema.signature import FEW, example, fields, resolve, signature, type_text

if TYPE_CHECKING:
    from holdfast.types import Prompt, Resource, ResourceTemplate, Tool


def show_tools(output: Output, tools: Sequence[Tool], owner: str, prefix: str = "") -> None:
    """Show the owner's tools as signatures; ``prefix`` is its name and a dot, in a longer list."""
    if output.json:
        output.value({"tools": [tool.raw for tool in tools]})
    elif not tools:
        output.note(f"{owner} has no tools.")
    else:
        show_named_tools(output, [(f"{prefix}{tool.name}", tool) for tool in tools])


def show_named_tools(output: Output, tools: Sequence[tuple[str, Tool]]) -> None:
    """Show tools as signatures, each under the name that is given."""
    if output.is_terminal:
        blocks([(signature(name, tool.input_schema), words_of(tool)) for name, tool in tools])
    else:
        output.about(tool_lines(tools))


def tool_lines(tools: Iterable[tuple[str, Tool]]) -> str:
    """Return tools for a pipe: signature, tab and the first line of the description."""
    rows = [
        (first_line(signature(name, tool.input_schema)), first_line(words_of(tool)))
        for name, tool in tools
    ]
    return "".join(visible_lines(f"{name}\t{words}\n") for name, words in rows)


def words_of(offer: Tool | Resource | ResourceTemplate | Prompt) -> str:
    """Return the description of a tool, resource or prompt, or else its title."""
    return offer.description or offer.title or ""


def first_line(text: str | None) -> str:
    """Return the first line of a text, without tabs, for a table."""
    lines = (text or "").strip().splitlines()
    return " ".join(lines[0].split()) if lines else ""


def show_tool(output: Output, tool: Tool, command: str, server: str = "") -> None:
    """Show one tool as the list shows it, then its parameters, and a line to call it with.

    The line is ``command``, an example of its arguments, and ``server``.
    """
    schema = tool.input_schema
    words = (tool.description or "").strip() or tool.title or ""
    parts = [_parameters(schema), _claims(tool)]
    ui = (tool.meta or {}).get("ui")
    if isinstance(ui, Mapping) and isinstance(ui.get("resourceUri"), str):  # MCP Apps (SEP-1865)
        parts.append(f"Its app is the resource {ui['resourceUri'].expandtabs(4)}.")
    parts.append(f"{command}{example(schema)}{server}")
    title = signature(tool.name, schema)
    if isinstance(returns := tool.output_schema, Mapping):
        title += f" -> {type_text(resolve(returns, returns), returns)}"
    if output.is_terminal:
        draw_block(title, words)
    else:
        output.about(f"{first_line(title)}\n{words.expandtabs(4)}".rstrip())
    prose(output, "".join(f"\n{part}\n" for part in parts if part))


_CLAIMS: Final = (
    ("read_only_hint", "read-only", ""),
    ("destructive_hint", "destructive", "not destructive"),
    ("idempotent_hint", "idempotent", ""),
    ("open_world_hint", "reaching other systems", "local"),
)
"""What a tool says of itself, and the words for it if it is true or false."""


def _claims(tool: Tool) -> str:
    """Return what a tool says of itself: ``read-only, idempotent``."""
    hints = tool.annotations
    if hints is None:
        return ""
    words = {True: "", False: "", None: ""}
    claims = []
    for name, if_true, if_false in _CLAIMS:
        words[True], words[False] = if_true, if_false
        claims.append(words.get(getattr(hints, name), ""))
    if hints.read_only_hint is True:
        claims[1] = ""  # what only reads cannot destroy, whatever is said
    text = ", ".join(filter(None, claims))
    return f"The server calls it {text}." if text else ""


def _parameters(schema: Mapping[str, Any]) -> str:
    """Return a line for each parameter that has more to say than the signature."""
    lines = []
    parameters = list(fields(schema, schema))
    width = min(24, max((cells(path) for path, _, _ in parameters), default=0))
    for path, part, needed in parameters:
        facts = [type_text(part, schema), *_limits(part)]
        if "default" in part:
            facts.append(f"default {json.dumps(part['default'], ensure_ascii=False)}")
        elif not needed:
            facts.append("optional")
        words = " ".join(str(part.get("description") or "").split())
        text = f"{', '.join(facts)}{'. ' + words if words else ''}"
        padding = " " * (width - cells(path))
        lines.append(f"  {path.expandtabs(4)}{padding}\t{text.expandtabs(4)}")
    return "\n".join(lines)


def _limits(part: Mapping[str, Any]) -> list[str]:
    """Return what a value must be, as far as its type does not say it."""
    values = part.get("enum")
    is_in_type = "const" in part or (isinstance(values, list) and 0 < len(values) <= FEW)
    limits = [] if is_in_type or (text := allowed_values(part)) is None else [f"one of {text}"]
    for name, sign in (("minimum", "≥"), ("maximum", "≤")):
        if isinstance(part.get(name), int | float):
            limits.append(f"{sign} {part[name]}")
    return limits


# Tables and prose


def table(
    output: Output,
    value: Any,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    owner: str,
    *,
    labelled: bool = False,
) -> None:
    """Show rows, or the value as JSON; note if the ``owner`` has none.

    At a terminal in columns, or one below the other if the window is too narrow for that; then
    with the columns' names if they are ``labelled``.
    """
    if output.json:
        output.value(value)
        return
    if not rows:
        output.note(f"{owner} has no {columns[0]}s.")
        return
    cut = [[visible_lines(first_line(without_secrets(cell))) for cell in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(columns, *cut, strict=True)]
    if not output.is_terminal:
        write("\n".join("\t".join(row) for row in cut))
    elif sum(widths) + 2 * len(widths) > columns_of_terminal():
        _in_blocks(columns if labelled else [""] * len(columns), cut)
    else:
        _in_columns(columns, cut, widths)


def _in_blocks(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show rows one below the other: the first cell, and the others with their columns' names."""
    described = []
    for row in rows:
        pairs = zip(names[1:], row[1:], strict=True)
        text = " · ".join(f"{name} {cell}".strip() for name, cell in pairs if cell)
        described.append((row[0], text))
    blocks(described)


def _in_columns(
    columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]
) -> None:
    first, rest = _padded(columns, widths)
    write(color(f"{first}{rest}", "2", sys.stdout))
    for row in rows:
        first, rest = _padded(row, widths)
        write(f"{color(first, '1', sys.stdout)}{rest}")


def _padded(row: Sequence[str], widths: Sequence[int]) -> tuple[str, str]:
    """Return the first cell of a row and the rest of the line, in columns of these widths."""
    pairs = zip(row, widths, strict=True)
    first, *others = (cell + " " * (width - cells(cell)) for cell, width in pairs)
    return first, "  ".join(["", *others]).rstrip()


def prose(output: Output, text: str) -> None:
    """Show our own text: at a terminal lines wrap at words, with hanging indents.

    A tab is two spaces, and the place below which a line goes on.
    """
    if output.is_terminal:
        output.about(hanging_indent(text, columns_of_terminal(), further=0))
    else:
        output.about(text.replace("\t", "  "))


def outline(value: Any, indent: str = "") -> list[str]:
    """Return a value as lines, much as in YAML; what is empty is left out."""
    lines: list[str] = []
    for name, item in value.items() if isinstance(value, dict) else (("", item) for item in value):
        mark = f"{indent}{visible(name)}:" if name else f"{indent}-"
        if item and isinstance(item, dict | list | tuple):
            inner = outline(item, f"{indent}  ")
            lines += [mark, *inner] if name else [f"{mark} {inner[0].lstrip()}", *inner[1:]]
        elif item or item is False:
            lines.append(f"{mark} {_scalar(item)}")
    return lines


def _scalar(value: Any) -> str:
    return visible(value) if isinstance(value, str) else json.dumps(value)


_REST = " " * 4


def heading(text: str) -> None:
    """Draw a title on the terminal."""
    write(color(visible_lines(first_line(without_secrets(text))), "1;4", sys.stdout))


def blocks(rows: Sequence[tuple[str, str]]) -> None:
    """Draw rows on the terminal, each as a block; of its words the first line."""
    for title, words in rows:
        draw_block(title, first_line(words))


def draw_block(title: str, words: str) -> None:
    """Draw a line that is bold up to its bracket, and words below it, dim.

    A signature is broken between parameters, and within one that fills a line.
    """
    columns = max(columns_of_terminal(), len(_REST) + 10)
    room = columns - len(_REST) - 1
    title, words = without_secrets(title), without_secrets(words)
    parts = visible_lines(first_line(title)).split(", ")
    tied = (part.replace(" ", "\x01") if len(part) < room else part for part in parts)
    wrapped = wrap_words(", ".join(tied), columns, rest=_REST)
    name, bracket, rest = wrapped.replace("\x01", " ").partition("(")
    lines = [f"{color(name, '1', sys.stdout)}{bracket}{rest}"]
    for line in visible_lines(words.expandtabs(4)).splitlines():
        text = wrap_words(line, columns, _REST, _REST) if line.strip() else ""
        lines += [color(piece, "2", sys.stdout) for piece in text.splitlines() or [""]]
    write("\n".join(lines))


# Contents of results

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
        self.output, self.folder, self.stem = output, folder, stem
        self._count = 0

    def show(self, contents: Iterable[Any]) -> None:
        """Show contents in order."""
        import msgspec

        for item in contents:
            content = msgspec.to_builtins(item)
            inner = content.get("resource")
            if content.get("type") == "resource" and isinstance(inner, dict):
                content = inner
            text, data = content.get("text"), content.get("data", content.get("blob"))
            if isinstance(text, str):
                if not (self.output.is_terminal and self._show_json(text)):
                    self.output.content(text)
            elif isinstance(data, str):
                self._save(data, str(content.get("mimeType") or "application/octet-stream"))
            elif content.get("type") == "resource_link":
                self.output.content(str(content.get("uri")))
            else:
                self.output.value(content)

    def _show_json(self, text: str) -> bool:
        """Show JSON highlighted, and indented if it is long; return False if it is none."""
        import msgspec

        if text.lstrip()[:1] not in ("{", "["):
            return False
        try:
            msgspec.json.decode(text)
            self.output.json_text(text.encode(), indent=len(text) > MOST_FLAT)
        except (ValueError, RecursionError):  # it only looks like JSON
            return False
        return True

    def _save(self, data: str, kind: str) -> None:
        try:
            payload = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise ProtocolError(f"the server sent {kind} that is not base64") from None
        if self.output.is_terminal and kind.startswith("image/") and len(payload) <= MOST_INLINE:
            _draw(payload, kind)
        import mimetypes  # slow to load, and most results are text

        plain = kind.partition(";")[0].strip().lower()
        ending = ENDINGS.get(plain) or mimetypes.guess_extension(plain) or ".bin"
        path = self.add(payload, ending)
        facts = f" ({kind}, {len(payload):,} bytes)" if self.output.is_terminal else ""
        self.output.text(f"{path}{facts}")

    def add(self, data: bytes, ending: str) -> Path:
        """Write a new file and return its path."""
        if self.folder is None:
            import tempfile  # slow to load, and most results are text

            self.folder = tempfile.mkdtemp(prefix="holdfast-")
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", self.stem).strip("._")[:80] or "content"
        try:
            os.makedirs(resolve_output(self.folder), exist_ok=True)
            while True:
                self._count += 1
                path = Path(self.folder, f"{stem}-{self._count}{ending}")
                with suppress(FileExistsError), path.open("xb") as file:
                    file.write(data)
                    return path
        except OSError as error:
            raise ValidationError(f"{self.folder}: cannot be written: {reason(error)}") from None


def _draw(data: bytes, kind: str) -> None:
    """Draw a picture in the terminal by the protocol that it supports, if any."""
    encoded = base64.standard_b64encode(data)
    program = _terminal(os.environ)
    if program in ("kitty", "ghostty") and kind == "image/png":
        for at in range(0, len(encoded), 4096):
            head = b"" if at else b"a=T,f=100,"
            goes_on = at + 4096 < len(encoded)
            write(b"\x1b_G%bm=%d;%b\x1b\\" % (head, goes_on, encoded[at : at + 4096]))
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
