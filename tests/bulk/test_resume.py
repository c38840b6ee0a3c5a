"""A file of outcomes that is taken up again."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast._core.bulk.outcomes import RowOutcome
from holdfast._core.bulk.resume import OutcomeFile
from holdfast.errors import ValidationError

pytestmark = pytest.mark.req("S4")


LINE = RowOutcome(0, "ok", {"sum": 1}).line()


@pytest.mark.parametrize("size", range(len(LINE)))
def test_a_line_that_is_torn_anywhere_is_cut_off(tmp_path: Path, size: int) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(LINE + RowOutcome(1, "ok", {"sum": 1}).line()[:size])
    file = OutcomeFile(str(path), resume=True)
    assert (0 in file.rows, 1 in file.rows) == (True, False)
    file.close()
    assert path.read_bytes() == LINE


def test_zeros_at_the_end_are_cut_off(tmp_path: Path) -> None:
    """Some file systems leave them after a power cut."""
    path = tmp_path / "out.jsonl"
    path.write_bytes(LINE + LINE[:10] + bytes(100))
    OutcomeFile(str(path), resume=True).close()
    assert path.read_bytes() == LINE


@pytest.mark.parametrize(
    "text", ["my thesis", '{"a": 1}', '{"rows', "  ", "[1,\n2]", '{ "row": 0, "outcome": "ok" }']
)
def test_a_file_of_another_kind_stays_as_it_is(tmp_path: Path, text: str) -> None:
    """Its last line has no end, and was taken for a torn one: the file was emptied."""
    path = tmp_path / "out.jsonl"
    path.write_text(text)
    with pytest.raises(ValidationError, match="line 1 is no outcome of a row"):
        OutcomeFile(str(path), resume=True)
    assert path.read_text() == text
