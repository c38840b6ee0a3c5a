"""The tools of the demo server. Each is a function of the request and its arguments."""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import zlib
from binascii import b2a_base64
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from holdfast._core.eras.serving import Json
from holdfast._core.server.catalog import Catalog, Offered, resource
from holdfast._core.server.request import ServerRequest, ToolFailure, text_result

NOTE_PREFIX: Final = "demo://note/"
NOTE_NAME: Final = "^[A-Za-z0-9_-]{1,64}$"

Tool: TypeAlias = Callable[..., Any]

_READS: Final = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
_ASKS: Final = {"readOnlyHint": True, "idempotentHint": False, "destructiveHint": False}
"""It changes nothing either, but each call asks a person."""

_TOOLS: Final[dict[str, Offered]] = {}
_TYPES: Final = {"str": "string", "int": "integer", "float": "number"}


def tool(
    *,
    hints: Json = _READS,
    output: dict[str, Json] | None = None,
    task: bool = False,
    into: dict[str, Offered] = _TOOLS,
    **described: str | tuple[str, Json],
) -> Callable[[Tool], Tool]:
    """Offer a function as a tool of the same name, described by its docstring.

    ``described`` are its parameters; their types and defaults are those of the function.
    """

    def register(function: Tool) -> Tool:
        fields: dict[str, Json] = {}
        for name, parameter in described.items():
            text, rest = (parameter, {}) if isinstance(parameter, str) else parameter
            kind = _TYPES[function.__annotations__[name]]
            fields[name] = {"type": kind, "description": text, **rest}
        defaults = function.__defaults__ or ()
        for name, default in zip([*fields][len(fields) - len(defaults) :], defaults, strict=True):
            fields[name]["default"] = default
        schema: Json = {"type": "object", "properties": fields, "additionalProperties": False}
        if required := [name for name, parameter in fields.items() if "default" not in parameter]:
            schema["required"] = required
        definition = {
            "name": function.__name__,
            "description": function.__doc__,
            "inputSchema": schema,
            "annotations": {**hints, "openWorldHint": False},
            **({} if output is None else {"outputSchema": _object_schema(output)}),
            **({"execution": {"taskSupport": "optional"}} if task else {}),
        }

        def run(request: ServerRequest, arguments: Json) -> Any:
            request.log("debug", f"tool {function.__name__} called", "demo")
            if faults := _faults(fields, arguments):
                raise failure(request, "; ".join(faults))
            return function(request, **arguments)

        into[function.__name__] = Offered(definition, run)
        return function

    return register


def _between(minimum: int, maximum: int) -> Json:
    return {"minimum": minimum, "maximum": maximum}


# Schemas, results


def _object_schema(properties: dict[str, Json]) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def failure(request: ServerRequest, message: str) -> ToolFailure:
    """Log that a tool failed; return what to raise."""
    request.log("error", f"tool {request.params['name']} failed: {message}", "demo")
    return ToolFailure(message)


def _faults(parameters: dict[str, Json], arguments: Json) -> list[str]:
    """Return what does not fit; every fault names its argument."""
    faults = [f"unknown argument {name!r}" for name in arguments if name not in parameters]
    for name, parameter in parameters.items():
        if name in arguments:
            fault = _fault(parameter, arguments[name])
            faults += [f"argument {name!r} must be {fault}"] if fault else []
        elif "default" not in parameter:
            faults.append(f"argument {name!r} is missing")
    return faults


_KINDS: Final[dict[str, Any]] = {"string": (str,), "integer": (int,), "number": (int, float)}


def _fault(schema: Json, value: Any) -> str | None:
    if not isinstance(value, _KINDS[schema["type"]]) or isinstance(value, bool):
        return f"of type {schema['type']}"
    if "minimum" in schema and value < schema["minimum"]:
        return f"at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"at most {schema['maximum']}"
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return f"like {schema['pattern']}"
    return None


def _structured(value: Json) -> Json:
    """Return a structured result; the same as text, for clients that do not read it."""
    return {**text_result(json.dumps(value, allow_nan=False)), "structuredContent": value}


# The tools


@tool(text="What to give back")
def echo(request: ServerRequest, text: str) -> Json:
    """Gives the text back."""
    return text_result(text)


@tool(a="One number", b="Another number", output={"sum": {"type": "number"}})
def add(request: ServerRequest, a: float, b: float) -> Json:
    """Adds two numbers."""
    try:
        return _structured({"sum": a + b})
    except (OverflowError, ValueError):  # infinity has no place in JSON
        raise failure(request, "the sum is too large") from None


@tool(
    text="The text to count",
    output={name: {"type": "integer"} for name in ("lines", "words", "characters")},
)
def word_count(request: ServerRequest, text: str) -> Json:
    """Counts the lines, words and characters of a text."""
    counts = {"lines": len(text.splitlines()), "words": len(text.split()), "characters": len(text)}
    return _structured(counts)


