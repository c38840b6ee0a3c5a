"""The lines of a call log, and a tool's result as they show it.

    {"name":…,"arguments":…,"_phase":"before","_seq":3}
    {"name":…,"arguments":…,"_phase":"after","_result":…,"_ok":true,"_ms":84,"_seq":3}
    {"name":…,"arguments":…,"_phase":"after","_ok":false,"_ms":18,"_error":"…","_seq":3}

A call that became a task has ``"_task":{"id":…,"status":…}`` in the second line.

``_result`` has the first of these forms that can hold a result:

- nothing at all, for a result without content
- the value, for one text that is JSON (and for a structured result with just that text)
- the text, for one text of any other kind
- ``{"content": […], …}``, the result as it came, for everything else

A long result is a summary: ``[text 3847 chars]``, or with the file that has the whole,
``[text 3847 chars → .mcp-log/4-browser.snapshot.txt]``. A text that looks like a summary is shown
as the whole result, so that one form is never taken for another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from holdfast._core.eras.revisions import PREFIX
from holdfast._core.redact.redactor import Redactor
from holdfast._core.wire.codes import UNENCODABLE
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.schema.types import canonical
from holdfast.types.content import TextContent
from holdfast.types.tools import ToolResult, levels

DEEPEST: Final = 100
"""Levels of nesting in what was recorded; redaction leaves fewer."""

_encode: Final = msgspec.json.Encoder().encode

_LINE_ENDS: Final = (
    ("\u0085".encode(), rb"\u0085"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
"""JSON allows these inside of strings as they are; ``str.splitlines`` and JavaScript do not."""


def one_line(data: bytes) -> bytes:
    """Return JSON that is one line for every reader."""
    if not data.isascii():
        for end, escaped in _LINE_ENDS:
            data = data.replace(end, escaped)
    return data


def compact(value: Any) -> bytes:
    """Return a value as JSON on one line, in UTF-8, without spaces."""
    return one_line(_encode(value))


SUMMARY: Final = re.compile(r"\[([a-z_]+) ([0-9]+) chars(?: → (.+))?\]", re.S)
_JSON_BEGINS: Final = frozenset('{[-0123456789tfn" \t\r\n')
_PRETTY: Final = 8
"""The largest ratio of a JSON text to its compact form at which the text is parsed."""


class Long(Struct, frozen=True):
    """A result that is too long for a line: one text, or the whole result."""

    kind: str
    size: int
    value: str | dict[str, Any]

    def summary(self, path: str | None = None) -> str:
        """Return the summary for the line, with the path of the sidecar if given."""
        place = "" if path is None else f" → {path}"
        return f"[{self.kind} {self.size} chars{place}]"

    def redacted(self, redactor: Redactor) -> str:
        """Return the content of the sidecar."""
        if isinstance(self.value, str):
            return redactor.text(self.value)
        return compact(redactor.value(self.value)).decode()


# From a result to what is shown
#
# A line has the shortest form that stands for the whole result: a JSON value for a text that is
# JSON or for structured content that says the same, a text for any other text, and the whole result
# where neither would do. The way back (`wire`) must give an equal result; so a form is short only
# if it cannot be taken for another: a text that looks like a summary of a sidecar is written whole.


def show(result: ToolResult, redactor: Redactor, threshold: float) -> bytes | Long | None:
    """Return a result as JSON for a line; from ``threshold`` characters of it, a `Long`.

    None: there is nothing in it.
    """
    text = None
    content = result.content
    if len(content) == 1 and result.structured_content is UNSET:
        item = content[0]
        if type(item) is TextContent:
            if len(item.text) > threshold * _PRETTY:
                # Too long for a line, whatever else the result has.
                return Long("text", len(item.text), item.text)
            text = item.text if _is_bare(result) else None
    if text is not None and text[:1] not in _JSON_BEGINS:
        value: Any = text
    else:
        whole = whole_of(result) if text is None else _text(text)
        value = short(whole)
        if value is UNSET:
            return None
    data = compact(value)
    if len(data) < threshold or _characters(data) < threshold:
        return data if redactor.is_plain(data) else compact(redactor.value(value))
    if value is not text:
        text = _only_text(whole)
    if text is not None:
        return Long("text", len(text), text)
    kind = "result"
    match whole:
        case {"content": [{"type": "image" | "audio" | "resource" as only}], **rest} if not rest:
            kind = only
    return Long(kind, _characters(compact(whole)), whole)


class _Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True):
    text: Raw


class _Bare(Struct, rename="camel", forbid_unknown_fields=True):
    """A result with one text and nothing else, which most are."""

    content: tuple[_Text]
    result_type: Any = None
    is_error: Any = None
    meta: Raw | None = field(name="_meta", default=None)


_decode_bare: Final = msgspec.json.Decoder(_Bare).decode


def _is_bare(result: ToolResult) -> bool:
    """Return True if a result came with one text and nothing else but fields of the protocol."""
    source = result.__dict__.get("_source")
    if not isinstance(source, Raw) or (result.meta and _own_meta(result.meta)):
        return False
    return is_text_alone(source)


def is_text_alone(source: Raw) -> bool:
    """Return True if a result, as it came, has one text and nothing else; ``_meta`` apart."""
    try:
        _decode_bare(source)
    except MALFORMED:
        return False
    return True


def short_text(result: ToolResult, threshold: int) -> tuple[str, Raw] | None:
    """Return a short text that a line shows as it is, if it is alone, and the result as it came.

    None: certainly not. What tells is `is_text_alone`, which takes longer.
    """
    content = result.content
    if len(content) != 1 or type(item := content[0]) is not TextContent:
        return None
    text, source = item.text, result.__dict__.get("_source")
    if len(text) + 2 >= threshold or not text.isascii() or text[:1] in _JSON_BEGINS:
        return None
    if type(source) is not Raw or (result.meta and _own_meta(result.meta)):
        return None
    return text, source


def _own_meta(meta: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of ``_meta`` that are not the protocol's."""
    return {key: value for key, value in meta.items() if not key.startswith(PREFIX)}


