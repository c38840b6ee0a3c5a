"""Annotations compared: what a server says of its tools' effects, which decides who is asked.

The specification lets an absent hint mean the riskier of its two values, and so does this table.
A hint that was given up, or turned, is breaking: whoever let the tool run unasked, or repeated a
call, did so because of it. A new promise is safe for callers, and still nothing but a promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holdfast.schema.diff_values import compare_text
from holdfast.schema.report import DiffBuilder
from holdfast.schema.types import same

PLACE: Final = "annotations"


class Hint(NamedTuple):
    """The value that promises something, and what it promises."""

    promise: bool
    kept: str
    broken: str


HINTS: Final[dict[str, Hint]] = {
    "readOnlyHint": Hint(True, "says that it only reads", "no longer says that it only reads"),
    "destructiveHint": Hint(
        False, "says that it destroys nothing", "no longer says that it destroys nothing"
    ),
    "idempotentHint": Hint(
        True, "says that repeating it does no harm", "no longer says that repeating it does no harm"
    ),
    "openWorldHint": Hint(
        False,
        "says that it stays within its own domain",
        "no longer says that it stays within its own domain",
    ),
}


def compare(before: Any, after: Any, found: DiffBuilder) -> None:
    """Add what became of the annotations of a tool; None: it had none."""
    old, new = _mapping(before), _mapping(after)
    for name, hint in HINTS.items():
        if name in old or name in new:
            _compare_hint(name, hint, old.get(name), new.get(name), found)
    for name in sorted((old.keys() | new.keys()) - HINTS.keys()):
        compare_text(name, old, new, found, PLACE)


def _mapping(value: Any) -> Mapping[str, Any]:
    """Something else than an object says nothing that could be relied on, but it is shown."""
    if value is None:
        return {}
    return value if isinstance(value, Mapping) else {"(malformed)": value}


def _compare_hint(name: str, hint: Hint, old: Any, new: Any, found: DiffBuilder) -> None:
    if same(old, new):
        return
    promised, promises = old is hint.promise, new is hint.promise
    if promised and not promises:
        found.add(f"{hint.broken} ({name})", "different", PLACE)
    elif promises:
        found.add(f"now {hint.kept} ({name}); only its word for it", "added", PLACE)
    elif name == "destructiveHint" and new is True:
        found.add(f"now says that it may destroy things ({name})", "different", PLACE)
    else:
        compare_text(name, _said(name, old), _said(name, new), found, PLACE)


def _said(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}
