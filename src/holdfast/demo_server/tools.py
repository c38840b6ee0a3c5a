"""The tools. Each is a function of the call and its arguments; `@tool` adds what clients see."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from .call import Call, ToolError
from .eras import Era
from .picture import base64_text, gradient
from .resources import NOTE_NAME, NOTE_PREFIX
from .schema import arguments_schema, faults
from .wire import INVALID_PARAMS, Json, RpcError

Run: TypeAlias = Callable[..., Json]


class Tool(NamedTuple):
    run: Run
    description: str
    parameters: dict[str, Json]
    annotations: Json
    output: Json | None

    def described(self, name: str, era: Era) -> Json:
        """The tool as `tools/list` shows it, without what the revision does not know."""
        schema = arguments_schema(self.parameters)
        entry: Json = {"name": name, "description": self.description, "inputSchema": schema}
        if era.annotates:
            entry["annotations"] = self.annotations
        if era.structures and self.output is not None:
            entry["outputSchema"] = self.output
        return entry


TOOLS: dict[str, Tool] = {}

_READS = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
# It changes nothing either, but somebody is bothered each time.
_ASKS = {"readOnlyHint": True, "idempotentHint": False, "destructiveHint": False}


def tool(
    description: str,
    parameters: dict[str, Json],
    *,
    hints: Json = _READS,
    output: dict[str, Json] | None = None,
) -> Callable[[Run], Run]:
    """Offers a function as a tool of the same name."""

    def register(run: Run) -> Run:
        # None of them reaches further than this process and its client.
        annotations = {**hints, "openWorldHint": False}
        schema = None if output is None else _object_schema(output)
        TOOLS[run.__name__] = Tool(run, description, parameters, annotations, schema)
        return run

    return register


def listed(era: Era) -> list[Json]:
    return [tool.described(name, era) for name, tool in TOOLS.items()]


def call_tool(call: Call) -> Json:
    """Runs a tool. What a model could mend is a result with `isError`, all else an error."""
    name, arguments = call.params.get("name"), call.params.get("arguments", {})
    found = TOOLS.get(name) if isinstance(name, str) else None
    if found is None:
        raise RpcError(INVALID_PARAMS, f"unknown tool: {name!r}")
    if not isinstance(arguments, dict):
        raise RpcError(INVALID_PARAMS, "arguments must be an object")
    call.log("debug", f"tool {name} called")
    try:
        wrong = faults(found.parameters, arguments)
        if wrong:
            raise ToolError("; ".join(wrong))
        return found.run(call, **arguments)
    except ToolError as error:
        call.log("error", f"tool {name} failed: {error}")
        return {**_text(str(error)), "isError": True}


# Results and schemas, in short


def _text(text: str) -> Json:
    return {"content": [{"type": "text", "text": text}]}


def _structured(value: Json) -> Json:
    """A structured result; the same as text, for clients that do not read it."""
    return {**_text(json.dumps(value, allow_nan=False)), "structuredContent": value}


def _object_schema(properties: dict[str, Json]) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _parameter(kind: str, description: str, **rest: Any) -> Json:
    return {"type": kind, "description": description, **rest}


# The tools


@tool("Gives the text back.", {"text": _parameter("string", "What to give back")})
def echo(call: Call, text: str) -> Json:
    return _text(text)


@tool(
    "Adds two numbers.",
    {"a": _parameter("number", "One number"), "b": _parameter("number", "Another number")},
    output={"sum": {"type": "number"}},
)
def add(call: Call, a: float, b: float) -> Json:
    try:
        return _structured({"sum": a + b})
    except (OverflowError, ValueError):  # infinity has no place in JSON
        raise ToolError("the sum is too large") from None


@tool(
    "Counts the lines, words and characters of a text.",
    {"text": _parameter("string", "The text to count")},
    output={name: {"type": "integer"} for name in ("lines", "words", "characters")},
)
def word_count(call: Call, text: str) -> Json:
    counts = {"lines": len(text.splitlines()), "words": len(text.split()), "characters": len(text)}
    return _structured(counts)


@tool(
    "Counts down and reports progress at each step.",
    {
        "steps": _parameter("integer", "How many steps", minimum=1, maximum=1_000_000),
        "seconds": _parameter("number", "Time per step", minimum=0, maximum=3600, default=0),
    },
)
def countdown(call: Call, steps: int, seconds: float = 0) -> Json:
    call.log("info", f"counting down from {steps}")
    for done in range(1, steps + 1):
        call.pause(seconds)
        call.progress(done, steps, f"{steps - done} to go")
    return _text(f"counted down from {steps}")


@tool(
    "Draws a colour gradient as a PNG.",
    {
        "width": _parameter("integer", "Pixels across", minimum=1, maximum=512, default=64),
        "height": _parameter("integer", "Pixels down", minimum=1, maximum=512, default=64),
    },
)
def picture(call: Call, width: int = 64, height: int = 64) -> Json:
    data = base64_text(gradient(width, height))
    return {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}


@tool(
    "Does nothing for a while. Stops at once when cancelled, and does not answer then.",
    {"seconds": _parameter("number", "How long", minimum=0, maximum=86_400)},
)
def sleep(call: Call, seconds: float) -> Json:
    call.pause(seconds)
    return _text(f"slept {seconds} s")


@tool(
    "Fails with the message given.",
    {"message": _parameter("string", "What to say", default="failed, as asked")},
)
def fail(call: Call, message: str = "failed, as asked") -> Json:
    raise ToolError(message)


@tool(
    "Ends the server's process at once, without an answer.",
    {"code": _parameter("integer", "The exit code", minimum=0, maximum=255, default=1)},
    hints={"readOnlyHint": False, "idempotentHint": False, "destructiveHint": True},
)
def crash(call: Call, code: int = 1) -> Json:
    print(f"demo server: crashing with exit code {code}, as asked", file=sys.stderr, flush=True)
    os._exit(code)


@tool("Asks the user for a name (elicitation), then greets.", {}, hints=_ASKS)
def ask_name(call: Call) -> Json:
    name = {"type": "string", "title": "Name", "description": "How to address you", "minLength": 1}
    question = {"message": "What is your name?", "requestedSchema": _object_schema({"name": name})}
    answer = call.ask("name", "elicitation/create", question)
    match answer:
        case {"action": "accept", "content": {"name": str(given)}} if given:
            return _text(f"Hello, {given}!")
        case {"action": "decline"}:
            return _text("No name, then. Hello all the same!")
        case {"action": "cancel"}:
            return _text("The question was put away unanswered.")
    raise ToolError(f"the client's answer holds no name: {json.dumps(answer)}")


@tool(
    "Has the client's model summarise a text (sampling).",
    {"text": _parameter("string", "The text to summarise")},
    hints=_ASKS,
)
def summarise(call: Call, text: str) -> Json:
    prompt = {"type": "text", "text": f"Summarise in one sentence:\n\n{text}"}
    request = {"messages": [{"role": "user", "content": prompt}], "maxTokens": 200}
    content = call.ask("summary", "sampling/createMessage", request).get("content")
    blocks = content if isinstance(content, list) else [content]
    summary = "\n".join(filter(None, map(_text_of, blocks)))
    if not summary:
        raise ToolError("the client's model gave no text")
    return _text(summary)


@tool(
    "Lists the roots that the client offers.",
    {},
    output={"roots": {"type": "array", "items": {"type": "object"}}},
)
def roots(call: Call) -> Json:
    found = call.ask("roots", "roots/list", {}).get("roots")
    if not isinstance(found, list):
        raise ToolError("the client's answer holds no roots")
    return _structured({"roots": found})


@tool(
    "Writes a note, over an older one of that name; it is the resource demo://note/{name}.",
    {
        "name": _parameter("string", "Letters, digits, - and _", pattern=NOTE_NAME),
        "text": _parameter("string", "What the note says"),
    },
    hints={"readOnlyHint": False, "idempotentHint": True, "destructiveHint": True},
)
def note(call: Call, name: str, text: str) -> Json:
    uri = NOTE_PREFIX + name
    is_new = call.server.shelf.write(name, text)
    call.server.subscriptions.announce(uri, is_new)
    return _text(f"{'wrote' if is_new else 'changed'} {uri}")


def _text_of(block: Any) -> str | None:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else None
