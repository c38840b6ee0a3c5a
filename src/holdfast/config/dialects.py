"""Dialects: the ways in which products write down their servers, one row of a table each.

mcpServers  Claude Desktop, Claude Code, Cursor, most others, and Holdfast's own files
vscode      ``mcp.json`` of VS Code, or the ``mcp`` part of its ``settings.json``
gemini      ``settings.json``: ``mcpServers`` with ``httpUrl`` beside ``url``
zed         ``settings.json``: ``context_servers``
codex       ``config.toml``: ``[mcp_servers.name]``
goose       ``config.yaml``: ``extensions``, some of which are MCP servers
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from holdfast.config.entry import ConfigProblem, ServerEntry, name_fault, texts
from holdfast.config.environment import EntrySource
from holdfast.config.expansion import ConfigInput, ExpansionError, variables
from holdfast.config.fields import (
    EntryDefinition,
    EntryFields,
    by_command,
    by_url,
    definition,
    login,
    own_settings,
    read_inputs,
    scopes,
    timeouts,
)
from holdfast.config.settings import HttpMode

MOST_SERVERS: Final = {"project": 100, "user": 1000, "explicit": 1000}
"""Servers of one file, by its scope."""
MOST_VARIABLES: Final = 1000
"""Variables in the strings of one entry."""
LONGEST_TEXT: Final = 1 << 15
"""Characters of one string: an approval shows all of it."""
_HALF: Final = re.compile("[\ud800-\udfff]")
Document = Mapping[str, Any]


class Dialect(NamedTuple):
    """One way of writing down servers."""

    key: str
    """The table of servers in a document."""
    read: Callable[[EntryFields], EntryDefinition]
    ignored: str
    """Fields that do not matter here."""
    no_effect: str = ""
    """Fields that a user may rely on, so they are warned of."""
    prepare: Callable[[Document], Document] = lambda document: document
    """Returns the document in a plain form: ``key`` leads to the table."""


def read(document: Document, source: EntrySource) -> tuple[list[ServerEntry], list[ConfigProblem]]:
    """Return the servers that a document describes, and what is wrong with the file itself."""
    row = DIALECTS[source.dialect]
    document = row.prepare(document)
    inputs = read_inputs(document) if "inputs" in document else {}
    servers = document.get(row.key)
    most = MOST_SERVERS[source.scope]
    faults: list[str] = []
    if servers is not None and not isinstance(servers, Mapping):
        faults = [f"{row.key} must be an object of servers"]
    elif servers and len(servers) > most:
        faults = [f"{row.key} has {len(servers):,} servers; at most {most:,} are read"]
    entries: list[ServerEntry] = []
    for name, raw in servers.items() if servers and not faults else ():
        fault = name_fault(name)
        if fault is None:
            fields = EntryFields(raw, source.file, name)
            found = row.read(fields)
            fields.without_effect(row.no_effect.split())
            entries.append(_entry(fields, source, found, row.ignored, inputs))
        else:
            faults.append(f"{row.key}: {fault}")
    return entries, [ConfigProblem(file=source.file, message=fault) for fault in faults]


def _entry(
    fields: EntryFields,
    source: EntrySource,
    found: EntryDefinition,
    ignored: str,
    inputs: Mapping[str, ConfigInput],
) -> ServerEntry:
    """Return the entry, checked, with Holdfast's own settings over those of the dialect."""
    given = {name: one for name, one in found.pop("settings", {}).items() if one is not None}
    settings = {**given, **own_settings(fields)}
    fields.rest(ignored.split())
    made = ServerEntry(name=fields.server, source=source, settings=settings, **found)
    asked: list[str] = []
    left = MOST_VARIABLES
    for row, field, text in texts(made):
        if len(text) > LONGEST_TEXT:
            fields.fault(field, f"is longer than {LONGEST_TEXT:,} characters")
        elif "\0" in text:
            fields.fault(field, "must not have a zero character in it")
        elif not text.isascii() and _HALF.search(text):
            fields.fault(field, "must not have half a character in it")
        if left < 0 or len(text) > LONGEST_TEXT or not (row.variables and "${" in text):
            continue
        try:
            used = variables(text, left + 1)
        except ExpansionError as error:
            fields.fault(field, str(error))
            continue
        asked += [variable.name for variable in used if variable.kind == "input"]
        left -= len(used)
        if left < 0:
            fields.fault(field, f"has more variables than the {MOST_VARIABLES:,} of an entry")
    described = {one: inputs[one] for one in asked if one in inputs}
    return replace(made, inputs=described, problems=fields.problems)


