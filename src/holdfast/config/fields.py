"""The fields of one entry, taken one by one; faults are reported by the field's name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from holdfast._core.text import did_you_mean, visible
from holdfast.config.entry import ConfigProblem, header_fault, url_fault, variable_fault
from holdfast.config.expansion import ConfigInput
from holdfast.config.settings import MOST_ITEMS, OWN, HttpMode, parse_setting
from holdfast.policies import Timeouts

MOST_PROBLEMS: Final = 20
"""Errors, and warnings, of one server that are kept; the rest is counted."""
_MOST_HINTS: Final = 3
_LONGEST_FIELD: Final = 120
EntryDefinition = dict[str, Any]
"""Fields of a `ServerEntry`, by name."""
Form = Literal["text", "list", "table", "flag", "seconds"]
_FORMS: Final[dict[str, tuple[type[Any], str]]] = {
    "text": (str, "be a string"),
    "list": (list, "be a list of strings"),
    "table": (Mapping, "be an object of strings"),
    "flag": (bool, "be true or false"),
}
_KINDS: Final = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


class EntryFields:
    """The raw fields of an entry. Each field that is taken is marked as known."""

    def __init__(
        self,
        raw: Any,
        file: str,
        server: str,
        within: str = "",
        outer: EntryFields | None = None,
    ) -> None:
        self.server = server
        self._file = file
        self._within = within
        self._found: list[ConfigProblem] = [] if outer is None else outer._found
        self._count: dict[str, int] = {"error": 0, "warning": 0} if outer is None else outer._count
        self._taken: set[str] = set()
        self._raw: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        if not isinstance(raw, Mapping):
            self.fault(None, f"must be an object, not {_kind(raw)}")

    def __contains__(self, name: str) -> bool:
        return self._raw.get(name) is not None

    @property
    def problems(self) -> tuple[ConfigProblem, ...]:
        """The problems found so far, errors first, with the number of those not kept."""
        found = sorted(self._found, key=lambda problem: problem.level)
        more = sum(self._count.values()) - len(found)
        if more:
            text = f"{more:,} more problems are not shown"
            level: Literal["error", "warning"] = (
                "error" if self._count["error"] > MOST_PROBLEMS else "warning"
            )
            found.append(
                ConfigProblem(file=self._file, server=self.server, message=text, level=level)
            )
        return tuple(found)

    def fault(
        self, field: str | None, message: str, level: Literal["error", "warning"] = "error"
    ) -> None:
        """Note a problem of a field; None: of the whole entry."""
        self._count[level] += 1
        if self._count[level] > MOST_PROBLEMS:
            return
        named = self._within + field if field is not None else self._within.rstrip(".") or None
        self._found.append(
            ConfigProblem(
                file=self._file,
                server=self.server,
                field=named if named is None else named[:_LONGEST_FIELD],
                message=message,
                level=level,
            )
        )

    def take(self, name: str) -> Any:
        """Return the value as it is; None where it is absent or null."""
        self._taken.add(name)
        return self._raw.get(name)

    def put(self, name: str, value: Any) -> None:
        """Read another value here than the one that is written."""
        self._raw = {**self._raw, name: value}

    def read(self, form: Form, *names: str, unit: float = 1.0) -> Any:
        """Return the first of some fields that is there and has this form.

        Args:
            form: Numbers and booleans in a ``table`` are taken as they are written.
            names: The fields. One of another form is a fault.
            unit: What 1 means, for ``seconds``.

        Returns:
            A string, tuple, dictionary, boolean or number of seconds. Without such a field: None,
            or an empty dictionary for a ``table``.
        """
        found: Any = None
        for name in names:
            value = self.take(name)
            if value is None or found is not None:
                continue
            fault = _form_fault(form, value)
            if fault is not None:
                self.fault(name, fault)
            elif form == "table":
                found = {}
                for key, item in value.items():
                    if isinstance(item, str | int | float):
                        found[str(key)] = item if isinstance(item, str) else json.dumps(item)
                    else:
                        self.fault(f"{name}.{key}", f"must be a string, not {_kind(item)}")
            elif form == "list":
                found = tuple(value)
            else:
                found = float(value * unit) if form == "seconds" else value
        return {} if found is None and form == "table" else found

    def inner(self, name: str) -> EntryFields | None:
        """Return the fields of an object inside; its problems are this entry's."""
        value = self.take(name)
        if value is None:
            return None
        return EntryFields(value, self._file, self.server, f"{self._within}{name}.", self)

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


def _form_fault(form: Form, value: Any) -> str | None:
    if form == "seconds":
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return None if number and 0 < value < 1e300 else "must be a number, more than 0"
    kind, what = _FORMS[form]
    if not isinstance(value, kind):
        return f"must {what}, not {_kind(value)}"
    if value == "":
        return "must not be empty"
    if form in ("list", "table") and len(value) > MOST_ITEMS:
        return f"has more than {MOST_ITEMS:,} items"
    odd = [item for item in value if not isinstance(item, str)] if form == "list" else []
    return f"must hold only strings, not {_kind(odd[0])}" if odd else None


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), visible(type(value).__name__, 40))


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
    kind = fields.read("text", "type", "transport")
    if isinstance(fields.take("command"), list):
        # Some products write the program and its arguments as one list.
        words = fields.read("list", "command")
        program, *more = words or ("",)
        if words is not None and not program:
            fields.fault("command", "must not be empty")
    else:
        program, more = fields.read("text", "command"), []
    arguments = (*more, *(fields.read("list", "args") or ()))
    if kind is not None and kind.lower() not in (*_MODES, *_LOCAL):
        fields.fault("type", f"{visible(kind, 40)!r} is not supported (stdio, http or sse)")
        return {}
    remote = url is not None if kind is None else kind.lower() in _MODES
    if kind is None and url is not None and program:
        fields.fault("type", "there is both a command and a URL; say which is meant")
        return {}
    if remote and url is None and fields.take("url") is None:
        fields.fault("url", "is missing")
    if not remote and not program and fields.take("command") is None:
        missing = "is missing" if kind is not None else "is missing, and so is a URL"
        fields.fault("command", missing)
    if remote:
        mode = hint if kind is None else _MODES[kind.lower()]
        return by_url(fields, url, mode, fields.read("table", "headers"))
    if url is not None:
        fields.fault("url", "has no effect here", "warning")
    return by_command(fields, program or None, arguments)


