"""Unions come out small."""

from __future__ import annotations

import pytest

from holdfast.codegen.emit import Typist, typed_dict
from holdfast.codegen.names import ClassNames, bracketed, exploded
from holdfast.codegen.schemas import ANY, NONE, STRING, Field, Kind, RecordType, choice, either
from tests.rows import rows

INT = Kind("int")


def array(item: Kind) -> Kind:
    return Kind("list", (item,))


def table(value: Kind) -> Kind:
    return Kind("dict", (STRING, value))


def union(*options: Kind) -> Kind:
    return Kind("Union", options)


def test_a_union_of_one_is_that_one() -> None:
    assert either([STRING, STRING]) == STRING


def test_unions_are_flat_and_none_comes_last() -> None:
    assert either([NONE, union(STRING, INT), STRING]) == union(STRING, INT, NONE)


def test_any_swallows_the_rest() -> None:
    assert either([STRING, ANY, NONE]) == ANY
    assert either([]) == ANY


def test_choices_are_joined() -> None:
    found = either([choice("a"), array(INT), choice("ba")])
    assert found == union(choice("ab"), array(INT))


def test_true_is_not_one() -> None:
    assert choice([True, 1, 1, False, 0]).parts == (True, 1, False, 0)
    assert [type(value) for value in choice([True, 1]).parts] == [bool, int]


def typist() -> Typist:
    return Typist(ClassNames())


def test_kinds_are_written_as_types() -> None:
    kind = union(table(array(INT)), Kind("tuple", (STRING, ANY)), choice(["a", 1]), NONE)
    text = 'dict[str, list[int]] | tuple[str, Any] | Literal["a", 1] | None'
    assert typist().inline(kind) == text


def test_what_has_to_be_imported_is_remembered() -> None:
    writer = typist()
    writer.inline(union(table(ANY), choice("a")))
    assert writer.used == {"Any", "Literal"}


def test_a_builtin_that_a_method_hides_is_found_elsewhere() -> None:
    writer = Typist(ClassNames(), {"list"})
    assert writer.inline(array(STRING)) == "builtins.list[str]"
    assert "builtins" in writer.used


def test_a_short_type_stays_where_it_is() -> None:
    writer = typist()
    assert writer.fit(array(STRING), ("x",)) == "list[str]"
    assert writer.aliases == []


LONG = choice(f"value number {number}" for number in range(5))


def test_a_long_type_gets_a_name() -> None:
    writer = typist()
    assert writer.fit(LONG, ("nav", "goto", "until")) == "NavGotoUntil"
    (alias,) = writer.aliases
    assert alias.startswith('NavGotoUntil: TypeAlias = Literal[\n    "value number 0",\n')
    assert alias.endswith('    "value number 4",\n]')


def test_the_same_type_in_the_same_place_is_named_once() -> None:
    writer = typist()
    assert writer.fit(LONG, ("x",)) == writer.fit(LONG, ("x",)) == "X"
    assert len(writer.aliases) == 1


def test_long_parts_are_named_before_the_whole() -> None:
    writer = typist()
    assert writer.fit(union(table(LONG), NONE), ("x",)) == "X"
    inner, outer = writer.aliases
    assert inner.startswith("XOption1Item: TypeAlias = Literal[")
    assert outer == "X: TypeAlias = Union[dict[str, XOption1Item], None]"


def test_a_list_stays_a_list_and_its_items_are_named() -> None:
    writer = typist()
    assert writer.fit(array(LONG), ("x",)) == "list[XItem]"
    assert len(writer.aliases) == 1


def test_one_word_is_never_too_long() -> None:
    assert typist().fit(Kind("N" * 60), ("x",)) == "N" * 60


def test_brackets_open_up_when_the_line_is_full() -> None:
    assert bracketed("f(", ["a", "b"], ")") == "f(a, b)"
    long = "a" * 50
    assert bracketed("f(", [long, long], ")", "  ") == f"  f(\n      {long},\n      {long},\n  )"


def test_no_items_leave_the_brackets_empty() -> None:
    assert bracketed("f(", [], ")") == "f()"
    assert exploded("f(", ["a"], ")") == "f(\n    a,\n)"


def source(*fields: tuple[str, Kind, bool], note: str = "") -> str:
    record = RecordType("Point", tuple(Field(*field) for field in fields), note)
    return typed_dict(record, Typist(ClassNames()), {"Point", "Other"})


@pytest.mark.req("H3")
def test_keys_that_may_be_missing_are_marked() -> None:
    assert source(("x", INT, True), ("y", STRING, False)) == (
        "class Point(TypedDict):\n    x: int\n    y: NotRequired[str]"
    )


@pytest.mark.req("H3")
def test_where_all_may_be_missing_the_class_says_so() -> None:
    assert source(("x", INT, False)) == "class Point(TypedDict, total=False):\n    x: int"


def test_descriptions_are_in_the_docstring() -> None:
    record = RecordType("Point", (Field("x", INT, True, "To the right."),), "A place.")
    assert typed_dict(record, Typist(ClassNames()), ()) == (
        "class Point(TypedDict):\n"
        '    """A place.\n'
        "\n"
        "    Keys:\n"
        "        x: To the right.\n"
        '    """\n'
        "\n"
        "    x: int"
    )


@pytest.mark.req("H3")
@rows("key", ["a-b", "class", "1", "__x", "größe", "str", "Any", "Point", "Other", "a b"])
def test_keys_that_cannot_be_attributes_are_strings(key: str) -> None:
    found = source((key, array(Kind("Other")), False), ("y", INT, True))
    assert found == (
        "Point = TypedDict(\n"
        '    "Point",\n'
        "    {\n"
        f'        "{key}": "NotRequired[list[Other]]",\n'
        '        "y": "int",\n'
        "    },\n"
        ")"
    )


def test_a_choice_among_such_keys_gets_a_name() -> None:
    typist = Typist(ClassNames())
    record = RecordType("Point", (Field("a-b", choice(["x", 'y"']), True),))
    assert '"a-b": "PointAB",' in typed_dict(record, typist, ())
    assert typist.aliases == ['PointAB: TypeAlias = Literal["x", \'y"\']']


def test_a_type_too_long_for_its_line_gets_a_name() -> None:
    typist = Typist(ClassNames())
    record = RecordType("Point", (Field("x", choice("abcdefghijklmnopqrstuvw"), True),))
    assert typed_dict(record, typist, ()).endswith("x: PointX")
