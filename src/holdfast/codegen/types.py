"""Types: a small model of what a schema comes down to, and its text in Python.

The layout is what `ruff format` leaves alone at its default of 88 columns. Where its choice would
be hard to foresee, there is none: what is in brackets has an item to a line and a comma at the end,
and a type too long for its place gets a name of its own.
"""

from __future__ import annotations

import keyword
from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from holdfast.codegen.names import (
    MODULE_NAMES,
    TYPE_NAMES,
    ClassNames,
    docstring,
    literal,
    paragraphs,
    pascal,
    width,
)


class PlainType(Struct, frozen=True):
    """A type that is one word."""

    name: str


class Choice(Struct, frozen=True):
    """One of these values."""

    values: tuple[Value, ...]


class Array(Struct, frozen=True):
    """An array of one kind of items."""

    item: Kind


class Row(Struct, frozen=True):
    """An array with a kind for each place."""

    items: tuple[Kind, ...]


class Table(Struct, frozen=True):
    """An object whose keys are not known."""

    value: Kind


class Named(Struct, frozen=True):
    """An object whose keys are known: a `Record` of that name."""

    name: str


class Either(Struct, frozen=True):
    """Any of several kinds, two at least. Made by `either`."""

    options: tuple[Kind, ...]


Value: TypeAlias = "str | int | bool | None"
Kind: TypeAlias = "PlainType | Choice | Array | Row | Table | Named | Either"

ANY: Final = PlainType("Any")
NONE: Final = PlainType("None")
STRING: Final = PlainType("str")
UNSET: Final = PlainType("Unset")


class Field(Struct, frozen=True):
    """A key of an object, or a parameter of a tool."""

    wire: str
    kind: Kind
    required: bool
    note: str = ""


class Record(Struct, frozen=True):
    """An object with known keys; becomes a TypedDict."""

    name: str
    fields: tuple[Field, ...]
    note: str = ""


def either(options: Iterable[Kind]) -> Kind:
    """Return the union: flat, unique, choices merged, None last; Any absorbs the rest."""
    flat: list[Kind] = []
    for option in options:
        flat += option.options if isinstance(option, Either) else (option,)
    if not flat or ANY in flat:
        return ANY
    choices = [option for option in flat if isinstance(option, Choice)]
    if len(choices) > 1:
        joined = choice(value for option in choices for value in option.values)
        flat[flat.index(choices[0])] = joined
        flat = [option for option in flat if option is joined or not isinstance(option, Choice)]
    unique = list(dict.fromkeys(flat))
    if NONE in unique:
        unique = [option for option in unique if option != NONE] + [NONE]
    return unique[0] if len(unique) == 1 else Either(tuple(unique))


def choice(values: Iterable[Value]) -> Choice:
    """Return a choice of distinct values; True is not 1 here."""
    return Choice(tuple({(type(value), value): value for value in values}.values()))


COLUMNS: Final = 88
INDENT: Final = "    "


class Typist:
    """Writes types, names those that are too long, and remembers what has to be imported."""

    def __init__(self, names: ClassNames) -> None:
        self.aliases: list[str] = []
        """Definitions, each after those that it needs."""
        self.used: set[str] = set()
        self._names = names
        self._known: dict[tuple[tuple[str, ...], str], str] = {}

    def inline(self, kind: Kind, shadowed: Collection[str] = ()) -> str:
        """Return a type on one line; ``shadowed`` are builtins with another meaning there."""
        match kind:
            case PlainType(name):
                return self.word(name, shadowed)
            case Named(name):
                return name
            case Choice(values):
                return f"{self.word('Literal')}[{', '.join(map(_value, values))}]"
            case Either(options):
                return " | ".join(self.inline(option, shadowed) for option in options)
        word, parts = _brackets(kind)
        inner = ", ".join(self.inline(part, shadowed) for part in parts)
        return f"{self.word(word, shadowed)}[{inner or '()'}]"

    def fit(
        self, kind: Kind, room: int, path: tuple[str, ...], shadowed: Collection[str] = ()
    ) -> str:
        """Return the type if there is room for it, otherwise a name for it."""
        if isinstance(kind, PlainType | Named):
            return self.inline(kind, shadowed)
        plain, used = self.inline(kind), set(self.used)
        if (path, plain) in self._known:
            return self._known[path, plain]
        text = self.inline(kind, shadowed)
        if width(text) <= room:
            return text
        if isinstance(kind, Array | Table):
            # The brackets around a name for what is in them.
            word, parts = _brackets(kind)
            head = f"{self.word(word, shadowed)}["
            if isinstance(kind, Table):
                head += f"{self.word('str', shadowed)}, "
            inner = self.fit(parts[-1], room - len(head) - 1, (*path, "item"), shadowed)
            text = f"{head}{inner}]"
            if width(text) <= room:
                return text
        if "builtins" not in used:
            self.used.discard("builtins")
        self._known[path, plain] = name = self._define(kind, path)
        return name

    def _define(self, kind: Kind, path: tuple[str, ...]) -> str:
        name = self._names.take(*path)
        if isinstance(kind, Choice):
            word, items = "Literal", list(map(_value, kind.values))
        else:
            word, parts = ("Union", kind.options) if isinstance(kind, Either) else _brackets(kind)
            step = "option" if isinstance(kind, Either) else "item"
            numbered = isinstance(kind, Either | Row)
            items = [
                self.fit(
                    part, COLUMNS - len(INDENT) - 1, (*path, f"{step}{at}" if numbered else step)
                )
                for at, part in enumerate(parts, 1)
            ] or ["()"]
        head = f"{name}: {self.word('TypeAlias')} = {self.word(word)}["
        self.aliases.append(bracketed(head, items, "]"))
        return name

    def word(self, name: str, shadowed: Collection[str] = ()) -> str:
        """Return a type that is one word, and remember that it is used."""
        if name in shadowed:
            self.used.add("builtins")
            return f"builtins.{name}"
        if name not in TYPE_NAMES:
            self.used.add(name)
        return name


