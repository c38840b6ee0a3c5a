"""The fields of one entry, taken one by one; faults are reported by the field's name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any, Final, Literal

from holdfast._core.text import did_you_mean, visible
from holdfast.config.entry import ConfigProblem
from holdfast.config.settings import MOST_ITEMS

MOST_PROBLEMS: Final = 20
"""Errors, and warnings, of one server that are kept; the rest is counted."""
_MOST_HINTS: Final = 3
LONGEST_TEXT: Final = 1 << 15
"""Characters of one string: an approval shows all of it."""
_LONGEST_FIELD: Final = 120


class EntryFields:
    """The raw fields of an entry. Each field that is taken is marked as known."""

    def __init__(self, raw: Any, file: str, server: str, within: str = "") -> None:
        self._problems: dict[str, list[ConfigProblem]] = {"error": [], "warning": []}
        self._more = {"error": 0, "warning": 0}
        self._file = file
        self.server = server
        self._within = within
        self._taken: set[str] = set()
        self._raw: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        if not isinstance(raw, Mapping):
            self.fault(None, f"must be an object, not {_kind(raw)}")

    def __contains__(self, name: str) -> bool:
        return self._raw.get(name) is not None

    @property
    def problems(self) -> tuple[ConfigProblem, ...]:
        """The problems found so far, errors first, with the number of those not kept."""
        found = [*self._problems["error"], *self._problems["warning"]]
        more = sum(self._more.values())
        if more:
            level: Literal["error", "warning"] = "error" if self._more["error"] else "warning"
            found.append(self._problem(None, f"{more:,} more problems are not shown", level))
        return tuple(found)

    def fault(
        self, field: str | None, message: str, level: Literal["error", "warning"] = "error"
    ) -> None:
        """Note a problem of a field; None: of the whole entry."""
        if len(self._problems[level]) < MOST_PROBLEMS:
            self._problems[level].append(self._problem(field, message, level))
        else:
            self._more[level] += 1

    def _problem(
        self, field: str | None, message: str, level: Literal["error", "warning"]
    ) -> ConfigProblem:
        named = self._within + field if field is not None else self._within.rstrip(".") or None
        return ConfigProblem(
            file=self._file,
            server=self.server,
            field=named if named is None else named[:_LONGEST_FIELD],
            message=message,
            level=level,
        )

    def take(self, name: str) -> Any:
        """Return the value as it is; None where it is absent or null."""
        self._taken.add(name)
        return self._raw.get(name)

    def put(self, name: str, value: Any) -> None:
        """Read another value here than the one that is written."""
        self._raw = {**self._raw, name: value}

    def text(self, *names: str) -> str | None:
        """Return the string under the first of these names that is there."""
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
        """Return a list of strings."""
        value = self.take(name)
        if value is None:
            return None
        if not isinstance(value, list):
            self.fault(name, _must("be a list of strings", value))
            return None
        if self._is_too_long(name, value):
            return None
        for item in value:
            if not isinstance(item, str):
                self.fault(name, _must("hold only strings", item))
                return None
        return tuple(value)

    def table(self, name: str) -> dict[str, str]:
        """Return an object of strings. Numbers and booleans are taken as they are written."""
        value = self.take(name)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            self.fault(name, _must("be an object of strings", value))
            return {}
        if self._is_too_long(name, value):
            return {}
        found = {}
        for key, item in value.items():
            plain = _scalar(item)
            if plain is None:
                self.fault(f"{name}.{key}", _must("be a string", item))
            else:
                found[str(key)] = plain
        return found

    def _is_too_long(self, name: str, value: Sized) -> bool:
        if len(value) > MOST_ITEMS:
            self.fault(name, f"has more than {MOST_ITEMS:,} items")
        return len(value) > MOST_ITEMS

    def flag(self, name: str) -> bool | None:
        """Return true, false, or None where nothing is said."""
        value = self.take(name)
        if value is None or isinstance(value, bool):
            return value
        self.fault(name, _must("be true or false", value))
        return None

    def seconds(self, name: str, unit: float = 1.0) -> float | None:
        """Return a duration in seconds; ``unit`` is what 1 means."""
        value = self.take(name)
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < 1e300:
            self.fault(name, "must be a number, more than 0")
            return None
        return float(value * unit)

    def inner(self, name: str) -> EntryFields | None:
        """Return the fields of an object inside; its problems are this entry's."""
        value = self.take(name)
        if value is None:
            return None
        found = EntryFields(None, self._file, self.server, f"{self._within}{name}.")
        found._problems, found._more = self._problems, self._more
        if isinstance(value, Mapping):
            found._raw = value
        else:
            found.fault(None, f"must be an object, not {_kind(value)}")
        return found

    def without_effect(self, names: Iterable[str]) -> None:
        """Warn of fields that are known, and have no effect here."""
        for name in names:
            if name in self and name not in self._taken:
                self.take(name)
                self.fault(name, "has no effect here", "warning")

    def rest(self, ignored: Iterable[str] = ()) -> None:
        """Warn of all fields that are not known; ``ignored`` ones do not matter here."""
        self._taken.update(ignored)
        hints = 0
        for name in self._raw:
            if name in self._taken:
                continue
            hint = ""
            if hints < _MOST_HINTS:
                hints += 1
                hint = did_you_mean(str(name), sorted(self._taken))
            self.fault(str(name), f"is not known here{hint and '; '}{hint}", "warning")


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
    return _KINDS.get(type(value), visible(type(value).__name__, 40))