def detect(path: str, document: Document) -> str | None:
    """Return the dialect of a file, by its place and its content; None if it is in none."""
    folder, name = os.path.split(path)
    ending = os.path.splitext(name)[1].lower()
    if ending == ".toml":
        return "codex" if "mcp_servers" in document else None
    if ending in (".yaml", ".yml"):
        return "goose" if "extensions" in document else None
    if "mcpServers" in document:
        return "gemini" if os.path.basename(folder) == ".gemini" else "mcpServers"
    if "servers" in document or "servers" in _object(document.get("mcp")):
        return "vscode"
    return "zed" if "context_servers" in document else None


def _object(value: Any) -> Document:
    return value if isinstance(value, Mapping) else {}


def _mcp_servers(fields: EntryFields) -> EntryDefinition:
    found = definition(fields, fields.read("text", "url", "serverUrl"))
    found["disabled"] = fields.read("flag", "disabled") or fields.read("flag", "enabled") is False
    # Milliseconds in most products, seconds in some: only a clear value is used.
    span = fields.read("seconds", "timeout", unit=0.001)
    if span is not None and span < 1.0:
        text = "seconds or milliseconds? Not used; set holdfast.timeouts (in seconds)"
        fields.fault("timeout", text, "warning")
        span = None
    found["settings"] = {"timeouts": timeouts(request=span), "oauth": login(fields)}
    return found


# VS Code


def _vscode_document(document: Document) -> Document:
    return document if "servers" in document else _object(document.get("mcp"))


def _vscode(fields: EntryFields) -> EntryDefinition:
    env = fields.take("env")
    if isinstance(env, Mapping) and None in env.values():
        # ``"NAME": null`` takes a variable away; a server here gets none that it was not given.
        fields.put("env", {key: value for key, value in env.items() if value is not None})
    found = definition(fields, fields.read("text", "url"))
    found["settings"] = {"oauth": login(fields, loopback="127.0.0.1")}
    found["disabled"] = fields.read("flag", "disabled") or False
    return found


# Gemini

_BARE: Final = re.compile(r"(?<!\$)\$([A-Za-z_][A-Za-z0-9_]*)", re.A)


def _gemini_document(document: Document) -> Document:
    """Apply ``mcp.allowed`` and ``mcp.excluded``, and write ``$VAR`` as ``${VAR}``."""
    servers = _braced(document.get("mcpServers"))
    rules = _object(document.get("mcp"))
    allowed, excluded = _names(rules.get("allowed")), _names(rules.get("excluded"))
    for name, raw in _object(servers).items():
        if isinstance(raw, dict):
            raw["disabled"] = name in excluded or (bool(allowed) and name not in allowed)
    return {"mcpServers": servers}


def _names(value: Any) -> frozenset[str]:
    listed = value if isinstance(value, list) else []
    return frozenset(name for name in listed if isinstance(name, str))


def _braced(value: Any, levels: int = 6) -> Any:
    if isinstance(value, str):
        return _BARE.sub(r"${\1}", value) if "$" in value else value
    if levels and isinstance(value, list):
        return [_braced(item, levels - 1) for item in value]
    if levels and isinstance(value, Mapping):
        return {key: _braced(item, levels - 1) for key, item in value.items()}
    return value


