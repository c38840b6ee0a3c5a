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
    """Decode JSON as a type; raise `msgspec.ValidationError` for what cannot be done without."""
    try:
        return _rescue(_read(text, kind), kind)
    except UnicodeDecodeError as error:
        raise msgspec.ValidationError(f"Not UTF-8: {error}") from None


def _read(text: Raw, kind: Any) -> Any:
    """Decode JSON for `_rescue`, field by field: one that cannot be read (1e400) is absent too."""
    if not isinstance(kind, type) or not issubclass(kind, Wire) or kind.keeps_unknown:
        return msgspec.json.decode(text)
    parts = msgspec.json.decode(text, type=dict[str, Raw])
    found: dict[str, Any] = {}
    for info in _fields(kind):
        part = parts.get(info.encode_name)
        if part is None:
            continue
        try:
            found[info.encode_name] = msgspec.json.decode(part, type=_unread(info.type, part))
        except msgspec.ValidationError as error:
            if not _is_spare(info, kind):
                raise msgspec.ValidationError(f"{error} - at `{info.encode_name}`") from None
    return found


def _unread(kind: Any, text: Raw) -> Any:
    """Return the type that leaves raw what the field leaves raw."""
    if _inside(kind, list) is Raw:
        return list[Raw]
    return Raw if Raw in _parts(kind) and bytes(text) != b"null" else Any


def _rescue(value: Any, kind: Any) -> Any:
    """Convert decoded JSON to a type, leniently."""
    structs = _structs(kind)
    inner = _inside(kind, type(value))
    if isinstance(value, list) and (inner is Raw or _structs(inner)):
        return [_rescue(item, inner) for item in value]
    if isinstance(value, dict) and _structs(inner):
        return {key: _rescue(item, inner) for key, item in value.items()}
    if not structs or (value is None and type(None) in _parts(kind)):
        if Raw in _parts(kind):
            return Raw(msgspec.json.encode(value))
        return msgspec.convert(value, kind, strict=False)
    try:
        return _rescue_struct(value, _choose(value, structs))
    except msgspec.ValidationError as error:
        if structs[0].keeps_unknown:
            return UnknownContent(value, str(error))
        raise


def _rescue_struct(value: Any, kind: type[Wire]) -> Wire:
    if not isinstance(value, dict):
        names = {str: "str", bool: "bool", int: "int", float: "float", list: "array"}
        name = names.get(type(value), "null")
        raise msgspec.ValidationError(f"Expected `object`, got `{name}`")
    given: dict[str, Any] = {}
    for info in _fields(kind):
        if info.encode_name not in value:
            if info.required:
                raise msgspec.ValidationError(f"Object missing required field `{info.encode_name}`")
            continue
        found = value[info.encode_name]
        if found is None and not info.required and info.type is not Any:
            continue
        try:
            given[info.name] = _rescue(found, info.type)
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


def _choose(value: Any, structs: list[type[Wire]]) -> type[Wire]:
    """Return the member of a tagged union that the value names."""
    if len(structs) == 1:
        return structs[0]
    name = value.get("type") if isinstance(value, dict) else None
    for kind in structs:
        if kind.__struct_config__.tag == name:
            return kind
    raise msgspec.ValidationError(f"Invalid value {name!r} - at `$.type`")


def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union; any other type is its own only member."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)


def _structs(kind: Any) -> list[type[Wire]]:
    return [p for p in _parts(kind) if isinstance(p, type) and issubclass(p, Wire)]


def _inside(kind: Any, container: type) -> Any:
    """Return the type of what a list or a dictionary holds, if there may be one."""
    found = (typing.get_args(p)[-1] for p in _parts(kind) if typing.get_origin(p) is container)
    return next(found, None)
