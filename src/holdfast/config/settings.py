"""The table of settings of a server's entry, one row each.

Reading, validation, resolution, approval and display go by these rows. Variables are expanded in
every string. An approval binds a setting unless its row gives a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from holdfast._core.text import has_unseen, visible
from holdfast.errors import HoldfastError
from holdfast.policies import (
    Approval,
    Backoff,
    Limits,
    Replay,
    Results,
    Timeouts,
    ToolPolicy,
    Validate,
    WhenDown,
)

HttpMode = Literal["auto", "streamable", "sse"]
Receiver = Literal["client", "tools", "transport", "entry"]
LOGIN_KEYS: Final = frozenset(
    {"client_id", "client_secret", "scopes", "redirect_uri", "issuer", "resource", "account"}
    | {"pkce", "enabled", "metadata_url"}
    | {"authorization_endpoint", "token_endpoint", "registration_endpoint"}
)
MOST_ITEMS: Final = 2000
"""Items of one list or object: an approval shows all of them."""


class LockSetting(Struct, frozen=True, kw_only=True):
    """A lock file, and what happens to a server that differs from it."""

    path: str
    mode: Literal["block", "warn", "off"] = "block"


class Setting(Struct, frozen=True):
    """One row of the table."""

    name: str
    type: Any
    key: str = ""
    """The name in files, where it differs."""
    kind: Literal["any", "command", "url"] = "any"
    """The servers that it applies to."""
    own: bool = True
    """It is one of Holdfast's own, below ``holdfast``; otherwise a field of the entry."""
    path: bool = False
    """It is a path, made absolute after expansion. With ``kind="url"`` an approval binds what is in
    the file as well, if that is one of the project: it decides whom the client trusts."""
    unbound: str = ""
    """Why an approval does not bind it; empty: bound."""
    to: Receiver = "client"
    """The receiver: `connect`, the `ToolPolicy`, the transport, or nothing by itself."""
    option: str = ""
    """The name of the option there, where it differs."""


_LIST: Final = tuple[str, ...]
_TABLE: Final = dict[str, str]
_SAME_AS_APPROVED: Final = "switched on again it runs exactly what was approved"
_STDIO: Final[dict[str, Any]] = {"kind": "command", "to": "transport"}
_HTTP: Final[dict[str, Any]] = {"kind": "url", "to": "transport"}

TABLE: Final[dict[str, Setting]] = {
    row.name: row
    for row in (
        Setting("command", str, kind="command", to="entry", own=False),
        Setting("args", _LIST, kind="command", to="entry", own=False),
        Setting("env", _TABLE, **_STDIO, own=False),
        Setting("env_file", str, key="envFile", kind="command", to="entry", own=False, path=True),
        Setting("cwd", str, **_STDIO, own=False, path=True),
        Setting("url", str, kind="url", to="entry", own=False),
        Setting("headers", _TABLE, **_HTTP, own=False),
        Setting("transport", HttpMode, **_HTTP, own=False),
        Setting("disabled", bool, to="entry", own=False, unbound=_SAME_AS_APPROVED),
        Setting("timeouts", Timeouts | float),
        Setting("tool_timeouts", dict[str, float], to="tools", option="timeouts"),
        Setting("backoff", Backoff),
        Setting("limits", Limits),
        Setting("tool_concurrent", dict[str, int], to="tools", option="concurrent"),
        Setting("tool_rate", dict[str, str], to="tools", option="rate"),
        Setting("protocol", str),
        Setting("allow", _LIST, to="tools"),
        Setting("deny", _LIST, to="tools"),
        Setting("validate", Validate, to="tools"),
        Setting("results", Results, to="tools"),
        Setting("approve", Approval | dict[str, Approval], to="tools"),
        Setting("budget", int | dict[str, int], to="tools"),
        Setting("when_down", WhenDown),
        Setting("replay", Replay),
        Setting("lock", LockSetting | str, path=True),
        Setting("log", str, path=True),
        Setting("shared", bool),
        Setting("inherit_env", _LIST | bool, **_STDIO),
        Setting("grace", float, **_STDIO),
        Setting("ca", str, **_HTTP, path=True),
        Setting("cert", str, **_HTTP, path=True),
        Setting("key", str, kind="url", to="entry", path=True),
        Setting("proxy", str, **_HTTP),
        Setting("oauth", _TABLE, kind="url", to="entry"),
    )
}
OWN: Final = tuple(row for row in TABLE.values() if row.own)


# Values as a file has them


