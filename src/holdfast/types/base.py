"""The base of all wire types: names, defaults, and the JSON that an object came from.

A struct holds the fields that this version knows. Whatever else the peer sent is not lost:
an object made by `decode` remembers its source, so ``obj.raw`` is the whole JSON object as
it came and ``obj.extra`` the part of it without a field here. The source is kept as bytes
and read when asked for; an object inside another one keeps only the way to its place there.
"""

# Where does the source of an object live? ``raw`` and ``extra`` are rarely asked for, and reading
# each object twice, once as a type and once as a dictionary, would double the time of a list of a
# thousand tools. So the bytes are kept, and read when asked for. An object inside another one
# keeps a reference to the source of that one and the way to its place there: two words instead of
# a copy. Small sources are copied out of the buffer of the transport, because an object of 200
# bytes would otherwise keep a read of a megabyte alive; large ones are most of their buffer.
#
# The source is in ``__dict__``, beside the fields: it is never on the wire, does not take part in
# comparisons, and an object that was made here has none.
#
# The annotations of types that are read are values, not text as elsewhere: each text would be
# compiled anew for every reader that is built, which was a tenth of a start.

import gc
import math
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Raw, Struct, field

T = TypeVar("T")
W = TypeVar("W", bound="Wire")

Source: TypeAlias = "Raw | tuple[Any, str | int] | tuple[Any, str, Any]"
"""The bytes of an object; or its container or the source of that, and the way to it in there."""

Plan: TypeAlias = tuple[tuple[str, str], ...]

DETACH: Final = 64 * 1024
"""Sources below this size are copied out of the buffer that they came in, so that a small
object does not hold a large read in memory; above it the object is most of the buffer."""
LARGE: Final = 1024 * 1024
"""Bytes of a message that takes milliseconds to decode."""
MOST_COMMAS: Final = 1_000_000
"""Commas in a page, and with them its items before they are counted: each costs memory."""
MOST_LENIENT: Final = 10_000
"""Parts of one message that are read leniently: each takes 20 µs and half a kilobyte."""


class Wire(
    Struct,
    rename="camel",
    omit_defaults=True,
    repr_omit_defaults=True,
    kw_only=True,
    dict=True,
):
    """The base of all wire types: snake_case here, camelCase there, defaults left unsaid."""

    keeps_unknown: ClassVar[bool] = False
    """True if JSON that does not fit becomes `UnknownContent` in this type's place."""

    vital: ClassVar[frozenset[str]] = frozenset()
    """Optional fields that must not be taken for absent when they cannot be read."""

    @property
    def raw(self) -> dict[str, Any]:
        """The JSON object as it came; for an object made here, what it would be sent as.

        A number that Python cannot hold, such as 1e400, is there as text.
        """
        source = self.__dict__.get("_source")
        plain = msgspec.json.decode(encode(self)) if source is None else resolve(source)
        return cast("dict[str, Any]", plain)

    @property
    def extra(self) -> dict[str, Any]:
        """The fields of `raw` that this version of Holdfast does not know."""
        if "_source" not in self.__dict__:
            return {}
        names = wire_names(type(self))
        return {key: value for key, value in self.raw.items() if key not in names}

    def __rich_repr__(self) -> list[Any]:
        """Return what rich shows: the fields that are not at their default."""
        from holdfast.types.display import fields

        return [(name, value) if name else value for name, value in fields(self)]

    def _repr_html_(self) -> str | None:
        """Return HTML for a notebook; None for what is as readable as text."""
        from holdfast.types.display import html

        return html(self)

    def _repr_png_(self) -> bytes | None:
        """Return the picture that this is, or the only one in it, if it is a PNG."""
        from holdfast.types.display import picture

        return picture(self, "image/png")

    def _repr_jpeg_(self) -> bytes | None:
        """Return the picture that this is, or the only one in it, if it is a JPEG."""
        from holdfast.types.display import picture

        return picture(self, "image/jpeg")


class Meta(Wire, kw_only=True):
    """A wire type with ``_meta``, which nearly all of them have."""

    meta: dict[str, Any] | None = field(name="_meta", default=None)


