"""Shared by the readers of all dialects: from fields to a checked entry."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from holdfast._core.text import has_unseen, visible
from holdfast.config.dialects.fields import LONGEST_TEXT, EntryFields
from holdfast.config.entry import ConfigProblem, EntrySource, ServerEntry, texts
from holdfast.config.expansion import ConfigInput, ExpansionError, Variable, variables
from holdfast.config.settings import OWN, HttpMode, parse_setting
from holdfast.policies import Timeouts

MOST_SERVERS: Final = {"project": 100, "user": 1000, "explicit": 1000}
"""Servers of one file, by its scope."""
MOST_VARIABLES: Final = 1000
"""Variables in the strings of one entry."""
LONGEST_NAME: Final = 128
EntryDefinition = dict[str, Any]
"""Fields of a `ServerEntry`, by name."""


class EntryReading(NamedTuple):
    """An entry as a dialect reads it."""

    definition: EntryDefinition
    settings: Mapping[str, Any] = {}
    disabled: bool = False


class DialectResult(Struct, frozen=True, kw_only=True):
    """The servers of a file, and what is wrong with the file itself."""

    entries: tuple[ServerEntry, ...] = ()
    problems: tuple[ConfigProblem, ...] = ()


def table_fault(servers: Any, source: EntrySource) -> str | None:
    """Return why a table of servers is not read; None if it is."""
    if servers is not None and not isinstance(servers, Mapping):
        return "must be an object of servers"
    most = MOST_SERVERS[source.scope]
    if servers and len(servers) > most:
        return f"has {len(servers):,} servers; at most {most:,} are read"
    return None


def name_fault(name: Any) -> str | None:
    """Return why this cannot be a server's name; None if it can."""
    if not isinstance(name, str):
        return "a server's name must be a string"
    if not name.strip() or len(name) > LONGEST_NAME:
        return f"the name '{visible(name, 40)}' must have 1 to {LONGEST_NAME} characters"
    if has_unseen(name) or name != name.strip():
        # It would be printed, compared by eye and pasted into a shell.
        return f"the name '{visible(name, 40)}' has characters in it that cannot be seen"
    return None


_SAFE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:/+-]*")


def is_safe_name(name: str) -> bool:
    """Return whether a name means itself in every shell, quoted or not.

    Completion offers no others: behind an open double quote, ``docs$(…)`` would be run.
    """
    return _SAFE_NAME.fullmatch(name) is not None


def entry(
    fields: EntryFields,
    source: EntrySource,
    reading: EntryReading,
    inputs: Mapping[str, ConfigInput],
    ignored: Iterable[str],
) -> ServerEntry:
    """Return the entry, with Holdfast's own settings over those of the dialect."""
    given = {**reading.settings, **own_settings(fields)}
    fields.rest(ignored)
    made = ServerEntry(
        name=fields.server,
        source=source,
        settings=given,
        disabled=reading.disabled,
        **reading.definition,
    )
    used = [variable.name for variable in _check(made, fields) if variable.kind == "input"]
    asked = {one: inputs[one] for one in used if one in inputs}
    return replace(made, inputs=asked, problems=fields.problems)


def _check(made: ServerEntry, fields: EntryFields) -> Iterator[Variable]:
    """Note faults of the entry's strings; yield the variables in them."""
    left = MOST_VARIABLES
    for row, field, text in texts(made):
        fault = _text_fault(text)
        if fault:
            fields.fault(field, fault)
        if left < 0 or len(text) > LONGEST_TEXT or not (row.variables and "${" in text):
            continue
        try:
            found = variables(text, left + 1)
            yield from found
            left -= len(found)
        except ExpansionError as error:
            fields.fault(field, str(error))
        if left < 0:
            fields.fault(field, f"has more variables than the {MOST_VARIABLES:,} of an entry")


_HALF: Final = re.compile("[\ud800-\udfff]")


def _text_fault(text: str) -> str | None:
    if len(text) > LONGEST_TEXT:
        return f"is longer than {LONGEST_TEXT:,} characters"
    if "\0" in text:
        return "must not have a zero character in it"
    if not text.isascii() and _HALF.search(text):
        return "must not have half a character in it"
    return None


def own_settings(fields: EntryFields) -> dict[str, Any]:
    """Return what stands below ``holdfast``, by the table of settings."""
    own = fields.inner("holdfast")
    found: dict[str, Any] = {}
    if own is None:
        return found
    for row in OWN:
        value = own.take(row.name)
        if value is None:
            continue
        try:
            found[row.name], unknown = parse_setting(row, value)
        except ValueError as error:
            own.fault(row.name, str(error))
            continue
        for key in unknown:
            own.fault(f"{row.name}.{key}", "is not known here", "warning")
    own.rest()
    return found


def timeouts(**seconds: float | None) -> dict[str, Any]:
    """Return the timeouts that a dialect gives; the cap of a whole call makes room for them."""
    given = {name: span for name, span in seconds.items() if span is not None}
    if not given:
        return {}
    most = max(given.get("tools", 0.0), given.get("request", 0.0), Timeouts().total)
    return {"timeouts": Timeouts(**given, total=most)}


def lists(**values: tuple[str, ...] | None) -> dict[str, Any]:
    """Return the settings that are said."""
    return {name: value for name, value in values.items() if value is not None}


# Command or URL, as nearly all dialects of JSON write it

_MODES: Final[dict[str, HttpMode]] = {
    "http": "auto",
    "streamable": "streamable",
    "streamable-http": "streamable",
    "streamable_http": "streamable",
    "streamablehttp": "streamable",
    "sse": "sse",
}
_LOCAL: Final = ("stdio", "local")


