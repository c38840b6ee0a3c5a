"""References lead into the document, and nowhere else."""

from __future__ import annotations

from typing import Any

from holdfast.schema.walk import resolve
from tests.rows import rows

DOCUMENT: dict[str, Any] = {
    "$defs": {"a": {"x": 1}, "a/b": 2, "a~b": 3, "ä b": 4, "list": [5, {"y": 6}]}
}


@rows(
    ("reference", "found"),
    [
        ("#", DOCUMENT),
        ("#/$defs/a", {"x": 1}),
        ("#/$defs/a/x", 1),
        ("#/$defs/a~1b", 2),
        ("#/$defs/a~0b", 3),
        ("#/$defs/%C3%A4%20b", 4),
        ("#/$defs/list/1/y", 6),
        ("#/$defs/list/9", None),
        ("#/$defs/list/-1", None),
        ("#/$defs/list/²", None),
        ("#/$defs/list/٠", None),
        ("#/$defs/list/" + "9" * 5000, None),
        ("#/$defs/a/x/y", None),
        ("#/nothing", None),
        ("#anchor", None),
        ("", None),
        ("other.json", None),
        ("https://example.org/schema.json#/$defs/a", None),
    ],
)
def test_a_reference_leads_to_its_place(reference: str, found: Any) -> None:
    assert resolve(DOCUMENT, reference) == found
