"""The client against every misbehaviour of the catalogue, each a real child process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.catalogue import catalogue
from tests.faults.drives import DRIVES, drive
from tests.faults.rows import AFTER, ENDS, Fault

FAULTS = catalogue()


# Each row is marked with its own ids; all of them together stand here to be read.
@pytest.mark.req("E2", "E3", "L3", "L5", "L6", "L7", "L8", "L9", "L11")
@pytest.mark.req("P1", "P2", "P4", "P5", "P6", "P7", "T1", "T2", "X1")
@pytest.mark.req("R2", "R3", "R4", "R5", "R7", "R8", "R9", "R10", "R11", "R12")
@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, id=fault.name, marks=pytest.mark.req(*fault.reqs)) for fault in FAULTS],
)
async def test_every_request_has_one_outcome_whatever_the_server_does(
    fault: Fault, tmp_path: Path
) -> None:
    await drive(fault, tmp_path)


def test_every_row_of_the_catalogue_is_well_formed() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(names) == len(set(names))
    for fault in FAULTS:
        assert fault.drive in DRIVES
        assert fault.after in AFTER
        assert fault.ends
        assert {end.partition(":")[0] for end in fault.ends} <= set(ENDS)


def test_the_ids_on_the_test_are_those_of_the_rows() -> None:
    test = test_every_request_has_one_outcome_whatever_the_server_does
    marks: list[pytest.Mark] = test.pytestmark  # type: ignore[attr-defined]
    named = {name for mark in marks if mark.name == "req" for name in mark.args}
    assert named == {name for fault in FAULTS for name in fault.reqs}
