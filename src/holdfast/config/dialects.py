"""Dialects: the formats in which products store their servers, one row of a table each.

mcpServers  Claude Desktop, Claude Code, Cursor, most others, and Holdfast's own files
vscode      ``mcp.json`` of VS Code
gemini      ``settings.json``: ``mcpServers`` with ``httpUrl`` beside ``url``
codex       ``config.toml``: ``[mcp_servers.name]``
goose       ``config.yaml``: ``extensions``, some of which are MCP servers
zed         ``settings.json``: ``context_servers``
opencode    ``opencode.json``: ``mcp``, the command as one list

A dialect says which setting each field of an entry becomes; `EntryReader` does the reading.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from holdfast._core.text import has_unseen, visible
from holdfast.config.entry import ConfigInput, ConfigProblem, ServerEntry
from holdfast.config.environment import EntrySource
from holdfast.config.reader import OWN_FIELDS, EntryReader, Fields, Found, Make
from holdfast.config.relayed import read_relay
from holdfast.config.settings import HttpMode, convert

LONGEST_NAME: Final = 128
MOST_SERVERS: Final = {"project": 100, "user": 1000, "explicit": 1000}
"""Servers of one file, by its scope."""
Document = Mapping[str, Any]


class Dialect(NamedTuple):
    """The format of one product."""

    key: str
    """The table of servers in a document."""
    fields: Fields
    """The settings that the fields of an entry become."""
    prepare: Callable[[Document], Document] = lambda document: document
    """Returns the document in a plain form: ``key`` leads to the table."""


def read(document: Document, source: EntrySource) -> tuple[list[ServerEntry], list[ConfigProblem]]:
    """Return the servers that a document describes, and what is wrong with the file itself."""
    row = DIALECTS[source.dialect]
    document = row.prepare(document)
    fields = {**row.fields, **OWN_FIELDS}
    inputs = read_inputs(document) if "inputs" in document else {}
    servers = document.get(row.key)
    faults = _table_faults(row.key, servers, MOST_SERVERS[source.scope])
    entries: list[ServerEntry] = []
    for name, raw in servers.items() if servers and not faults else ():
        if fault := _name_fault(name):
            faults.append(f"{row.key}: the name '{visible(str(name), 40)}' {fault}")
            continue
        entry = EntryReader(source=source, name=name, fields=fields).read(raw, inputs)
        if read_relay((entry.command or "", *entry.args)) is None:
            # ``holdfast serve NAME`` in a host's file leads back to this configuration: started
            # from here it would start itself, without end.
            entries.append(entry)
    return entries, [ConfigProblem(file=source.file, message=fault) for fault in faults]


def _table_faults(key: str, servers: Any, most: int) -> list[str]:
    """Return why no server is read: there is no table of them, or it is too long."""
    if servers is not None and not isinstance(servers, Mapping):
        return [f"{key} must be an object of servers"]
    if servers and len(servers) > most:
        return [f"{key} has {len(servers):,} servers; at most {most:,} are read"]
    return []


def _name_fault(name: Any) -> str:
    """Return why this cannot be the name of a server; empty if it can."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        return f"must be a string of 1 to {LONGEST_NAME} characters"
    if has_unseen(name) or name != name.strip():
        # It would be printed, compared by eye and pasted into a shell.
        return "has characters in it that cannot be seen"
    return ""


def read_inputs(document: Document) -> dict[str, ConfigInput]:
    """Return the inputs that a file asks its user for, by id; malformed ones are left out."""
    inputs: dict[str, ConfigInput] = {}
    listed = document.get("inputs")
    for raw in listed if isinstance(listed, list) else ():
        try:
            raw = convert(raw, dict[Any, Any])
            fields = {key: value for key, value in raw.items() if value is not None}
            # An option is a string, or an object with its value and a label.
            options = convert(fields.pop("options", []), list[Any])
            values = [
                value.get("value") if isinstance(value, Mapping) else value for value in options
            ]
            config_input: ConfigInput = convert({**fields, "options": values}, ConfigInput)
        except ValueError:
            continue
        inputs.setdefault(config_input.id, config_input)
    return inputs


