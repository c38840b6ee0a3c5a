"""Codex's ``config.toml``: ``[mcp_servers.name]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import (
    DialectResult,
    EntryDefinition,
    by_command,
    by_url,
    entry,
    lists,
    read_servers,
    timeouts,
)
from holdfast.config.dialects.fields import EntryFields
from holdfast.config.dialects.oauth import login_settings, scopes
from holdfast.config.entry import EntrySource, ServerEntry

_IGNORED: Final = (
    "name", "required", "supports_parallel_tool_calls", "url", "command", "args", "env", "cwd",
)  # fmt: skip
_NO_EFFECT: Final = (
    "http_headers_helper",
    "tools",
    "default_tools_approval_mode",
    "experimental_environment",
)


def read_codex(document: Mapping[str, Any], source: EntrySource) -> DialectResult:
    """Read the servers of a ``config.toml``."""
    return read_servers(
        document.get("mcp_servers"),
        source,
        "mcp_servers",
        lambda name, fields: _server(name, fields, source),
    )


def _server(name: str, fields: EntryFields, source: EntrySource) -> ServerEntry:
    program, url = fields.text("command"), fields.text("url")
    if program is not None and url is not None:
        fields.fault("url", "there is both a command and a URL")
    if program is None and url is None:
        fields.fault("command", "is missing, and so is a URL")
    reached = _remote(fields, url) if url is not None else _local(fields, program)
    settings = _settings(fields) | _login(fields)
    disabled = fields.flag("enabled") is False
    fields.ignore(_IGNORED)
    fields.without_effect(_NO_EFFECT)
    return entry(name, fields, source, reached, settings=settings, disabled=disabled)


def _login(fields: EntryFields) -> dict[str, Any]:
    found = dict(login_settings(fields, loopback="127.0.0.1").get("oauth", {}))
    more = {"scopes": scopes(fields, "scopes"), "resource": fields.text("oauth_resource")}
    found.update({name: value for name, value in more.items() if value})
    return {"oauth": found} if found else {}


def _local(fields: EntryFields, program: str | None) -> EntryDefinition:
    fields.without_effect(("bearer_token_env_var", "http_headers", "env_http_headers"))
    return by_command(fields, program, fields.texts("args") or ())


def _remote(fields: EntryFields, url: str) -> EntryDefinition:
    headers = fields.table("http_headers")
    for name, variable in fields.table("env_http_headers").items():
        headers[name] = f"${{env:{variable}}}"
    token = fields.text("bearer_token_env_var")
    if token is not None:
        headers = {name: one for name, one in headers.items() if name.lower() != "authorization"}
        headers["Authorization"] = f"Bearer ${{env:{token}}}"
    if "bearer_token" in fields:
        fields.take("bearer_token")
        fields.fault("bearer_token", "is not taken; name a variable in bearer_token_env_var")
    return by_url(fields, url, "streamable", headers)


def _settings(fields: EntryFields) -> dict[str, Any]:
    found = timeouts(
        handshake=fields.seconds("startup_timeout_sec")
        or fields.seconds("startup_timeout_ms", 0.001),
        tools=fields.seconds("tool_timeout_sec"),
    )
    fields.ignore(("startup_timeout_ms",))
    allow, deny = fields.texts("enabled_tools"), fields.texts("disabled_tools")
    return found | lists(allow=allow, deny=deny, inherit_env=_inherited(fields) or None)


def _inherited(fields: EntryFields) -> tuple[str, ...]:
    """Return ``env_vars``: names, or tables with a name, of variables to pass on."""
    listed = fields.take("env_vars")
    if listed is None:
        return ()
    names = [
        item.get("name") if isinstance(item, Mapping) else item
        for item in (listed if isinstance(listed, list) else [None])
    ]
    if not all(isinstance(name, str) for name in names):
        fields.fault("env_vars", "must be a list of names")
        return ()
    return tuple(name for name in names if isinstance(name, str))
