"""JSON of most products: ``mcpServers``, VS Code's ``servers``, Gemini's and Zed's settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import (
    DialectResult,
    definition,
    entry,
    inputs_of,
    lists,
    read_servers,
    timeouts,
)
from holdfast.config.dialects.fields import EntryFields
from holdfast.config.dialects.oauth import login_settings
from holdfast.config.entry import EntrySource, ServerEntry
from holdfast.config.expansion import ConfigInput

_IGNORED: Final = ("description", "name", "displayName", "icon", "$schema", "headers", "enabled")
_NO_EFFECT: Final = (
    "headersHelper",
    "oauthRedirectUrl",
    "tokenCacheDir",
    "alwaysAllow",
    "autoApprove",
    "trust",
    "alwaysLoad",
)


def read_mcpservers(document: Mapping[str, Any], source: EntrySource) -> DialectResult:
    """Read the files of Claude Desktop, Claude Code, Cursor, most others, and Holdfast's own."""
    inputs = inputs_of(document)
    return read_servers(
        document.get("mcpServers"),
        source,
        "mcpServers",
        lambda name, fields: _server(name, fields, source, inputs),
    )


def _server(
    name: str, fields: EntryFields, source: EntrySource, inputs: Mapping[str, ConfigInput]
) -> ServerEntry:
    reached = definition(fields, fields.text("url", "serverUrl"))
    disabled = fields.flag("disabled") or fields.flag("enabled") is False
    settings = timeouts(request=_timeout(fields)) | login_settings(fields)
    fields.ignore(_IGNORED)
    fields.without_effect(_NO_EFFECT)
    return entry(name, fields, source, reached, settings=settings, disabled=disabled, inputs=inputs)


def _timeout(fields: EntryFields) -> float | None:
    """Return a timeout: milliseconds in most products, seconds in some; only a clear one."""
    span = fields.seconds("timeout", 0.001)
    if span is not None and span < 1.0:
        text = "seconds or milliseconds? Not used; set holdfast.timeouts (in seconds)"
        fields.fault("timeout", text, "warning")
        return None
    return span


# VS Code


def read_vscode(document: Mapping[str, Any], source: EntrySource) -> DialectResult:
    """Read a ``mcp.json`` of VS Code, or the ``mcp`` part of its ``settings.json``."""
    part = document.get("mcp")
    if "servers" not in document and isinstance(part, Mapping):
        document = part
    inputs = inputs_of(document)
    return read_servers(
        document.get("servers"),
        source,
        "servers",
        lambda name, fields: _vscode_server(name, fields, source, inputs),
    )


def _vscode_server(
    name: str, fields: EntryFields, source: EntrySource, inputs: Mapping[str, ConfigInput]
) -> ServerEntry:
    env = fields.take("env")
    if isinstance(env, Mapping) and None in env.values():
        # ``"NAME": null`` takes a variable away; a server here gets none that it was not given.
        fields.put("env", {key: value for key, value in env.items() if value is not None})
    reached = definition(fields, fields.text("url"))
    disabled = fields.flag("disabled") or False
    fields.ignore(("version", "gallery", "description", "headers"))
    fields.without_effect(("dev", "sandbox", "sandboxEnabled"))
    settings = login_settings(fields, loopback="127.0.0.1")
    return entry(name, fields, source, reached, settings=settings, disabled=disabled, inputs=inputs)


# Gemini

_BARE: Final = re.compile(r"(?<!\$)\$([A-Za-z_][A-Za-z0-9_]*)", re.A)
_GEMINI_NO_EFFECT: Final = (
    "trust",
    "authProviderType",
    "targetAudience",
    "targetServiceAccount",
    "tcp",
)


def read_gemini(document: Mapping[str, Any], source: EntrySource) -> DialectResult:
    """Read Gemini's ``settings.json``: ``mcpServers`` with ``httpUrl`` beside ``url``."""
    part = document.get("mcp")
    rules = part if isinstance(part, Mapping) else {}
    allowed, excluded = _names(rules.get("allowed")), _names(rules.get("excluded"))
    return read_servers(
        _braced(document.get("mcpServers")),
        source,
        "mcpServers",
        lambda name, fields: _gemini_server(
            name, fields, source, name in excluded or (bool(allowed) and name not in allowed)
        ),
    )


def _gemini_server(
    name: str, fields: EntryFields, source: EntrySource, excluded: bool
) -> ServerEntry:
    streamable = fields.text("httpUrl")
    url = fields.text("url")
    reached = definition(fields, streamable or url, hint="streamable" if streamable else "auto")
    settings = timeouts(request=fields.seconds("timeout", 0.001))
    settings |= lists(allow=fields.texts("includeTools"), deny=fields.texts("excludeTools"))
    settings |= login_settings(fields)
    fields.ignore(("description", "extensionName", "headers"))
    fields.without_effect(_GEMINI_NO_EFFECT)
    return entry(name, fields, source, reached, settings=settings, disabled=excluded)


def _names(value: Any) -> frozenset[str]:
    """Return the servers that ``mcp.allowed`` or ``mcp.excluded`` lists."""
    listed = value if isinstance(value, list) else []
    return frozenset(name for name in listed if isinstance(name, str))


def _braced(value: Any, levels: int = 6) -> Any:
    """Write ``$VAR`` as ``${VAR}``: Gemini takes both, Holdfast only the clear one."""
    if isinstance(value, str):
        return _BARE.sub(r"${\1}", value) if "$" in value else value
    if levels == 0:
        return value
    if isinstance(value, list):
        return [_braced(item, levels - 1) for item in value]
    if isinstance(value, Mapping):
        return {key: _braced(item, levels - 1) for key, item in value.items()}
    return value


# Zed


def read_zed(document: Mapping[str, Any], source: EntrySource) -> DialectResult:
    """Read Zed's ``settings.json``: ``context_servers``; those of extensions have no command."""
    servers = document.get("context_servers")
    if isinstance(servers, Mapping):
        servers = {
            name: raw
            for name, raw in servers.items()
            if not isinstance(raw, Mapping) or {"command", "url"} & raw.keys()
        }
    return read_servers(
        servers,
        source,
        "context_servers",
        lambda name, fields: _zed_server(name, fields, source),
    )


def _zed_server(name: str, fields: EntryFields, source: EntrySource) -> ServerEntry:
    command = fields.take("command")
    if isinstance(command, Mapping):
        # Older files have an object with ``path``, ``args`` and ``env``.
        for inner, outer in (("path", "command"), ("args", "args"), ("env", "env")):
            fields.put(outer, command.get(inner))
    reached = definition(fields, fields.text("url"))
    disabled = fields.flag("enabled") is False
    fields.ignore(("source", "settings", "headers"))
    return entry(name, fields, source, reached, disabled=disabled)
