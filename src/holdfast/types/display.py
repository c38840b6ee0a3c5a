"""Wire objects as people see them: in a REPL, in a notebook, printed by rich.

Servers choose the texts and the kinds of pictures, so everything is escaped and bounded.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast._core.text import truncate, visible, visible_lines
from holdfast.types.content import (
    AudioContent,
    BlobResourceContents,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    UnknownContent,
)

if TYPE_CHECKING:
    from holdfast.types.base import Wire
    from holdfast.types.tools import Tool, ToolResult

MOST_TEXT: Final = 50_000
"""Characters of one text that a notebook shows."""
MOST_BYTES: Final = 8 * 1024 * 1024
"""Bytes of one picture or sound that a notebook shows."""
MOST_SIGNATURE: Final = 1000

_MEDIA: Final = re.compile(r"(image|audio)/[a-z0-9][a-z0-9.+-]{0,60}")
_PRE: Final = '<pre style="white-space: pre-wrap">{}</pre>'


class Plain(str):
    """Text that is shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


def signature(tool: Tool) -> Plain:
    """Return a tool as ``name(parameter: type = default)``."""
    from holdfast.schema.signature import signature as written

    return Plain(visible(written(tool.name, tool.input_schema), MOST_SIGNATURE))


def size(data: str) -> Plain:
    """Return the size of base64 text, without decoding it."""
    return Plain(f"<{len(data) * 3 // 4 - data[-2:].count('='):,} bytes>")


def fields(shown: Wire) -> Iterator[tuple[str, Any]]:
    """Yield the fields that are not at their default: a name (empty: it needs none) and a value."""
    from holdfast.types.tools import Tool

    hidden: tuple[str, ...] = ()
    if isinstance(shown, Tool):
        yield "", signature(shown)
        hidden = ("name", "input_schema_json", "output_schema_json")
    for field in msgspec.structs.fields(type(shown)):
        value = getattr(shown, field.name)
        if (
            field.name in hidden
            or value is None
            or value == field.default
            or value is msgspec.UNSET
        ):
            continue
        yield field.name, size(value) if field.name in ("data", "blob") else value


def text(shown: Wire) -> str:
    """Return the ``repr`` of an object with fields that msgspec would show badly."""
    parts = (f"{name}={value!r}" if name else f"{value!r}" for name, value in fields(shown))
    return f"{type(shown).__name__}({', '.join(parts)})"


def picture(shown: Any, kind: str) -> bytes | None:
    """Return the bytes of the picture that this is, or that alone is in it."""
    contents = _contents(shown)
    inner = contents[0] if contents is not None and len(contents) == 1 else shown
    inner = inner.resource if isinstance(inner, EmbeddedResource) else inner
    if isinstance(inner, ImageContent | BlobResourceContents) and inner.mime_type == kind:
        try:
            return inner.bytes
        except ValueError:
            return None
    return None


def html(shown: Any) -> str | None:
    """Return HTML for tools, contents and results; None for anything else."""
    from holdfast.types.tools import Tool, ToolResult

    if isinstance(shown, Tool):
        words = f"<br>{escape(visible_lines(shown.description))}" if shown.description else ""
        return f"<div><code>{escape(signature(shown))}</code>{words}</div>"
    contents = _contents(shown)
    if contents is None:
        return _content(shown)
    parts = [_content(one) or "" for one in contents]
    if isinstance(shown, ToolResult):
        return _result(shown, parts)
    return f"<div>{''.join(parts)}</div>"


def _contents(shown: Any) -> list[Any] | None:
    """Return the contents of a result; None for what is no result."""
    from holdfast.types.resources import PromptResult, ReadResult
    from holdfast.types.tools import ToolResult

    if isinstance(shown, ToolResult):
        return shown.content
    if isinstance(shown, ReadResult):
        return shown.contents
    if isinstance(shown, PromptResult):
        return [message.content for message in shown.messages]
    return None


def _result(shown: ToolResult, parts: list[str]) -> str:
    if shown.has_structured:
        text = msgspec.json.format(msgspec.json.encode(shown.structured), indent=2).decode()
        block = _PRE.format(_text(text))
        parts.append(f"<details><summary>structured</summary>{block}</details>" if parts else block)
    style = ' style="border-left: 3px solid #c00; padding-left: 8px"' if shown.is_error else ""
    return f"<div{style}>{''.join(parts)}</div>"


def _content(one: Any) -> str | None:
    if isinstance(one, EmbeddedResource):
        one = one.resource
    if isinstance(one, TextContent | TextResourceContents):
        return _PRE.format(_text(one.text))
    if isinstance(one, ImageContent | AudioContent | BlobResourceContents):
        return _media(one)
    if isinstance(one, ResourceLink):
        return f"<div><code>{_text(one.uri)}</code> {_text(one.title or one.name)}</div>"
    if isinstance(one, UnknownContent):
        return _PRE.format(_text(repr(dict(one))))
    return None


def _media(one: ImageContent | AudioContent | BlobResourceContents) -> str:
    kind = (one.mime_type or "").partition(";")[0].strip().lower()
    try:
        data = one.bytes
    except ValueError:
        return _PRE.format(_text(f"{kind or 'data'} that is not base64"))
    if not _MEDIA.fullmatch(kind) or len(data) > MOST_BYTES:
        return _PRE.format(_text(f"{kind or 'data'}, {len(data):,} bytes"))
    source = f"data:{kind};base64,{b64encode(data).decode()}"
    if kind.startswith("audio/"):
        return f'<audio controls src="{source}"></audio>'
    return f'<img src="{source}" style="max-width: 100%">'


def _text(text: str) -> str:
    return escape(visible_lines(truncate(text, MOST_TEXT)))
