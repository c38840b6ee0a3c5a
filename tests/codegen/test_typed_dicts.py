"""Records are classes where they can be."""

from __future__ import annotations

import pytest

from holdfast.codegen.names import ClassNames
from holdfast.codegen.types import (
    STRING,
    Array,
    Choice,
    Field,
    Kind,
    Named,
    Plain,
    Record,
    Typist,
    typed_dict,
)

INT = Plain("int")


def source(*fields: tuple[str, Kind, bool], note: str = "") -> str:
    record = Record("Point", tuple(Field(*field) for field in fields), note)
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
    record = Record("Point", (Field("x", INT, True, "To the right."),), "A place.")
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
@pytest.mark.parametrize(
    "key", ["a-b", "class", "1", "__x", "größe", "str", "Any", "Point", "Other", "a b", "k" * 80]
)
def test_keys_that_cannot_be_attributes_are_strings(key: str) -> None:
    found = source((key, Array(Named("Other")), False), ("y", INT, True))
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
    record = Record("Point", (Field("a-b", Choice(("x", 'y"')), True),))
    assert '"a-b": "PointAB",' in typed_dict(record, typist, ())
    assert typist.aliases == ['PointAB: TypeAlias = Literal["x", \'y"\']']


def test_a_type_too_long_for_its_line_gets_a_name() -> None:
    typist = Typist(ClassNames())
    record = Record("Point", (Field("x", Choice(tuple("abcdefghijklmnopqrstuvw")), True),))
    assert typed_dict(record, typist, ()).endswith("x: PointX")
