"""Pages of lists: every good item is read, every bad one is named."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from holdfast import types as t


def tools(*items: Any, **fields: Any) -> t.Page[t.Tool]:
    return t.decode_page(json.dumps({"tools": items, **fields}).encode(), t.Tool, "tools")


@pytest.mark.req("T1")
def test_a_malformed_item_hides_no_other() -> None:
    page = tools({"name": "a"}, {"title": "nameless"}, {"name": 5}, "text", {"name": "b"})
    assert [tool.name for tool in page.items] == ["a", "b"]
    assert [fault.index for fault in page.faults] == [1, 2, 3]
    assert [fault.name for fault in page.faults] == [None, None, None]
    assert "name" in page.faults[0].reason


def test_an_item_that_is_not_utf_8_hides_no_other() -> None:
    page = t.decode_page(b'{"tools":[{"name":"\xff"},{"name":"b"}]}', t.Tool, "tools")
    assert [tool.name for tool in page.items] == ["b"]
    assert "UTF-8" in page.faults[0].reason


@pytest.mark.req("P1")
def test_a_fault_names_its_item_where_it_can() -> None:
    text = b'{"resources":[{"name":"a"},{"uri":"u:1"},{"uri":"u:2","name":"b"}]}'
    page = t.decode_page(text, t.Resource, "resources")
    assert [item.uri for item in page.items] == ["u:2"]
    assert [(fault.index, fault.name) for fault in page.faults] == [(0, "a"), (1, "u:1")]


def test_oddities_in_optional_fields_cost_the_field_not_the_item() -> None:
    page = tools({"name": "a", "title": None, "icons": "none", "annotations": {"title": 5}})
    (tool,) = page.items
    assert (tool.title, tool.icons) == (None, None)
    assert tool.annotations == t.ToolAnnotations()
    assert tool.raw["icons"] == "none"
    assert page.faults == ()


def test_a_page_tells_what_comes_next_and_how_long_it_holds() -> None:
    page = tools(nextCursor="n", ttlMs=5, cacheScope="public", resultType="complete", _meta={})
    assert (page.next_cursor, page.ttl_ms, page.cache_scope) == ("n", 5, "public")
    assert (page.result_type, page.meta, page.items) == ("complete", {}, [])


def test_an_unreadable_lifetime_is_ignored() -> None:
    page = tools({"name": "a"}, ttlMs="soon", cacheScope=3, nextCursor=None)
    assert (page.ttl_ms, page.cache_scope, page.next_cursor) == (None, None, None)
    assert [tool.name for tool in page.items] == ["a"]


@pytest.mark.parametrize("text", [b"{}", b'{"tools":null}', b'{"tools":{}}', b"[]"])
def test_a_page_without_a_list_is_an_error(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        t.decode_page(text, t.Tool, "tools")


@pytest.mark.req("T1")
def test_an_unreadable_cursor_is_an_error_for_the_list_would_seem_to_end() -> None:
    with pytest.raises(msgspec.ValidationError, match="nextCursor"):
        tools({"name": "a"}, nextCursor=5)


def test_every_item_knows_its_source() -> None:
    page = tools({"name": "a", "x": 1}, {"name": "b", "annotations": {"y": 2}})
    assert page.items[0].extra == {"x": 1}
    assert page.items[1].annotations is not None
    assert page.items[1].annotations.extra == {"y": 2}


@pytest.mark.req("T4")
def test_a_tool_keeps_its_description_and_the_client_s_own_record() -> None:
    schema = {"type": "object", "x": 1}
    (tool,) = tools({"name": "a.b", "description": "d", "inputSchema": schema}).items
    assert (tool.name, tool.mcp_name, tool.description) == ("a.b", "a.b", "d")
    assert tool.input_schema == schema
    assert tool.input_schema is tool.input_schema
    assert (tool.timeout, tool.enabled) == (None, True)
    tool.timeout, tool.enabled = 5.0, False
    assert (tool.timeout, tool.enabled) == (5.0, False)
    assert json.loads(t.encode(tool)) == tool.raw
    assert tool.extra == {}


def test_the_client_s_own_record_does_not_come_from_the_wire() -> None:
    (tool,) = tools({"name": "a", "timeout": 1, "enabled": False}).items
    assert (tool.timeout, tool.enabled) == (None, True)
    assert tool.extra == {"timeout": 1, "enabled": False}


@pytest.mark.parametrize("schema", [{}, {"inputSchema": None}, {"inputSchema": "any"}])
def test_a_tool_without_an_input_schema_takes_any_object(schema: dict[str, Any]) -> None:
    (tool,) = tools({"name": "a", **schema}).items
    assert tool.input_schema == {"type": "object"}
    assert tool.output_schema is None


def test_a_tool_made_here_has_its_schemas() -> None:
    tool = t.Tool.make("a", input_schema={"type": "object"}, output_schema={"type": "array"})
    assert (tool.input_schema, tool.output_schema) == ({"type": "object"}, {"type": "array"})
    assert tool.raw == {
        "name": "a",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "array"},
    }
    assert t.Tool(name="b").raw == {"name": "b", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize("item", ["1", "{}"])
def test_a_page_of_far_too_many_values_is_refused_before_it_is_read(item: str) -> None:
    text = b'{"tools":[%b]}' % ",".join([item] * 1_100_000).encode()
    with pytest.raises(msgspec.ValidationError, match="1100000 values"):
        t.decode_page(text, t.Tool, "tools")
