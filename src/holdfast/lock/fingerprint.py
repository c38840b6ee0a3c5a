"""What a server offers, reduced to a few digits: the same tools give the same ones, always.

The order of keys, of tools and of pages says nothing, so it does not count.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any, Final

from msgspec import UnsetType

from holdfast.schema.types import canonical
from holdfast.types.tools import Tool, decode_schema

HASH_DIGITS: Final = 12


def fingerprint(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON."""
    return f"sha256:{sha256(canonical(value)).hexdigest()}"


def registry_hash(tools: Iterable[Tool]) -> str:
    """Return twelve hex digits over the names and input schemas of tools."""
    plain = ((tool.name, decode_schema(tool.input_schema_json)) for tool in tools)
    parts = sorted(canonical({"name": name, "inputSchema": schema}) for name, schema in plain)
    return sha256(b"[" + b",".join(parts) + b"]").hexdigest()[:HASH_DIGITS]


def definition(tool: Tool) -> dict[str, Any]:
    """Return the parts of a tool that callers and models rely on, as plain JSON."""
    # The input schema as it came, even if it is not an object.
    schema = decode_schema(tool.input_schema_json)
    plain: dict[str, Any] = {"name": tool.name, "inputSchema": schema}
    if tool.title is not None:
        plain["title"] = tool.title
    if tool.description is not None:
        plain["description"] = tool.description
    if not isinstance(tool.output_schema_json, UnsetType):
        plain["outputSchema"] = decode_schema(tool.output_schema_json)
    if tool.annotations is not None:
        plain["annotations"] = tool.annotations.raw
    return plain


def schema_texts(tools: Iterable[Tool]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the input and the output schemas of tools by name, as canonical JSON text."""
    plain = {tool.name: definition(tool) for tool in tools}
    schemas = {
        name: canonical(plain_tool["inputSchema"]).decode() for name, plain_tool in plain.items()
    }
    returns = {
        name: canonical(plain_tool["outputSchema"]).decode()
        for name, plain_tool in plain.items()
        if isinstance(plain_tool.get("outputSchema"), dict)
    }
    return schemas, returns
