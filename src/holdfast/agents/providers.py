"""Definitions of tools, and results of calls, in the format of each provider.

    openai            function tools of Chat Completions
    openai-responses  ... and of Responses
    anthropic         tools of Messages
    gemini            function declarations

What a provider would refuse is changed, and the change reported as a `Loss`. None of them takes a
tool's output schema or annotations. All take the text of a result; pictures are given to providers
that take them from a tool, and replaced by their type and size for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from msgspec import UNSET, Struct

from holdfast._core.calls.invocation import (
    NO_REASON,
    Invocation,
    InvocationParts,
    Media,
    says_the_same,
)
from holdfast.agents import gemini, openai_strict
from holdfast.agents.listing import describe
from holdfast.agents.schemas import Loss, Losses, object_root, restore, safe_keys
from holdfast.schema.types import listed_types
from holdfast.schema.walk import Schema, rewrite
from holdfast.types.tools import Tool, ToolResult

SEARCH_TOOLS: Final[dict[str, dict[str, str]]] = {
    "anthropic": {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    "openai-responses": {"type": "tool_search"},
}
"""The tool by which a provider's model finds deferred tools."""

Provider: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini"]


# Definitions


_KEYS: Final = {"anthropic": "[a-zA-Z0-9_.-]{1,64}", "gemini": "[a-zA-Z_][a-zA-Z0-9_]{0,63}"}
"""The names of parameters that a provider takes, where it does not take all."""


