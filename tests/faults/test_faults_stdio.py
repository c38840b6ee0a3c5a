"""The client against every misbehaviour of the catalogue, each a real child process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.catalogue import catalogue
from tests.faults.drives import DRIVES, drive
from tests.faults.rows import AFTER, ENDS, Fault

FAULTS = catalogue()


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
