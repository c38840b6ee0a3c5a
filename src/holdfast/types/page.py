"""Pages: one answer to a list request, read item by item.

Each item is read on its own, so that one that is malformed costs itself alone: it becomes a
`Fault`, which says which one it was and what was wrong with it.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast.types.base import DETACH, Cacheable, Wire, attach, decode, decoder

W = TypeVar("W", bound=Wire)

MOST_COMMAS: Final = 1_000_000
"""Commas in a page, and with them its items before they are counted: each costs memory."""


class Fault(Struct, frozen=True):
    """An item that could not be read: its place, its name if it has one, and why."""

    index: int
    name: str | None
    reason: str


class Page(Struct, Generic[W], frozen=True, kw_only=True):
    """The items of a page, where the next one is, and how long this one may be kept."""

    items: list[W]
    next_cursor: str | None = None
    ttl_ms: int | None = None
    cache_scope: str | None = None
    result_type: str | None = None
    meta: dict[str, Any] | None = None
    faults: tuple[Fault, ...] = ()


class _Head(Cacheable, kw_only=True):
    """All of a page but its items. Without its cursor a list would seem to end early."""

    vital: ClassVar[frozenset[str]] = frozenset({"next_cursor"})

    next_cursor: str | None = None


_heads: dict[str, type[Any]] = {}


def decode_page(raw: bytes | Raw, item_type: type[W], key: str, most: int | None = None) -> Page[W]:
    """The page in ``raw``, whose items are of ``item_type`` and stand under ``key``.

    Raises `msgspec.ValidationError` if there is no list under that key, a longer one than
    ``most``, or far more values than any list has.
    """
    if len(raw) > MOST_COMMAS and (commas := bytes(raw).count(b",")) > MOST_COMMAS:
        raise msgspec.ValidationError(f"a page of {commas + 1} values, more than {MOST_COMMAS}")
    head = decode(raw, _head_type(key))
    if most is not None and len(head.found) > most:
        raise msgspec.ValidationError(f"a list of {len(head.found)} items, more than {most}")
    items: list[W] = []
    faults: list[Fault] = []
    read = decoder(item_type).decode
    for index, item in enumerate(head.found):
        source = item.copy() if len(item) < DETACH else item
        try:
            found = read(source)
            attach(found, source)
        except (msgspec.ValidationError, UnicodeDecodeError):
            try:
                found = decode(source, item_type)
            except msgspec.ValidationError as error:
                faults.append(Fault(index, _name(source), str(error)))
                continue
        items.append(found)
    return Page(
        items=items,
        next_cursor=head.next_cursor,
        ttl_ms=head.ttl_ms,
        cache_scope=head.cache_scope,
        result_type=head.result_type,
        meta=head.meta,
        faults=tuple(faults),
    )


def _head_type(key: str) -> type[Any]:
    """Return the type of a page whose items stay raw under ``key``."""
    known = _heads.get(key)
    if known is None:
        found = msgspec.field(name=key)
        known = _heads[key] = msgspec.defstruct(
            f"_Page_{key}", [("found", list[Raw], found)], bases=(_Head,), kw_only=True
        )
    return known


def _name(source: Raw) -> str | None:
    try:
        value = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(value, dict):
        return None
    names = (value.get(key) for key in ("name", "uri", "uriTemplate", "taskId"))
    return next((name for name in names if isinstance(name, str)), None)
