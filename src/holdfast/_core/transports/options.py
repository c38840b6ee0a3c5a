"""Checks of the options of `Stdio` and `Http`: a wrong one is refused by name and value."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.errors import ValidationError


def require(ok: object, owner: str, name: str, value: object, expected: str) -> None:
    """Raise `ValidationError` for an option that is not as expected."""
    if not ok:
        raise ValidationError(f"{owner}({name}={value!r}): must be {expected}")


def flag(owner: str, name: str, value: Any) -> bool:
    require(isinstance(value, bool), owner, name, value, "True or False")
    return bool(value)


def seconds(owner: str, name: str, value: Any, *, zero: bool = False) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    expected = "a number of seconds, " + ("0 or more" if zero else "more than 0")
    require(number and (value > 0 or (zero and value == 0)), owner, name, value, expected)
    # An integer may be more than a float can hold.
    return float(value) if value < 1e300 else math.inf


def path(owner: str, name: str, value: Any) -> str | None:
    if value is None:
        return None
    require(isinstance(value, str | bytes | os.PathLike), owner, name, value, "a path")
    return os.fsdecode(value)


def words(owner: str, name: str, value: Any, expected: str = "words") -> tuple[str, ...]:
    """Return strings and paths as strings; refuse one string in place of a list."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    listing = tuple(value) if is_list else ()
    usable = is_list and all(isinstance(word, str | os.PathLike) for word in listing)
    require(usable, owner, name, value, f"a list of {expected}, each a string or a path")
    return tuple(os.fsdecode(word) for word in listing)


def command(owner: str, value: Any, args: Any) -> tuple[str, ...]:
    """Return the words of a command line; only a string without ``args`` is split."""
    if isinstance(value, str) and args is None:
        from holdfast._core.command_line import split_words

        try:
            line = tuple(split_words(value))
        except ValueError as error:
            raise ValidationError(f"command {value!r}: {error}") from None
    else:
        program = [value] if isinstance(value, str | os.PathLike) else value
        line = (*words(owner, "command", program), *words(owner, "args", args or ()))
    if not line or not line[0]:
        raise ValidationError(f"command {value!r}: there is no program in it")
    return line


def table(owner: str, name: str, value: Any) -> dict[str, str]:
    """Return a mapping of strings to strings; pairs are taken as well."""
    try:
        entries = dict(value.items() if isinstance(value, Mapping) else value)
    except (TypeError, ValueError):
        expected = "a mapping of strings, or pairs of them"
        raise ValidationError(f"{owner}({name}={_shown(value)}): must be {expected}") from None
    for key, entry in entries.items():
        if not isinstance(key, str) or not isinstance(entry, str):
            where = f"{name}[{key!r}]"
            raise ValidationError(f"{owner}({where}={_shown(entry)}): names and values are strings")
    return entries


def _shown(value: object) -> str:
    """Show a value that may hold a secret: only a number, a flag or None as it is."""
    plain = value is None or isinstance(value, int | float)
    return repr(value) if plain else f"<{type(value).__name__}>"