def _gemini(fields: EntryFields) -> EntryDefinition:
    streamable, url = fields.read("text", "httpUrl"), fields.read("text", "url")
    found = definition(fields, streamable or url, hint="streamable" if streamable else "auto")
    found["settings"] = {
        "timeouts": timeouts(request=fields.read("seconds", "timeout", unit=0.001)),
        "allow": fields.read("list", "includeTools"),
        "deny": fields.read("list", "excludeTools"),
        "oauth": login(fields),
    }
    found["disabled"] = fields.read("flag", "disabled") or False
    return found


# Zed


def _zed_document(document: Document) -> Document:
    """Leave out the servers of extensions, which have no command."""
    servers = document.get("context_servers")
    if isinstance(servers, Mapping):
        servers = {
            name: raw
            for name, raw in servers.items()
            if not isinstance(raw, Mapping) or {"command", "url"} & raw.keys()
        }
    return {"context_servers": servers}


def _zed(fields: EntryFields) -> EntryDefinition:
    command = fields.take("command")
    if isinstance(command, Mapping):
        # Older files have an object with ``path``, ``args`` and ``env``.
        for inner, outer in (("path", "command"), ("args", "args"), ("env", "env")):
            fields.put(outer, command.get(inner))
    found = definition(fields, fields.read("text", "url"))
    found["disabled"] = fields.read("flag", "enabled") is False
    return found


# Codex


_CODEX_WIDE: Final = ("mcp_oauth_credentials_store", "mcp_enterprise_managed_auth")
"""Keys at the top of the file that are about logins to every server."""


def _codex_document(document: Document) -> Document:
    """Write what the file says of all logins into each server with a URL."""
    found = document.get("mcp_servers")
    if not isinstance(found, Mapping):
        return document
    servers = dict(found)
    wide = {name: document[name] for name in _CODEX_WIDE if name in document}
    back = {
        name: document[f"mcp_oauth_{name}"]
        for name in ("callback_port", "callback_url")
        if f"mcp_oauth_{name}" in document
    }
    for name, raw in servers.items():
        if isinstance(raw, Mapping) and "url" in raw and isinstance(raw.get("oauth", {}), Mapping):
            login = {"oauth": {**back, **raw.get("oauth", {})}} if back else {}
            servers[name] = {**wide, **raw, **login}
    return {**document, "mcp_servers": servers}


def _codex(fields: EntryFields) -> EntryDefinition:
    program, url = fields.read("text", "command"), fields.read("text", "url")
    if program is not None and url is not None:
        fields.fault("url", "there is both a command and a URL")
    if program is None and url is None:
        fields.fault("command", "is missing, and so is a URL")
    if url is None:
        fields.without_effect(("bearer_token_env_var", "http_headers", "env_http_headers"))
        found = by_command(fields, program, fields.read("list", "args") or ())
    else:
        found = by_url(fields, url, "streamable", _codex_headers(fields))
    settings = {
        "timeouts": timeouts(
            handshake=fields.read("seconds", "startup_timeout_sec")
            or fields.read("seconds", "startup_timeout_ms", unit=0.001),
            tools=fields.read("seconds", "tool_timeout_sec"),
        ),
        "allow": fields.read("list", "enabled_tools"),
        "deny": fields.read("list", "disabled_tools"),
        "inherit_env": _inherited(fields) or None,
    }
    said = login(fields, loopback="127.0.0.1") or {}
    more = {
        "scopes": scopes(fields, "scopes"),
        "resource": fields.read("text", "oauth_resource"),
    }
    settings["oauth"] = {**said, **{name: one for name, one in more.items() if one}} or None
    return {**found, "settings": settings, "disabled": fields.read("flag", "enabled") is False}


def _codex_headers(fields: EntryFields) -> dict[str, str]:
    headers: dict[str, str] = fields.read("table", "http_headers")
    for name, variable in fields.read("table", "env_http_headers").items():
        headers[name] = f"${{env:{variable}}}"
    token = fields.read("text", "bearer_token_env_var")
    if token is not None:
        headers = {name: one for name, one in headers.items() if name.lower() != "authorization"}
        headers["Authorization"] = f"Bearer ${{env:{token}}}"
    if "bearer_token" in fields:
        fields.take("bearer_token")
        fields.fault("bearer_token", "is not taken; name a variable in bearer_token_env_var")
    return headers


