"""Schemas of simple types, as most tools have: read as Python types, checked by msgspec.

A value that fits the type fits the schema. One that does not fit the type may still fit the
schema (1.0 is an integer), and its faults have to be explained: that is left to the validator,
which takes longer to load than the first call of a program otherwise takes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Protocol, Union

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from holdfast.schema.faults import SchemaFault

MOST_BYTES: Final = 8 * 1024
"""Bytes of a schema that is read here."""
MOST_LEVELS: Final = 8
MOST_VALUE_BYTES: Final = 64 * 1024
"""Bytes of a value whose check takes longer the longer the value is."""

_DIALECTS: Final = (
    None,
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
)
_TEXTS: Final = ("title", "description", "format")
_ANNOTATIONS: Final = frozenset((*_TEXTS, "default"))
_KEYWORDS: Final[dict[str, frozenset[str]]] = {
    "object": _ANNOTATIONS | {"type", "properties", "required", "additionalProperties"},
    "array": _ANNOTATIONS | {"type", "items"},
    "string": _ANNOTATIONS | {"type", "enum", "minLength", "maxLength"},
    "integer": _ANNOTATIONS | {"type", "minimum", "maximum"},
    "number": _ANNOTATIONS | {"type", "minimum", "maximum"},
    "anyOf": _ANNOTATIONS | {"anyOf"},
}
_BOUNDS: Final = {
    "minimum": "ge",
    "maximum": "le",
    "minLength": "min_length",
    "maxLength": "max_length",
}
_LARGEST: Final = 1.7976931348623157e308
"""NaN and infinity are no JSON."""
_SCALARS: Final[dict[Any, Any]] = {
    "string": str,
    "integer": int,
    "number": int | Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)],
    "boolean": bool,
    "null": None,
}


class Check(Protocol):
    """A schema that values are checked against."""

    def faults(self, value: Any, text: bytes | Raw | None = None) -> tuple[SchemaFault, ...]:
        """Return what does not fit; ``text`` is the JSON that the value was read from."""


class SimpleType(Struct, frozen=True):
    """The type of a schema."""

    kind: Any
    fixed: bool
    """Checking takes the same time for every value."""


class SimpleCheck:
    """Checks values by their type, and leaves those that do not fit to the validator."""

    def __init__(self, plain: SimpleType, validator: Callable[[], Check]) -> None:
        self._kind, self._fixed = plain.kind, plain.fixed
        self._validator = validator

    def faults(self, value: Any, text: bytes | Raw | None = None) -> tuple[SchemaFault, ...]:
        if self._fixed or (text is not None and len(text) <= MOST_VALUE_BYTES):
            try:
                msgspec.convert(value, self._kind)
                return ()
            except (ValueError, TypeError, OverflowError, RecursionError):
                pass
        return self._validator().faults(value, text)


def simple_type(schema: Raw) -> SimpleType | None:
    """Return the type of a schema; None if it has more than simple types."""
    return _simple_type(bytes(schema)) if len(schema) <= MOST_BYTES else None


@lru_cache(1000)
def _simple_type(text: bytes) -> SimpleType | None:
    arrays: list[Any] = []
    try:
        schema = msgspec.json.decode(text)
        if schema.pop("$schema", None) in _DIALECTS:
            return SimpleType(_type(schema, arrays), fixed=not arrays)
    except (_NotSimple, AttributeError, LookupError, TypeError, ValueError, RecursionError):
        pass  # Of the wrong shape, perhaps: the validator says so.
    return None


class _NotSimple(Exception):  # noqa: N818  (a finding)
    """A schema with more than simple types."""


def _type(schema: Any, arrays: list[Any], level: int = 0) -> Any:
    """Return the type of a schema; collect the arrays in it."""
    kind = "anyOf" if "anyOf" in schema else schema.get("type")
    allowed = _KEYWORDS.get(str(kind), _ANNOTATIONS | {"type"})
    texts = all(isinstance(schema.get(key, ""), str) for key in _TEXTS)
    if not schema.keys() <= allowed or not texts or level > MOST_LEVELS:
        raise _NotSimple
    if kind == "object":
        return _struct(schema, arrays, level)
    if kind == "array":
        arrays.append(schema)
        return list[_type(schema.get("items", {}), arrays, level + 1)]  # type: ignore[misc]
    if kind == "anyOf":
        return Union[tuple(_type(member, arrays, level + 1) for member in schema["anyOf"])]  # noqa: UP007
    if "enum" in schema:
        words = tuple(_distinct(schema["enum"]))
        bounded = not _BOUNDS.keys().isdisjoint(schema)
        if not words or bounded or not all(type(word) is str for word in words):
            raise _NotSimple
        return Literal[words]
    if isinstance(kind, list):
        return Union[tuple(_SCALARS[member] for member in _distinct(kind))]  # noqa: UP007
    if bounds := {name: schema[key] for key, name in _BOUNDS.items() if key in schema}:
        return _bounded(kind, bounds)
    return Any if kind is None and "type" not in schema else _SCALARS[kind]


def _bounded(kind: str, bounds: dict[str, Any]) -> Any:
    if not all(type(bound) is int and bound.bit_length() < 50 for bound in bounds.values()):
        raise _NotSimple
    if kind == "number":
        finite = {"ge": -_LARGEST, "le": _LARGEST, **bounds}
        return Annotated[int, Meta(**bounds)] | Annotated[float, Meta(**finite)]
    return Annotated[_SCALARS[kind], Meta(**bounds)]


def _struct(schema: dict[str, Any], arrays: list[Any], level: int) -> Any:
    parts, required = schema.get("properties", {}), _distinct(schema.get("required", []))
    others_allowed = schema.get("additionalProperties", True)
    if type(others_allowed) is not bool or not {*required} <= parts.keys():
        raise _NotSimple
    fields: list[tuple[str, Any, Any]] = []
    for index, (name, part) in enumerate(parts.items()):
        kind = _type(part, arrays, level + 1)
        if name in required:
            fields.append((f"field{index}", kind, msgspec.field(name=name)))
        else:
            kind = kind if kind is Any else Union[kind, UnsetType]  # noqa: UP007
            fields.append((f"field{index}", kind, msgspec.field(name=name, default=UNSET)))
    return msgspec.defstruct(
        "Simple", fields, kw_only=True, forbid_unknown_fields=not others_allowed
    )


def _distinct(values: Any) -> list[Any]:
    """Return a list of distinct values, as JSON Schema has them in these places."""
    if type(values) is not list or len({*values}) != len(values):
        raise _NotSimple
    return values
