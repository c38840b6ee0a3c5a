"""The fields of one entry, taken one by one; what is wrong with a field is told by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from holdfast.config.problems import Level, Problem, visible

MOST_ITEMS: Final = 10_000
"""Items of one list or object."""


class Fields:
    """What an entry says. Each ``take`` marks its field as understood."""

    def __init__(self, raw: Any, file: str, server: str, within: str = "") -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._server = server
        self._within = within
        self._taken: set[str] = set()
        self._raw: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        if not isinstance(raw, Mapping):
            self.fault(None, f"must be an object, not {_kind(raw)}")

    def __contains__(self, name: str) -> bool:
        return self._raw.get(name) is not None

    def fault(self, field: str | None, message: str, level: Level = "error") -> None:
        named = self._within + field if field is not None else self._within.rstrip(".") or None
        self.problems.append(
            Problem(file=self._file, server=self._server, field=named, message=message, level=level)
        )

    def take(self, name: str) -> Any:
        """The value as it is; None where it is absent (or null)."""
        self._taken.add(name)
        return self._raw.get(name)

    def put(self, name: str, value: Any) -> None:
        """Read another value here than the one that is written."""
        self._raw = {**self._raw, name: value}

    def text(self, *names: str) -> str | None:
        """A string under the first of these names that is there."""
        found = None
        for name in names:
            value = self.take(name)
            if value is None or found is not None:
                continue
            if not isinstance(value, str) or not value:
                empty = "must not be empty" if value == "" else _must("be a string", value)
                self.fault(name, empty)
            else:
                found = value
        return found

    def texts(self, name: str) -> tuple[str, ...] | None:
        """A list of strings."""
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            odd = value if not isinstance(value, list) else next(_odd(value))
            what = "be a list of strings" if not isinstance(value, list) else "hold only strings"
            self.fault(name, _must(what, odd))
            return None
        return tuple(value)

    def table(self, name: str) -> dict[str, str]:
        """An object of strings. Numbers and booleans are taken as they are written."""
        value = self.take(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.fault(name, _must("be an object of strings", value))
            return {}
        found = {}
        for key, item in value.items():
            plain = _scalar(item)
            if plain is None:
                self.fault(f"{name}.{key}", _must("be a string", item))
            else:
                found[str(key)] = plain
        return found

    def flag(self, name: str) -> bool | None:
        value = self.take(name)
        if value is None or isinstance(value, bool):
            return value
        self.fault(name, _must("be true or false", value))
        return None

    def seconds(self, name: str, unit: float = 1.0) -> float | None:
        """A span of time; ``unit`` is what 1 means, in seconds."""
        value = self.take(name)
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < float("inf"):
            self.fault(name, "must be a number, more than 0")
            return None
        return float(value * unit)

    def inner(self, name: str) -> Fields | None:
        """The fields of an object inside."""
        value = self.take(name)
        if value is None:
            return None
        found = Fields(value, self._file, self._server, f"{self._within}{name}.")
        self.problems += found.problems
        found.problems = self.problems
        return found

    def ignore(self, names: Iterable[str]) -> None:
        """Fields that say nothing about how to reach the server."""
        self._taken.update(names)

    def without_effect(self, names: Iterable[str]) -> None:
        """Fields that are understood, and mean nothing here."""
        for name in names:
            if name in self and name not in self._taken:
                self.take(name)
                self.fault(name, "has no effect here", "warning")

    def rest(self) -> None:
        """Warn of what was not understood; it does no harm."""
        known = sorted(self._taken)
        for name in self._raw:
            if name not in self._taken:
                self.fault(str(name), f"is not known here{_hint(str(name), known)}", "warning")


def _hint(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name[:40], known, 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _odd(values: list[Any]) -> Any:
    return (value for value in values if not isinstance(value, str))


def _scalar(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return None


def _must(what: str, value: Any) -> str:
    return f"must {what}, not {_kind(value)}"


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), visible(type(value).__name__))


_KINDS: Final = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