def detect(path: str, document: Document) -> str | None:
    """Return the dialect of a file, by its path and content; None if it has no servers."""
    folder, name = os.path.split(path)
    ending = os.path.splitext(name)[1].lower()
    if ending == ".toml":
        return "codex" if "mcp_servers" in document else None
    if ending in (".yaml", ".yml"):
        return "goose" if "extensions" in document else None
    if "mcpServers" in document:
        return "gemini" if os.path.basename(folder) == ".gemini" else "mcpServers"
    keys = {"servers": "vscode", "context_servers": "zed"}
    if name.startswith("opencode."):
        keys = {"mcp": "opencode"}
    return next((dialect for key, dialect in keys.items() if key in document), None)


def _object(value: Any) -> Document:
    return value if isinstance(value, Mapping) else {}


# What a value becomes

_NO_EFFECT: Final = UserWarning("has no effect here")
"""For fields that a user may rely on."""
_MODES: Final[dict[str, HttpMode]] = {"http": "auto", "streamable": "streamable", "sse": "sse"}


def _type(value: Any) -> Found:
    kind = convert(value, str).lower().replace("_", "-")
    kind = "streamable" if kind in ("streamable-http", "streamablehttp") else kind
    if kind in ("stdio", "local"):
        return {"type": "command"}
    if kind not in _MODES:
        raise ValueError(f"{visible(value, 40)!r} is not supported (stdio, http or sse)")
    return {"type": "url", "transport": _MODES[kind]}


def _command(value: Any) -> Found:
    if not isinstance(value, list):
        return {"command": value}
    # Some products write the program and its arguments as one list.
    program, *arguments = convert(value, list[str]) or [""]
    return {"command": program, "args": arguments}


def _streamable(value: Any) -> Found:
    return {"url": value, "transport": "streamable"}


def _enabled(value: Any) -> Found:
    return {} if convert(value, bool) else {"disabled": True}


def _seconds(name: str, unit: float = 1.0) -> Make:
    def take(value: Any) -> Found:
        if isinstance(value, bool | str) or not 0 < convert(value, float) < 1e300:
            raise ValueError("must be a number, more than 0")
        return {"timeouts": {name: value * unit}}

    return take


def _timeout(value: Any) -> Found:
    """Milliseconds in most products, seconds in some: only a clear value is used."""
    setting = _seconds("request", 0.001)(value)
    if setting["timeouts"]["request"] < 1.0:
        raise UserWarning("seconds or milliseconds? Not used; set holdfast.timeouts (in seconds)")
    return setting


def _scopes(value: Any) -> Found:
    """Scopes, which some products write as a list and some as one string."""
    listed = [value] if isinstance(value, str) else convert(value, list[str])
    return {"oauth": {"scopes": " ".join(listed)}} if any(listed) else {}


def _login(loopback: str) -> Fields:
    """Return the fields about the login, whichever keys a product has for them.

    ``loopback`` is the host in the redirect URI of a product that names only a port.
    """

    def port(value: Any) -> Found:
        if type(value) is not int or not 0 < value < 65536:
            raise ValueError("must be the number of a port")
        return {"oauth": {"redirect_uri": f"http://{loopback}:{value}/callback"}}

    def enabled(value: Any) -> Found:
        return {} if convert(value, bool) else {"oauth": {"enabled": "false"}}

    def switch(value: Any) -> Found:
        """``oauth`` may be False, and ``auth`` the name of a method."""
        if value is False or value == "oauth":
            return {} if value else {"oauth": {"enabled": "false"}}
        if isinstance(value, str):
            raise UserWarning("is only known as 'oauth' here")
        return {"oauth": convert(value, dict)}

    keys: Fields = {
        **dict.fromkeys(("clientId", "client_id", "CLIENT_ID"), "oauth.client_id"),
        **dict.fromkeys(("clientSecret", "client_secret", "CLIENT_SECRET"), "oauth.client_secret"),
        **dict.fromkeys(("redirectUri", "callback_url"), "oauth.redirect_uri"),
        **dict.fromkeys(("callbackPort", "callback_port"), port),
        **dict.fromkeys(("authorization_server_issuer", "issuer"), "oauth.issuer"),
        **dict.fromkeys(("scopes", "scope"), _scopes),
        "authServerMetadataUrl": "oauth.metadata_url",
        "authorizationUrl": "oauth.authorization_endpoint",
        "tokenUrl": "oauth.token_endpoint",
        "registrationUrl": "oauth.registration_endpoint",
        "enabled": enabled,
        # OAuth 2.1 §5.1.1: a token in a URL ends up in logs and in other people's hands.
        "tokenParamName": ValueError("is not taken: a token is never sent in a URL"),
        "audiences": _NO_EFFECT,
    }
    either = (keys, switch)
    return {"oauth": either, "auth": either, "oauthRedirectUrl": "oauth.redirect_uri"}