class Result(Meta, kw_only=True):
    """The answer to a request.

    ``result_type`` is text where the peer's revision has result types, and what came otherwise.
    """

    result_type: Any = None


class Cacheable(Result, kw_only=True):
    """A result with a lifetime; ``cache_scope`` is ``private`` or ``public``."""

    ttl_ms: int | None = None
    cache_scope: str | None = None


def empty_list() -> list[Any]:
    """Return an empty list that is sent: the peer requires the field, and defaults are omitted."""
    return []


class _Plans(dict[type, "Plan | None"]):
    """For each type, the fields that may hold wire objects; None for what is none itself.

    A dictionary that fills itself, because it is asked for every object that is read, and
    asking whether an object is a struct takes several times as long.
    """

    def __missing__(self, kind: type) -> Plan | None:
        plan: Plan | None = None
        if issubclass(kind, Wire):
            infos = msgspec.structs.fields(kind)
            plan = tuple((info.name, info.encode_name) for info in infos if _holds_wire(info.type))
        self[kind] = plan
        return plan


class _Decoders(dict[Any, "msgspec.json.Decoder[Any]"]):
    """The decoder of each type, built once; a dictionary for the same reason."""

    def __missing__(self, kind: Any) -> msgspec.json.Decoder[Any]:
        decoder = self[kind] = msgspec.json.Decoder(kind)
        return decoder


_plans = _Plans()
decoders = _Decoders()

encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode


def decode(raw: bytes | Raw, kind: type[T]) -> T:
    """``raw`` as a ``kind``, remembering where it came from.

    What fits is read in one pass; only what does not is read again, slowly and leniently.
    Raises `msgspec.ValidationError` when a field that cannot be done without is missing or
    wrong, and when the text is not UTF-8.
    """
    if isinstance(raw, Raw) and len(raw) < DETACH:
        raw = raw.copy()
    elif len(raw) > LARGE and gc.isenabled():
        return _decode_large(raw, kind)
    elif not isinstance(raw, Raw):
        raw = Raw(raw)
    value: T
    try:
        value = decoders[kind].decode(raw)
        attach(value, raw)
    except (msgspec.ValidationError, UnicodeDecodeError):
        from holdfast.types.lenient import decode_leniently

        value = decode_leniently(raw, kind)
        attach(value, raw)
    return value


def _decode_large(raw: bytes | Raw, kind: type[T]) -> T:
    # Attack: in 16 MiB of ``[[],[],…]`` are five million lists, and the collector of garbage goes
    # through them again and again while they are made: two thirds of the time. None is garbage.
    gc.disable()
    try:
        return decode(raw, kind)
    finally:
        gc.enable()


def attach(obj: Any, source: Source) -> None:
    """Store the source in an object and in every object inside it."""
    plan = _plans[type(obj)]
    if plan is None:
        return
    # In __dict__, so never on the wire. A dictionary of its own: one that shares its keys with
    # others of the type is larger, and slower to make.
    obj.__dict__ = {"_source": source}
    for name, key in plan:
        value = getattr(obj, name)
        if value is None:
            continue
        kind = type(value)
        if kind is list:
            for index, item in enumerate(value):
                # The usual content of a result has no parts: spare it the call.
                if _plans[type(item)] == ():
                    item.__dict__ = {"_source": (source, key, index)}
                else:
                    attach(item, (source, key, index))
        elif kind is dict:
            for index, item in value.items():
                attach(item, (source, key, index))
        elif _plans[kind] == ():
            value.__dict__ = {"_source": (source, key)}
        else:
            attach(value, (source, key))


def resolve(source: Source) -> Any:
    """Return the JSON value at a source."""
    if isinstance(source, Raw):
        return plain_json(source)
    value = source[0]
    if isinstance(value, Raw | tuple):
        value = resolve(value)
    for step in source[1:]:
        value = value[step]
    return value


def plain_json(text: Raw) -> Any:
    """Return JSON as Python values, with the text of a number that is none (1e400)."""
    try:
        return msgspec.json.decode(text)
    except msgspec.ValidationError:
        import json

        return json.loads(bytes(text), parse_float=_number, parse_int=_number)


