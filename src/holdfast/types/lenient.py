"""The slow, lenient reading: for JSON that does not fit its type at the first try.

Servers send null for absent, numbers as text, and contents of kinds invented after this
version. Field by field, what fits is taken; null and nonsense in an optional field count as
absent (they stay readable in ``raw``); contents of unknown kinds are kept as they came. A
required field that does not fit is an error, and so is a field whose absence would mean
something else: an ``isError`` taken for absent would turn failure into success.
"""

from __future__ import annotations

import functools
import types
import typing
from typing import Any

import msgspec
from msgspec import Raw

from holdfast.types.base import Wire
from holdfast.types.content import UnknownContent


def decode_leniently(text: Raw, kind: Any) -> Any:
    """Decode JSON as a type; raise `msgspec.ValidationError` if a required part is wrong."""
    try:
        return _rescue(text, kind)
    except UnicodeDecodeError as error:
        raise msgspec.ValidationError(f"Not UTF-8: {error}") from None


def _rescue(text: Raw, kind: Any) -> Any:
    """Decode JSON part by part: one that cannot be read (1e400) does not affect the others."""
    members, structs = _members(kind), _structs(kind)
    start = bytes(memoryview(text)[:1])
    if text == _NULL and type(None) in members:
        return None
    if start == b"[" and ((inner := _inside(kind, list)) is Raw or _structs(inner)):
        return [_rescue(item, inner) for item in msgspec.json.decode(text, type=list[Raw])]
    if start == b"{" and _structs(inner := _inside(kind, dict)):
        parts = msgspec.json.decode(text, type=dict[str, Raw])
        return {key: _rescue(part, inner) for key, part in parts.items()}
    if Raw in members:
        return text.copy()
    if not structs:
        return msgspec.convert(msgspec.json.decode(text), kind, strict=False)
    try:
        return _rescue_struct(text, structs)
    except msgspec.ValidationError as error:
        if structs[0].keeps_unknown:
            return UnknownContent(msgspec.json.decode(text), str(error))
        raise


def _rescue_struct(text: Raw, structs: list[type[Wire]]) -> Wire:
    parts = msgspec.json.decode(text, type=dict[str, Raw])
    kind = structs[0]
    if len(structs) > 1:
        # The member of a tagged union that the object names.
        name = msgspec.json.decode(parts.get("type", _NULL))
        found = [one for one in structs if one.__struct_config__.tag == name]
        if not found:
            raise msgspec.ValidationError(f"Invalid value {name!r} - at `$.type`")
        kind = found[0]
    given: dict[str, Any] = {}
    for info in _fields(kind):
        part = parts.get(info.encode_name)
        if part is None:
            if info.required:
                raise msgspec.ValidationError(f"Object missing required field `{info.encode_name}`")
            continue
        if part == _NULL and not info.required and info.type is not Any:
            continue
        try:
            given[info.name] = _rescue(part, info.type)
        except msgspec.ValidationError as error:
            if not _is_spare(info, kind):
                raise msgspec.ValidationError(f"{error} - at `{info.encode_name}`") from None
    try:
        return kind(**given)
    except (TypeError, ValueError) as error:
        raise msgspec.ValidationError(str(error)) from None


def _is_spare(info: msgspec.structs.FieldInfo, kind: type[Wire]) -> bool:
    """Return True for an optional field that may be taken for absent."""
    return info.default is None and info.name not in kind.vital


_fields = functools.cache(msgspec.structs.fields)
_NULL = Raw(b"null")


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union; any other type is its own only member."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)


def _structs(kind: Any) -> list[type[Wire]]:
    return [p for p in _members(kind) if isinstance(p, type) and issubclass(p, Wire)]


def _inside(kind: Any, container: type) -> Any:
    """Return the type of what a list or a dictionary holds, if there may be one."""
    found = (typing.get_args(p)[-1] for p in _members(kind) if typing.get_origin(p) is container)
    return next(found, None)
