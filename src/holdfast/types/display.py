"""Wire objects as people see them: in a REPL, in a notebook, printed by rich.

Servers choose the texts and the kinds of pictures, so everything is escaped and bounded.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from typing import Any, Final

import msgspec

from holdfast._core.text import truncate, visible, visible_lines
from holdfast.types import content as c
from holdfast.types.base import Wire
from holdfast.types.resources import PromptResult, ReadResult
from holdfast.types.tools import Tool, ToolResult

MOST_TEXT: Final = 50_000
"""Characters of one text that a notebook shows."""
MOST_BYTES: Final = 8 * 1024 * 1024
"""Bytes of one picture or sound that a notebook shows."""
MOST_SIGNATURE: Final = 1000

_MEDIA: Final = re.compile(r"(image|audio)/[a-z0-9][a-z0-9.+-]{0,60}")
MOST_META: Final = 60
"""Characters of ``_meta`` in a ``repr``."""
_LAST: Final = ("result_type", "meta")
_HIDDEN: Final = ("name", "input_schema_json", "output_schema_json")
"""Fields of a tool that its signature shows."""


class Plain(str):
    """Text that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def signature(tool: Tool) -> Plain:
    """Return a tool as ``name(parameter: type = default)``."""
    from holdfast.schema.signature import signature as written

    return Plain(visible(written(tool.name, tool.input_schema), MOST_SIGNATURE))


def fields(wire: Wire) -> Iterator[tuple[str, Any]]:
    """Yield the fields that are not at their default: a name (empty: it needs none) and a value."""
    is_tool = isinstance(wire, Tool)
    if isinstance(wire, Tool):
        yield "", signature(wire)
    # What it is about stands first, what came along last.
    by_name = {field.name: field for field in msgspec.structs.fields(type(wire))}
    by_name |= {name: by_name.pop(name) for name in _LAST if name in by_name}
    for field in by_name.values():
        value = getattr(wire, field.name)
        if (is_tool and field.name in _HIDDEN) or value in (None, field.default, msgspec.UNSET):
            continue
        if field.name in ("data", "blob"):
            # Base64 text: its size is known without decoding it.
            value = Plain(f"<{len(value) * 3 // 4 - value[-2:].count('='):,} bytes>")
        elif field.name == "meta":
            value = Plain(truncate(repr(value), MOST_META))
        yield field.name, value


def text(wire: Wire) -> str:
    """Return the ``repr`` of an object with fields that msgspec would show badly."""
    parts = (f"{name}={value!r}" if name else f"{value!r}" for name, value in fields(wire))
    return f"{type(wire).__name__}({', '.join(parts)})"


def picture(wire: Any, kind: str) -> bytes | None:
    """Return the bytes of the picture that this is, or that alone is in it."""
    contents = _contents(wire)
    inner = contents[0] if contents is not None and len(contents) == 1 else wire
    inner = inner.resource if isinstance(inner, c.EmbeddedResource) else inner
    if isinstance(inner, c.ImageContent | c.BlobResourceContents) and inner.mime_type == kind:
        try:
            return inner.bytes
        except ValueError:
            return None
    return None


def html(wire: Any) -> str | None:
    """Return HTML for tools, contents and results; None for anything else."""
    if isinstance(wire, Tool):
        words = f"<br>{escape(visible_lines(wire.description))}" if wire.description else ""
        return f"<div><code>{escape(signature(wire))}</code>{words}</div>"
    contents = _contents(wire)
    if contents is None:
        return _content(wire)
    parts, style = [_content(content) or "" for content in contents], ""
    if isinstance(wire, ToolResult):
        if wire.has_structured:
            encoded = msgspec.json.encode(wire.structured)
            block = _block(msgspec.json.format(encoded, indent=2).decode())
            folded = f"<details><summary>structured</summary>{block}</details>"
            parts.append(folded if parts else block)
        if wire.is_error:
            style = ' style="border-left: 3px solid #c00; padding-left: 8px"'
    return f"<div{style}>{''.join(parts)}</div>"


def _contents(wire: Any) -> list[Any] | None:
    """Return the contents of a result; None for anything else."""
    if isinstance(wire, PromptResult):
        return [message.content for message in wire.messages]
    if isinstance(wire, ToolResult):
        return wire.content
    return wire.contents if isinstance(wire, ReadResult) else None


def _content(content: Any) -> str | None:
    if isinstance(content, c.EmbeddedResource):
        content = content.resource
    if isinstance(content, c.TextContent | c.TextResourceContents):
        return _block(content.text)
    if isinstance(content, c.ImageContent | c.AudioContent | c.BlobResourceContents):
        return _media(content)
    if isinstance(content, c.ResourceLink):
        return (
            f"<div><code>{_text(content.uri)}</code> {_text(content.title or content.name)}</div>"
        )
    return _block(repr(dict(content))) if isinstance(content, c.UnknownContent) else None


def _media(content: c.ImageContent | c.AudioContent | c.BlobResourceContents) -> str:
    kind = (content.mime_type or "").partition(";")[0].strip().lower()
    try:
        data = content.bytes
    except ValueError:
        return _block(f"{kind or 'data'} that is not base64")
    if not _MEDIA.fullmatch(kind) or len(data) > MOST_BYTES:
        return _block(f"{kind or 'data'}, {len(data):,} bytes")
    source = f"data:{kind};base64,{b64encode(data).decode()}"
    if kind.startswith("audio/"):
        return f'<audio controls src="{source}"></audio>'
    return f'<img src="{source}" style="max-width: 100%">'


def _block(text: str) -> str:
    return f'<pre style="white-space: pre-wrap">{_text(text)}</pre>'


def _text(text: str) -> str:
    return escape(visible_lines(truncate(text, MOST_TEXT)))