def _number(text: str) -> float | str:
    try:
        number = int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:  # more digits than Python reads
        return text
    return text if math.isinf(number) else number


@cache
def wire_names(kind: type[Wire]) -> frozenset[str]:
    """Return the names of a type's fields on the wire, its tag included."""
    tag_field = kind.__struct_config__.tag_field
    return frozenset((*kind.__struct_encode_fields__, *([tag_field] if tag_field else ())))


def _holds_wire(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, Wire):
        return True
    return any(_holds_wire(part) for part in getattr(kind, "__args__", ()))


# Pages: one answer to a list request. A small one is read in one pass. Where that fails, and in a
# large one, each item is read on its own, so that one that is malformed costs itself alone.


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


def decode_page(raw: bytes | Raw, item_type: type[W], key: str, most: int | None = None) -> Page[W]:
    """The page in ``raw``, whose items are of ``item_type`` and stand under ``key``.

    Raises `msgspec.ValidationError` if there is no list under that key, a longer one than
    ``most``, or far more values than any list has.
    """
    if len(raw) > MOST_COMMAS and (commas := bytes(raw).count(b",")) > MOST_COMMAS:
        raise msgspec.ValidationError(f"a page of {commas + 1} values, more than {MOST_COMMAS}")
    whole = _in_one_pass(raw, item_type, key) if len(raw) < DETACH else None
    head = decode(raw, _head_type(key, Raw)) if whole is None else whole
    if most is not None and len(head.found) > most:
        raise msgspec.ValidationError(f"a list of {len(head.found)} items, more than {most}")
    items: list[W] = []
    faults: list[Fault] = []
    if whole is None:
        _one_by_one(head.found, item_type, items, faults)
    else:
        items = head.found
    return Page(
        items=items,
        next_cursor=head.next_cursor,
        ttl_ms=head.ttl_ms,
        cache_scope=head.cache_scope,
        result_type=head.result_type,
        meta=head.meta,
        faults=tuple(faults),
    )


def _in_one_pass(raw: bytes | Raw, item_type: type[W], key: str) -> Any:
    """Return a page with its items; None if not all of it fits."""
    raw = raw.copy() if isinstance(raw, Raw) else Raw(raw)
    try:
        page = decoders[_head_type(key, item_type)].decode(raw)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return None
    texts = _Texts(raw, key)
    for index, item in enumerate(page.found):
        attach(item, (texts, index))
    return page


class _Texts:
    """The JSON of each item of a page, which is cut up when the first of them is asked for."""

    __slots__ = ("_cut", "_key", "_page")

    def __init__(self, page: Raw, key: str) -> None:
        self._page = page
        self._key = key
        self._cut: list[Raw] | None = None

    def __getitem__(self, index: int) -> Any:
        if self._cut is None:
            self._cut = decoders[_head_type(self._key, Raw)].decode(self._page).found
        return plain_json(self._cut[index])


def _one_by_one(texts: list[Raw], item_type: type[W], items: list[W], faults: list[Fault]) -> None:
    read = decoders[item_type].decode
    unfit = 0
    for index, text in enumerate(texts):
        source = text.copy() if len(text) < DETACH else text
        try:
            item = read(source)
            attach(item, source)
        except (msgspec.ValidationError, UnicodeDecodeError):
            unfit += 1
            if unfit > MOST_LENIENT:
                reason = f"a list of more than {MOST_LENIENT} items that do not fit"
                raise msgspec.ValidationError(reason) from None
            try:
                item = decode(source, item_type)
            except msgspec.ValidationError as error:
                faults.append(Fault(index, _name(source), str(error)))
                continue
        items.append(item)


@cache
def _head_type(key: str, item_type: type[Any]) -> type[Any]:
    """Return the type of a page whose items are under ``key``."""
    fields = [("found", list[item_type], field(name=key))]  # type: ignore[valid-type]
    return msgspec.defstruct(f"_Page_{key}", fields, bases=(_Head,), kw_only=True)


def _name(source: Raw) -> str | None:
    try:
        value = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if not isinstance(value, dict):
        return None
    names = (value.get(key) for key in ("name", "uri", "uriTemplate", "taskId"))
    return next((name for name in names if isinstance(name, str)), None)
