"""The outcome of one tool call as a value: for a program, for a model and for a developer."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Awaitable, Callable, Container
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from holdfast._core.text import truncate
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

NO_REASON: Final = "The tool failed and gave no reason."

Omission: TypeAlias = tuple[str, str, str]
"""What a model does not get: its place in the result, what it is, and why."""


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


class InvocationParts(Struct):
    """An outcome taken apart: texts and media in their order."""

    items: list[str | Media]
    is_error: bool
    structured: Any
    omissions: list[Omission]

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


class Invocation(Struct, frozen=True, kw_only=True):
    """The outcome of one tool call, good or bad, as a value.

    For a model: ``text`` and ``parts()``. For the developer, and not for a model: ``error``,
    ``exception`` and ``facts()``, with hints on settings and the end of the server's stderr.

    Attributes:
        success: True if the tool ran and did not fail.
        content: The tool's contents, also when it failed.
        error: The reason in words why there is no success; None if there is one.
        duration: Seconds.
        result: The whole result, if the server gave one.
        exception: The error that ``call_tool`` would have raised, if any.
        message: What a model reads of the exception, where that was cut to a budget.
    """

    success: bool
    content: list[Any]
    error: str | None
    duration: float
    result: ToolResult | None = None
    exception: HoldfastError | None = None
    message: str | None = None

    @classmethod
    def of_result(cls, result: ToolResult, duration: float = 0.0) -> Invocation:
        """Return the outcome of a call that the server answered."""
        return cls(
            success=not result.is_error,
            content=result.content,
            error=(result.text or NO_REASON) if result.is_error else None,
            duration=duration,
            result=result,
        )

    @classmethod
    def of_error(cls, error: BaseException, duration: float = 0.0) -> Invocation:
        """Return the outcome of a call that failed; an error of another library is the cause."""
        if not isinstance(error, HoldfastError):
            cause, error = error, HoldfastError(str(error) or type(error).__name__)
            error.__cause__ = cause
        return cls(success=False, content=[], error=str(error), duration=duration, exception=error)

    @property
    def text(self) -> str:
        """What a model reads: all texts, joined; media are replaced by their type and size."""
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
        if self.exception is None:
            return None if self.success else "tool"
        return self.exception.kind

    @property
    def outcome_unknown(self) -> bool:
        """True if the call failed and the tool may have run."""
        return self.exception is not None and self.exception.outcome_unknown

    @property
    def retry_in(self) -> float | None:
        """Seconds until the next attempt to reach the server; None if unknown."""
        seconds: float | None = getattr(self.exception, "retry_in", None)
        return seconds

    def facts(self) -> dict[str, Any]:
        """Return the facts for a developer as plain JSON, for frameworks that store them."""
        if self.success:
            return {"structured_content": self.structured}
        return {
            "kind": self.kind,
            "outcome_unknown": self.outcome_unknown,
            "retry_in": self.retry_in,
            "details": "" if self.exception is None else self.error,
        }

    def parts(self, takes: Container[str] | None = None) -> InvocationParts:
        """Return texts and media in their order.

        Args:
            takes: The MIME types of the media that can be taken; others are named in a text.
                None takes all.
        """
        omissions: list[Omission] = []
        if self.result is None:
            text = self.message
            if text is None and self.exception is not None:
                text = self.exception.redacted or type(self.exception).__name__
            return InvocationParts([text or ""], not self.success, msgspec.UNSET, omissions)
        items: list[str | Media] = []
        for index, content in enumerate(self.result.content):
            where, text = pointer("content", index), text_of(content)
            if text is None:
                items.append(_media(content, takes, where, omissions))
            elif text:  # an empty one is refused by some
                items.append(text)
            if isinstance(content, UnknownContent):
                omissions.append((where, _kind(content) or "content", "is of an unknown kind"))
        structured = self.result.structured_content
        if not items and structured is not msgspec.UNSET:
            items.append(json.dumps(structured, ensure_ascii=False))
        return InvocationParts(items, not self.success, structured, omissions)


async def invoke(call: Awaitable[ToolResult]) -> Invocation:
    """Await a call and return its outcome; its own failure becomes a value."""
    began = time.perf_counter()
    try:
        result = await call
    except HoldfastError as error:
        return Invocation.of_error(error, time.perf_counter() - began)
    return Invocation.of_result(result, time.perf_counter() - began)


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


def _media(
    content: Any, takes: Container[str] | None, where: str, omissions: list[Omission]
) -> str | Media:
    if isinstance(content, EmbeddedResource):
        content = content.resource
    kind = truncate(content.mime_type or "application/octet-stream", 100)
    try:
        data = content.bytes
    except ValueError as error:
        omissions.append((where, kind, str(error)))
        return f"[{kind}, which could not be read]"
    if takes is None or kind in takes:
        # Encoded anew: one line break in it, and some providers refuse the whole request.
        return Media(kind, b64encode(data).decode(), getattr(content, "uri", ""))
    omissions.append((where, kind, "cannot be given to the model; its size and type are named"))
    return f"[{kind}, {len(data)} bytes, not shown]"