def _inherited(fields: EntryFields) -> tuple[str, ...]:
    """Return ``env_vars``: names, or tables with a name, of variables to pass on."""
    listed = fields.take("env_vars")
    if listed is None:
        return ()
    names = [
        item.get("name") if isinstance(item, Mapping) else item
        for item in (listed if isinstance(listed, list) else [None])
    ]
    found = tuple(name for name in names if isinstance(name, str))
    if len(found) < len(names):
        fields.fault("env_vars", "must be a list of names")
        return ()
    return found


# Goose

_GOOSE_MODES: Final[dict[str, HttpMode]] = {"sse": "sse", "streamable_http": "streamable"}
_BUILT_IN: Final = ("builtin", "platform", "frontend", "inline_python")
"""Parts of Goose itself: no servers that another program could reach."""


def _goose_document(document: Document) -> Document:
    extensions = document.get("extensions")
    if not isinstance(extensions, Mapping):
        return document
    found = {}
    for name, raw in extensions.items():
        inner = _object(raw).get("config")
        if isinstance(inner, Mapping):
            # Some versions keep the settings one level down.
            raw = {**inner, **{key: value for key, value in raw.items() if key != "config"}}
        if _object(raw).get("type") not in _BUILT_IN:
            found[name] = raw
    return {"extensions": found}


def _goose(fields: EntryFields) -> EntryDefinition:
    kind = fields.read("text", "type") or ("stdio" if "cmd" in fields else "streamable_http")
    given = fields.read("table", "envs")
    found: EntryDefinition = {}
    if kind == "stdio":
        fields.put("env", given)
        program = fields.read("text", "cmd")
        if program is None:
            fields.fault("cmd", "is missing")
        found = by_command(fields, program, fields.read("list", "args") or ())
    elif kind in _GOOSE_MODES:
        headers = {
            name: re.sub(r"\$\{(\w+)\}", lambda match: given.get(match[1], match[0]), value)
            for name, value in fields.read("table", "headers").items()
        }
        url = fields.read("text", "uri")
        if url is None:
            fields.fault("uri", "is missing")
        found = by_url(fields, url, _GOOSE_MODES[kind], headers)
    else:
        fields.fault("type", "is not supported (stdio, streamable_http or sse)")
    allow, keys = fields.read("list", "available_tools"), fields.read("list", "env_keys")
    found["settings"] = {
        "timeouts": timeouts(request=fields.read("seconds", "timeout")),
        "allow": allow or None,
        "inherit_env": (keys or None) if kind == "stdio" else None,
    }
    found["disabled"] = fields.read("flag", "enabled") is False
    return found


DIALECTS: Final = {
    "mcpServers": Dialect(
        "mcpServers",
        _mcp_servers,
        "description name displayName icon $schema headers enabled",
        "headersHelper tokenCacheDir alwaysAllow autoApprove trust alwaysLoad",
    ),
    "vscode": Dialect(
        "servers",
        _vscode,
        "version gallery description headers",
        "dev sandbox sandboxEnabled",
        _vscode_document,
    ),
    "gemini": Dialect(
        "mcpServers",
        _gemini,
        "description extensionName headers",
        "trust authProviderType targetAudience targetServiceAccount tcp",
        _gemini_document,
    ),
    "zed": Dialect("context_servers", _zed, "source settings headers", "", _zed_document),
    "codex": Dialect(
        "mcp_servers",
        _codex,
        "name required supports_parallel_tool_calls url command args env cwd startup_timeout_ms",
        "http_headers_helper tools default_tools_approval_mode experimental_environment "
        + " ".join(_CODEX_WIDE),
        _codex_document,
    ),
    "goose": Dialect(
        "extensions",
        _goose,
        "name display_name description bundled type cmd args envs uri headers env_keys",
        "",
        _goose_document,
    ),
}
