"""Convert JSON Schema to kinds: a small model of the types that Python has for it.

Constraints that a type cannot express are left out, and what is not understood is Any, so that no
valid value is refused. Schemas come from servers: depth and size are bounded.
"""

# A type may say less than a schema, and never something else. The caller of a generated method is
# checked by a type checker, before the server is: a type that is too narrow refuses arguments that
# the tool takes, with nothing that the caller could do about it. One that is too wide only moves
# the error to the call. So a keyword without a counterpart is left out, a schema that cannot be
# read, is not valid, or leads nowhere is Any, and so is what lies beyond the bounds of depth and
# size. What was left out is reported, and stands in the docstring where it helps.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from holdfast.codegen.names import ClassNames, description, note
from holdfast.schema.annotations import demanded
from holdfast.schema.types import flatten, has_shape, merge
from holdfast.schema.walk import (
    Budget,
    SchemaTooComplex,
    branches,
    properties,
    required,
    resolve,
    tuple_items,
)


class Kind(Struct, frozen=True):
    """A type: its name in Python, and the types in its brackets.

    A ``Union`` has two at least; `either` makes it. A ``Literal`` has values instead.
    """

    name: str
    parts: tuple[Any, ...] = ()


Value: TypeAlias = "str | int | bool | None"

ANY: Final = Kind("Any")
NONE: Final = Kind("None")
STRING: Final = Kind("str")
UNSET: Final = Kind("Unset")


class Field(Struct, frozen=True):
    """A key of an object, or a parameter of a tool."""

    wire: str
    kind: Kind
    required: bool
    note: str = ""


class RecordType(Struct, frozen=True):
    """An object with known keys; becomes a TypedDict."""

    name: str
    fields: tuple[Field, ...]
    note: str = ""


def either(options: Iterable[Kind]) -> Kind:
    """Return the union: flat, unique, choices merged, None last; Any absorbs the rest."""
    flat: list[Kind] = []
    for option in options:
        flat += option.parts if option.name == "Union" else (option,)
    if not flat or ANY in flat:
        return ANY
    choices = [option for option in flat if option.name == "Literal"]
    if len(choices) > 1:
        joined = choice(value for option in choices for value in option.parts)
        flat[flat.index(choices[0])] = joined
        flat = [option for option in flat if option is joined or option.name != "Literal"]
    unique = list(dict.fromkeys(flat))
    if NONE in unique:
        unique = [option for option in unique if option != NONE] + [NONE]
    return unique[0] if len(unique) == 1 else Kind("Union", tuple(unique))


def choice(values: Iterable[Value]) -> Kind:
    """Return a choice of distinct values; True is not 1 here."""
    return Kind("Literal", tuple({(type(value), value): value for value in values}.values()))


DEEPEST: Final = 24
MOST_PARTS: Final = 5000
"""Of one schema."""
MOST_VALUES: Final = 500
LONGEST_VALUE: Final = 60
"""Of a value that stands alone, and so has to fit on a line."""

SIMPLE: Final = {
    "string": STRING,
    "integer": Kind("int"),
    "number": Kind("float"),
    "boolean": Kind("bool"),
    "null": NONE,
}
OBJECT_WORDS: Final = frozenset(
    {"properties", "additionalProperties", "patternProperties", "required"}
)
ARRAY_WORDS: Final = frozenset({"items", "prefixItems"})
UNIONS: Final = ("anyOf", "oneOf")
_SUMS: Final = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "oneOf"})


