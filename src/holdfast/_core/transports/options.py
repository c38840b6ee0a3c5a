"""Checks of the options of `Stdio` and `Http`: a wrong one is refused by name and value."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any

from holdfast.errors import ValidationError


def refuse(owner: str, name: str, value: object, expected: str) -> ValidationError:
    """Return the error for an option that is not ``expected``."""
    return ValidationError(f"{owner}({name}={value!r}): must be {expected}")


def seconds(owner: str, name: str, value: Any, *, zero: bool = False) -> float:
    """Return a number of seconds, or refuse what is none."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or math.isnan(value) or value < 0 or (value == 0 and not zero):
        expected = "a number of seconds, " + ("0 or more" if zero else "more than 0")
        raise refuse(owner, name, value, expected)
    return float(value)


def flag(owner: str, name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise refuse(owner, name, value, "True or False")
    return value


def text(owner: str, name: str, value: Any) -> str | None:
    """Return a string or None, or refuse what is neither."""
    if value is not None and not isinstance(value, str):
        raise refuse(owner, name, value, "a string")
    return value


def path(owner: str, name: str, value: Any) -> str | None:
    if value is None:
        return None
    try:
        found = os.fspath(value)
    except TypeError:
        raise refuse(owner, name, value, "a path") from None
    return os.fsdecode(found)


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


def command(owner: str, value: Any, args: Any) -> tuple[str, ...]:
    """Return the words of a command line; only a string without ``args`` is split."""
    if isinstance(value, str) and args is None:
        try:
            from shlex import split

            found = tuple(split(value))
        except ValueError as error:
            raise ValidationError(f"command {value!r}: {error}") from None
    else:
        program = [value] if isinstance(value, str | os.PathLike) else value
        found = (*words(owner, "command", program), *words(owner, "args", args or ()))
    if not found or not found[0]:
        raise ValidationError(f"command {value!r}: there is no program in it")
    return found


def words(owner: str, name: str, value: Any) -> tuple[str, ...]:
    """Return strings and paths as strings; refuse one string in place of a list."""
    if isinstance(value, str | bytes):
        raise refuse(owner, name, value, "a list of words, not one string")
    try:
        return tuple(os.fsdecode(os.fspath(word)) for word in value)
    except TypeError:
        raise refuse(owner, name, value, "words, each a string or a path") from None


def names(owner: str, name: str, value: Any) -> bool | tuple[str, ...]:
    """Return True, False or names."""
    if isinstance(value, bool):
        return value
    try:
        found = () if value is None else tuple(value)
    except TypeError:
        found = (None,)
    if isinstance(value, str) or not all(isinstance(one, str) for one in found):
        raise refuse(owner, name, value, "a list of names, True or False")
    return found
