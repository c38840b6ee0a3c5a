"""Read one entry of a file by the table of its dialect; collect faults by field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.text import did_you_mean
from holdfast.config.entry import (
    ConfigInput,
    ConfigProblem,
    ExpansionError,
    Level,
    ServerEntry,
    Variable,
    given_settings,
    pieces,
    texts,
)
from holdfast.config.environment import EntrySource
from holdfast.config.relayed import read_relay
from holdfast.config.settings import OWN, TABLE, convert, parse_setting, value_faults

MOST_PROBLEMS: Final = 20
"""Errors, and warnings, of one server that are kept; the rest is counted."""
MOST_VARIABLES: Final = 1000
LONGEST_TEXT: Final = 1 << 15
"""Characters of one string: an approval shows all of it."""
_LONGEST_FIELD: Final = 120
_MOST_HINTS: Final = 3
_HALF: Final = re.compile("[\ud800-\udfff]")

Found: TypeAlias = dict[str, Any]
"""Settings by name, as a file has them."""
Make: TypeAlias = Callable[[Any], Found]
"""Makes settings of a field's value. A ValueError is an error, a UserWarning a warning."""
FieldTarget: TypeAlias = "str | Make | tuple[Fields, Make] | Exception"
Fields: TypeAlias = Mapping[str, "FieldTarget | None"]
"""What each field becomes: a setting by name (``oauth.scopes``: one key of it), or the result of a
function. For an object: its own fields, and a function for a value that is no object. An exception
is the reason why the field is refused or has no effect; None: ignored."""

OWN_FIELDS: Final[Fields] = {
    "holdfast": ({row.name: row.name for row in OWN}, lambda value: convert(value, dict[str, Any]))
}
"""The field of Holdfast's own settings, in every dialect."""
_COMMANDS: Final = ("command", "cmd")
_URLS: Final = ("url", "uri", "httpUrl", "serverUrl", "type", "transport")
"""The fields that say how a server is reached."""


# Five products write five dialects, and people copy entries between them. A field that is not known
# is a warning, not an error: the entry may have been written for a newer version of its product.
# A field that is known and cannot be honoured is said to have no effect, because somebody may rely
# on it ("sandbox", "autoApprove"). A field that would do harm if it were ignored is an error.