# Gemini

_BARE: Final = re.compile(r"(?<!\$)\$([A-Za-z_][A-Za-z0-9_]*)", re.A)


def _gemini_document(document: Document) -> Document:
    """Apply ``mcp.allowed`` and ``mcp.excluded``, and write ``$VAR`` as ``${VAR}``."""
    servers = _braced(document.get("mcpServers"))
    rules = _object(document.get("mcp"))
    allowed, excluded = rules.get("allowed"), rules.get("excluded")
    for name, raw in _object(servers).items():
        kept_out = isinstance(excluded, list) and name in excluded
        left_out = isinstance(allowed, list) and allowed and name not in allowed
        if isinstance(raw, dict) and (kept_out or left_out):
            raw["disabled"] = True
    return {"mcpServers": servers}


def _braced(value: Any, levels: int = 6) -> Any:
    if isinstance(value, str):
        return _BARE.sub(r"${\1}", value) if "$" in value else value
    if levels and isinstance(value, list):
        return [_braced(item, levels - 1) for item in value]
    if levels and isinstance(value, Mapping):
        return {key: _braced(item, levels - 1) for key, item in value.items()}
    return value


# Codex

_CODEX_WIDE: Final = ("mcp_oauth_credentials_store", "mcp_enterprise_managed_auth")
"""Keys at the top of the file that are about logins to every server."""


def _codex_document(document: Document) -> Document:
    """Write what the file says of all logins into each server with a URL."""
    servers = dict(_object(document.get("mcp_servers")))
    wide = {name: document.get(name) for name in _CODEX_WIDE}
    back = {name: document.get(f"mcp_oauth_{name}") for name in ("callback_port", "callback_url")}
    for name, raw in servers.items():
        login = _object(raw).get("oauth", {})
        if "url" in _object(raw) and isinstance(login, Mapping):
            servers[name] = {**wide, **raw, "oauth": {**back, **login}}
    return {**document, "mcp_servers": servers} if servers else document


def _bearer(value: Any) -> Found:
    return {"headers": {"Authorization": f"Bearer ${{env:{convert(value, str)}}}"}}


def _from_variables(value: Any) -> Found:
    variables = convert(value, dict[str, str]).items()
    return {"headers": {name: f"${{env:{variable}}}" for name, variable in variables}}


def _env_vars(value: Any) -> Found:
    """Names, or tables with a name, of variables to pass on."""
    names = [
        item.get("name") if isinstance(item, Mapping) else item
        for item in convert(value, list[Any])
    ]
    return {"inherit_env": convert(names, list[str])} if names else {}


# Goose

_BUILT_IN: Final = ("builtin", "platform", "frontend", "inline_python")
"""Parts of Goose itself: no servers that another program could reach."""


def _goose_document(document: Document) -> Document:
    extensions = document.get("extensions")
    if not isinstance(extensions, Mapping):
        return document
    servers = {}
    for name, raw in extensions.items():
        if isinstance(raw, Mapping):
            # Some versions keep the settings one level down. An empty list says nothing.
            raw = {**_object(raw.get("config")), **raw}
            raw = {key: value for key, value in raw.items() if key != "config" and value != []}
            if raw.get("type") in _BUILT_IN:
                continue
            if "uri" in raw:
                values = _object(raw.pop("envs", None))
                raw["headers"] = _with_values(raw.get("headers"), values)
        servers[name] = raw
    return {"extensions": servers}


