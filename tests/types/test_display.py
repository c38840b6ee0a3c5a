"""What a REPL, a notebook and rich show of wire objects."""

from __future__ import annotations

import base64
import json
from io import StringIO
from typing import Any

import msgspec
import pytest
from rich.console import Console

import holdfast
from holdfast import types as t
from holdfast._core.calls.handlers import Notification

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\nrest").decode()
DIFF = {
    "name": "git_diff",
    "description": "Show a <b>difference</b>.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "repo_path": {"type": "string"},
            "target": {"type": "string"},
            "context_lines": {"type": "integer", "default": 3},
        },
        "required": ["repo_path", "target"],
    },
}


def tool(**changes: Any) -> holdfast.Tool:
    return t.decode(json.dumps({**DIFF, **changes}).encode(), holdfast.Tool)


def result(*contents: Any, **more: Any) -> holdfast.ToolResult:
    raw = json.dumps({"content": contents, **more}).encode()
    return t.decode(raw, holdfast.ToolResult)


def picture(kind: str = "image/png", data: str = PNG) -> dict[str, str]:
    return {"type": "image", "data": data, "mimeType": kind}


def printed(shown: Any) -> str:
    out = StringIO()
    Console(file=out, width=100).print(shown)
    return out.getvalue()


@pytest.mark.req("N3")
def test_a_tool_is_shown_as_its_signature() -> None:
    wanted = "git_diff(repo_path: str, target: str, context_lines: int = 3)"
    assert repr(tool()) == f"<Tool {wanted}>"
    assert wanted in printed(tool())
    html = tool()._repr_html_()
    assert html is not None
    assert wanted in html
    assert "Show a &lt;b&gt;difference&lt;/b&gt;." in html


@pytest.mark.parametrize("schema", [None, [], {"properties": 5}, {"properties": {"a": 5}}])
def test_a_tool_with_any_schema_can_be_shown(schema: Any) -> None:
    assert repr(tool(inputSchema=schema)).startswith("<Tool git_diff(")


def test_hidden_characters_of_a_name_are_seen() -> None:
    assert "\\x1b[31m" in repr(tool(name="a\x1b[31m"))
    assert "\\u200b" in (tool(name="a\u200b")._repr_html_() or "")


@pytest.mark.req("N3")
def test_a_result_shows_its_text_its_pictures_and_its_structure() -> None:
    found = result(
        {"type": "text", "text": "<script>alert(1)</script>"},
        picture(),
        structuredContent={"total": 3},
    )
    html = found._repr_html_()
    assert html is not None
    assert "&lt;script&gt;" in html
    assert "<script>" not in html
    assert f'<img src="data:image/png;base64,{PNG}"' in html
    assert "&quot;total&quot;: 3" in html
    assert "total" in printed(found)


@pytest.mark.req("N3")
@pytest.mark.parametrize(("kind", "name"), [("png", "_repr_png_"), ("jpeg", "_repr_jpeg_")])
def test_a_picture_gives_its_bytes(kind: str, name: str) -> None:
    wanted = base64.b64decode(PNG)
    found = result(picture(f"image/{kind}"))
    assert getattr(found, name)() == wanted
    assert getattr(found.content[0], name)() == wanted
    two = result(picture(f"image/{kind}"), picture(f"image/{kind}"))
    assert getattr(two, name)() is None
    assert getattr(result(), name)() is None


@pytest.mark.parametrize(
    ("kind", "data"),
    [('image/png" onerror="x', PNG), ("text/html", PNG), ("image/png", "no base64!")],
)
def test_what_is_no_picture_is_named_and_never_embedded(kind: str, data: str) -> None:
    found = result(picture(kind, data))
    html = found._repr_html_() or ""
    assert "<img" not in html
    assert 'onerror="' not in html


def test_a_failure_stands_out() -> None:
    html = result({"type": "text", "text": "no"}, isError=True)._repr_html_() or ""
    assert "solid #c00" in html


def test_resources_and_prompts_show_their_contents() -> None:
    read = t.ReadResult(
        contents=[
            t.TextResourceContents(uri="a:b", text="one"),
            t.BlobResourceContents(uri="a:c", blob=PNG, mime_type="image/png"),
        ]
    )
    assert "one" in (html := read._repr_html_() or "")
    assert "<img" in html
    message = t.PromptMessage(role="user", content=t.TextContent(text="hello"))
    assert "hello" in (t.PromptResult(messages=[message])._repr_html_() or "")


def test_what_is_readable_as_text_has_no_html() -> None:
    assert t.Root(uri="file:///")._repr_html_() is None


@pytest.mark.req("N3")
def test_reprs_show_sizes_for_bytes_and_nothing_for_defaults() -> None:
    found = result(picture())
    assert repr(found) == (
        "ToolResult(content=[ImageContent(data=<12 bytes>, mime_type='image/png')])"
    )
    assert repr(t.Root(uri="file:///")) == "Root(uri='file:///')"
    assert "<12 bytes>" in printed(found)


@pytest.mark.req("N3")
def test_no_repr_shows_an_opaque_object() -> None:
    samples = [
        tool(outputSchema={"type": "object"}),
        Notification("notifications/message", msgspec.Raw(b'{"level":"info"}')),
    ]
    for one in samples:
        assert "msgspec.Raw" not in repr(one)
        assert "msgspec.Raw" not in printed(one)
    assert "level" in repr(samples[1])


@pytest.mark.req("N3")
def test_a_result_begins_with_its_content_and_ends_with_what_came_along() -> None:
    meta = {"io.example/trace": "x" * 200}
    result = t.ToolResult(content=[t.TextContent(text="42")], meta=meta, result_type="complete")
    text = repr(result)
    assert text.startswith("ToolResult(content=[TextContent(text='42'")
    assert text.index("content") < text.index("result_type") < text.index("meta=")
    assert len(text) < 200
    assert repr(t.ToolResult()) == "ToolResult(content=[])"
    assert "is_error=True" in repr(t.ToolResult(is_error=True))