class EntryReader(Struct, kw_only=True):
    """Collects the settings of one entry, and what is wrong with it."""

    source: EntrySource
    name: str
    fields: Fields
    settings: Found = {}
    origins: dict[str, str] = {}
    """The field that each setting is from."""
    problems: list[ConfigProblem] = []

    def read(self, raw: Any, inputs: Mapping[str, ConfigInput]) -> ServerEntry:
        """Return the entry that these fields describe."""
        values = self.settings
        try:
            self._take(convert(raw, dict[Any, Any]), self.fields)
        except ValueError as error:
            self._fault(None, str(error))
        self._see_through()
        kind = self._kind()
        unused = [name for name in values if TABLE[name].kind not in (kind, "any")]
        places = [self.origins[name] for name in unused if not TABLE[name].own]
        for place in dict.fromkeys(places):
            self._fault(place, "has no effect here", "warning")
        settings = {name: values.pop(name) for name in list(values) if TABLE[name].own}
        fields: Any = {name: value for name, value in values.items() if name not in unused}
        if "args" in fields:
            fields["args"] = tuple(fields["args"])
        entry = ServerEntry(name=self.name, source=self.source, settings=settings, **fields)
        return self._checked(entry, inputs)

    def _see_through(self) -> None:
        """Take ``holdfast serve -- COMMAND``, which `install` writes, for the command itself.

        One relay in front of a server is enough.
        """
        values = self.settings
        relay = read_relay([values.get("command", ""), *values.get("args", [])])
        if relay is not None and relay.server:
            values["command"], values["args"] = relay.server[0], list(relay.server[1:])
            self.origins.setdefault("args", "args")

    def _kind(self) -> str:
        """Return how the server is reached, ``command`` or ``url``; say what is missing for it."""
        values = self.settings
        kind = values.pop("type", None)
        if kind is None and "command" in values and "url" in values:
            self._fault(self.origins["url"], "there is both a command and a URL; leave one out")
        missing = "is missing" if kind is not None else "is missing, and so is a URL"
        kind = kind or ("url" if "url" in values else "command")
        if kind not in values:
            self._fault_address(_COMMANDS if kind == "command" else _URLS, missing)
        return str(kind)

    def _fault_address(self, ways: tuple[str, ...], missing: str) -> None:
        """Say that there is no command or no URL, unless a fault explains it already."""
        broken = {problem.field for problem in self.problems if problem.level == "error"}
        if broken.isdisjoint((*_COMMANDS, *_URLS, None)):
            self._fault(next(name for name in ways if name in self.fields), missing)

    def _fault(self, field: str | None, message: str, level: Level = "error") -> None:
        """Add a problem of a field; None: of the whole entry."""
        self.problems.append(
            ConfigProblem(
                file=self.source.file,
                server=self.name,
                field=field and field[:_LONGEST_FIELD],
                message=message,
                level=level,
            )
        )

    # Fields

    def _take(self, raw: Mapping[Any, Any], fields: Fields, within: str = "") -> None:
        """Take what every field says, in the order of the table, and warn of unknown ones."""
        for key, target in fields.items():
            value, field = raw.get(key), within + key
            if value is None or target is None:
                continue
            try:
                self._take_field(field, target, value)
            except UserWarning as warning:
                self._fault(field, str(warning), "warning")
            except ValueError as error:
                self._fault(field, str(error))
        unknown = [str(key) for key in raw if key not in fields]
        for number, key in enumerate(unknown):
            hint = did_you_mean(key, sorted(fields)) if number < _MOST_HINTS else ""
            self._fault(within + key, f"is not known here{hint and '; '}{hint}", "warning")

    def _take_field(self, field: str, target: FieldTarget, value: Any) -> None:
        """Take what one field says, as the row of the table has it."""
        if isinstance(target, Exception):
            level: Level = "warning" if isinstance(target, Warning) else "error"
            self._fault(field, str(target), level)
        elif isinstance(target, tuple) and isinstance(value, Mapping):
            self._take(value, target[0], f"{field}.")
        elif isinstance(target, str):
            name, _, part = target.partition(".")
            self._add(field, name, {part: value} if part else value)
        else:
            make = target[1] if isinstance(target, tuple) else target
            for name, made in make(value).items():
                self._add(field, name, made)

    def _add(self, field: str, name: str, value: Any) -> None:
        """Add a value to a setting: the first counts, ours over all; objects are joined."""
        if name in ("env", "headers") and isinstance(value, Mapping):
            value = self._strings(field, value)
        if name in TABLE:
            parsed = parse_setting(TABLE[name], value)
            if isinstance(parsed, Struct) and isinstance(value, Mapping):
                value = self._only(parsed.__struct_fields__, field, value)
        there = self.settings.get(name)
        if there is None or field.startswith("holdfast."):
            self.settings[name], self.origins[name] = value, field
        elif name == "args":
            self.settings[name] = [*there, *value]
        elif isinstance(there, dict):
            self.settings[name] = _joined(there, value)

    def _only(self, keys: tuple[str, ...], field: str, value: Mapping[Any, Any]) -> dict[str, Any]:
        """Return an object with these keys alone, and warn of those that it has beside them."""
        for key in value:
            if key not in keys:
                self._fault(f"{field}.{key}", "is not known here", "warning")
        return {key: value[key] for key in keys if key in value}

    def _strings(self, field: str, value: Mapping[Any, Any]) -> dict[str, str]:
        """Return an object of strings; numbers and booleans are taken as they are written."""
        strings: dict[str, str] = {}
        for key, item in value.items():
            # VS Code: ``null`` removes a variable, and a server inherits none by default.
            if isinstance(item, str | int | float):
                strings[str(key)] = item if isinstance(item, str) else json.dumps(item)
            elif item is not None:
                self._fault(f"{field}.{key}", "must be a string or a number")
        return strings

    # Values

    def _checked(self, entry: ServerEntry, inputs: Mapping[str, ConfigInput]) -> ServerEntry:
        """Return the entry with the inputs that it asks for, and all problems."""
        values = {row.name: value for row, value in given_settings(entry)}
        for field, fault in value_faults(values, expanded=False):
            self._fault(field, fault)
        if entry.command is not None and not entry.args and len(entry.command.split()) > 1:
            text = "has a space in it; arguments belong in args, one by one"
            self._fault("command", text, "warning")
        variables: list[tuple[str, Variable]] = []
        for _, field, text in texts(entry):
            if self._is_readable(field, text):
                variables += self._variables(field, text, MOST_VARIABLES - len(variables))
        ids = [variable.name for _, variable in variables if variable.kind == "input"]
        return replace(
            entry,
            variables=tuple(variables),
            inputs={name: inputs[name] for name in ids if name in inputs},
            problems=self._most_important(),
        )

    def _is_readable(self, field: str, text: str) -> bool:
        """Return whether a text is short enough to be read on; say what is wrong with it."""
        if len(text) > LONGEST_TEXT:
            self._fault(field, f"is longer than {LONGEST_TEXT:,} characters")
            return False
        if "\0" in text:
            self._fault(field, "must not have a zero character in it")
        elif not text.isascii() and _HALF.search(text):
            self._fault(field, "must not have half a character in it")
        return True

    def _variables(self, field: str, text: str, room: int) -> list[tuple[str, Variable]]:
        """Return the variables of a text, one more than there is room for at most."""
        if room < 0 or "${" not in text:
            return []
        variables: list[tuple[str, Variable]] = []
        try:
            parts = (part for part in pieces(text) if isinstance(part, Variable))
            variables = [(field, variable) for variable in islice(parts, room + 1)]
        except ExpansionError as error:
            self._fault(field, str(error))
        if len(variables) > room:
            self._fault(field, f"has more variables than the {MOST_VARIABLES:,} of an entry")
        return variables

    def _most_important(self) -> tuple[ConfigProblem, ...]:
        """Return the problems, errors first; of many the first, and how many there are."""
        errors = [problem for problem in self.problems if problem.level == "error"]
        warnings = [problem for problem in self.problems if problem.level == "warning"]
        problems = [*errors[:MOST_PROBLEMS], *warnings[:MOST_PROBLEMS]]
        if rest := len(self.problems) - len(problems):
            level: Level = "error" if len(errors) > MOST_PROBLEMS else "warning"
            self._fault(None, f"{rest:,} more problems are not shown", level)
            problems.append(self.problems[-1])
        return tuple(sorted(problems, key=lambda problem: problem.level))


def _joined(there: dict[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with what another adds to it; what is there counts."""
    # Names of headers are the same in upper and lower case.
    names = {key.lower() for key in there}
    added = {key: item for key, item in value.items() if key.lower() not in names}
    return {**there, **added}