def whole_of(result: ToolResult) -> dict[str, Any]:
    """Return the result as it came, without the fields of the protocol."""
    raw = dict(result.raw)
    raw.pop("resultType", None)
    raw.pop("isError", None)
    meta = raw.pop("_meta", None)
    content = raw.pop("content", None)
    fields = {"content": content if isinstance(content, list) else [], **raw}
    own_meta = _own_meta(meta) if isinstance(meta, dict) else None
    return {**fields, "_meta": own_meta} if own_meta else fields


def short(whole: dict[str, Any]) -> Any:
    """Return the shortest form that holds a result; UNSET for an empty one."""
    if whole == {"content": []}:
        return UNSET
    text = _only_text(whole)
    if text is not None:
        value = parsed(text)
        return whole if summary_of(value) else value
    structured = whole.get("structuredContent")
    if isinstance(structured, dict) and not is_whole(structured):
        text_alone = _only_text(
            {key: item for key, item in whole.items() if key != "structuredContent"}
        )
        if text_alone is not None and canonical(parsed(text_alone)) == canonical(structured):
            return structured
    return whole


def _only_text(whole: dict[str, Any]) -> str | None:
    """Return the text of a result that has nothing else; otherwise None."""
    match whole:
        case {"content": [{"type": "text", "text": str(text), **more}], **rest} if not more | rest:
            return text
    return None


def parsed(text: str) -> Any:
    """Return the JSON value of a text if it is JSON, else the text.

    It stays a text if the value is a JSON string, would be written differently (a number such as
    1e3), or looks like a whole result.
    """
    if text[:1] not in _JSON_BEGINS:
        return text
    try:
        value = msgspec.json.decode(text)
        written = compact(value)
    except (*MALFORMED, *UNENCODABLE):
        return text
    if isinstance(value, dict | list):
        return text if is_whole(value) else value
    return text if isinstance(value, str) or written != text.encode() else value


def is_whole(value: Any) -> bool:
    """Return True if the value looks like a whole tool result."""
    return isinstance(value, dict) and isinstance(value.get("content"), list)


def _characters(data: bytes) -> int:
    return len(data) if data.isascii() else len(data.decode())


# And back


class NotRecorded(Exception):  # noqa: N818  (a finding, not a failure)
    """The log does not have the result; the message says why, and how to record it."""


def summary_of(value: Any) -> re.Match[str] | None:
    """Match the summary of a long result; None for any other value."""
    return SUMMARY.fullmatch(value) if isinstance(value, str) else None


def wire(value: Any | UnsetType, fetch: Callable[[str], str]) -> dict[str, Any]:
    """Return the result that a log shows as ``value``; ``fetch`` reads a sidecar."""
    if value is UNSET:
        return {"content": []}
    if is_whole(value):
        return dict(value)
    summary = summary_of(value)
    if summary is not None:
        return _from_sidecar(summary, fetch)
    if isinstance(value, str):
        return _text(value)
    result = _text(compact(value).decode())
    return {**result, "structuredContent": value} if isinstance(value, dict) else result


def decode(text: str) -> Any:
    """Return the JSON value of what was recorded; one that is nested too deep is malformed."""
    value = msgspec.json.decode(text)
    if text.count("{") + text.count("[") > DEEPEST and levels(value, DEEPEST + 1) > DEEPEST + 1:
        raise msgspec.DecodeError(f"more than {DEEPEST} levels deep")
    return value


def _from_sidecar(summary: re.Match[str], fetch: Callable[[str], str]) -> dict[str, Any]:
    kind, size, path = summary.groups()
    if path is None:
        raise NotRecorded(
            f"its result ({kind}, {size} characters) was too long for the log and was not kept; "
            "record it with CallLog(…, sidecars=True), or with a higher threshold"
        )
    text = fetch(path)
    if not text:
        raise NotRecorded(f"its sidecar {path} is empty: it is being written, or its writer died")
    if not path.endswith(".json"):
        return _text(text)
    try:
        whole = decode(text)
    except MALFORMED as error:
        raise NotRecorded(f"its sidecar {path} is not JSON: {error}") from None
    if not is_whole(whole):
        raise NotRecorded(f"its sidecar {path} holds no tool result")
    return dict(whole)


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
