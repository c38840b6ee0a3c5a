"""A table that is one test tries every row and lists all that fail."""

from __future__ import annotations

import pytest

from tests.rows import rows


def test_every_row_is_tried_and_all_that_fail_are_listed() -> None:
    tried = []

    @rows("number, wanted", [(1, 1), (2, 3), (3, 3), (4, 5)])
    def test(number: int, wanted: int) -> None:
        tried.append(number)
        assert number == wanted, f"{number} is not {wanted}"

    with pytest.raises(pytest.fail.Exception) as raised:
        test()
    assert tried == [1, 2, 3, 4]
    assert str(raised.value).startswith("2 of 4 rows failed\n\n2, 3\n")
    assert "2 is not 3" in str(raised.value)
    assert "\n\n4, 5\n" in str(raised.value)
    assert "4 is not 5" in str(raised.value)


async def test_rows_may_await() -> None:
    @rows("word", ["a", "b"], ids=["first", "second"])
    async def test(word: str) -> None:
        with pytest.raises(ValueError, match="x"):
            raise ValueError(word if word == "b" else "x")

    with pytest.raises(pytest.fail.Exception) as raised:
        await test()
    assert str(raised.value).startswith("1 of 2 rows failed\n\nsecond\n")


def test_what_ends_a_test_ends_it_at_any_row() -> None:
    @rows("number", range(3))
    def test(number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        test()


def test_an_empty_table_proves_nothing() -> None:
    @rows("number", [])
    def test(number: int) -> None:
        raise AssertionError

    with pytest.raises(AssertionError, match="without rows"):
        test()


def test_a_row_has_no_fixtures() -> None:
    def test(number: int, tmp_path: object) -> None:
        raise AssertionError

    with pytest.raises(TypeError, match="a row has no fixtures"):
        rows("number", [1])(test)