def parse_setting(row: Setting, value: Any) -> Any:
    """Return a setting's value as its receiver takes it. Raises ValueError."""
    _check_size(value)
    try:
        parsed = convert(value, row.type)
        if parsed == "":
            raise ValueError("must not be empty")
        parsed = _whole_form(row.name, parsed)
        if row.name == "oauth" and (unknown := sorted(parsed.keys() - LOGIN_KEYS)):
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(sorted(LOGIN_KEYS))}")
        if row.to == "tools":
            ToolPolicy(**{row.option or row.name: parsed})
        if row.name == "grace" and not 0 <= parsed < float("inf"):
            raise ValueError("must be a number, 0 or more")
    except HoldfastError as error:
        raise ValueError(visible(error.message, 200)) from None
    return parsed


def _check_size(value: Any) -> None:
    if isinstance(value, list | dict) and len(value) > MOST_ITEMS:
        raise ValueError(f"has more than {MOST_ITEMS:,} items")


def _whole_form(name: str, parsed: Any) -> Any:
    """Return what a short form stands for: one number for all timeouts, a path for a lock."""
    if name == "timeouts" and isinstance(parsed, float):
        return Timeouts(request=parsed)
    if name == "lock" and isinstance(parsed, str):
        return LockSetting(path=parsed)
    return parsed


def convert(value: Any, kind: Any) -> Any:
    """Return a value of a file as one of a type. Raises ValueError in words of such a file."""
    try:
        return msgspec.convert(value, type=kind)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
    mismatch = re.match(r"Expected `([^`]*)`, got `([^`]*)`", text)
    if mismatch is not None:
        words = [
            " or ".join(_IN_WORDS.get(type_name, type_name) for type_name in types.split(" | "))
            for types in mismatch.groups()
        ]
        text = f"must be {words[0]}, not {words[1]}"
    place = place.strip(".`")
    at = f" (at {place})" if place not in ("", "[...]") else ""
    raise ValueError(f"{visible(text[:1].lower() + text[1:], 200)}{at}")


_IN_WORDS: Final = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}
"""Types of msgspec, as people call them who write JSON, TOML or YAML."""


def map_path(value: Any, change: Callable[[str], str]) -> Any:
    """Return the value of a setting that is a path, or a lock with one, with the path changed."""
    if isinstance(value, dict):
        return {**value, "path": change(value["path"])}
    return change(value)


# Checks

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110 §5.6.2
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # RFC 9110 §5.5, obs-text aside
_NOT_IN_URL: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Parsers disagree about what a backslash means, which decides the host."""
_FRAMING: Final = frozenset(
    {"connection", "content-length", "expect", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)


def value_faults(values: Mapping[str, Any], *, expanded: bool) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the values of settings, by their place.

    Before expansion only what no variable can mend; after it all of it: variables may bring in
    anything.
    """
    if "command" in values and not values["command"].strip():
        yield "command", "must not be empty"
    for name in ("url", "proxy"):
        fault = _address_fault(values.get(name), expanded)
        if fault is not None:
            yield name, fault
    yield from _header_faults(values.get("headers", {}))
    for place, name in _variable_names(values):
        if (expanded or "${" not in name) and not _is_variable_name(name):
            yield place, "is no name for a variable"


def _variable_names(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names of variables that a command is given, each with its place."""
    yield from ((f"env.{name}", name) for name in values.get("env", {}))
    inherited = values.get("inherit_env", ())
    if not isinstance(inherited, bool):
        yield from ((f"inherit_env[{place}]", name) for place, name in enumerate(inherited))


def _is_variable_name(name: str) -> bool:
    return bool(name) and not (set("=\0 ") & set(name) or has_unseen(name))


def _header_faults(headers: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in headers.items():
        fault = _header_fault(name, value)
        if fault is not None:
            yield f"headers.{name}", fault
    if len({name.lower() for name in headers}) < len(headers):
        yield "headers", "has a header twice (upper and lower case are the same)"


def _header_fault(name: str, value: str) -> str | None:
    """Return why a header cannot be sent; a line break in it would begin another header."""
    if not _TOKEN.fullmatch(name):
        return "is no name for a header"
    if name.lower() in _FRAMING:
        return "is set by the client itself"
    return "must be one line without control characters" if _CONTROL.search(value) else None


def _address_fault(url: str | None, expanded: bool) -> str | None:
    """Return what is wrong with a URL, as far as variables that it may have in it let one see."""
    if url is None or (not expanded and url.startswith("${")):
        return None
    return _url_fault(url, whole=expanded or "${" not in url)


def _url_fault(url: str, *, whole: bool) -> str | None:
    """Return why this is not the URL of a server; ``whole`` False: judge only its scheme."""
    from urllib.parse import urlsplit

    if not url.lower().startswith(("http://", "https://")):
        return "must begin with http:// or https://"
    if not whole:
        return None
    if _NOT_IN_URL.search(url) or has_unseen(url):
        return "has characters in it that a URL cannot have"
    try:
        parts = urlsplit(url)
        if not parts.hostname:
            return "has no host"
        return "has no valid port" if parts.port == 0 else None
    except ValueError:
        return "is not a URL"
