"""Unions come out small."""

from __future__ import annotations

from holdfast.codegen.types import ANY, NONE, STRING, Array, Choice, Either, Plain, choice, either

INT = Plain("int")


def test_a_union_of_one_is_that_one() -> None:
    assert either([STRING, STRING]) == STRING


def test_unions_are_flat_and_none_comes_last() -> None:
    assert either([NONE, Either((STRING, INT)), STRING]) == Either((STRING, INT, NONE))


def test_any_swallows_the_rest() -> None:
    assert either([STRING, ANY, NONE]) == ANY
    assert either([]) == ANY


def test_choices_are_joined() -> None:
    found = either([Choice(("a",)), Array(INT), Choice(("b", "a"))])
    assert found == Either((Choice(("a", "b")), Array(INT)))


def test_true_is_not_one() -> None:
    assert choice([True, 1, 1, False, 0]).values == (True, 1, False, 0)
    assert [type(value) for value in choice([True, 1]).values] == [bool, int]
