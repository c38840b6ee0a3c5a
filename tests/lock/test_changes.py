"""Annotations: promises made, and taken back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.lock.changes import (
    MOST_CHANGES,
    MOST_DETAILS,
    Changes,
    ToolChange,
    compare,
)
from tests.rows import rows
from tests.schema.test_diff import JSON, shuffled
from tests.thorough import THOROUGH


def told(before: Any, after: Any) -> list[str]:
    old, new = ({"name": "x", "annotations": one} for one in (before, after))
    return [
        f"{impact} {detail.removeprefix('annotations: ')}"
        for change in compare({"x": old}, {"x": new})
        for impact, detail in zip(change.impacts, change.details, strict=True)
    ]


@pytest.mark.req("H8")
@rows(
    ("before", "after", "expected"),
    [
        ({"readOnlyHint": True}, {"readOnlyHint": False}, "breaking no longer says that it only r"),
        ({"readOnlyHint": True}, None, "breaking no longer says that it only reads (readOnlyHint)"),
        ({"readOnlyHint": True}, {"readOnlyHint": "yes"}, "breaking no longer says that it only"),
        (None, {"readOnlyHint": True}, "safe now says that it only reads (readOnlyHint); only its"),
        (None, {"readOnlyHint": False}, "wording new readOnlyHint: false"),
        ({"destructiveHint": False}, {}, "breaking no longer says that it destroys nothing"),
        (
            {"destructiveHint": False},
            {"destructiveHint": True},
            "breaking no longer says that it d",
        ),
        ({}, {"destructiveHint": True}, "breaking now says that it may destroy things"),
        ({"destructiveHint": True}, {}, "wording destructiveHint removed, was true"),
        ({"destructiveHint": True}, {"destructiveHint": False}, "safe now says that it destroys"),
        ({"idempotentHint": True}, {}, "breaking no longer says that repeating it does no harm"),
        ({"idempotentHint": False}, {"idempotentHint": True}, "safe now says that repeating it"),
        ({"openWorldHint": False}, {"openWorldHint": True}, "breaking no longer says that it sta"),
        ({}, {"openWorldHint": True}, "wording new openWorldHint: true"),
        ({"title": "a"}, {"title": "b"}, 'wording title changed: "a" → "b"'),
        ({}, {"mood": "\x1b[1m"}, 'wording new mood: "\\x1b[1m"'),
        ({}, ["odd"], 'wording new "(malformed)": ["odd"]'),
    ],
)
def test_a_promise_taken_back_is_breaking(before: Any, after: Any, expected: str) -> None:
    (line,) = told(before, after)
    assert line.startswith(expected)


def test_the_same_promises_are_no_change() -> None:
    given = {"readOnlyHint": True, "destructiveHint": False, "title": "T"}
    assert told(given, dict(reversed(given.items()))) == []


def tool(name: str = "fetch", **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def takes(**parameters: Any) -> dict[str, Any]:
    return {"type": "object", "properties": parameters}


def only(before: dict[str, Any], after: dict[str, Any], **options: Any) -> ToolChange:
    """The one change of the one tool."""
    (change,) = compare({"fetch": before}, {"fetch": after}, **options)
    return change


@pytest.mark.req("H8", "H4")
@rows(
    ("before", "after", "impact", "detail"),
    [
        ({}, {"title": "Fetch"}, "wording", 'new title: "Fetch"'),
        ({"title": "a"}, {"title": "b"}, "wording", 'title changed: "a" → "b"'),
        (
            {"description": "Gets a page."},
            {"description": "Gets a page, then reads ~/.ssh/id_rsa."},
            "wording",
            'description changed: "Gets a page." → "Gets a page, then reads ~/.ssh/id_rsa."',
        ),
        ({"description": "Gets."}, {}, "wording", 'description removed, was "Gets."'),
        ({}, {"inputSchema": takes(url={})}, "safe", "url: new optional parameter"),
        (
            {"inputSchema": takes(url={})},
            {"inputSchema": {**takes(url={}), "required": ["url"]}},
            "breaking",
            "url: now required",
        ),
        (
            {},
            {"inputSchema": {"type": "object", "additionalProperties": False}},
            "breaking",
            "arguments: other names are no longer allowed",
        ),
        ({}, {"outputSchema": takes(a={})}, "safe", "result: is now described"),
        ({"outputSchema": takes(a={})}, {}, "breaking", "result: is no longer described"),
        (
            {"outputSchema": takes(a={}, b={})},
            {"outputSchema": takes(a={})},
            "breaking",
            "result.b: removed",
        ),
        (
            {"outputSchema": takes(a={})},
            {"outputSchema": takes(a={}, b={})},
            "safe",
            "result.b: new optional field",
        ),
        (
            {"annotations": {"readOnlyHint": True}},
            {"annotations": {"readOnlyHint": False}},
            "breaking",
            "annotations: no longer says that it only reads (readOnlyHint)",
        ),
    ],
)
def test_a_changed_tool_says_what_and_how_bad(
    before: Any, after: Any, impact: str, detail: str
) -> None:
    change = only(tool(**before), tool(**after))
    assert (change.kind, change.name) == ("changed", "fetch")
    assert change.impact == impact
    assert change.details == (detail,)


@pytest.mark.req("H8")
@rows("odd", [None, 7, "schema", [], False])
def test_what_is_no_schema_is_breaking(odd: Any) -> None:
    assert only(tool(), tool(inputSchema=odd)).impact == "breaking"


@pytest.mark.req("H8", "H4")
def test_tools_come_and_go() -> None:
    changes = compare({"a": tool("a")}, {"b": tool("b", description="other")})
    assert changes.items == (
        ToolChange("removed", "a", impact="breaking"),
        ToolChange("added", "b", impact="safe"),
    )
    assert changes.breaking


@pytest.mark.req("H8")
@pytest.mark.parametrize(
    ("before", "after", "detail"),
    [
        ("Be kind.", "Be cruel.", 'instructions changed: "Be kind." → "Be cruel."'),
        (None, "Be kind.", 'new instructions: "Be kind."'),
        ("Be kind.", None, 'instructions removed, was "Be kind."'),
    ],
)
def test_instructions_are_compared_too(before: Any, after: Any, detail: str) -> None:
    (change,) = compare({}, {}, instructions=(before, after))
    assert (change.subject, change.impact, change.details) == ("instructions", "wording", (detail,))


def test_instructions_that_are_not_given_do_not_count() -> None:
    assert not compare({}, {})
    assert not compare({}, {}, instructions=("same", "same"))


@pytest.mark.req("H4")
def test_only_the_fields_asked_for_count() -> None:
    before = {"fetch": tool(description="a", title="t")}
    after = {"fetch": tool(description="b", inputSchema=takes(url={}))}
    (change,) = compare(before, after, fields=("inputSchema",))
    assert change.details == ("url: new optional parameter",)
    assert not compare(before, {"fetch": tool(description="b")}, fields=("inputSchema",))


@pytest.mark.req("H8")
def test_the_worst_comes_first_and_names_the_whole() -> None:
    before = {"a": tool("a"), "b": tool("b"), "c": tool("c", description="x")}
    after = {
        "b": tool("b", inputSchema=takes(url={})),
        "c": tool("c", description="y"),
    }
    changes = compare(before, after, instructions=("i", "j"))
    assert [(one.name, one.impact) for one in changes] == [
        ("a", "breaking"),
        ("b", "safe"),
        ("instructions", "wording"),
        ("c", "wording"),
    ]
    assert changes.impact == "breaking"
    assert Changes(changes.items[1:]).impact == "safe"
    assert Changes(changes.items[2:]).impact == "wording"
    assert not Changes(changes.items[1:]).breaking


@pytest.mark.req("H8")
def test_changes_read_as_a_few_lines() -> None:
    before = {
        "fetch": tool(inputSchema=takes(url={}, mode={"enum": ["fast", "slow"]}), description="A."),
        "delete": tool("delete", description="Deletes."),
    }
    after = {
        "fetch": tool(
            inputSchema={**takes(url={}, mode={"enum": ["slow"]}, depth={}), "required": ["url"]},
            description="B.",
        ),
        "upload": tool("upload", inputSchema=takes(file={})),
    }
    assert str(compare(before, after, instructions=(None, "Hello."))) == "\n".join(
        [
            "4 changes: 2 breaking, 1 safe, 1 wording",
            "- delete: removed (breaking)",
            "~ fetch: changed (breaking)",
            '    breaking: mode: no longer allows "fast"',
            "    breaking: url: now required",
            "    safe:     depth: new optional parameter",
            '    wording:  description changed: "A." → "B."',
            "+ upload: added (safe)",
            "~ the server's instructions: changed (wording)",
            '    wording:  new instructions: "Hello."',
        ]
    )


def test_no_changes_are_false_and_say_so() -> None:
    changes = compare({}, {})
    assert (bool(changes), len(changes), changes.impact, str(changes)) == (
        False,
        0,
        None,
        "no changes",
    )


@pytest.mark.req("H8")
def test_a_server_cannot_write_on_the_terminal() -> None:
    trick = "\x1b[2K\u202e\u200b\n\rfake"
    before = {"a": tool("a", inputSchema=takes(p={}), title="t")}
    changed = tool(
        "a",
        description=trick,
        title=trick,
        inputSchema=takes(**{trick: {"enum": [trick]}}),
        outputSchema=takes(x={"title": trick}),
        annotations={trick: trick},
    )
    text = str(compare(before, {"a": changed, trick: tool()}, instructions=(None, trick)))
    assert not set(text) & set("\x1b\u202e\u200b\r")
    assert not any(line.startswith("fake") for line in text.split("\n"))


@pytest.mark.req("H8")
def test_long_lists_are_cut_and_still_count() -> None:
    many: dict[str, Any] = {f"p{at:03}": {} for at in range(300)}
    change = only(tool(), tool(inputSchema={**takes(**many), "required": ["p299"]}))
    assert change.impact == "breaking"
    assert len(str(change).split("\n")) == MOST_DETAILS + 2
    changes = compare({}, {f"t{at}": tool(f"t{at}") for at in range(200)})
    assert len(str(changes).split("\n")) == MOST_CHANGES + 2
    assert len(changes) == 200


@pytest.mark.req("H8")
def test_a_hostile_tool_does_not_use_up_what_the_others_need() -> None:
    hostile = [
        takes(**{f"p{at}": {"type": kind} for at in range(30_000)}) for kind in ("null", "a")
    ]
    before = {"a": tool("a", inputSchema=hostile[0]), "b": tool("b")}
    after = {"a": tool("a", inputSchema=hostile[1]), "b": tool("b", inputSchema=takes(x={}))}
    first, second = compare(before, after)
    assert first.details == ("arguments: cannot be compared: too large or too deep",)
    assert (first.impact, second.details) == ("breaking", ("x: new optional parameter",))


# Any registry

FIELDS = st.fixed_dictionaries(
    {"inputSchema": JSON},
    optional={
        "title": st.text(max_size=5),
        "description": st.text(max_size=5),
        "outputSchema": JSON,
        "annotations": JSON,
    },
)
REGISTRY = st.dictionaries(st.sampled_from(["a", "b", "read", "read_file", "é"]), FIELDS)


@pytest.mark.req("H8")
@settings(max_examples=60)
@given(registry=REGISTRY)
def test_a_registry_in_another_order_is_the_same(registry: dict[str, Any]) -> None:
    assert not compare(registry, shuffled(registry))


@pytest.mark.req("H8")
@pytest.mark.thorough
@settings(max_examples=150 if THOROUGH else 100)
@given(before=REGISTRY, after=REGISTRY)
def test_every_difference_is_a_change_and_the_same_one_every_time(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    changes = compare(before, after)
    named = {one.name for one in changes}
    assert before.keys() ^ after.keys() <= named <= before.keys() | after.keys()
    assert compare(shuffled(before), shuffled(after)) == changes
    assert str(changes)
    for change in changes:
        assert len(change.details) == len(change.impacts)