_KINDS: Final = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def login_settings(fields: EntryFields, *, loopback: str = "localhost") -> dict[str, Any]:
    """Return the setting ``oauth`` of an entry, from whichever keys its product has.

    ``loopback`` is the host in the redirect URI of a product that names only a port.
    """
    found: dict[str, str] = {}
    if fields.take("oauth") is False:
        return {"oauth": {"enabled": "false"}}
    inner = fields.inner("oauth")
    if inner is not None:
        _read(inner, found, loopback)
    kind = fields.take("auth")
    if not isinstance(kind, str):
        cursor = fields.inner("auth")
        if cursor is not None:
            _read(cursor, found, loopback)
    elif kind != "oauth":
        fields.fault("auth", "is only known as 'oauth' here", "warning")
    back = fields.text("oauthRedirectUrl")
    if back is not None:
        found.setdefault("redirect_uri", back)
    return {"oauth": found} if found else {}


def _read(fields: EntryFields, found: dict[str, str], loopback: str) -> None:
    named = {
        "client_id": fields.text("clientId", "client_id", "CLIENT_ID"),
        "client_secret": fields.text("clientSecret", "client_secret", "CLIENT_SECRET"),
        "redirect_uri": fields.text("redirectUri", "callback_url"),
        "issuer": fields.text("authorization_server_issuer", "issuer"),
        "metadata_url": fields.text("authServerMetadataUrl"),
        "authorization_endpoint": fields.text("authorizationUrl"),
        "token_endpoint": fields.text("tokenUrl"),
        "registration_endpoint": fields.text("registrationUrl"),
        "scopes": scopes(fields, "scopes") or scopes(fields, "scope"),
    }
    found.update({name: value for name, value in named.items() if value})
    port = _port(fields)
    if port is not None and "redirect_uri" not in found:
        found["redirect_uri"] = f"http://{loopback}:{port}/callback"
    if fields.flag("enabled") is False:
        found["enabled"] = "false"
    if "tokenParamName" in fields:
        fields.take("tokenParamName")
        # OAuth 2.1 §5.1.1: a token in a URL ends up in logs and in other people's hands.
        fields.fault("tokenParamName", "is not taken: a token is never sent in a URL")
    fields.without_effect(("audiences",))
    fields.rest()


def scopes(fields: EntryFields, name: str) -> str | None:
    """Return scopes, which some products write as a list and some as one string."""
    value = fields.take(name)
    if value is None or isinstance(value, str):
        return value or None
    return " ".join(fields.texts(name) or ()) or None


def _port(fields: EntryFields) -> int | None:
    for name in ("callbackPort", "callback_port"):
        value = fields.take(name)
        if value is None:
            continue
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65536:
            return value
        fields.fault(name, "must be the number of a port")
    return None
