"""What all wire types share: sources, extras, defaults, and the lazy package."""

from __future__ import annotations

import ast
import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from holdfast import types as t
from holdfast.types import base
from holdfast.types.base import decode_page
from tests.rows import rows


class Envelope(msgspec.Struct):
    result: Raw


def unwrap(text: bytes) -> Raw:
    """As a client gets results: a view of a larger buffer."""
    return msgspec.json.decode(b'{"result":' + text + b"}", type=Envelope).result


def test_an_object_knows_the_json_it_came_from() -> None:
    root = t.decode(unwrap(b'{"uri":"file:///a","colour":"blue"}'), t.Root)
    assert root.raw == {"uri": "file:///a", "colour": "blue"}
    assert root.extra == {"colour": "blue"}


def test_an_object_made_here_is_its_own_source() -> None:
    root = t.Root(uri="file:///a", name="home")
    assert root.raw == {"uri": "file:///a", "name": "home"}
    assert root.extra == {}


def test_objects_inside_others_know_their_source_too() -> None:
    result = t.decode(
        b'{"content":[{"type":"text","text":"a","x":1,"annotations":{"priority":1,"y":2}},'
        b'{"type":"resource","resource":{"uri":"u:1","text":"b","z":3}}]}',
        t.ToolResult,
    )
    text, resource = result.content
    assert isinstance(text, t.TextContent)
    assert isinstance(resource, t.EmbeddedResource)
    assert text.extra == {"x": 1}
    assert text.annotations is not None
    assert text.annotations.extra == {"y": 2}
    assert resource.extra == {}
    assert resource.resource.extra == {"z": 3}


def test_the_source_does_not_go_on_the_wire() -> None:
    root = t.decode(b'{"uri":"file:///a","colour":"blue"}', t.Root)
    assert t.encode(root) == b'{"uri":"file:///a"}'


def test_changing_the_raw_dictionary_changes_nothing() -> None:
    root = t.decode(b'{"uri":"file:///a"}', t.Root)
    root.raw["uri"] = "elsewhere"
    assert root.raw == {"uri": "file:///a"}


def test_a_small_source_is_detached_from_its_buffer_and_a_large_one_is_not() -> None:
    small = unwrap(b'{"uri":"file:///a"}')
    assert t.decode(small, t.Root).__dict__["_source"] is not small
    large = unwrap(json.dumps({"uri": "x" * base.DETACH}).encode())
    assert t.decode(large, t.Root).__dict__["_source"] is large


def test_equality_is_of_fields_not_of_sources() -> None:
    assert t.decode(b'{"uri":"a:b","x":1}', t.Root) == t.Root(uri="a:b")


def test_a_copy_is_an_object_of_its_own() -> None:
    root = t.decode(b'{"uri":"a:b","x":1}', t.Root)
    assert copy.copy(root).raw == {"uri": "a:b"}


def test_null_in_an_optional_field_is_absence() -> None:
    result = t.decode(b'{"content":[],"isError":null,"_meta":null}', t.ToolResult)
    assert result.is_error is False
    assert result.meta is None


def test_nonsense_in_an_optional_field_is_absence_but_stays_readable() -> None:
    found = t.decode(b'{"name":"a","version":"1","title":{"en":"A"}}', t.Implementation)
    assert found.title is None
    assert found.raw["title"] == {"en": "A"}


@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5000, "-" + "9" * 5000])
def test_a_number_that_python_cannot_hold_stays_readable_as_text(number: str) -> None:
    text = f'{{"name":"a","inputSchema":{{"maximum":{number},"minimum":1.5}},"new":[2]}}'
    tool = t.decode(text.encode(), t.Tool)
    assert tool.raw["inputSchema"] == {"maximum": number, "minimum": 1.5}
    assert tool.extra == {"new": [2]}