class SchemaReader:
    """Reads the schemas of one document, and keeps the records that it comes upon.

    ``path`` is what their names begin with.
    """

    def __init__(
        self, document: Any, names: ClassNames, path: tuple[str, ...], most: int = MOST_PARTS
    ) -> None:
        self.records: list[RecordType] = []
        self.cut: bool = False
        """True if a part was too deep or too large, and became Any."""
        self.budget: Budget = Budget(most)
        """A part counts each time it is used: a small schema can expand without end."""
        self._document = document
        self._names = names
        self._path = path
        self._depth = 0
        self._known: dict[str, Kind] = {}
        self._open: set[str] = set()

    def arguments(self) -> tuple[tuple[Field, ...], Kind | None]:
        """Return the parameters, and the kind of additional ones; None if there may be none.

        If the schema was too large to read, there may be additional ones of any kind.
        """
        schema: dict[str, Any] = {}
        fields: dict[str, Field] = {}
        try:
            schema = self._settled(self._document)
            needed = {*demanded(schema, self._document)}
            for field in self._fields(schema, self._path):
                required = field.required and field.wire in needed
                fields[field.wire] = replace(field, required=required)
            for word in UNIONS:
                self._add_options(fields, branches(schema, word))
        except SchemaTooComplex:
            self.cut = True
        order = sorted(fields.values(), key=lambda field: not field.required)
        extra = self._additional(schema, has_fields=bool(fields))
        return tuple(order), ANY if extra is None and self.cut else extra

    def _additional(self, schema: dict[str, Any], *, has_fields: bool) -> Kind | None:
        """Return the kind of additional arguments; None if the schema allows none."""
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            return self.kind(others, (*self._path, "value"))
        # Without any of these, a schema without properties is that of a tool without parameters.
        speaks = schema.keys() & {"patternProperties", "propertyNames", "minProperties"}
        is_open = others is True or (others is not False and speaks and not has_fields)
        return ANY if is_open else None

    def _add_options(self, fields: dict[str, Field], options: list[Any]) -> None:
        """Add parameters that only some alternatives have, as optional."""
        for option in options:
            settled = self._settled(option)
            self.budget.spend(len(_keys(settled)))
            for field in self._fields(settled, self._path):
                old = fields.setdefault(field.wire, replace(field, required=False))
                if old.wire in properties(settled):
                    kind, note = either((old.kind, field.kind)), old.note or field.note
                    fields[field.wire] = replace(old, kind=kind, note=note)

    def kind(self, schema: Any, path: tuple[str, ...]) -> Kind:
        """Return the kind of a schema; ``path`` names a record made of it."""
        if not isinstance(schema, dict) or not schema:
            return ANY
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise SchemaTooComplex
            self.budget.spend()
            result = self._kind(schema, path)
        except SchemaTooComplex:
            self.cut = True
            return ANY
        finally:
            self._depth -= 1
        return either((result, NONE)) if schema.get("nullable") is True else result

    def _kind(self, schema: dict[str, Any], path: tuple[str, ...]) -> Kind:
        if isinstance(reference := schema.get("$ref"), str):
            if has_shape(schema, besides="$ref"):
                return self.kind(self._settled(schema), path)
            return self._referred(reference, path)
        if "const" in schema:
            return _choice([schema["const"]])
        if isinstance(values := schema.get("enum"), list):
            return _choice(values)
        if isinstance(schema.get("allOf"), list):
            return self.kind(self._settled(schema), path)
        for word in UNIONS:
            if options := branches(schema, word):
                return self._union(schema, word, options, path)
        return self._typed(schema, schema.get("type"), path)

    def _typed(self, schema: dict[str, Any], name: Any, path: tuple[str, ...]) -> Kind:
        if isinstance(name, list):
            return either(
                self._typed(schema, member, path) for member in name if isinstance(member, str)
            )
        if isinstance(name, str) and name in SIMPLE:
            return SIMPLE[name]
        if name is None:
            name = _implied_type(schema)
        if name == "array":
            return self._array(schema, path)
        if name == "object":
            return self._object(schema, path)
        return ANY

    def _object(self, schema: dict[str, Any], path: tuple[str, ...]) -> Kind:
        if _can_be_record(schema):
            self.budget.spend(len(_keys(schema)))
            return self._record(schema, path, self._names.take(*path))
        others = schema.get("additionalProperties")
        value = self.kind(others, (*path, "value")) if isinstance(others, dict) else ANY
        return Kind("dict", (STRING, value))

    def _array(self, schema: dict[str, Any], path: tuple[str, ...]) -> Kind:
        row, items = tuple_items(schema)
        if not row:
            return Kind("list", (self.kind(items, (*path, "item")),))
        kinds = [self.kind(part, (*path, f"item{at}")) for at, part in enumerate(row, 1)]
        if isinstance(items, dict):
            return Kind("list", (either([*kinds, self.kind(items, (*path, "item"))]),))
        return Kind("tuple", tuple(kinds))

    def _record(self, schema: dict[str, Any], path: tuple[str, ...], name: str) -> Kind:
        fields = tuple(sorted(self._fields(schema, path), key=lambda field: not field.required))
        self.records.append(RecordType(name, fields, description(schema)))
        return Kind(name)

    def _fields(self, schema: dict[str, Any], path: tuple[str, ...]) -> Iterator[Field]:
        needed, by_name = required(schema), properties(schema)
        for key in _keys(schema):
            value = by_name.get(key)
            kind = self.kind(value, (*path, key))
            yield Field(key, kind, key in needed, note(value))

    def _union(
        self, schema: dict[str, Any], word: str, options: list[Any], path: tuple[str, ...]
    ) -> Kind:
        base = {key: value for key, value in schema.items() if key != word}
        if not has_shape(base):
            return either(self._options(options, path))
        if not any(has_shape(self._settled(option)) for option in options):
            return self.kind(base, path)
        self.budget.spend(len(options) * len(properties(base)))
        joined = [merge([base, self._settled(option)]).schema for option in options]
        return either(self._options(joined, path))

    def _options(self, options: list[Any], path: tuple[str, ...]) -> Iterator[Kind]:
        shaped = sum(_is_object(option) for option in options)
        for at, option in enumerate(options, 1):
            yield self.kind(option, (*path, f"option{at}") if shaped > 1 else path)

    def _referred(self, reference: str, path: tuple[str, ...]) -> Kind:
        if reference in self._known:
            return self._known[reference]
        target = resolve(self._document, reference)
        if not isinstance(target, dict) or reference in self._open:
            return ANY
        last = reference.rpartition("/")[2].strip("#") or "arguments"
        place = (*self._path, last)
        if _is_object(target) and _can_be_record(target):
            self.budget.spend(len(_keys(target)))
            # Known before it is read, because it may refer to itself.
            name = self._names.take(*place)
            self._known[reference] = Kind(name)
            return self._record(target, place, name)
        self._open.add(reference)
        try:
            result = self.kind(target, place)
        finally:
            self._open.discard(reference)
        self._known[reference] = result
        return result

    def _settled(self, schema: Any) -> dict[str, Any]:
        """Return the schema with ``$ref`` and ``allOf`` merged in."""
        return flatten(schema, lambda _, to: resolve(self._document, to), self.budget).schema


