"""Contents and results: known and unknown kinds, text, bytes, structure, failure."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from holdfast import types as t
from holdfast.errors import ToolError
from tests.rows import rows


def result(*contents: Any, **fields: Any) -> t.ToolResult:
    return t.decode(json.dumps({"content": contents, **fields}).encode(), t.ToolResult)


@pytest.mark.req("T2")
def test_every_known_kind_of_content_is_read() -> None:
    found = result(
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AAE=", "mimeType": "image/png"},
        {"type": "audio", "data": "AAE=", "mimeType": "audio/wav"},
        {"type": "resource_link", "uri": "u:1", "name": "n"},
        {"type": "resource", "resource": {"uri": "u:2", "text": "b"}},
        {"type": "resource", "resource": {"uri": "u:3", "blob": "AAE="}},
    ).content
    assert [item.type for item in found] == [
        "text", "image", "audio", "resource_link", "resource", "resource",
    ]  # fmt: skip
    assert isinstance(found[1], t.ImageContent)
    assert found[1].bytes == b"\x00\x01"
    assert isinstance(found[5], t.EmbeddedResource)
    assert isinstance(found[5].resource, t.BlobResourceContents)
    assert found[5].resource.bytes == b"\x00\x01"


@pytest.mark.req("T2")
def test_an_unknown_content_is_kept_as_it_came_and_hides_no_other() -> None:
    video = {"type": "video", "frames": [1, None], "_meta": {"a": 1}}
    found = result({"type": "text", "text": "a"}, video, {"type": "text", "text": "b"})
    unknown = found.content[1]
    assert isinstance(unknown, t.UnknownContent)
    assert (unknown.type, unknown.get("type")) == ("unknown", "video")
    assert unknown == unknown.raw == unknown.extra == video
    assert found.text == "a\nb"
    assert json.loads(t.encode(found))["content"][1] == video
    assert "video" in repr(unknown)


@rows(
    "odd",
    [
        {"type": "image", "mimeType": "image/png"},
        {"type": "text", "text": 5},
        {"type": "resource", "resource": {"uri": "u:1"}},
        {"type": 7},
        {"text": "no type"},
        {},
    ],
)
@pytest.mark.req("T2")
def test_a_malformed_content_is_kept_as_unknown(odd: dict[str, Any]) -> None:
    found = result(odd, {"type": "text", "text": "b"})
    kept = found.content[0]
    innermost = kept.resource if isinstance(kept, t.EmbeddedResource) else kept
    assert isinstance(innermost, t.UnknownContent)
    assert kept.raw == odd
    assert json.loads(t.encode(found))["content"][0] == odd
    assert found.text == "b"


def test_an_unknown_content_says_why_it_was_not_understood() -> None:
    kept = result({"type": "image"}).content[0]
    assert isinstance(kept, t.UnknownContent)
    assert "data" in kept.reason


def test_a_content_that_is_no_object_is_kept_too() -> None:
    kept = result("just text").content[0]
    assert isinstance(kept, t.UnknownContent)
    assert (kept.raw, kept.type, dict(kept)) == ("just text", "unknown", {})


def test_objects_beside_an_unknown_content_still_know_their_source() -> None:
    found = result({"type": "video"}, {"type": "text", "text": "a", "x": 1}, foo=1)
    assert found.extra == {"foo": 1}
    assert found.content[1].extra == {"x": 1}


def test_unknown_contents_are_kept_in_prompts_and_messages() -> None:
    prompt = t.decode(
        b'{"messages":[{"role":"elf","content":{"type":"video"}},'
        b'{"role":"user","content":{"type":"text","text":"a"}}]}',
        t.PromptResult,
    )
    assert prompt.messages[0].role == "elf"
    assert isinstance(prompt.messages[0].content, t.UnknownContent)
    assert isinstance(prompt.messages[1].content, t.TextContent)
    asked = t.decode(
        b'{"maxTokens":1,"messages":[{"role":"user","content":[{"type":"video"},'
        b'{"type":"tool_result","toolUseId":"1","content":[{"type":"video"}]}]}]}',
        t.SamplingRequest,
    )
    first, second = asked.messages[0].contents
    assert isinstance(first, t.UnknownContent)
    assert isinstance(second, t.ToolResultContent)
    assert isinstance(second.content[0], t.UnknownContent)


def test_one_content_or_a_list_of_them_reads_the_same() -> None:
    text = t.TextContent(text="a")
    assert t.SamplingMessage(role="user", content=text).contents == [text]
    assert t.SamplingMessage(role="user", content=[text, text]).text == "a\na"


@pytest.mark.req("T2")
def test_the_structured_result_may_be_any_json_and_null_is_not_absence() -> None:
    assert not result().has_structured
    assert result().structured is None
    assert result(structuredContent=None).has_structured
    assert json.loads(t.encode(result(structuredContent=None)))["structuredContent"] is None
    for value in ({"a": None}, [1], "x", 5, False):
        assert result(structuredContent=value).structured == value


def test_null_in_the_structured_result_survives_the_lenient_reading() -> None:
    found = result(structuredContent={"a": None}, isError=None)
    assert found.structured == {"a": None}
    assert result({"type": "video"}, structuredContent=None).has_structured


def test_a_result_without_content_is_read() -> None:
    found = t.decode(b'{"structuredContent":{"a":1}}', t.ToolResult)
    assert (found.content, found.text, found.structured) == ([], "", {"a": 1})


@pytest.mark.req("T2")
def test_a_failed_tool_can_be_raised() -> None:
    good = result({"type": "text", "text": "fine"})
    assert good.raise_for_error() is good
    bad = result({"type": "text", "text": "no such file"}, isError=True)
    with pytest.raises(ToolError, match="no such file") as caught:
        bad.raise_for_error()
    assert caught.value.data is bad
    with pytest.raises(ToolError, match="no reason"):
        result(isError=True).raise_for_error()


def test_base64_may_have_line_breaks() -> None:
    assert t.ImageContent(data="AA\r\nE=\n", mime_type="image/png").bytes == b"\x00\x01"


@rows("data", ["A", "AAE", "A-E_", "AAE=AAE=", "é"])
def test_bad_base64_is_named(data: str) -> None:
    with pytest.raises(ValueError, match="image content is not valid base64"):
        _ = t.ImageContent(data=data, mime_type="image/png").bytes
    with pytest.raises(ValueError, match="resource u:1 is not valid base64"):
        _ = t.BlobResourceContents(uri="u:1", blob=data).bytes
    with pytest.raises(ValueError, match="audio content is not valid base64"):
        _ = t.AudioContent(data=data, mime_type="audio/wav").bytes


@pytest.mark.req("P1")
def test_a_resource_is_read_as_text_or_bytes() -> None:
    found = t.decode(
        b'{"contents":[{"uri":"u:1","text":"a","x":1},{"uri":"u:2","blob":"AAE="},'
        b'{"uri":"u:3","text":"","blob":"AAE="}],"ttlMs":5,"cacheScope":"private"}',
        t.ReadResult,
    )
    text, blob = t.TextResourceContents, t.BlobResourceContents
    kinds = [type(item).__name__ for item in found.contents]
    assert kinds == [text.__name__, blob.__name__, text.__name__]
    assert found.text == "a\n"
    assert (found.ttl_ms, found.cache_scope) == (5, "private")
    assert [item.extra for item in found.contents] == [{"x": 1}, {}, {"blob": "AAE="}]


def test_resource_contents_of_neither_kind_are_kept_as_unknown() -> None:
    found = t.decode(b'{"contents":[{"uri":"u:1"},{"uri":"u:2","text":"a"}]}', t.ReadResult)
    assert isinstance(found.contents[0], t.UnknownContent)
    assert found.text == "a"


def test_contents_made_here_are_sent_with_their_type() -> None:
    answer = t.SamplingResult(role="assistant", content=t.TextContent(text="hi"), model="m")
    assert json.loads(t.encode(answer)) == {
        "role": "assistant",
        "content": {"type": "text", "text": "hi"},
        "model": "m",
    }
    told = t.ToolResultContent(tool_use_id="1")
    assert json.loads(msgspec.json.encode(told)) == {
        "type": "tool_result",
        "toolUseId": "1",
        "content": [],
    }