@pytest.mark.parametrize("number", ["1e400", "9" * 5000], ids=["1e400", "digits"])
def test_an_optional_field_that_cannot_be_read_is_absent(number: str) -> None:
    schema = f'{{"maximum":{number}}}'
    text = f'{{"name":"a","inputSchema":{schema},"annotations":{{"title":{number}}}}}'
    tool = t.decode(text.encode(), t.Tool)
    assert tool.annotations == t.ToolAnnotations()
    assert bytes(tool.input_schema_json) == schema.encode()
    assert t.decode(b'{"name":"a","inputSchema":null,"title":7}', t.Tool).raw["inputSchema"] is None
    page = f'{{"tools":[{text}],"ttlMs":{number},"_meta":{{"x":{number}}}}}'
    found = decode_page(page.encode(), t.Tool, "tools")
    assert ([one.name for one in found.items], found.ttl_ms, found.meta) == (["a"], None, None)
    for vital in ('"isError"', '"structuredContent"', '"content"'):
        with pytest.raises(msgspec.ValidationError, match=f"range.*{vital[1:-1]}"):
            t.decode(f"{{{vital}:{number}}}".encode(), t.ToolResult)


def test_numbers_as_text_are_read() -> None:
    progress = t.decode(b'{"progressToken":1,"progress":"3","total":10.0}', t.Progress)
    assert (progress.progress, progress.total) == (3, 10)


@rows(
    ("text", "kind"),
    [
        (b'{"name":"no uri"}', t.Root),
        (b'{"uri":5}', t.Root),
        (b'{"content":[],"isError":"perhaps"}', t.ToolResult),
        (b'{"content":"text"}', t.ToolResult),
        (b'{"messages":[],"maxTokens":1,"tools":7}', t.SamplingRequest),
        (b'"text"', t.Root),
        (b"[]", t.ToolResult),
    ],
)
def test_what_cannot_be_done_without_is_an_error(text: bytes, kind: type[base.Wire]) -> None:
    with pytest.raises(msgspec.ValidationError):
        t.decode(text, kind)


def test_odd_capabilities_do_not_hide_the_others() -> None:
    found = t.decode(
        b'{"tools":true,"logging":{},"prompts":{"listChanged":1}}', t.ServerCapabilities
    )
    assert found.tools is None
    assert found.logging == {}
    assert found.prompts is not None
    assert found.prompts.list_changed is True


EAGER = ("base", "content", "tools", "resources", "lifecycle")
"""What every client needs; the rest waits until it is used."""


def test_importing_the_package_makes_no_type_that_few_need() -> None:
    code = "import sys, holdfast.types; print(*(m for m in sys.modules if 'fast.types.' in m))"
    env = {**os.environ, "PYTHONPATH": str(Path(t.__file__).parents[2])}
    run = [sys.executable, "-c", code]
    done = subprocess.run(run, env=env, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {f"holdfast.types.{name}" for name in EAGER}


def test_every_exported_name_is_there_and_no_other() -> None:
    assert all(hasattr(t, name) for name in t.__all__)
    assert set(t.__all__) <= set(dir(t))
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        t.Nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_are_told_the_same_names() -> None:
    tree = ast.parse(Path(t.__file__).read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    told = {
        (node.module, alias.name)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {(f"holdfast.types.{home}", name) for home, names in t._HOMES.items() for name in names}
    assert told == homes
    assert {name for _, name in told} == set(t.__all__)


def test_an_unknown_elicitation_mode_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="telepathy"):
        t.read_elicitation(b'{"mode":"telepathy","message":"think"}')


def test_a_form_tells_its_fields_in_order() -> None:
    form = t.read_elicitation(
        b'{"message":"m","requestedSchema":{"type":"object","required":["b",3],"properties":'
        b'{"b":{"type":"string","enum":["x"]},"a":{"type":"blob"},"c":5,'
        b'"d":{"type":"array","items":5},"e":{"type":"integer","minimum":1}}}}'
    )
    assert isinstance(form, t.FormElicitation)
    assert list(form.fields) == ["b", "a", "c", "d", "e"]
    assert form.fields["a"] == {"type": "blob"}
    assert form.fields["c"] == {}
    assert form.required == ["b"]
