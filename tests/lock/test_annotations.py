"""Annotations: promises made, and taken back."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.lock.changes import compare_annotations
from holdfast.schema.report import ARGUMENT_IMPACTS, DiffBuilder


def told(before: Any, after: Any) -> list[str]:
    found = DiffBuilder()
    compare_annotations(before, after, found)
    return [f"{ARGUMENT_IMPACTS[one.effect]} {one.text}" for one in found.diff().changes]


@pytest.mark.req("H8")
@pytest.mark.parametrize(
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
