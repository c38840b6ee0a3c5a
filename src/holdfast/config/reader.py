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
Fields: TypeAlias = Mapping[str, "str | Make | tuple[Fields, Make] | Exception | None"]
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


class EntryReader(Struct, kw_only=True):
    """Collects the settings of one entry, and what is wrong with it."""

    source: EntrySource
    name: str
    fields: Fields
    found: Found = {}
    origins: dict[str, str] = {}
    """The field that each setting is from."""
    problems: list[ConfigProblem] = []

    def read(self, raw: Any, inputs: Mapping[str, ConfigInput]) -> ServerEntry:
        """Return the entry that these fields describe."""
        found, origins = self.found, self.origins
        try:
            self._take(convert(raw, dict[Any, Any]), self.fields)
        except ValueError as error:
            self._fault(None, str(error))
        kind = found.pop("type", None)
        if kind is None and "command" in found and "url" in found:
            self._fault(origins["url"], "there is both a command and a URL; leave one out")
        missing = "is missing" if kind is not None else "is missing, and so is a URL"
        kind = kind or ("url" if "url" in found else "command")
        broken = {problem.field for problem in self.problems if problem.level == "error"}
        if kind not in found and broken.isdisjoint((*_COMMANDS, *_URLS, None)):
            ways = _COMMANDS if kind == "command" else _URLS
            self._fault(next(name for name in ways if name in self.fields), missing)
        other = [name for name in found if TABLE[name].kind not in (kind, "any")]
        for place in dict.fromkeys(origins[name] for name in other if not TABLE[name].own):
            self._fault(place, "has no effect here", "warning")
        settings = {name: found.pop(name) for name in list(found) if TABLE[name].own}
        way: Any = {name: value for name, value in found.items() if name not in other}
        if "args" in way:
            way["args"] = tuple(way["args"])
        entry = ServerEntry(name=self.name, source=self.source, settings=settings, **way)
        return self._checked(entry, inputs)

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
            except UserWarning as warning:
                self._fault(field, str(warning), "warning")
            except ValueError as error:
                self._fault(field, str(error))
        unknown = [str(key) for key in raw if key not in fields]
        for number, key in enumerate(unknown):
            hint = did_you_mean(key, sorted(fields)) if number < _MOST_HINTS else ""
            self._fault(within + key, f"is not known here{hint and '; '}{hint}", "warning")

    def _add(self, field: str, name: str, value: Any) -> None:
        """Add a value to a setting: the first counts, ours over all; objects are joined."""
        if name in ("env", "headers") and isinstance(value, Mapping):
            value = self._strings(field, value)
        if name in TABLE:
            parsed = parse_setting(TABLE[name], value)
            if isinstance(parsed, Struct) and isinstance(value, Mapping):
                unknown = [key for key in value if key not in parsed.__struct_fields__]
                for key in unknown:
                    self._fault(f"{field}.{key}", "is not known here", "warning")
                value = {key: value[key] for key in parsed.__struct_fields__ if key in value}
        there = self.found.get(name)
        if there is None or field.startswith("holdfast."):
            self.found[name], self.origins[name] = value, field
        elif name == "args":
            self.found[name] = [*there, *value]
        elif isinstance(there, dict):
            # Names of headers are the same in upper and lower case.
            known = {key.lower() for key in there}
            more = {key: one for key, one in value.items() if key.lower() not in known}
            self.found[name] = {**there, **more}

    def _strings(self, field: str, value: Mapping[Any, Any]) -> dict[str, str]:
        """Return an object of strings; numbers and booleans are taken as they are written."""
        found: dict[str, str] = {}
        for key, item in value.items():
            # VS Code: ``null`` removes a variable, and a server inherits none by default.
            if isinstance(item, str | int | float):
                found[str(key)] = item if isinstance(item, str) else json.dumps(item)
            elif item is not None:
                self._fault(f"{field}.{key}", "must be a string or a number")
        return found

    # Values

    def _checked(self, entry: ServerEntry, inputs: Mapping[str, ConfigInput]) -> ServerEntry:
        """Return the entry with the inputs that it asks for, and all problems."""
        values = {row.name: value for row, value in given_settings(entry)}
        for field, fault in value_faults(values, expanded=False):
            self._fault(field, fault)
        if entry.command is not None and not entry.args and len(entry.command.split()) > 1:
            text = "has a space in it; arguments belong in args, one by one"
            self._fault("command", text, "warning")
        used: list[tuple[str, Variable]] = []
        for _, field, text in texts(entry):
            if len(text) > LONGEST_TEXT:
                self._fault(field, f"is longer than {LONGEST_TEXT:,} characters")
                continue
            if "\0" in text:
                self._fault(field, "must not have a zero character in it")
            elif not text.isascii() and _HALF.search(text):
                self._fault(field, "must not have half a character in it")
            left = MOST_VARIABLES - len(used)
            if left < 0 or "${" not in text:
                continue
            try:
                found = (one for one in pieces(text) if isinstance(one, Variable))
                used += [(field, one) for one in islice(found, left + 1)]
            except ExpansionError as error:
                self._fault(field, str(error))
            if len(used) > MOST_VARIABLES:
                self._fault(field, f"has more variables than the {MOST_VARIABLES:,} of an entry")
        errors = [problem for problem in self.problems if problem.level == "error"]
        warnings = [problem for problem in self.problems if problem.level == "warning"]
        kept = [*errors[:MOST_PROBLEMS], *warnings[:MOST_PROBLEMS]]
        if more := len(self.problems) - len(kept):
            level: Level = "error" if len(errors) > MOST_PROBLEMS else "warning"
            self._fault(None, f"{more:,} more problems are not shown", level)
            kept.append(self.problems[-1])
        asked = [variable.name for _, variable in used if variable.kind == "input"]
        return replace(
            entry,
            variables=tuple(used),
            inputs={one: inputs[one] for one in asked if one in inputs},
            problems=tuple(sorted(kept, key=lambda problem: problem.level)),
        )
