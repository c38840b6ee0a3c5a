"""HTTP headers that repeat parts of a message (basic/transports/streamable-http)."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

VERSION: Final = "MCP-Protocol-Version"
SESSION: Final = "Mcp-Session-Id"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAM: Final = "Mcp-Param-"

_NAMED: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    # Tasks extension, Streamable HTTP: Routing Headers.
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The requests that name something, and the parameter that does."""
NAMING: Final = frozenset(_NAMED.values())

_PREFIX, _SUFFIX = "=?base64?", "?="
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_PRIMITIVE = frozenset({"string", "integer", "boolean"})


def standard(version: str, method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the headers of a stateless request (Standard Request Headers)."""
    headers = {VERSION: version, METHOD: method}
    source = _NAMED.get(method)
    target = None if source is None or params is None else params.get(source)
    if isinstance(target, Raw):  # of a relay
        target = msgspec.json.decode(target)
    if isinstance(target, str):
        headers[NAME] = encode_value(target)
    return headers


def mismatch(
    sent: Mapping[str, str], version: str, method: str, params: Mapping[str, Any]
) -> str | None:
    """Return the first header of a stateless request that does not repeat its body.

    Transports: Streamable HTTP, Server Validation: a header that differs is an error, because
    proxies may have acted on it.
    """
    expected = standard(version, method, params)
    return next((name for name, value in expected.items() if not _is_same(sent, name, value)), None)


def _is_same(sent: Mapping[str, str], name: str, value: str) -> bool:
    """Return whether a header has a value; one that may be encoded is decoded to compare it."""
    text = sent.get(name)
    return text == value or (
        name == NAME and text is not None and _decoded(text) == _decoded(value)
    )


def encode_value(value: str) -> str:
    """Encode a value for a header, in Base64 where plain text cannot hold it (Value Encoding)."""
    plain = value.isascii() and value.replace("\t", " ").isprintable()
    sentinel = value.startswith(_PREFIX) and value.endswith(_SUFFIX)
    if plain and value == value.strip() and not sentinel:
        return value
    return _PREFIX + base64.b64encode(value.encode("utf-8", "replace")).decode() + _SUFFIX


def _decoded(text: str) -> str | None:
    """Return the value of a header; None if it says that it is Base64, and is not."""
    if not (text.startswith(_PREFIX) and text.endswith(_SUFFIX)):
        return text
    try:
        return base64.b64decode(text[len(_PREFIX) : -len(_SUFFIX)], validate=True).decode()
    except ValueError:
        return None


MOST_PARTS: Final = 50_000
"""Parts of a schema in which annotations are looked for."""
MOST_HEADERS: Final = 100
"""Headers of one tool's parameters."""

_Path: TypeAlias = "tuple[_Path, str] | None"
"""The way to a property: a path, and the last step. Whole paths would take quadratic time."""

HeaderPaths = dict[str, tuple[str, ...]]
"""Header names (without the prefix), and the path of the argument that each repeats."""


class BadParamHeader(ValueError):  # noqa: N818
    """An ``x-mcp-header`` annotation that the specification does not allow (Schema Extension)."""


def header_paths(schema: Any) -> HeaderPaths:
    """Return the annotated properties of a schema; raise ``BadParamHeader`` for a bad one."""
    paths: HeaderPaths = {}
    names: set[str] = set()
    for header, path, kind in _annotated(schema):
        if not isinstance(header, str) or not header or not set(header) <= _TOKEN:
            raise BadParamHeader(f"x-mcp-header {header!r} is not a header name")
        if header.lower() in names:
            raise BadParamHeader(f"x-mcp-header {header!r} is there twice")
        if not isinstance(kind, str) or kind not in _PRIMITIVE:
            where = ".".join(path)
            raise BadParamHeader(f"x-mcp-header {header!r} is on {where!r}, which is no primitive")
        if len(paths) == MOST_HEADERS:
            raise BadParamHeader(f"more than {MOST_HEADERS} parameters have an x-mcp-header")
        names.add(header.lower())
        paths[header] = path
    return paths


def _annotated(schema: Any) -> Iterator[tuple[Any, tuple[str, ...], Any]]:
    """Every annotation below a schema; one that is not reached by properties alone is refused."""
    parts: list[tuple[Any, _Path, bool]] = [(schema, None, True)]
    budget = MOST_PARTS
    while parts:
        if not budget:
            raise BadParamHeader(f"its schema has more than {MOST_PARTS} parts")
        budget -= 1
        part, path, reachable = parts.pop()
        if isinstance(part, list):
            parts += [(item, path, False) for item in part]
        elif isinstance(part, dict):
            if "x-mcp-header" in part:
                if not reachable or path is None:
                    header = part["x-mcp-header"]
                    raise BadParamHeader(f"x-mcp-header {header!r} is not on a plain property")
                yield part["x-mcp-header"], _steps(path), part.get("type")
            parts += _below(part, path, reachable)


def _below(
    schema: dict[str, Any], path: _Path, reachable: bool
) -> Iterator[tuple[Any, _Path, bool]]:
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            for name, part in value.items():
                yield part, (path, name), reachable
        elif key in ("$defs", "definitions") and isinstance(value, dict):
            for part in value.values():
                yield part, path, False
        elif key not in ("default", "const", "enum", "examples"):
            yield value, path, False


def _steps(path: _Path) -> tuple[str, ...]:
    steps: list[str] = []
    while path is not None:
        path, name = path
        steps.append(name)
    return tuple(reversed(steps))


def param_headers(paths: HeaderPaths, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of one call, without what is absent or null (Client Behavior)."""
    headers = {}
    for name, path in paths.items():
        value = _at(arguments, path)
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            headers[PARAM + name] = encode_value(text)
    return headers


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(arguments, Mapping):
            return None
        arguments = arguments.get(step)
    return arguments
