"""``mcpServers``: Claude Desktop, Claude Code, Cursor and most others; Holdfast's own, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import (
    Reading,
    entry,
    inputs_of,
    read_servers,
    timeouts,
    way,
)
from holdfast.config.dialects.fields import Fields
from holdfast.config.entry import ServerEntry, Source
from holdfast.config.expansion import Input

_SAYS_NOTHING: Final = ("description", "name", "displayName", "icon", "$schema")
_NO_EFFECT: Final = (
    "headersHelper",
    "oauth",
    "auth",
    "alwaysAllow",
    "autoApprove",
    "trust",
    "alwaysLoad",
)


def read(document: Mapping[str, Any], source: Source) -> Reading:
    inputs = inputs_of(document)
    return read_servers(
        document.get("mcpServers"),
        source,
        "mcpServers",
        lambda name, fields: server(name, fields, source, inputs),
    )


def server(
    name: str, fields: Fields, source: Source, inputs: Mapping[str, Input] | None = None
) -> ServerEntry:
    reached = way(fields, fields.text("url", "serverUrl"))
    disabled = fields.flag("disabled") or fields.flag("enabled") is False
    settings = timeouts(request=_timeout(fields))
    fields.ignore((*_SAYS_NOTHING, "headers", "enabled"))
    fields.without_effect(_NO_EFFECT)
    return entry(name, fields, source, reached, settings=settings, disabled=disabled, inputs=inputs)


def _timeout(fields: Fields) -> float | None:
    """Milliseconds in most products, seconds in some: only a number that is clear is taken."""
    span = fields.seconds("timeout", 0.001)
    if span is not None and span < 1.0:
        text = "seconds or milliseconds? Not used; say holdfast.timeouts (in seconds)"
        fields.fault("timeout", text, "warning")
        return None
    return span
