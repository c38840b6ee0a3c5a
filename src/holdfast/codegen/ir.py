"""The types that a schema comes down to: a small model, with no Python text in it yet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Plain:
    """A type that is one word."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these values."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Array:
    """An array of one kind of items."""

    item: Kind


@dataclass(frozen=True, slots=True)
class Row:
    """An array with a kind for each place."""

    items: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """An object whose keys are not known."""

    value: Kind


@dataclass(frozen=True, slots=True)
class Named:
    """An object whose keys are known: a `Record` of that name."""

    name: str


@dataclass(frozen=True, slots=True)
class Either:
    """Any of several kinds, two at least. Made by `either`."""

    options: tuple[Kind, ...]


Value: TypeAlias = "str | int | bool | None"
Kind: TypeAlias = "Plain | Choice | Array | Row | Table | Named | Either"

ANY: Final = Plain("Any")
NONE: Final = Plain("None")
STRING: Final = Plain("str")
UNSET: Final = Plain("Unset")


@dataclass(frozen=True, slots=True)
class Field:
    """A key of an object, or a parameter of a tool."""

    wire: str
    kind: Kind
    required: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """An object with known keys; becomes a TypedDict."""

    name: str
    fields: tuple[Field, ...]
    note: str = ""


def either(options: Iterable[Kind]) -> Kind:
    """The union: flat, nothing twice, choices together, None last; Any swallows the rest."""
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
    """True is not 1 here, as it is for ``==``."""
    return Choice(tuple({(type(value), value): value for value in values}.values()))