def _with_values(headers: Any, values: Document) -> Any:
    if isinstance(headers, Mapping):
        return {name: _with_values(text, values) for name, text in headers.items()}
    if not isinstance(headers, str):
        return headers
    return re.sub(r"\$\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), headers)


# OpenCode and Zed


def _opencode_document(document: Document) -> Document:
    """Take the table of version 2 (``mcp.servers``), or of version 1 (``mcp``)."""
    table = _object(document.get("mcp"))
    inner = table.get("servers")
    is_table = isinstance(inner, Mapping) and not inner.keys() & {"type", "command", "url"}
    return {"mcp": inner if is_table else document.get("mcp")}


def _opencode_type(value: Any) -> Found:
    return {"type": "url"} if value == "remote" else _type(value)


def _zed_document(document: Document) -> Document:
    """Leave out the settings of extensions, which are no servers that another could start."""
    servers = document.get("context_servers")
    if not isinstance(servers, Mapping):
        return document
    return {
        "context_servers": {
            name: raw
            for name, raw in servers.items()
            if not isinstance(raw, Mapping) or raw.keys() & {"command", "url"}
        }
    }


def _zed_command(value: Any) -> Found:
    """Before 2025 the command was an object."""
    if not isinstance(value, Mapping):
        return _command(value)
    fields = {"path": "command", "args": "args", "env": "env"}
    return {fields[key]: inner for key, inner in value.items() if key in fields}


# The table

_COMMAND: Final[Fields] = {"command": _command, "args": "args", "env": "env", "cwd": "cwd"}
_JSON: Final[Fields] = {
    **{"type": _type, "transport": _type, "url": "url", "headers": "headers"},
    **{**_COMMAND, "envFile": "env_file", "env_file": "env_file"},
    **{"enabled": _enabled, "disabled": "disabled", "description": None},
}
_LOCALHOST, _LOOPBACK = _login("localhost"), _login("127.0.0.1")

DIALECTS: Final = {
    "mcpServers": Dialect(
        "mcpServers",
        {
            **{**_JSON, "serverUrl": "url", "timeout": _timeout, **_LOCALHOST},
            **dict.fromkeys(("name", "displayName", "icon", "$schema")),
            **dict.fromkeys(("headersHelper", "tokenCacheDir", "alwaysAllow"), _NO_EFFECT),
            **dict.fromkeys(("autoApprove", "trust", "alwaysLoad"), _NO_EFFECT),
        },
    ),
    "vscode": Dialect(
        "servers",
        {
            **{**_JSON, **_LOOPBACK, "version": None, "gallery": None},
            **dict.fromkeys(("dev", "sandbox", "sandboxEnabled"), _NO_EFFECT),
        },
    ),
    "gemini": Dialect(
        "mcpServers",
        {
            **{"httpUrl": _streamable, **_JSON, "timeout": _seconds("request", 0.001)},
            **{"includeTools": "allow", "excludeTools": "deny", **_LOCALHOST},
            **{"extensionName": None, "trust": _NO_EFFECT, "tcp": _NO_EFFECT},
            **dict.fromkeys(("authProviderType", "targetAudience"), _NO_EFFECT),
            "targetServiceAccount": _NO_EFFECT,
        },
        _gemini_document,
    ),
    "codex": Dialect(
        "mcp_servers",
        {
            **{**_COMMAND, "url": _streamable, "enabled": _enabled},
            "bearer_token": ValueError("is not taken; name a variable in bearer_token_env_var"),
            "bearer_token_env_var": _bearer,
            **{"env_http_headers": _from_variables, "http_headers": "headers"},
            **{"enabled_tools": "allow", "disabled_tools": "deny", "env_vars": _env_vars},
            "startup_timeout_sec": _seconds("handshake"),
            "startup_timeout_ms": _seconds("handshake", 0.001),
            "tool_timeout_sec": _seconds("tools"),
            **{"scopes": _scopes, "oauth_resource": "oauth.resource", **_LOOPBACK},
            **dict.fromkeys(("name", "required", "supports_parallel_tool_calls")),
            **dict.fromkeys(("http_headers_helper", "tools", *_CODEX_WIDE), _NO_EFFECT),
            "default_tools_approval_mode": _NO_EFFECT,
            "experimental_environment": _NO_EFFECT,
        },
        _codex_document,
    ),
    "goose": Dialect(
        "extensions",
        {
            **{"type": _type, "cmd": _command, "args": "args", "envs": "env", "cwd": "cwd"},
            **{"uri": "url", "headers": "headers", "enabled": _enabled},
            **{"timeout": _seconds("request"), "available_tools": "allow"},
            "env_keys": "inherit_env",
            **dict.fromkeys(("name", "display_name", "description", "bundled")),
        },
        _goose_document,
    ),
    "zed": Dialect(
        "context_servers",
        {
            **{**_JSON, "command": _zed_command, "timeout": _timeout, **_LOCALHOST},
            **dict.fromkeys(("source", "settings")),
        },
        _zed_document,
    ),
    "opencode": Dialect(
        "mcp",
        {
            **{"type": _opencode_type, "url": "url", "headers": "headers", **_LOCALHOST},
            **{"command": _command, "environment": "env", "cwd": "cwd", "enabled": _enabled},
            "timeout": _seconds("request", 0.001),
        },
        _opencode_document,
    ),
}
