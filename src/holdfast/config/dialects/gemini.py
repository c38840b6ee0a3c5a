"""Gemini's ``settings.json``: ``mcpServers`` with ``httpUrl`` beside ``url``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import (
    Reading,
    entry,
    read_servers,
    timeouts,
    way,
)
from holdfast.config.dialects.fields import Fields
from holdfast.config.entry import ServerEntry, Source

_SAYS_NOTHING: Final = ("description", "extensionName", "headers")
_NO_EFFECT: Final = (
    "trust",
    "oauth",
    "authProviderType",
    "targetAudience",
    "targetServiceAccount",
    "tcp",
)
_BARE: Final = re.compile(r"(?<!\$)\$([A-Za-z_][A-Za-z0-9_]*)")


def read(document: Mapping[str, Any], source: Source) -> Reading:
    return read_servers(
        _braced(document.get("mcpServers")),
        source,
        "mcpServers",
        lambda name, fields: _server(name, fields, source, _is_out(document, name)),
    )


def _server(name: str, fields: Fields, source: Source, out: bool) -> ServerEntry:
    streamable = fields.text("httpUrl")
    url = fields.text("url")
    reached = way(fields, streamable or url, hint="streamable" if streamable else "auto")
    settings = timeouts(request=fields.seconds("timeout", 0.001))
    allow, deny = fields.texts("includeTools"), fields.texts("excludeTools")
    settings |= {} if allow is None else {"allow": allow}
    settings |= {} if deny is None else {"deny": deny}
    fields.ignore(_SAYS_NOTHING)
    fields.without_effect(_NO_EFFECT)
    return entry(name, fields, source, reached, settings=settings, disabled=out)


def _is_out(document: Mapping[str, Any], name: str) -> bool:
    """``mcp.allowed`` and ``mcp.excluded`` say which servers there are."""
    part = document.get("mcp")
    rules = part if isinstance(part, Mapping) else {}
    allowed, excluded = rules.get("allowed"), rules.get("excluded")
    if isinstance(excluded, list) and name in excluded:
        return True
    return isinstance(allowed, list) and bool(allowed) and name not in allowed


def _braced(value: Any, levels: int = 6) -> Any:
    """``$VAR`` as ``${VAR}``: Gemini takes both, and Holdfast only the clear one."""
    if isinstance(value, str):
        return _BARE.sub(r"${\1}", value) if "$" in value else value
    if levels == 0:
        return value
    if isinstance(value, list):
        return [_braced(item, levels - 1) for item in value]
    if isinstance(value, Mapping):
        return {key: _braced(item, levels - 1) for key, item in value.items()}
    return value
