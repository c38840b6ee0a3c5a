"""Goose's ``config.yaml``: ``extensions``, some of which are MCP servers."""

from __future__ import annotations

import re
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
from holdfast.config.entry import EntrySource, ServerEntry
from holdfast.config.settings import HttpMode

_MODES: Final[dict[str, HttpMode]] = {"sse": "sse", "streamable_http": "streamable"}
_BUILT_IN: Final = ("builtin", "platform", "frontend", "inline_python")
"""Parts of Goose itself: no servers that another program could reach."""
_IGNORED: Final = (
    "name", "display_name", "description", "bundled", "type", "cmd", "args", "envs", "uri",
    "headers", "env_keys",
)  # fmt: skip


def read_goose(document: Mapping[str, Any], source: EntrySource) -> DialectResult:
    """Read the servers among the extensions."""
    extensions = document.get("extensions")
    if isinstance(extensions, Mapping):
        flat = {name: _flat(raw) for name, raw in extensions.items()}
        extensions = {name: raw for name, raw in flat.items() if not _is_built_in(raw)}
    return read_servers(
        extensions, source, "extensions", lambda name, fields: _server(name, fields, source)
    )


def _flat(raw: Any) -> Any:
    """Some versions keep the settings one level down, under ``config``."""
    inner = raw.get("config") if isinstance(raw, Mapping) else None
    if not isinstance(inner, Mapping):
        return raw
    return {**inner, **{name: value for name, value in raw.items() if name != "config"}}


def _is_built_in(raw: Any) -> bool:
    return isinstance(raw, Mapping) and raw.get("type") in _BUILT_IN


def _server(name: str, fields: EntryFields, source: EntrySource) -> ServerEntry:
    kind = fields.text("type") or ("stdio" if "cmd" in fields else "streamable_http")
    given = fields.table("envs")
    reached: EntryDefinition = {}
    if kind == "stdio":
        reached = _local(fields, given)
    elif kind in _MODES:
        reached = _remote(fields, given, _MODES[kind])
    else:
        fields.fault("type", "is not supported (stdio, streamable_http or sse)")
    allow, keys = fields.texts("available_tools"), fields.texts("env_keys")
    settings = timeouts(request=fields.seconds("timeout")) | lists(
        allow=allow or None, inherit_env=(keys or None) if kind == "stdio" else None
    )
    disabled = fields.flag("enabled") is False
    fields.ignore(_IGNORED)
    return entry(name, fields, source, reached, settings=settings, disabled=disabled)


def _local(fields: EntryFields, given: dict[str, str]) -> EntryDefinition:
    program = fields.text("cmd")
    if program is None:
        fields.fault("cmd", "is missing")
    fields.put("env", given)
    return by_command(fields, program, fields.texts("args") or ())


def _remote(fields: EntryFields, given: dict[str, str], mode: HttpMode) -> EntryDefinition:
    url = fields.text("uri")
    if url is None:
        fields.fault("uri", "is missing")
    headers = {
        name: re.sub(r"\$\{(\w+)\}", lambda match: given.get(match[1], match[0]), value)
        for name, value in fields.table("headers").items()
    }
    return by_url(fields, url, mode, headers)