@tool(
    steps=("How many steps", _between(1, 1_000_000)),
    seconds=("Time per step", _between(0, 3600)),
    task=True,
)
async def countdown(request: ServerRequest, steps: int, seconds: float = 0) -> Json:
    """Counts down and reports progress at each step."""
    request.log("info", f"counting down from {steps}", "demo")
    for done in range(1, steps + 1):
        await request.sleep(seconds)
        request.progress(done, total=steps, message=f"{steps - done} to go")
    return text_result(f"counted down from {steps}")


@tool(width=("Pixels across", _between(1, 512)), height=("Pixels down", _between(1, 512)))
def picture(request: ServerRequest, width: int = 64, height: int = 64) -> Json:
    """Draws a colour gradient as a PNG."""
    data = gradient(width, height)
    return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}


@tool(seconds=("How long", _between(0, 86_400)))
async def sleep(request: ServerRequest, seconds: float) -> Json:
    """Does nothing for a while. Stops at once when cancelled, and does not answer then."""
    await request.sleep(seconds)
    return text_result(f"slept {seconds} s")


@tool(message="What to say")
def fail(request: ServerRequest, message: str = "failed, as asked") -> Json:
    """Fails with the message given."""
    raise failure(request, message)


@tool(
    code=("The exit code", _between(0, 255)),
    hints={"readOnlyHint": False, "idempotentHint": False, "destructiveHint": True},
)
def crash(request: ServerRequest, code: int = 1) -> Json:
    """Ends the server's process at once, without an answer."""
    print(f"demo server: crashing with exit code {code}, as asked", file=sys.stderr, flush=True)
    os._exit(code)


@tool(hints=_ASKS)
async def ask_name(request: ServerRequest) -> Json:
    """Asks the user for a name (elicitation), then greets."""
    name = {"type": "string", "title": "Name", "description": "How to address you", "minLength": 1}
    question = {"message": "What is your name?", "requestedSchema": _object_schema({"name": name})}
    answer = await request.ask("elicitation/create", question, "name")
    match answer:
        case {"action": "accept", "content": {"name": str(given)}} if given:
            return text_result(f"Hello, {given}!")
        case {"action": "decline"}:
            return text_result("No name, then. Hello all the same!")
        case {"action": "cancel"}:
            return text_result("The question was put away unanswered.")
    raise failure(request, f"the client's answer holds no name: {json.dumps(answer)}")


@tool(text="The text to summarise", hints=_ASKS)
async def summarise(request: ServerRequest, text: str) -> Json:
    """Has the client's model summarise a text (sampling)."""
    prompt = {"type": "text", "text": f"Summarise in one sentence:\n\n{text}"}
    sampling = {"messages": [{"role": "user", "content": prompt}], "maxTokens": 200}
    content = (await request.ask("sampling/createMessage", sampling, "summary")).get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    summary = "\n".join(part for part in texts if isinstance(part, str) and part)
    if not summary:
        raise failure(request, "the client's model gave no text")
    return text_result(summary)


@tool(output={"roots": {"type": "array", "items": {"type": "object"}}})
async def roots(request: ServerRequest) -> Json:
    """Lists the roots that the client offers."""
    answer = (await request.ask("roots/list", {}, "roots")).get("roots")
    if not isinstance(answer, list):
        raise failure(request, "the client's answer holds no roots")
    return _structured({"roots": answer})


def offer_tools(catalog: Catalog) -> None:
    """Put every tool into a catalog; notes become resources of it."""
    catalog.tools.update(_TOOLS)

    @tool(
        name=("Letters, digits, - and _", {"pattern": NOTE_NAME}),
        text="What the note says",
        hints={"readOnlyHint": False, "idempotentHint": True, "destructiveHint": True},
        into=catalog.tools,
    )
    def note(request: ServerRequest, name: str, text: str) -> Json:
        """Writes a note, over an older one of that name; it is the resource demo://note/{name}."""
        uri = NOTE_PREFIX + name
        is_new = uri not in catalog.resources
        described: Json = {"name": name, "description": "A note", "mimeType": "text/plain"}
        catalog.resources[uri] = resource(uri, text, **described)
        if is_new:
            request.session.server.announce("notifications/resources/list_changed")
        request.session.server.announce("notifications/resources/updated", {"uri": uri})
        return text_result(f"{'wrote' if is_new else 'changed'} {uri}")


# Pictures


def gradient(width: int, height: int) -> str:
    """Return an RGB picture as a PNG in Base64: red grows to the right, green downwards."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    reds = [x * 255 // max(width - 1, 1) for x in range(width)]
    greens = [y * 255 // max(height - 1, 1) for y in range(height)]
    # Each line of pixels comes after its filter byte (0: as it is).
    rows = [b"\x00" + b"".join(bytes((red, green, 128)) for red in reds) for green in greens]
    data = b"\x89PNG\r\n\x1a\n"
    for kind, body in (
        (b"IHDR", header),
        (b"IDAT", zlib.compress(b"".join(rows))),
        (b"IEND", b""),
    ):
        data += struct.pack(">I", len(body)) + kind + body
        data += struct.pack(">I", zlib.crc32(kind + body))
    return b2a_base64(data, newline=False).decode()