def definition(fields: EntryFields, url: str | None, *, hint: HttpMode = "auto") -> EntryDefinition:
    """Return how a server is reached: by ``type``, ``command`` or a URL that was found."""
    kind = fields.text("type", "transport")
    program, arguments = _command(fields)
    if kind is not None and kind.lower() not in (*_MODES, *_LOCAL):
        fields.fault("type", f"{visible(kind, 40)!r} is not supported (stdio, http or sse)")
        return {}
    remote = url is not None if kind is None else kind.lower() in _MODES
    if kind is None and url is not None and program is not None:
        fields.fault("type", "there is both a command and a URL; say which is meant")
        return {}
    if remote and url is None and fields.take("url") is None:
        fields.fault("url", "is missing")
    if not remote and program is None and fields.take("command") is None:
        missing = "is missing" if kind is not None else "is missing, and so is a URL"
        fields.fault("command", missing)
    if remote:
        mode = hint if kind is None else _MODES[kind.lower()]
        return by_url(fields, url, mode, fields.table("headers"))
    if url is not None:
        fields.fault("url", "has no effect here", "warning")
    return by_command(fields, program, arguments)


def _command(fields: EntryFields) -> tuple[str | None, tuple[str, ...]]:
    """Return the program and its arguments; some products write both as one list."""
    if isinstance(fields.take("command"), list):
        words = fields.texts("command")
        program, *more = words or ("",)
        if words is not None and not program:
            fields.fault("command", "must not be empty")
        return program or None, (*more, *(fields.texts("args") or ()))
    return fields.text("command"), fields.texts("args") or ()


def by_command(
    fields: EntryFields, program: str | None, arguments: tuple[str, ...]
) -> EntryDefinition:
    """Return the definition of a server that a command starts."""
    env = fields.table("env")
    for name in env:
        fault = variable_fault(name)
        if fault:
            fields.fault(f"env.{name}", fault)
    if program is not None and not program.strip():
        fields.fault("command", "must not be empty")
    elif program is not None and not arguments and len(program.split()) > 1:
        text = "has a space in it; arguments belong in args, one by one"
        fields.fault("command", text, "warning")
    fields.without_effect(("headers",))
    return {
        "command": program,
        "args": arguments,
        "env": env,
        "env_file": fields.text("envFile", "env_file"),
        "cwd": fields.text("cwd"),
    }


def by_url(
    fields: EntryFields, url: str | None, mode: HttpMode, headers: dict[str, str]
) -> EntryDefinition:
    """Return the definition of a server behind a URL."""
    if url is not None and not url.startswith("${"):
        # The scheme can be judged before expansion, the rest only after it.
        if not url.lower().startswith(("http://", "https://")):
            fields.fault("url", "must begin with http:// or https://")
        elif "${" not in url:
            fault = url_fault(url)
            if fault:
                fields.fault("url", fault)
    for name, value in headers.items():
        fault = header_fault(name, value)
        if fault:
            fields.fault(f"headers.{name}", fault)
    if len({name.lower() for name in headers}) < len(headers):
        fields.fault("headers", "has a header twice (upper and lower case are the same)")
    fields.without_effect(("command", "args", "env", "envFile", "cwd"))
    return {"url": url, "headers": headers, "transport": mode}


# Checks that hold before and after expansion

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110 §5.6.2
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # RFC 9110 §5.5, obs-text aside
_NOT_IN_URL: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Parsers disagree about what a backslash means, which decides the host."""
_FRAMING: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)


def variable_fault(name: str) -> str | None:
    """Return why this cannot be the name of an environment variable."""
    if not name or "=" in name or "\0" in name or has_unseen(name) or " " in name:
        return "is no name for a variable"
    return None


def header_fault(name: str, value: str) -> str | None:
    """Return why a header cannot be sent; a line break in it would begin another header."""
    if not _TOKEN.fullmatch(name):
        return "is no name for a header"
    if name.lower() in _FRAMING:
        return "is set by the client itself"
    if _CONTROL.search(value):
        return "must be one line without control characters"
    return None


def url_fault(url: str) -> str | None:
    """Return why this is not the URL of a server."""
    from urllib.parse import urlsplit

    if not url.lower().startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    if _NOT_IN_URL.search(url) or has_unseen(url):
        return "has characters in it that a URL cannot have"
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            return "has no host" if not parts.hostname else "has no valid port"
    except ValueError:
        return "is not a URL"
    return None


# Inputs


def inputs_of(document: Mapping[str, Any]) -> dict[str, ConfigInput]:
    """Return what the file asks its user for, by id. A malformed one is not there."""
    found: dict[str, ConfigInput] = {}
    listed = document.get("inputs")
    for raw in listed if isinstance(listed, list) else ():
        if isinstance(raw, Mapping) and isinstance(raw.get("id"), str):
            found.setdefault(raw["id"], _input(raw))
    return found


def _input(raw: Mapping[str, Any]) -> ConfigInput:
    default, options = raw.get("default"), raw.get("options")
    return ConfigInput(
        id=raw["id"],
        type=_text(raw.get("type")) or "promptString",
        description=_text(raw.get("description")),
        default=default if isinstance(default, str) else None,
        password=raw.get("password") is True,
        options=tuple(filter(None, map(_option, options if isinstance(options, list) else ()))),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _option(value: Any) -> str:
    """Return an option: a string, or an object with its value and a label."""
    return _text(value.get("value")) if isinstance(value, Mapping) else _text(value)
