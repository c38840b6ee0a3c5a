"""Definitions of tools for language models, in the format of each provider.

    openai            function tools of Chat Completions
    openai-responses  ... and of Responses
    anthropic         tools of Messages
    gemini            function declarations, ``parameters``
    gemini-json       ... ``parametersJsonSchema``

What a provider would refuse is changed, and the change reported as a `Loss`. A tool's output
schema and annotations have no place in any of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, structs

from holdfast.agents import gemini, openai_strict
from holdfast.agents.listing import describe
from holdfast.agents.schemas import (
    DEEPEST,
    Loss,
    Losses,
    object_root,
    rewrite,
    safe_keys,
    sound,
    types_of,
)
from holdfast.errors import ValidationError
from holdfast.schema.walk import Schema
from holdfast.types.tools import Tool

SEARCH_TOOLS: Final[dict[str, dict[str, str]]] = {
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    "openai-responses": {"type": "tool_search"},
}
"""The tool by which a provider's model finds deferred tools."""

Shape: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini", "gemini-json"]


class Shaped(Struct, frozen=True):
    """A tool in a provider's shape. ``keys`` leads from parameters renamed to their own names;
    ``strict`` is whether the provider will hold its model to the schema."""

    definition: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    keys: Mapping[str, str] = {}
    strict: bool = False


class _Parts(Struct):
    """A tool taken apart, from which every shape is made."""

    name: str
    description: str
    schema: Schema
    report: Losses
    strict: bool

    def described(self) -> dict[str, str]:
        return {"description": self.description} if self.description else {}


def shaped(
    tool: Tool,
    shape: Shape,
    *,
    name: str | None = None,
    strict: bool = False,
    description_limit: int | None = None,
    fence: str | None = None,
    defer: bool = False,
) -> Shaped:
    """A tool in the shape of a provider, called ``name`` there.

    ``strict`` asks for OpenAI's strict mode; a tool that does not fit it stays without, and
    the losses say why. ``description_limit`` cuts descriptions, for models that want that.
    ``fence`` names the server, and marks its descriptions, those of parameters too, as text of a
    stranger. ``defer`` has
    the provider load the definition when its own tool search finds it.
    """
    build = builder(shape)
    if strict and not shape.startswith("openai"):
        raise ValidationError(f"strict=True: shape {shape!r} has no strict mode here")
    report = Losses()
    if defer and shape not in SEARCH_TOOLS:
        can = " and ".join(SEARCH_TOOLS)
        raise ValidationError(f"defer: shape {shape!r} has no tool search; {can} have one")
    text = _cut(describe(tool), description_limit, report)
    schema = sound(tool.input_schema, report)
    if fence is not None:
        text, schema = fenced(text, fence), fenced_schema(schema, fence)
    parts = _Parts(name or tool.name, text, schema, report, strict)
    found = build(parts)
    if defer:
        found = structs.replace(found, definition={**found.definition, "defer_loading": True})
    return found


def fenced(text: str, server: str) -> str:
    """Return a description between marks that it cannot forge; none stays none."""
    if not text:
        return text
    inner = text.replace("<", "‹").replace(">", "›")
    return f"<description by={server!r}>\n{inner}\n</description>"


def fenced_schema(node: Any, server: str) -> Any:
    """Return a schema whose descriptions are fenced, at every depth."""
    if not isinstance(node, dict):
        return node
    found = rewrite(node, lambda part, where: fenced_schema(part, server))
    words = {key: found[key] for key in ("title", "description") if isinstance(found.get(key), str)}
    return {**found, **{key: fenced(text, server) for key, text in words.items()}}


def _cut(text: str, limit: int | None, report: Losses) -> str:
    if limit is None or len(text) <= limit:
        return text
    report.add("", "description", f"is cut from {len(text)} characters to {limit}")
    return text[: limit - 1] + "…"


# OpenAI


def _openai(parts: _Parts) -> Shaped:
    parameters, held = _parameters(parts)
    function: dict[str, Any] = {"name": parts.name, **parts.described(), "parameters": parameters}
    if parts.strict:
        function["strict"] = held
    definition = {"type": "function", "function": function}
    return Shaped(definition, tuple(parts.report), strict=held)


def _responses(parts: _Parts) -> Shaped:
    parameters, held = _parameters(parts)
    # Responses takes a tool for strict unless it says that it is not.
    function = {"name": parts.name, **parts.described(), "parameters": parameters, "strict": held}
    return Shaped({"type": "function", **function}, tuple(parts.report), strict=held)


def _parameters(parts: _Parts) -> tuple[Schema, bool]:
    if parts.strict:
        found = Losses()
        try:
            schema = openai_strict.tighten(parts.schema, found)
        except openai_strict.NotStrict as why:
            parts.report.add(why.where, why.keyword, f"not in strict mode: {why.text}")
        else:
            for loss in found:
                parts.report.add(loss.where, loss.keyword, loss.text)
            return schema, True
    return _with_items(object_root(parts.schema, parts.report), ""), False


def _with_items(node: Any, where: str) -> Any:
    """OpenAI refuses an array that does not say of what; of anything, then."""
    if not isinstance(node, dict) or where.count("/") > 2 * DEEPEST:
        return node
    if "array" in types_of(node) and "items" not in node:
        node = {**node, "items": {}}
    return rewrite(node, _with_items, where)


# Anthropic

_ANTHROPIC_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)
_ANTHROPIC_ODD: Final = re.compile(r"[^a-zA-Z0-9_.-]", re.ASCII)


def _anthropic(parts: _Parts) -> Shaped:
    root = object_root(parts.schema, parts.report)
    schema, keys = safe_keys(root, _ANTHROPIC_KEY, _ANTHROPIC_ODD, parts.report)
    definition = {"name": parts.name, **parts.described(), "input_schema": schema}
    return Shaped(definition, tuple(parts.report), keys)


# Gemini

_GEMINI_KEY: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}", re.ASCII)
_GEMINI_ODD: Final = re.compile(r"[^a-zA-Z0-9_]", re.ASCII)


def _gemini(parts: _Parts) -> Shaped:
    return _declaration(parts, "parameters", gemini.subset)


def _gemini_json(parts: _Parts) -> Shaped:
    return _declaration(parts, "parametersJsonSchema", gemini.json_schema)


def _declaration(
    parts: _Parts, key: str, convert: Callable[[Schema, Losses], Schema | None]
) -> Shaped:
    schema = convert(parts.schema, parts.report)
    keys: dict[str, str] = {}
    # Gemini wants a description always.
    definition: dict[str, Any] = {
        "name": parts.name,
        "description": parts.description or parts.name,
    }
    if schema is not None:
        definition[key], keys = safe_keys(schema, _GEMINI_KEY, _GEMINI_ODD, parts.report)
    return Shaped(definition, tuple(parts.report), keys)


SHAPES: Final[dict[str, Callable[[_Parts], Shaped]]] = {
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "gemini-json": _gemini_json,
}


def builder(shape: object) -> Callable[[_Parts], Shaped]:
    """Return what builds tools of a shape; refuse one that there is not."""
    build = SHAPES.get(shape) if isinstance(shape, str) else None
    if build is None:
        raise ValidationError(f"shape {shape!r}: must be one of {', '.join(SHAPES)}")
    return build
