"""Types as Python text, and how long text is laid out.

The layout is what `ruff format` leaves alone at its default of 88 columns. Where its choice
would be hard to foresee, there is none: what is in brackets has an item to a line and a comma
at the end, and a type too long for its place gets a name of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from holdfast.codegen.ir import Array, Choice, Either, Kind, Named, Plain, Row, Table, Value
from holdfast.codegen.literals import literal, width
from holdfast.codegen.names import TYPE_NAMES, ClassNames

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
        """A type on one line. ``shadowed`` are builtins that mean something else there."""
        match kind:
            case Plain(name):
                return self._word(name, shadowed)
            case Named(name):
                return name
            case Choice(values):
                return f"{self._word('Literal')}[{', '.join(map(_value, values))}]"
            case Either(options):
                return " | ".join(self.inline(option, shadowed) for option in options)
        word, parts = _brackets(kind)
        inner = ", ".join(self.inline(part, shadowed) for part in parts)
        return f"{self._word(word, shadowed)}[{inner or '()'}]"

    def fit(
        self, kind: Kind, room: int, path: tuple[str, ...], shadowed: Collection[str] = ()
    ) -> str:
        """The type if there is room for it, else a name for what is long, whatever the room."""
        if isinstance(kind, Plain | Named):
            return self.inline(kind, shadowed)
        plain, used = self.inline(kind), set(self.used)
        if (path, plain) in self._known:
            return self._known[path, plain]
        text = self.inline(kind, shadowed)
        if width(text) <= room:
            return text
        if isinstance(kind, Array | Table):
            text = self._around(kind, room, path, shadowed)
            if width(text) <= room:
                return text
        if "builtins" not in used:
            self.used.discard("builtins")
        self._known[path, plain] = name = self._define(kind, path)
        return name

    def _around(
        self, kind: Array | Table, room: int, path: tuple[str, ...], shadowed: Collection[str]
    ) -> str:
        """Brackets as they are, around a name for what is in them."""
        word, parts = _brackets(kind)
        head = f"{self._word(word, shadowed)}["
        if isinstance(kind, Table):
            head += f"{self._word('str', shadowed)}, "
        inner = self.fit(parts[-1], room - len(head) - 1, (*path, "item"), shadowed)
        return f"{head}{inner}]"

    def _define(self, kind: Kind, path: tuple[str, ...]) -> str:
        name = self._names.take(*path)
        match kind:
            case Choice(values):
                word, items = "Literal", list(map(_value, values))
            case Either(options):
                word, items = "Union", self._items(options, path, "option")
            case Row(row):
                word, items = "tuple", self._items(row, path, "item") or ["()"]
            case _:
                word, parts = _brackets(kind)
                room = COLUMNS - len(INDENT) - 1
                items = [self.fit(part, room, (*path, "item")) for part in parts]
        head = f"{name}: {self._word('TypeAlias')} = {self._word(word)}["
        self.aliases.append(bracketed(head, items, "]"))
        return name

    def _items(self, kinds: Sequence[Kind], path: tuple[str, ...], word: str) -> list[str]:
        room = COLUMNS - len(INDENT) - 1
        return [self.fit(kind, room, (*path, f"{word}{at}")) for at, kind in enumerate(kinds, 1)]

    def _word(self, name: str, shadowed: Collection[str] = ()) -> str:
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
            return "dict", (Plain("str"), value)
        case Row(items):
            return "tuple", items
    raise AssertionError(kind)


def _value(value: Value) -> str:
    return literal(value) if isinstance(value, str) else repr(value)


def bracketed(head: str, items: Sequence[str], tail: str, indent: str = "") -> str:
    """``head`` ends with an opening bracket; in one line if that surely fits."""
    line = f"{indent}{head}{', '.join(items)}{tail}"
    if width(line) <= COLUMNS:
        return line
    if len(items) == 1 and tail.startswith("]"):
        # A comma after the only item of a subscript would change what it says.
        return f"{indent}{head}\n{indent}{INDENT}{items[0]}\n{indent}{tail}"
    return exploded(head, items, tail, indent)


def exploded(head: str, items: Sequence[str], tail: str, indent: str = "") -> str:
    """One item to a line, each with a comma."""
    lines = "".join(f"{indent}{INDENT}{item},\n" for item in items)
    return f"{indent}{head}\n{lines}{indent}{tail}"
