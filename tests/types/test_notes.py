"""What a client notes of a wire object: its own, never the wire's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import msgspec
import pytest

from holdfast.agents.budget import shorten
from holdfast.handles.results import HandleResult
from holdfast.types import ReadResult, Skill, TextContent, ToolResult
from holdfast.types.base import Wire, decode, encode
from holdfast.types.resources import ReadNotes
from holdfast.types.skills import SkillNotes
from holdfast.types.tools import ResultNotes

SKILL = b'{"uri":"skill://a/tidy/SKILL.md","frontmatter":{"name":"tidy","description":"d"}'
SKILL += b',"resources":"dynamic","new":1}'
OBJECTS: list[tuple[type[Any], bytes, Any]] = [
    (ToolResult, b'{"content":[],"new":1}', ResultNotes(faults=("a fault",))),
    (ReadResult, b'{"contents":[],"new":1}', ReadNotes(cached=True, stale=True)),
    (Skill, SKILL, SkillNotes(server="notes", is_verified=True)),
]


@pytest.mark.parametrize(
    ("kind", "raw", "notes"), OBJECTS, ids=lambda value: getattr(value, "__name__", "")
)
def test_notes_are_neither_sent_nor_compared_nor_shown_nor_copied(
    kind: type[Any], raw: bytes, notes: Any
) -> None:
    noted, plain = decode(raw, kind), decode(raw, kind)
    noted._notes = notes
    assert noted._notes == notes != plain._notes
    assert noted == plain
    assert encode(noted) == encode(plain)
    assert (repr(noted), noted.raw, noted.extra) == (repr(plain), plain.raw, {"new": 1})
    copies: list[Wire] = [
        copy.copy(noted),
        copy.deepcopy(noted),
        pickle.loads(pickle.dumps(noted)),
        msgspec.structs.replace(noted),
    ]
    for duplicate in copies:
        assert duplicate == noted
        assert duplicate._notes == plain._notes  # type: ignore[attr-defined]


def test_what_is_not_noted_has_its_default() -> None:
    result, read = ToolResult(), ReadResult(contents=[])
    assert (result.pending, result.full, result.faults) == (None, result, ())
    assert read.stale is False
    assert decode(SKILL, Skill).server == ""


def test_a_result_that_is_cut_keeps_what_was_noted_of_it() -> None:
    result = ToolResult(content=[TextContent(text="long")])
    result._notes = ResultNotes(pending="questions", faults=("a fault",))
    once = shorten(result, "lo")
    twice = shorten(once, "l")
    for cut in (once, twice):
        assert (cut.pending, cut.faults) == ("questions", ("a fault",))
        assert cut.full is result
    assert result.full is result


def test_the_result_of_a_handle_has_the_notes_and_the_keys_of_the_server() -> None:
    result = ToolResult(structured_content={"notes": 1, "settings": 2})
    result._notes = ResultNotes(faults=("a fault",))
    seen = HandleResult.of(result)
    assert seen.faults == ("a fault",)
    assert (seen.notes, seen.settings) == (1, 2)
