"""A server with everything that the official suite's server scenarios ask for.

On stdio, or on HTTP with ``--http``: the URL is printed then.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from holdfast._core.serve import stdio
from holdfast._core.serve.http import HttpServer
from holdfast._core.server.catalog import Catalog, Offered, Run, resource
from holdfast._core.server.lifecycle import not_found, uri_of
from holdfast._core.server.request import ServerRequest, error_result, text_result
from holdfast._core.server.server import Server

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8Dw"
    "HwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
Json = dict[str, Any]


def embedded(uri: str, text: str, kind: str = "text/plain") -> Json:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}}


def content(*items: Json) -> Json:
    return {"content": list(items)}


async def logging(request: ServerRequest, arguments: Json) -> Any:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        request.log("info", text)
        await request.sleep(0.01)
    return text_result("Tool with logging executed successfully")


async def progress(request: ServerRequest, arguments: Json) -> Any:
    for step in (0, 50, 100):
        request.progress(step, total=100, message=f"Completed step {step} of 100")
        await request.sleep(0.01)
    return text_result("done")


async def sample(request: ServerRequest, arguments: Json) -> Any:
    message = {
        "role": "user",
        "content": {"type": "text", "text": arguments.get("prompt", "Hello")},
    }
    answer = await request.ask(
        "sampling/createMessage", {"messages": [message], "maxTokens": 100}, "sampling"
    )
    return text_result(f"LLM response: {answer.get('content', {}).get('text')}")


def form(properties: Json, message: str = "Please answer", **fields: Any) -> Json:
    schema = {"type": "object", "properties": properties, **fields}
    return {"message": message, "requestedSchema": schema}


USER = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS: Json = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
TITLED = [{"const": f"value{n}", "title": f"Option {n}"} for n in (1, 2, 3)]
ENUMS: Json = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {
        "type": "array",
        "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
    },
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


def elicit(question: Json | None = None) -> Run:
    async def run(request: ServerRequest, arguments: Json) -> Any:
        asked = question or form(USER, arguments.get("message", "?"), required=["username"])
        answer = await request.ask("elicitation/create", asked, "elicitation")
        return text_result(f"User response: action={answer.get('action')}")

    return run


NAME = form({"name": {"type": "string"}}, "What is your name?", required=["name"])


async def ask_name(request: ServerRequest, arguments: Json) -> Any:
    answer = await request.ask("elicitation/create", NAME, "user_name")
    return text_result(f"Hello, {answer.get('content', {}).get('name')}!")


async def ask_model(request: ServerRequest, arguments: Json) -> Any:
    message = {"role": "user", "content": {"type": "text", "text": "What is the capital?"}}
    params = {"messages": [message], "maxTokens": 100}
    answer = await request.ask("sampling/createMessage", params, "capital_question")
    return text_result(str(answer.get("content")))


async def ask_roots(request: ServerRequest, arguments: Json) -> Any:
    answer = await request.ask("roots/list", {}, "client_roots")
    return text_result(str(answer.get("roots")))


async def ask_twice(request: ServerRequest, arguments: Json) -> Any:
    name = await request.ask("elicitation/create", NAME, "step1")
    colour = form({"color": {"type": "string"}}, "Which colour?", required=["color"])
    answer = await request.ask("elicitation/create", colour, "step2")
    return text_result(f"{name} {answer}")


async def change(request: ServerRequest, arguments: Json) -> Any:
    request.session.server.announce("notifications/tools/list_changed")
    return text_result("changed")


TOOLS: dict[str, Run] = {
    "test_simple_text": lambda request, arguments: text_result(
        "This is a simple text response for testing."
    ),
    "test_image_content": lambda request, arguments: content(IMAGE),
    "test_audio_content": lambda request, arguments: content(
        {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    ),
    "test_embedded_resource": lambda request, arguments: content(
        embedded("test://embedded-resource", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": lambda request, arguments: content(
        {"type": "text", "text": "Multiple content types test:"},
        IMAGE,
        embedded("test://mixed-content-resource", '{"test":"data"}', "application/json"),
    ),
    "test_tool_with_logging": logging,
    "test_logging_tool": logging,
    "test_error_handling": lambda request, arguments: error_result(
        "This tool intentionally returns an error for testing"
    ),
    "test_tool_with_progress": progress,
    "test_sampling": sample,
    "test_elicitation": elicit(),
    "test_elicitation_sep1034_defaults": elicit(form(DEFAULTS)),
    "test_elicitation_sep1330_enums": elicit(form(ENUMS)),
    "test_input_required_result_elicitation": ask_name,
    "test_input_required_result_request_state": ask_name,
    "test_input_required_result_tampered_state": ask_name,
    "test_input_required_result_capabilities": ask_name,
    "test_streaming_elicitation": ask_name,
    "test_missing_capability": ask_model,
    "test_input_required_result_sampling": ask_model,
    "test_input_required_result_list_roots": ask_roots,
    "test_input_required_result_multi_round": ask_twice,
    "test_trigger_tool_change": change,
}
INPUTS: dict[str, Json] = {
    "test_sampling": {"prompt": {"type": "string"}},
    "test_elicitation": {"message": {"type": "string"}},
}
DIALECT: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def argument(name: str) -> Json:
    return {"name": name, "description": name, "required": True}


def message(*items: Json) -> Json:
    return {"messages": [{"role": "user", "content": item} for item in items]}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


PROMPTS: dict[str, tuple[list[Json], Run]] = {
    "test_simple_prompt": (
        [],
        lambda request, arguments: message(text("This is a simple prompt.")),
    ),
    "test_prompt_with_arguments": (
        [argument("arg1"), argument("arg2")],
        lambda request, arguments: message(
            text(f"Prompt with arguments: arg1='{arguments['arg1']}', arg2='{arguments['arg2']}'")
        ),
    ),
    "test_prompt_with_embedded_resource": (
        [argument("resourceUri")],
        lambda request, arguments: message(
            embedded(arguments["resourceUri"], "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ),
    ),
    "test_prompt_with_image": ([], lambda request, arguments: message(IMAGE, text("Look."))),
    "test_input_required_result_prompt": ([], lambda request, arguments: ask_prompt(request)),
}


async def ask_prompt(request: ServerRequest) -> Json:
    answer = await request.ask("elicitation/create", NAME, "user_context")
    return message(text(str(answer)))


class Reference(Catalog):
    """The lists, and a template that can be read."""

    def read_resource(self, request: ServerRequest) -> Any:
        uri = uri_of(request)
        if uri.startswith("test://template/") and uri.endswith("/data"):
            number = uri.split("/")[3]
            body = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
            return {"contents": [{"uri": uri, "mimeType": "application/json", "text": body}]}
        if uri not in self.resources:
            raise not_found(request, uri)
        return super().read_resource(request)


def make_server() -> Server:
    catalog = Reference()
    for name, run in TOOLS.items():
        schema = {"type": "object", "properties": INPUTS.get(name, {})}
        tool = {"name": name, "description": name, "inputSchema": schema}
        catalog.tools[name] = Offered(tool, run)
    catalog.tools["json_schema_2020_12_tool"] = Offered(
        {"name": "json_schema_2020_12_tool", "description": "dialect", "inputSchema": DIALECT},
        lambda request, arguments: text_result("ok"),
    )
    for name, (arguments, run) in PROMPTS.items():
        definition: Json = {"name": name, "description": name, "arguments": arguments}
        catalog.prompts[name] = Offered(definition, run)
    words = "This is the content of the static text resource."
    catalog.resources["test://static-text"] = resource(
        "test://static-text", words, mimeType="text/plain"
    )
    catalog.resources["test://static-binary"] = resource(
        "test://static-binary", b"\x89PNG", mimeType="image/png"
    )
    catalog.resources["test://watched-resource"] = resource(
        "test://watched-resource", "watched", mimeType="text/plain"
    )
    catalog.templates.append(
        {
            "uriTemplate": "test://template/{id}/data",
            "name": "template",
            "mimeType": "application/json",
        }
    )
    handlers = catalog.handlers()
    handlers["completion/complete"] = lambda request: {
        "completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}
    }
    return Server(
        "reference",
        handlers,
        capabilities=lambda: {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "completions": {},
            "logging": {},
        },
    )


async def serve_http() -> None:
    port = await HttpServer(make_server()).start()
    print(f"http://127.0.0.1:{port}/mcp", flush=True)
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    if "--http" in sys.argv:
        asyncio.run(serve_http())
    else:
        stdio.run(make_server())
