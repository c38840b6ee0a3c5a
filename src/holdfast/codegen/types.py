"""Types: a small model of what a schema comes down to, and its text in Python.

The layout is what `ruff format` leaves alone at its default of 88 columns. Where its choice would
be hard to foresee, there is none: what is in brackets has an item to a line and a comma at the end,
and a type too long for its place gets a name of its own.
"""

from __future__ import annotations

import keyword
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, TypeAlias

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


class Record(Struct, frozen=True):
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
        if kind.name == "Union":
            return " | ".join(self.inline(option, shadowed) for option in kind.parts)
        name = self.word(kind.name, shadowed)
        if not kind.parts:
            return name
        if kind.name == "Literal":
            return f"{name}[{', '.join(map(_value, kind.parts))}]"
        return f"{name}[{', '.join(self.inline(part, shadowed) for part in kind.parts)}]"

    def fit(
        self, kind: Kind, room: int, path: tuple[str, ...], shadowed: Collection[str] = ()
    ) -> str:
        """Return the type if there is room for it, otherwise a name for it."""
        if not kind.parts:
            return self.inline(kind, shadowed)
        plain, used = self.inline(kind), set(self.used)
        if (path, plain) in self._known:
            return self._known[path, plain]
        text = self.inline(kind, shadowed)
        if width(text) <= room:
            return text
        if kind.name in ("dict", "list"):
            # The brackets around a name for what is in them.
            *keys, last = kind.parts
            head = f"{self.word(kind.name, shadowed)}["
            head += "".join(f"{self.inline(key, shadowed)}, " for key in keys)
            inner = self.fit(last, room - len(head) - 1, (*path, "item"), shadowed)
            text = f"{head}{inner}]"
            if width(text) <= room:
                return text
        if "builtins" not in used:
            self.used.discard("builtins")
        self._known[path, plain] = name = self._define(kind, path)
        return name

    def _define(self, kind: Kind, path: tuple[str, ...]) -> str:
        name = self._names.take(*path)
        if kind.name == "Literal":
            items = list(map(_value, kind.parts))
        else:
            step = "option" if kind.name == "Union" else "item"
            numbered = kind.name in ("Union", "tuple")
            steps = [f"{step}{at}" if numbered else step for at in range(1, len(kind.parts) + 1)]
            room = COLUMNS - len(INDENT) - 1
            items = [
                self.fit(part, room, (*path, step))
                for part, step in zip(kind.parts, steps, strict=True)
            ]
        head = f"{name}: {self.word('TypeAlias')} = {self.word(kind.name)}["
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
