"""The outcome of one tool call: what a model should read, and what a developer should."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Container
from typing import Any

import msgspec
from msgspec import Struct

from holdfast._core.text import truncate
from holdfast.agents.schemas import Losses
from holdfast.errors import HoldfastError
from holdfast.schema.explain import pointer
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
from holdfast.types.tools import ToolResult


class Media(Struct, frozen=True):
    """A picture, sound or document: its type, its bytes as base64, and a name for it."""

    mime_type: str
    data: str
    name: str

    @property
    def kind(self) -> str:
        """``"image"`` or ``"audio"``; ``"file"`` for anything else."""
        kind = self.mime_type.partition("/")[0]
        return kind if kind in ("image", "audio") else "file"


class OutcomeParts(Struct):
    """An outcome taken apart: texts and media in their order."""

    items: list[str | Media]
    is_error: bool
    structured: Any
    report: Losses

    @property
    def texts(self) -> list[str]:
        """The text parts."""
        return [item for item in self.items if isinstance(item, str)]

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "\n".join(self.texts)

    @property
    def media(self) -> list[Media]:
        """The other parts."""
        return [item for item in self.items if isinstance(item, Media)]

    def blocks(self, media: Callable[[Media], Any], kind: str = "text") -> list[Any]:
        """Return a content block for each part: a text is one of ``kind``."""
        return [
            {"type": kind, "text": item} if isinstance(item, str) else media(item)
            for item in self.items
        ]


class ToolOutcome(Struct, frozen=True):
    """The outcome of one tool call, good or bad.

    For the model: ``text``, ``is_error``, ``parts()``. For the developer, and not for a model:
    ``error`` and ``details``, with hints on settings and the end of the server's stderr.

    Attributes:
        result: The result, if the server gave one.
        error: The error, if it did not.
        message: What a model reads of the error, where that was cut to a budget.
    """

    result: ToolResult | None = None
    error: BaseException | None = None
    message: str | None = None

    @property
    def is_error(self) -> bool:
        """True if the tool failed, or the call did."""
        return self.result is None or self.result.is_error

    @property
    def text(self) -> str:
        """All texts, joined; a picture or other media is replaced by its type and size."""
        return self.parts(frozenset()).text

    @property
    def structured(self) -> Any:
        """The structured result, whatever the budget; None if there is none."""
        return None if self.result is None else self.result.full.structured

    @property
    def kind(self) -> str | None:
        """The kind of failure: one of `HoldfastError.kind`, ``"tool"`` if the tool ran and failed.

        None if there is none.
        """
        if self.error is None:
            return "tool" if self.is_error else None
        return getattr(self.error, "kind", "internal")

    @property
    def outcome_unknown(self) -> bool:
        """True if the call failed and the tool may have run."""
        return bool(getattr(self.error, "outcome_unknown", False))

    @property
    def retry_in(self) -> float | None:
        """Seconds until the next attempt to reach the server; None if unknown."""
        seconds: float | None = getattr(self.error, "retry_in", None)
        return seconds

    @property
    def details(self) -> str:
        """The text for a developer: the whole error; empty if there is none."""
        return "" if self.error is None else str(self.error)

    def facts(self) -> dict[str, Any]:
        """Return the facts for a developer as plain JSON, for frameworks that store them."""
        if not self.is_error:
            return {"structured_content": self.structured}
        return {
            "kind": self.kind,
            "outcome_unknown": self.outcome_unknown,
            "retry_in": self.retry_in,
            "details": self.details,
        }

    def parts(self, takes: Container[str] | None = None) -> OutcomeParts:
        """Return texts and media in their order.

        Args:
            takes: The MIME types of the media that can be taken; others are named in a text.
                None takes all.
        """
        report = Losses()
        if self.result is None:
            text = self.message
            if text is None:
                error = self.error
                text = error.redacted if isinstance(error, HoldfastError) else str(error)
                text = text or type(error).__name__
            return OutcomeParts([text], True, msgspec.UNSET, report)
        items: list[str | Media] = []
        for index, content in enumerate(self.result.content):
            where, text = pointer("content", index), text_of(content)
            if text is None:
                items.append(_media(content, takes, where, report))
            elif text:  # an empty one is refused by some
                items.append(text)
            if isinstance(content, UnknownContent):
                report.add(where, _kind(content) or "content", "is of an unknown kind")
        structured = self.result.structured_content
        if not items and structured is not msgspec.UNSET:
            items.append(json.dumps(structured, ensure_ascii=False))
        return OutcomeParts(items, self.result.is_error, structured, report)


def text_of(content: Any) -> str | None:
    """Return the text that a model reads in the place of a content; None for media."""
    if isinstance(content, EmbeddedResource):
        return text_of(content.resource)
    if isinstance(content, TextContent | TextResourceContents):
        return content.text
    if isinstance(content, ImageContent | AudioContent | BlobResourceContents):
        return None
    if isinstance(content, ResourceLink):
        kind = f", {content.mime_type}" if content.mime_type else ""
        return f"[resource {content.name!r}{kind}: {content.uri}]"
    return f"[content of an unknown kind {_kind(content)!r}]"


def _kind(content: UnknownContent) -> str:
    return str(content.get("type") or "")


def says_the_same(texts: list[str], value: Any) -> bool:
    """Return True if texts repeat a structured result, as servers do for clients that read text.

    Servers that can return only objects wrap other values as ``{"result": …}``.
    """
    wrapped = isinstance(value, dict) and value.keys() == {"result"}
    whole = "\n".join(texts)
    readings = (_read(whole), [_read(text) for text in texts], whole)
    try:
        return value in readings or (wrapped and value["result"] in readings)
    except RecursionError:
        return False


def _read(text: str) -> Any:
    """Return the value of a text that is JSON; any other as it is."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return text


def _media(content: Any, takes: Container[str] | None, where: str, report: Losses) -> str | Media:
    if isinstance(content, EmbeddedResource):
        content = content.resource
    kind = truncate(content.mime_type or "application/octet-stream", 100)
    try:
        data = content.bytes
    except ValueError as error:
        report.add(where, kind, str(error))
        return f"[{kind}, which could not be read]"
    if takes is None or kind in takes:
        # Encoded anew: one line break in it, and some providers refuse the whole request.
        return Media(kind, b64encode(data).decode(), getattr(content, "uri", ""))
    report.add(where, kind, "cannot be given to the model; its size and type are named")
    return f"[{kind}, {len(data)} bytes, not shown]"
