"""The slow, lenient reading: for JSON that does not fit its type at the first try.

Servers send null for absent, numbers as text, and contents of kinds invented after this
version. Field by field, what fits is taken; null and nonsense in an optional field count as
absent (they stay readable in ``raw``); contents of unknown kinds are kept as they came. A
required field that does not fit is an error, and so is a field whose absence would mean
something else: an ``isError`` taken for absent would turn failure into success.
"""

# What may be guessed, and what not? A field that is optional says nothing if it is missing, so
# nonsense in it may be taken for absent. A required one may not: an object without it has no
# meaning that we know. Some optional fields mean something by being absent, and are named as
# ``vital`` by their type: a list without its cursor seems to end there, a result without its
# ``isError`` seems to be a success.

from __future__ import annotations

import functools
import types
import typing
from typing import Any, Final

import msgspec
from msgspec import Raw

from holdfast.types.base import MOST_COMMAS, MOST_LENIENT, Wire
from holdfast.types.content import UnknownContent


def decode_leniently(text: Raw, kind: Any) -> Any:
    """Decode JSON as a type.

    Raises:
        msgspec.ValidationError: A required part is wrong, or too many parts do not fit.
    """
    try:
        return _Reading().part(text, kind)
    except UnicodeDecodeError as error:
        raise msgspec.ValidationError(f"Not UTF-8: {error}") from None
    except _TooManyPartsError as error:
        raise msgspec.ValidationError(str(error)) from None


class _TooManyPartsError(Exception):
    """No `ValidationError`: nothing that is lenient may take it for a part that does not fit."""


class _Reading:
    """One lenient reading.

    Attack: ``{"content":[{},{},…]}``. A part that is read leniently takes 20 µs and half a
    kilobyte, for three bytes; so many of them are read, and no more.
    """

    def __init__(self) -> None:
        self._left = MOST_LENIENT

    def _spend(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise _TooManyPartsError(f"More than {MOST_LENIENT} parts, not all of which fit")

    def part(self, text: Raw, kind: Any) -> Any:
        """Decode JSON part by part: one that cannot be read (1e400) does not affect the others."""
        members, structs = _members(kind), _structs(kind)
        start = bytes(memoryview(text)[:1])
        if text == _NULL and type(None) in members:
            return None
        if start == b"[" and ((inner := _inside(kind, list)) is Raw or _structs(inner)):
            return self._list(text, inner)
        if start == b"{" and _structs(inner := _inside(kind, dict)):
            return self._dict(text, inner)
        if Raw in members:
            return text.copy()
        if not structs:
            return msgspec.convert(msgspec.json.decode(text), kind, strict=False)
        return self._struct_or_unknown(text, structs)

    def _dict(self, text: Raw, kind: Any) -> dict[str, Any]:
        values = msgspec.json.decode(text, type=dict[str, Raw])
        self._spend(len(values))
        return {key: self.part(value, kind) for key, value in values.items()}

    def _struct_or_unknown(self, text: Raw, structs: list[type[Wire]]) -> Wire | UnknownContent:
        try:
            return self._struct(text, structs)
        except msgspec.ValidationError as error:
            if structs[0].keeps_unknown:
                return UnknownContent(msgspec.json.decode(text), str(error))
            raise

    def _list(self, text: Raw, inner: Any) -> list[Any]:
        if len(text) > MOST_COMMAS and bytes(text).count(b",") > MOST_COMMAS:
            raise _TooManyPartsError(f"More than {MOST_COMMAS} parts, not all of which fit")
        items = msgspec.json.decode(text, type=list[Raw])
        self._spend(len(items))
        return [self.part(item, inner) for item in items]

    def _struct(self, text: Raw, structs: list[type[Wire]]) -> Wire:
        parts = msgspec.json.decode(text, type=dict[str, Raw])
        kind = structs[0] if len(structs) == 1 else _named_kind(parts, structs)
        values = self._fields_of(kind, parts)
        try:
            return kind(**values)
        except (TypeError, ValueError) as error:
            raise msgspec.ValidationError(str(error)) from None

    def _fields_of(self, kind: type[Wire], parts: dict[str, Raw]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for info in _fields(kind):
            part = parts.get(info.encode_name)
            if part is None:
                if info.required:
                    raise msgspec.ValidationError(f"{_MISSING} `{info.encode_name}`")
                continue
            if part == _NULL and not info.required and info.type is not Any:
                continue
            try:
                values[info.name] = self.part(part, info.type)
            except msgspec.ValidationError as error:
                if not _is_spare(info, kind):
                    raise msgspec.ValidationError(f"{error} - at `{info.encode_name}`") from None
        return values


def _named_kind(parts: dict[str, Raw], structs: list[type[Wire]]) -> type[Wire]:
    """Return the member of a tagged union that an object names."""
    name = msgspec.json.decode(parts.get("type", _NULL))
    for kind in structs:
        if kind.__struct_config__.tag == name:
            return kind
    raise msgspec.ValidationError(f"Invalid value {name!r} - at `$.type`")


def _is_spare(info: msgspec.structs.FieldInfo, kind: type[Wire]) -> bool:
    """Return True for an optional field that may be taken for absent."""
    return info.default is None and info.name not in kind.vital


_fields = functools.cache(msgspec.structs.fields)
_NULL: Final = Raw(b"null")
_MISSING: Final = "Object missing required field"


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union; any other type is its own only member."""
    is_union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if is_union else (kind,)


def _structs(kind: Any) -> list[type[Wire]]:
    members = _members(kind)
    return [member for member in members if isinstance(member, type) and issubclass(member, Wire)]


def _inside(kind: Any, container: type) -> Any:
    """Return the type of what a list or a dictionary holds, if there may be one."""
    for member in _members(kind):
        if typing.get_origin(member) is container:
            return typing.get_args(member)[-1]
    return None
