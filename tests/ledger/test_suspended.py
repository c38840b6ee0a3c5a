"""A process that sleeps for longer than its lease: others are told "unknown", none runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.ledger import suspended
from tests.redis_server import DURABLE, running_redis

pytestmark = [
    pytest.mark.req("S2"),
    pytest.mark.skipif(os.name != "posix", reason="a process is stopped by a signal"),
]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "ledger.db")
        return
    with running_redis(tmp_path / "redis", *DURABLE) as server:
        yield server.url


@pytest.mark.parametrize("moment", ["after claiming", "before settling"])
async def test_an_owner_that_slept_ends_its_call_and_nobody_runs_it_again(
    place: str, moment: str, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    command = [sys.executable, "-m", "tests.ledger.suspended", place, moment, str(runs)]
    worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        _, status = os.waitpid(worker.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        store, connecting = suspended.connect(place, str(runs))
        async with connecting as client:
            with pytest.raises(holdfast.OutcomeUnknown):
                await suspended.call(client)
            worker.send_signal(signal.SIGCONT)
            printed, _ = worker.communicate(timeout=60)
            # Its word comes late, and is true.
            assert await suspended.call(client) == printed.strip()
        closing = store.close()
        if closing is not None:
            await closing
    finally:
        worker.kill()
        worker.communicate()
    assert [line.split()[0] for line in runs.read_text().splitlines()] == ["key-1"]
