"""VS Code's ``mcp.json``: ``servers``, and ``inputs`` that a person is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.config.dialects.common import Reading, entry, inputs_of, read_servers, way
from holdfast.config.dialects.fields import Fields
from holdfast.config.entry import ServerEntry, Source
from holdfast.config.expansion import Input

_SAYS_NOTHING: Final = ("version", "gallery", "description", "headers")
_NO_EFFECT: Final = ("dev", "sandbox", "sandboxEnabled", "oauth")


def read(document: Mapping[str, Any], source: Source) -> Reading:
    """A ``mcp.json``, or the ``mcp`` part of a ``settings.json``."""
    part = document.get("mcp")
    if "servers" not in document and isinstance(part, Mapping):
        document = part
    inputs = inputs_of(document)
    return read_servers(
        document.get("servers"),
        source,
        "servers",
        lambda name, fields: _server(name, fields, source, inputs),
    )


def _server(name: str, fields: Fields, source: Source, inputs: Mapping[str, Input]) -> ServerEntry:
    _leave_out_nulls(fields)
    reached = way(fields, fields.text("url"))
    disabled = fields.flag("disabled") or False
    fields.ignore(_SAYS_NOTHING)
    fields.without_effect(_NO_EFFECT)
    return entry(name, fields, source, reached, disabled=disabled, inputs=inputs)


def _leave_out_nulls(fields: Fields) -> None:
    """``"NAME": null`` takes a variable away; a server here gets none that it was not given."""
    env = fields.take("env")
    if isinstance(env, Mapping) and None in env.values():
        kept = {name: value for name, value in env.items() if value is not None}
        fields.put("env", kept)