def _brackets(kind: Kind) -> tuple[str, Sequence[Kind]]:
    match kind:
        case Array(item):
            return "list", (item,)
        case Table(value):
            return "dict", (PlainType("str"), value)
        case Row(items):
            return "tuple", items
    raise AssertionError(kind)


def _value(value: Value) -> str:
    return literal(value) if isinstance(value, str) else repr(value)


def bracketed(head: str, items: Sequence[str], tail: str, indent: str = "") -> str:
    """Return items between brackets, on one line if they fit."""
    line = f"{indent}{head}{', '.join(items)}{tail}"
    if width(line) <= COLUMNS:
        return line
    if len(items) == 1 and tail.startswith("]"):
        # A comma after the only item of a subscript would change what it says.
        return f"{indent}{head}\n{indent}{INDENT}{items[0]}\n{indent}{tail}"
    return exploded(head, items, tail, indent)


def exploded(head: str, items: Sequence[str], tail: str, indent: str = "") -> str:
    """Return items one to a line, each with a comma."""
    lines = "".join(f"{indent}{INDENT}{item},\n" for item in items)
    return f"{indent}{head}\n{lines}{indent}{tail}"


NOT_REQUIRED = len("NotRequired[]")


def typed_dict(record: Record, typist: Typist, classes: Collection[str]) -> str:
    """Return a class if the keys can be attributes, otherwise a call of TypedDict."""
    typist.used.add("TypedDict")
    if all(_is_attribute(field, record, typist, classes) for field in record.fields):
        return _class(record, typist)
    return _call(record, typist)


def described(fields: Collection[tuple[str, str]], room: int) -> list[str]:
    """Return names and their notes, one below the other."""
    lines: list[str] = []
    for name, note in fields:
        first, *rest = paragraphs(f"{name}: {note}", room - 2 * len(INDENT))
        lines += [f"{INDENT}{first}", *(f"{INDENT}{INDENT}{line}".rstrip() for line in rest)]
    return lines


def _is_attribute(field: Field, record: Record, typist: Typist, classes: Collection[str]) -> bool:
    """Return True if the key can be an attribute: a short identifier that is not reserved."""
    key = field.wire
    if not key.isascii() or not key.isidentifier() or keyword.iskeyword(key):
        return False
    if key.startswith("__") or key in TYPE_NAMES or key in MODULE_NAMES or key in classes:
        return False
    room = _room(key)
    longest_alias = len(pascal(record.name, key)) + 4
    return longest_alias <= room or width(typist.inline(field.kind)) <= room


def _room(key: str) -> int:
    return COLUMNS - len(INDENT) - len(key) - 2 - NOT_REQUIRED


def _class(record: Record, typist: Typist) -> str:
    partial = not any(field.required for field in record.fields)
    lines = [f"class {record.name}(TypedDict{', total=False' if partial else ''}):"]
    words = paragraphs(record.note, COLUMNS - len(INDENT))
    notes = [(field.wire, field.note) for field in record.fields if field.note]
    if notes:
        keys = described(notes, COLUMNS - len(INDENT))
        words = [*(words or ["An object."]), "", "Keys:", *keys]
    if text := docstring(words, INDENT):
        lines += [*text, ""]
    for field in record.fields:
        kind = typist.fit(field.kind, _room(field.wire), (record.name, field.wire))
        lines.append(f"{INDENT}{field.wire}: {_mark(kind, field.required or partial, typist)}")
    return "\n".join(lines)


def _call(record: Record, typist: Typist) -> str:
    """Return the functional form; types are strings, since later ones are not defined yet."""
    items: list[str] = []
    for field in record.fields:
        text = typist.inline(field.kind)
        if "Literal[" in text:  # quotes inside quotes: choices get a name
            text = typist.fit(field.kind, -1, (record.name, field.wire))
        items.append(f"{literal(field.wire)}: {literal(_mark(text, field.required, typist))}")
    body = exploded("{", items, "}", INDENT).lstrip()
    return exploded(f"{record.name} = TypedDict(", [literal(record.name), body], ")")


def _mark(text: str, required: bool, typist: Typist) -> str:
    if required:
        return text
    typist.used.add("NotRequired")
    return f"NotRequired[{text}]"
