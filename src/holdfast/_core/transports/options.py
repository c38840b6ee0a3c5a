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
    listed = isinstance(value, Iterable) and not isinstance(value, str | bytes)
    found = tuple(value) if listed else ()
    usable = listed and all(isinstance(one, str | os.PathLike) for one in found)
    require(usable, owner, name, value, f"a list of {expected}, each a string or a path")
    return tuple(os.fsdecode(one) for one in found)


def command(owner: str, value: Any, args: Any) -> tuple[str, ...]:
    """Return the words of a command line; only a string without ``args`` is split."""
    if isinstance(value, str) and args is None:
        from shlex import split

        try:
            found = tuple(split(value))
        except ValueError as error:
            raise ValidationError(f"command {value!r}: {error}") from None
    else:
        program = [value] if isinstance(value, str | os.PathLike) else value
        found = (*words(owner, "command", program), *words(owner, "args", args or ()))
    if not found or not found[0]:
        raise ValidationError(f"command {value!r}: there is no program in it")
    return found


def table(owner: str, name: str, value: Any) -> dict[str, str]:
    """Return a mapping of strings to strings; pairs are taken as well."""
    try:
        found = dict(value.items() if isinstance(value, Mapping) else value)
    except (TypeError, ValueError):
        expected = "a mapping of strings, or pairs of them"
        raise ValidationError(f"{owner}({name}={_shown(value)}): must be {expected}") from None
    for key, one in found.items():
        if not isinstance(key, str) or not isinstance(one, str):
            where = f"{name}[{key!r}]"
            raise ValidationError(f"{owner}({where}={_shown(one)}): names and values are strings")
    return found


def _shown(value: object) -> str:
    """Show a value that may hold a secret: only a number, a flag or None as it is."""
    plain = value is None or isinstance(value, int | float)
    return repr(value) if plain else f"<{type(value).__name__}>"