class ProviderTool(Struct, frozen=True):
    """A tool in a provider's shape.

    ``keys`` leads from renamed parameters to their own names, ``back`` from a model's arguments to
    the tool's.
    """

    definition: dict[str, Any]
    losses: tuple[Loss, ...] = ()
    keys: Mapping[str, str] = {}
    back: Callable[[Any], Any] | None = None

    def restore(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return a model's arguments as the tool's own."""
        renamed = {self.keys.get(key, key): value for key, value in arguments.items()}
        return renamed if self.back is None else self.back(renamed)


def for_provider(
    tool: Tool,
    shape: Provider,
    *,
    name: str | None = None,
    strict: bool = False,
    fence: str | None = None,
    defer: bool = False,
) -> ProviderTool:
    """Return a tool in the shape of a provider, called ``name`` there.

    ``strict`` asks for OpenAI's strict mode; a tool that does not fit it is given without, and
    the losses say why. ``fence`` is the server's name, and marks all descriptions as that server's
    text. ``defer`` lets the provider load the definition when its tool search finds it.
    """
    report = Losses()
    keys: dict[str, str] = {}
    parameters, back = _parameters(tool.input_schema, shape, strict, report)
    if parameters is not None and shape in _KEYS:
        parameters, keys = safe_keys(parameters, _KEYS[shape], report)
    text = describe(tool)
    if fence is not None:
        text, parameters = fenced(text, fence), fenced_schema(parameters, fence)
    definition: dict[str, Any] = {"name": name or tool.name}
    if text or shape == "gemini":  # Gemini wants one always
        definition["description"] = text or definition["name"]
    if parameters is not None:
        definition["input_schema" if shape == "anthropic" else "parameters"] = parameters
    # Responses takes a tool for strict unless it says that it is not.
    if strict or shape == "openai-responses":
        definition["strict"] = strict and back is not None
    if shape == "openai":
        definition = {"function": definition}
    if shape.startswith("openai"):
        definition = {"type": "function", **definition}
    if defer:
        definition["defer_loading"] = True
    return ProviderTool(definition, tuple(report), keys, back)


def _parameters(
    schema: Schema, shape: Provider, strict: bool, report: Losses
) -> tuple[Schema | None, Callable[[Any], Any] | None]:
    """Return the schema of the arguments, and the way back from a model's to the tool's."""
    if shape == "gemini":
        plain = object_root(schema, report, plain=True)
        return gemini.subset(plain, report), partial(restore, schema=plain)
    if strict:
        losses = Losses()
        plain = object_root(schema, losses, plain=True)
        try:
            tight = openai_strict.to_strict(plain, losses)
        except openai_strict.NotStrict as why:
            report.add(why.where, why.keyword, f"not in strict mode: {why}")
        else:
            report.update(losses)
            return tight, partial(restore, schema=plain)
    root = object_root(schema, report)
    return (root if shape == "anthropic" else _with_items(root)), None


def _with_items(node: Any) -> Any:
    """Add ``items`` to arrays without: OpenAI refuses those."""
    if not isinstance(node, dict):
        return node
    if "array" in listed_types(node) and "items" not in node:
        node = {**node, "items": {}}
    return rewrite(node, lambda part: _with_items(part.schema))


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
    fenced_node = rewrite(node, lambda part: fenced_schema(part.schema, server))
    for key in ("title", "description"):
        if key in fenced_node:
            fenced_node[key] = fenced(fenced_node[key], server)
    return fenced_node


# Results

PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/webp", "image/gif"})
PDF: Final = "application/pdf"


class ModelAnswer(Struct, frozen=True):
    """A message that answers a model's call, and what the tool gave that is not in it.

    ``outcome`` is for the developer: the result whole, or the error with its hint.
    """

    message: dict[str, Any]
    losses: tuple[Loss, ...]
    outcome: Invocation


def answer(
    shape: str,
    outcome: Invocation | ToolResult | BaseException,
    *,
    call_id: str,
    name: str,
    media: bool = True,
) -> ModelAnswer:
    """Return the message for the call ``call_id`` of the tool ``name``.

    ``media=False`` is for models that take text alone from tools.
    """
    if isinstance(outcome, BaseException):
        outcome = Invocation.of_error(outcome)
    elif isinstance(outcome, ToolResult):
        outcome = Invocation.of_result(outcome)
    takes, build = PROVIDERS[shape]
    # Anthropic refuses media in an error.
    if not media or (shape == "anthropic" and not outcome.success):
        takes = frozenset()
    parts = outcome.parts(takes)
    losses = tuple(Loss(*omission) for omission in dict.fromkeys(parts.omissions))
    return ModelAnswer(build(parts, call_id, name), losses, outcome)


def _openai(parts: InvocationParts, call_id: str, name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": _text(parts)}


def _text(parts: InvocationParts) -> str:
    """Return one text; an error begins with ``Error:``, as the message has no field for it."""
    text = parts.text or "(no output)"
    return f"Error: {text}" if parts.is_error else text


def _responses(parts: InvocationParts, call_id: str, name: str) -> dict[str, Any]:
    output: Any = _text(parts)
    if parts.media:
        error = [{"type": "input_text", "text": "Error:"}] if parts.is_error else []
        output = [*error, *parts.blocks(_responses_media, "input_text")]
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _responses_media(item: Media) -> dict[str, Any]:
    url = f"data:{item.mime_type};base64,{item.data}"
    if item.mime_type != PDF:
        return {"type": "input_image", "image_url": url}
    filename = item.name.rpartition("/")[2] or "document.pdf"
    return {"type": "input_file", "filename": filename, "file_data": url}


def _anthropic(parts: InvocationParts, call_id: str, name: str) -> dict[str, Any]:
    message: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if parts.is_error:
        return {**message, "content": parts.text or NO_REASON, "is_error": True}
    content = parts.blocks(
        lambda item: {
            "type": "document" if item.mime_type == PDF else "image",
            "source": {"type": "base64", "media_type": item.mime_type, "data": item.data},
        }
    )
    return {**message, "content": content} if content else message


def _gemini(parts: InvocationParts, call_id: str, name: str) -> dict[str, Any]:
    response: dict[str, Any]
    if parts.is_error:
        response = {"error": parts.text or NO_REASON}
    elif parts.structured is UNSET:
        response = {"output": parts.text}
    else:
        response = {"output": parts.structured}
        if parts.text and not says_the_same(parts.texts, parts.structured):
            response["text"] = parts.text
    answered: dict[str, Any] = {"name": name, "response": response}
    if call_id:
        answered["id"] = call_id
    if parts.media:
        answered["parts"] = [
            {"inlineData": {"mimeType": item.mime_type, "data": item.data}} for item in parts.media
        ]
    return {"functionResponse": answered}


_Build: TypeAlias = Callable[[InvocationParts, str, str], dict[str, Any]]
PROVIDERS: Final[dict[str, tuple[frozenset[str], _Build]]] = {
    "openai": (frozenset(), _openai),
    "openai-responses": (PICTURES | {PDF}, _responses),
    "anthropic": (PICTURES | {PDF}, _anthropic),
    "gemini": ((PICTURES - {"image/gif"}) | {PDF}, _gemini),
}
"""For each shape, the media that it takes from a tool, and what writes the answer to a call."""
