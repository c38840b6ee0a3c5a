"""Files as rows, and the arguments that are made of them."""

from __future__ import annotations

import io
import time
from typing import Any

import pytest

from holdfast._core.bulk.rows import Selection, read_rows
from holdfast.errors import ValidationError
from tests.rows import rows

pytestmark = pytest.mark.req("S4")


def read(data: bytes, kind: str = "csv") -> list[Any]:
    """Return the rows, and the texts of those that are none."""
    parsed = [row for _, row in read_rows(io.BytesIO(data), "rows", kind)]
    return [row.message if isinstance(row, ValidationError) else row for row in parsed]


def test_a_row_that_is_not_utf_8_is_one_rows_error() -> None:
    """It was refused where it was sent, by a sentence about surrogates."""
    data = b'a,b\n1,caf\xc3\xa9\n2,caf\xe9\n3,"x\n\xe9"\n4,x\n'
    assert read(data) == [
        {"a": "1", "b": "café"},
        "row 1 (line 3): not UTF-8",
        "row 2 (line 4): not UTF-8",
        {"a": "4", "b": "x"},
    ]


@rows(
    "data, expected",
    [
        (b"a;b\n1;2,5\n", [{"a": "1", "b": "2,5"}]),
        (b'"a";"b"\r\n"1;2";3\r\n', [{"a": "1;2", "b": "3"}]),
        (b"a\tb\n1\t2;3\n", [{"a": "1", "b": "2;3"}]),
        (b"a,b;c\n1,2;3\n", [{"a": "1", "b;c": "2;3"}]),
        (b"a\n1;2\n", [{"a": "1;2"}]),
        (
            b'a,b\n1,2\n\n3,"x\n4,5\n',
            [{"a": "1", "b": "2"}, "row 1 (line 4): not CSV: a quote has no end, so all that"],
        ),
    ],
)
def test_the_first_line_tells_what_parts_the_cells(data: bytes, expected: list[Any]) -> None:
    shown = [row[: len(str(expected[-1]))] if isinstance(row, str) else row for row in read(data)]
    assert shown == expected


@rows(
    "data, fault",
    [
        ("a,b\n1,2\n".encode("utf-16"), "is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-le"), "is not UTF-8"),
        (b"caf\xe9,b\n1,2\n", "is not UTF-8"),
        (b"a,b,a\n1,2,3\n", "names 'a' twice"),
        (b"a,,b\n1,2,3\n", "has an empty name"),
        (b"\n1,2\n", "must name the columns"),
        (b"", "must name the columns"),
        (b'"a\n', "is not CSV"),
    ],
)
def test_a_first_line_that_names_no_columns_says_why(data: bytes, fault: str) -> None:
    with pytest.raises(ValidationError, match=f"rows: the first line {fault}"):
        read(data)


@rows(
    "path, value",
    [
        (".b.c[0]", 5),
        (".b.c.1", 6),
        (".b.c[1]", 6),
        (".l[1].x", 7),
        (".l[0][1]", 2),
        ("[0]", None),
        (".b.c[2]", None),
        (".b.c[-1]", None),
        (".b.c[x]", None),
        (".x[0]", "a column"),
    ],
)
def test_a_field_is_found_by_names_and_numbers(path: str, value: Any) -> None:
    row = {"b": {"c": [5, 6]}, "l": [[1, 2], {"x": 7}], "x[0]": "a column"}
    selection = Selection((f"a={path}",))
    if value is not None:
        assert selection.arguments(row) == {"a": value}
    elif path.startswith("."):
        with pytest.raises(ValidationError, match="there is no field"):
            selection.arguments(row)
    else:
        assert selection.arguments(row) == {"a": path}


@rows("once", ["id", ".", "..", ""])
def test_a_key_is_a_field_of_the_row(once: str) -> None:
    with pytest.raises(ValidationError, match=r"must be \.FIELD"):
        Selection(once=once)


def test_a_header_of_many_columns_takes_linear_time() -> None:
    def cpu_time(columns: int) -> float:
        header = ",".join(f"column{number}" for number in range(columns)).encode()
        began = time.process_time()
        assert list(read_rows(io.BytesIO(header), "rows.csv", "csv")) == []
        return time.process_time() - began

    short = min(cpu_time(1_000) for _ in range(3))
    assert any(cpu_time(8_000) < 24 * short + 0.05 for _ in range(3))