def by_command(
    fields: EntryFields, program: str | None, arguments: tuple[str, ...]
) -> EntryDefinition:
    """Return the definition of a server that a command starts."""
    env = fields.read("table", "env")
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
        "env_file": fields.read("text", "envFile", "env_file"),
        "cwd": fields.read("text", "cwd"),
    }


def by_url(
    fields: EntryFields, url: str | None, mode: HttpMode, headers: dict[str, str]
) -> EntryDefinition:
    """Return the definition of a server behind a URL."""
    if url is not None and not url.startswith("${"):
        # The scheme can be judged before expansion, the rest only after it.
        fault = url_fault(url, whole="${" not in url)
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


# Settings and inputs


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


def read_inputs(document: Mapping[str, Any]) -> dict[str, ConfigInput]:
    """Return what the file asks its user for, by id. A malformed one is not there."""
    found: dict[str, ConfigInput] = {}
    listed = document.get("inputs")
    for raw in listed if isinstance(listed, list) else ():
        if not isinstance(raw, Mapping) or not isinstance(raw.get("id"), str):
            continue
        names = ("type", "description", "default")
        said = {name: raw[name] for name in names if isinstance(raw.get(name), str)}
        options = raw.get("options")
        # An option is a string, or an object with its value and a label.
        values = [
            one.get("value") if isinstance(one, Mapping) else one
            for one in (options if isinstance(options, list) else ())
        ]
        described = ConfigInput(
            id=raw["id"],
            **{**said, "type": said.get("type") or "promptString"},
            password=raw.get("password") is True,
            options=tuple(one for one in values if one and isinstance(one, str)),
        )
        found.setdefault(raw["id"], described)
    return found


def timeouts(**seconds: float | None) -> Timeouts | None:
    """Return the timeouts that a dialect gives; the cap of a whole call makes room for them."""
    given = {name: span for name, span in seconds.items() if span is not None}
    if not given:
        return None
    most = max(given.get("tools", 0.0), given.get("request", 0.0), Timeouts().total)
    return Timeouts(**given, total=most)


_LOGIN: Final = {
    "client_id": ("clientId", "client_id", "CLIENT_ID"),
    "client_secret": ("clientSecret", "client_secret", "CLIENT_SECRET"),
    "redirect_uri": ("redirectUri", "callback_url"),
    "issuer": ("authorization_server_issuer", "issuer"),
    "metadata_url": ("authServerMetadataUrl",),
    "authorization_endpoint": ("authorizationUrl",),
    "token_endpoint": ("tokenUrl",),
    "registration_endpoint": ("registrationUrl",),
}
"""The keys of products, by ours."""


def login(fields: EntryFields, *, loopback: str = "localhost") -> dict[str, str] | None:
    """Return the setting ``oauth`` of an entry, from whichever keys its product has.

    ``loopback`` is the host in the redirect URI of a product that names only a port.
    """
    if fields.take("oauth") is False:
        return {"enabled": "false"}
    found: dict[str, str] = {}
    for name in ("oauth", "auth"):
        kind = fields.take(name)
        if name == "oauth" or not isinstance(kind, str):
            inner = fields.inner(name)
            if inner is not None:
                _read_login(inner, found, loopback)
        elif kind != "oauth":
            fields.fault("auth", "is only known as 'oauth' here", "warning")
    back = fields.read("text", "oauthRedirectUrl")
    if back is not None:
        found.setdefault("redirect_uri", back)
    return found or None


def _read_login(fields: EntryFields, found: dict[str, str], loopback: str) -> None:
    named = {ours: fields.read("text", *theirs) for ours, theirs in _LOGIN.items()}
    named["scopes"] = scopes(fields, "scopes") or scopes(fields, "scope")
    found.update({name: value for name, value in named.items() if value})
    for name in ("callbackPort", "callback_port"):
        port = fields.take(name)
        if type(port) is int and 0 < port < 65536:
            found.setdefault("redirect_uri", f"http://{loopback}:{port}/callback")
            break
        if port is not None:
            fields.fault(name, "must be the number of a port")
    if fields.read("flag", "enabled") is False:
        found["enabled"] = "false"
    if fields.take("tokenParamName") is not None:
        # OAuth 2.1 §5.1.1: a token in a URL ends up in logs and in other people's hands.
        fields.fault("tokenParamName", "is not taken: a token is never sent in a URL")
    fields.without_effect(("audiences",))
    fields.rest()


def scopes(fields: EntryFields, name: str) -> str | None:
    """Return scopes, which some products write as a list and some as one string."""
    value = fields.take(name)
    if value is None or isinstance(value, str):
        return value or None
    return " ".join(fields.read("list", name) or ()) or None
