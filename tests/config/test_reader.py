"""One entry, read by a table of fields."""

from __future__ import annotations

from typing import Any

from holdfast.config import ServerEntry
from holdfast.config.reader import OWN_FIELDS, EntryReader, Fields
from tests.config.rig import faults, read_one, source, warnings
from tests.rows import rows

FIELDS: Fields = {
    **{"command": "command", "a": "log", "b": "log", "env": "env", "allow": "allow"},
    **OWN_FIELDS,
}


def read(**raw: Any) -> ServerEntry:
    return EntryReader(source=source(), name="one", fields=FIELDS).read({"command": "x", **raw}, {})


def test_the_first_field_that_is_there_counts_and_ours_over_all() -> None:
    assert read(a="1", b="2").settings == {"log": "1"}
    assert read(b="2").settings == {"log": "2"}
    assert read(b="2", holdfast={"log": "3"}).settings == {"log": "3"}


def test_null_is_the_same_as_nothing() -> None:
    entry = read(a=None, env=None, allow=None, holdfast=None)
    assert (entry.settings, entry.env, entry.problems) == ({}, {}, ())
    assert read(env={"A": None}).env == {}


def test_numbers_and_booleans_are_taken_as_written() -> None:
    assert read(env={"A": 1, "B": True, "C": 0.5}).env == {"A": "1", "B": "true", "C": "0.5"}


@rows("odd", [0, -1, True, "1", float("inf"), float("nan")])
def test_a_span_of_time_has_a_unit_and_an_end(odd: Any) -> None:
    def timeout(value: Any) -> ServerEntry:
        servers = {"one": {"command": "a", "timeout": value}}
        return read_one("gemini", {"mcpServers": servers})

    assert timeout(1500).settings == {"timeouts": {"request": 1.5}}
    assert faults(timeout(odd)) == {"timeout": "must be a number, more than 0"}


def test_a_field_inside_is_named_with_its_way() -> None:
    entry = read(holdfast={"allow": 5, "odd": 1})
    assert list(faults(entry)) == ["holdfast.allow"]
    assert list(warnings(entry)) == ["holdfast.odd"]


def test_an_unknown_part_of_a_setting_is_not_kept() -> None:
    """An approval names every value by its place: long names of long lists would fill memory."""
    entry = read(holdfast={"timeouts": {"request": 3, "x" * 1000: [1, 2]}})
    assert entry.settings == {"timeouts": {"request": 3}}
    assert len(entry.problems) == 1


def test_problems_beyond_a_bound_are_counted() -> None:
    entry = read(**{f"odd{number}": 1 for number in range(30)})
    assert len(entry.problems) == 21
    assert entry.problems[-1].message == "10 more problems are not shown"
    assert not entry.errors
