"""Types on one line where there is room, under a name where there is none."""

from __future__ import annotations

from holdfast.codegen.names import ClassNames
from holdfast.codegen.types import (
    ANY,
    NONE,
    STRING,
    Array,
    Choice,
    Either,
    Named,
    Plain,
    Row,
    Table,
    Typist,
    bracketed,
    exploded,
)

INT = Plain("int")


def typist() -> Typist:
    return Typist(ClassNames())


def test_kinds_are_written_as_types() -> None:
    kind = Either((Table(Array(INT)), Row((STRING, ANY)), Row(()), Choice(("a", 1)), NONE))
    text = 'dict[str, list[int]] | tuple[str, Any] | tuple[()] | Literal["a", 1] | None'
    assert typist().inline(kind) == text


def test_what_has_to_be_imported_is_remembered() -> None:
    writer = typist()
    writer.inline(Either((Table(ANY), Choice(("a",)))))
    assert writer.used == {"Any", "Literal"}


def test_a_builtin_that_a_method_hides_is_found_elsewhere() -> None:
    writer = typist()
    assert writer.inline(Array(STRING), {"list"}) == "builtins.list[str]"
    assert "builtins" in writer.used


def test_what_is_named_needs_nothing_from_elsewhere() -> None:
    writer = typist()
    assert writer.fit(Row((STRING, INT)), -1, ("x",), {"int", "tuple"}) == "X"
    assert writer.used == {"TypeAlias"}


def test_a_type_with_room_stays_where_it_is() -> None:
    writer = typist()
    assert writer.fit(Array(STRING), 9, ("x",)) == "list[str]"
    assert writer.aliases == []


def test_a_type_without_room_gets_a_name() -> None:
    writer = typist()
    values = Choice(tuple(f"value number {number}" for number in range(5)))
    assert writer.fit(values, 40, ("nav", "goto", "until")) == "NavGotoUntil"
    (alias,) = writer.aliases
    assert alias.startswith('NavGotoUntil: TypeAlias = Literal[\n    "value number 0",\n')
    assert alias.endswith('    "value number 4",\n]')


def test_the_same_type_in_the_same_place_is_named_once() -> None:
    writer = typist()
    kind = Either((STRING, INT))
    assert writer.fit(kind, 0, ("x",)) == writer.fit(kind, 0, ("x",), {"str"}) == "X"
    assert writer.aliases == ["X: TypeAlias = Union[str, int]"]


def test_parts_that_are_too_long_are_named_before_the_whole() -> None:
    writer = typist()
    long = Choice(tuple(f"{number}" * 40 for number in range(3)))
    assert writer.fit(Either((Table(long), NONE)), 10, ("x",)) == "X"
    inner, outer = writer.aliases
    assert inner.startswith("XOption1Item: TypeAlias = Literal[")
    assert outer == "X: TypeAlias = Union[dict[str, XOption1Item], None]"


def test_a_list_stays_a_list_and_its_items_are_named() -> None:
    writer = typist()
    long = Choice(tuple(f"{number}" * 40 for number in range(3)))
    assert writer.fit(Array(long), 20, ("x",)) == "list[XItem]"
    assert len(writer.aliases) == 1


def test_a_list_without_any_room_is_named_with_its_items() -> None:
    writer = typist()
    assert writer.fit(Array(Choice(("a", "b"))), -1, ("x",)) == "X"
    assert writer.aliases == [
        'XItem: TypeAlias = Literal["a", "b"]',
        "X: TypeAlias = list[XItem]",
    ]


def test_one_word_is_never_too_long() -> None:
    assert typist().fit(Named("N" * 50), -1, ("x",)) == "N" * 50
    assert typist().fit(ANY, -1, ("x",)) == "Any"


def test_brackets_open_up_when_the_line_is_full() -> None:
    assert bracketed("f(", ["a", "b"], ")") == "f(a, b)"
    long = "a" * 50
    assert bracketed("f(", [long, long], ")", "  ") == f"  f(\n      {long},\n      {long},\n  )"


def test_the_only_item_of_a_subscript_gets_no_comma() -> None:
    long = "a" * 90
    assert bracketed("list[", [long], "]") == f"list[\n    {long}\n]"


def test_no_items_leave_the_brackets_empty() -> None:
    assert bracketed("f(", [], ")") == "f()"
    assert exploded("f(", ["a"], ")") == "f(\n    a,\n)"
