"""What a tool gave, in the words of each provider."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from holdfast import ToolResult, TransportError
from holdfast.agents.providers import answer
from holdfast.types.base import decode

PIXEL = base64.b64encode(b"\x89PNG pixel").decode()
SHAPES = ("openai", "openai-responses", "anthropic", "gemini")


def result(*content: dict[str, Any], **fields: Any) -> ToolResult:
    import json

    return decode(json.dumps({"content": content, **fields}).encode(), ToolResult)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def image(mime_type: str = "image/png", data: str = PIXEL) -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": mime_type}


def blob(mime_type: str, uri: str = "file:///a/b.pdf") -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "blob": PIXEL}}


def say(shape: str, outcome: Any, **options: Any) -> tuple[dict[str, Any], list[str]]:
    found = answer(shape, outcome, call_id="c1", name="web__crawl", **options)
    return found.message, [f"{loss.where} {loss.keyword}" for loss in found.losses]


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("openai", {"role": "tool", "tool_call_id": "c1", "content": "a\nb"}),
        (
            "openai-responses",
            {"type": "function_call_output", "call_id": "c1", "output": "a\nb"},
        ),
        (
            "anthropic",
            {"type": "tool_result", "tool_use_id": "c1", "content": [text("a"), text("b")]},
        ),
        (
            "gemini",
            {
                "functionResponse": {
                    "id": "c1",
                    "name": "web__crawl",
                    "response": {"output": "a\nb"},
                }
            },
        ),
    ],
)
def test_text_goes_to_all(shape: str, message: dict[str, Any]) -> None:
    assert say(shape, result(text("a"), text(""), text("b"))) == (message, [])


@pytest.mark.req("F3")
@pytest.mark.parametrize("shape", SHAPES)
def test_an_error_is_told_as_one(shape: str) -> None:
    message, lost = say(shape, result(text("no such page"), isError=True))
    assert message in (
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no such page"},
        {"type": "function_call_output", "call_id": "c1", "output": "Error: no such page"},
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": "no such page",
            "is_error": True,
        },
        {
            "functionResponse": {
                "id": "c1",
                "name": "web__crawl",
                "response": {"error": "no such page"},
            }
        },
    )
    assert lost == []


@pytest.mark.parametrize("shape", SHAPES)
def test_an_exception_is_told_as_an_error(shape: str) -> None:
    assert "it was lost" in str(say(shape, TransportError("it was lost"))[0])


@pytest.mark.req("F3")
def test_a_picture_goes_where_it_can() -> None:
    given = result(text("see"), image())
    url = f"data:image/png;base64,{PIXEL}"
    assert say("openai-responses", given)[0]["output"] == [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": url},
    ]
    assert say("anthropic", given)[0]["content"][1] == {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
    }
    assert say("gemini", given)[0]["functionResponse"] == {
        "id": "c1",
        "name": "web__crawl",
        "response": {"output": "see"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
    }


@pytest.mark.req("F3")
def test_a_picture_that_cannot_go_is_named() -> None:
    message, lost = say("openai", result(text("see"), image()))
    assert message["content"] == "see\n[image/png, 10 bytes, not shown]"
    assert lost == ["/content/1 image/png"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_model_of_text_alone_gets_text_alone(shape: str) -> None:
    message, lost = say(shape, result(image()), media=False)
    assert "[image/png, 10 bytes, not shown]" in str(message)
    assert PIXEL not in str(message)
    assert lost == ["/content/0 image/png"]


@pytest.mark.parametrize(
    ("shape", "mime_type"),
    [("gemini", "image/gif"), ("anthropic", "image/tiff"), ("openai-responses", "audio/wav")],
)
def test_only_what_the_provider_takes_is_sent(shape: str, mime_type: str) -> None:
    assert say(shape, result(image(mime_type)))[1] == [f"/content/0 {mime_type}"]


def test_a_document_goes_where_it_can() -> None:
    given = result(blob("application/pdf"))
    (item,) = say("openai-responses", given)[0]["output"]
    assert (item["type"], item["filename"]) == ("input_file", "b.pdf")
    assert say("anthropic", given)[0]["content"][0]["type"] == "document"
    (part,) = say("gemini", given)[0]["functionResponse"]["parts"]
    assert part["inlineData"]["mimeType"] == "application/pdf"


def test_an_error_is_told_to_anthropic_in_text_alone() -> None:
    """The API refuses a picture in a result that is an error."""
    message, lost = say("anthropic", result(text("bad"), image(), isError=True))
    assert message["content"] == "bad\n[image/png, 10 bytes, not shown]"
    assert lost == ["/content/1 image/png"]
    assert say("anthropic", result(isError=True))[0]["content"].startswith("The tool failed")


def test_an_error_with_a_picture_says_that_it_is_one() -> None:
    message, _ = say("openai-responses", result(image(), isError=True))
    assert message["output"][0] == {"type": "input_text", "text": "Error:"}


def test_data_that_is_not_base64_is_not_passed_on() -> None:
    message, lost = say("anthropic", result(image(data="%%%")))
    assert message["content"] == [text("[image/png, which could not be read]")]
    assert lost == ["/content/0 image/png"]


def test_line_breaks_in_base64_are_taken_out() -> None:
    message, _ = say("anthropic", result(image(data=PIXEL[:4] + "\n" + PIXEL[4:])))
    assert message["content"][0]["source"]["data"] == PIXEL


def test_resources_and_links_are_told() -> None:
    resource = {"type": "resource", "resource": {"uri": "a://b", "text": "inside"}}
    link = {"type": "resource_link", "uri": "a://b", "name": "B", "mimeType": "text/plain"}
    message, lost = say("openai", result(resource, link, {"type": "hologram"}))
    assert message["content"].splitlines() == [
        "inside",
        "[resource 'B', text/plain: a://b]",
        "[content of an unknown kind 'hologram']",
    ]
    assert lost == ["/content/2 hologram"]


def test_a_structured_result_is_told_where_there_is_no_text() -> None:
    given = result(structuredContent={"sum": 3})
    assert say("openai", given)[0]["content"] == '{"sum": 3}'
    assert say("gemini", given)[0]["functionResponse"]["response"] == {"output": {"sum": 3}}


def test_gemini_gets_structure_once_and_text_that_differs() -> None:
    same = result(text('{"sum":3}'), structuredContent={"sum": 3})
    other = result(text("It is 3."), structuredContent={"sum": 3})
    assert say("gemini", same)[0]["functionResponse"]["response"] == {"output": {"sum": 3}}
    assert say("gemini", other)[0]["functionResponse"]["response"] == {
        "output": {"sum": 3},
        "text": "It is 3.",
    }


def test_nothing_is_told_as_nothing() -> None:
    assert say("openai", result())[0]["content"] == "(no output)"
    assert say("anthropic", result())[0] == {"type": "tool_result", "tool_use_id": "c1"}
    assert say("gemini", result())[0]["functionResponse"]["response"] == {"output": ""}
