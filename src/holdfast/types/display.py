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


def fields(shown: Wire) -> Iterator[tuple[str, Any]]:
    """Yield the fields that are not at their default: a name (empty: it needs none) and a value."""
    is_tool = isinstance(shown, Tool)
    if isinstance(shown, Tool):
        yield "", signature(shown)
    for field in msgspec.structs.fields(type(shown)):
        value = getattr(shown, field.name)
        if (is_tool and field.name in _HIDDEN) or value in (None, field.default, msgspec.UNSET):
            continue
        if field.name in ("data", "blob"):
            # Base64 text: its size is known without decoding it.
            value = Plain(f"<{len(value) * 3 // 4 - value[-2:].count('='):,} bytes>")
        yield field.name, value


def text(shown: Wire) -> str:
    """Return the ``repr`` of an object with fields that msgspec would show badly."""
    parts = (f"{name}={value!r}" if name else f"{value!r}" for name, value in fields(shown))
    return f"{type(shown).__name__}({', '.join(parts)})"


def picture(shown: Any, kind: str) -> bytes | None:
    """Return the bytes of the picture that this is, or that alone is in it."""
    contents = _contents(shown)
    inner = contents[0] if contents is not None and len(contents) == 1 else shown
    inner = inner.resource if isinstance(inner, c.EmbeddedResource) else inner
    if isinstance(inner, c.ImageContent | c.BlobResourceContents) and inner.mime_type == kind:
        try:
            return inner.bytes
        except ValueError:
            return None
    return None


def html(shown: Any) -> str | None:
    """Return HTML for tools, contents and results; None for anything else."""
    if isinstance(shown, Tool):
        words = f"<br>{escape(visible_lines(shown.description))}" if shown.description else ""
        return f"<div><code>{escape(signature(shown))}</code>{words}</div>"
    contents = _contents(shown)
    if contents is None:
        return _content(shown)
    parts, style = [_content(one) or "" for one in contents], ""
    if isinstance(shown, ToolResult):
        if shown.has_structured:
            encoded = msgspec.json.encode(shown.structured)
            block = _block(msgspec.json.format(encoded, indent=2).decode())
            folded = f"<details><summary>structured</summary>{block}</details>"
            parts.append(folded if parts else block)
        if shown.is_error:
            style = ' style="border-left: 3px solid #c00; padding-left: 8px"'
    return f"<div{style}>{''.join(parts)}</div>"


def _contents(shown: Any) -> list[Any] | None:
    """Return the contents of a result; None for anything else."""
    if isinstance(shown, PromptResult):
        return [message.content for message in shown.messages]
    if isinstance(shown, ToolResult):
        return shown.content
    return shown.contents if isinstance(shown, ReadResult) else None


def _content(one: Any) -> str | None:
    if isinstance(one, c.EmbeddedResource):
        one = one.resource
    if isinstance(one, c.TextContent | c.TextResourceContents):
        return _block(one.text)
    if isinstance(one, c.ImageContent | c.AudioContent | c.BlobResourceContents):
        return _media(one)
    if isinstance(one, c.ResourceLink):
        return f"<div><code>{_text(one.uri)}</code> {_text(one.title or one.name)}</div>"
    return _block(repr(dict(one))) if isinstance(one, c.UnknownContent) else None


def _media(one: c.ImageContent | c.AudioContent | c.BlobResourceContents) -> str:
    kind = (one.mime_type or "").partition(";")[0].strip().lower()
    try:
        data = one.bytes
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