def _is_object(schema: Any) -> bool:
    """Return whether it is of one type, an object; not a sum or a choice of schemas."""
    if not isinstance(schema, dict) or schema.keys() & _SUMS:
        return False
    name = schema.get("type")
    return name == "object" or (name is None and bool(OBJECT_WORDS & schema.keys()))


def _keys(schema: Mapping[str, Any]) -> list[str]:
    """Return the required keys in their order, then the rest by name: the order of an
    object's keys means nothing."""
    return list(dict.fromkeys([*required(schema), *sorted(properties(schema))]))


def _can_be_record(schema: Mapping[str, Any]) -> bool:
    """Return True if keys are known and none is empty, which a TypedDict cannot have."""
    keys = _keys(schema)
    return bool(keys) and "" not in keys


def _choice(values: list[Any]) -> Kind:
    """Return a Literal if Python has one for the values, otherwise their types."""
    if not values or not all(isinstance(value, str | int | float | None) for value in values):
        return ANY
    if len(values) > MOST_VALUES or not all(map(_has_literal, values)):
        return either(NONE if value is None else Kind(type(value).__name__) for value in values)
    if len(values) == 1 and isinstance(values[0], str) and len(ascii(values[0])) > LONGEST_VALUE:
        return STRING
    plain = [value for value in values if value is not None]
    kinds = [choice(plain)] if plain else []
    return either((*kinds, *([NONE] if None in values else [])))


def _has_literal(value: Any) -> bool:
    """Return True if Python has a literal that can be written to a file and read again."""
    if isinstance(value, int | float):
        return isinstance(value, int) and value.bit_length() <= 64
    return value is None or not any("\ud800" <= char <= "\udfff" for char in value)


def _implied_type(schema: dict[str, Any]) -> str | None:
    """Return the type that the keywords of a schema without one speak of."""
    if ARRAY_WORDS & schema.keys():
        return "array"
    return "object" if OBJECT_WORDS & schema.keys() else None
