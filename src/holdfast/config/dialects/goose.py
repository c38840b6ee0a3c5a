"""Goose's ``config.yaml``: ``extensions``, some of which are MCP servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import (
    Reading,
    Way,
    entry,
    local_way,
    read_servers,
    remote_way,
    timeouts,
)
from holdfast.config.dialects.fields import Fields
from holdfast.config.entry import Manner, ServerEntry, Source

_MANNERS: Final[dict[str, Manner]] = {"sse": "sse", "streamable_http": "streamable"}
_BUILT_IN: Final = ("builtin", "platform", "frontend", "inline_python")
"""Parts of Goose itself: no servers that anybody else could reach."""
_SAYS_NOTHING: Final = (
    "name", "display_name", "description", "bundled", "type", "cmd", "args", "envs", "uri",
    "headers", "env_keys",
)  # fmt: skip


def read(document: Mapping[str, Any], source: Source) -> Reading:
    extensions = document.get("extensions")
    if isinstance(extensions, Mapping):
        extensions = {
            name: _flat(raw) for name, raw in extensions.items() if not _is_built_in(_flat(raw))
        }
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


def _server(name: str, fields: Fields, source: Source) -> ServerEntry:
    kind = fields.text("type") or ("stdio" if "cmd" in fields else "streamable_http")
    given = fields.table("envs")
    if kind == "stdio":
        reached = _local(fields, given)
    elif kind in _MANNERS:
        reached = _remote(fields, given, _MANNERS[kind])
    else:
        fields.fault("type", "is not supported (stdio, streamable_http or sse)")
        reached = Way()
    allow, keys = fields.texts("available_tools"), fields.texts("env_keys")
    settings = timeouts(request=fields.seconds("timeout"))
    settings |= {"allow": allow} if allow else {}
    settings |= {"inherit_env": keys} if keys and kind == "stdio" else {}
    disabled = fields.flag("enabled") is False
    fields.ignore(_SAYS_NOTHING)
    return entry(name, fields, source, reached, settings=settings, disabled=disabled)


def _local(fields: Fields, given: dict[str, str]) -> Way:
    program = fields.text("cmd")
    if program is None:
        fields.fault("cmd", "is missing")
    fields.put("env", given)
    return local_way(fields, program, fields.texts("args") or ())


def _remote(fields: Fields, given: dict[str, str], manner: Manner) -> Way:
    url = fields.text("uri")
    if url is None:
        fields.fault("uri", "is missing")
    headers = {
        name: re.sub(r"\$\{(\w+)\}", lambda match: given.get(match[1], match[0]), value)
        for name, value in fields.table("headers").items()
    }
    return remote_way(fields, url, manner, headers)
