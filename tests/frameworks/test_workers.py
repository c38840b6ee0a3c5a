"""The guide for workers and data frames, with the libraries that it is about."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import blocks
from tests.frameworks.running import installed
from tests.interop.install import PROJECT, NotHere
from tests.interop.processes import MARK, PATIENCE, family
from tests.redis_server import DURABLE, running_redis

SCRIPTS = PROJECT / "tests" / "frameworks" / "scripts"
LONGEST = 180
PAID = {"receipt": "500 cents"}

pytestmark = [pytest.mark.hang(600), pytest.mark.req("S2")]


class Bench:
    """A folder, an environment with the libraries, and a shop that writes down what it ran."""

    def __init__(self, folder: Path) -> None:
        try:
            self._python = installed("workers") / "bin" / "python"
        except NotHere as reason:
            pytest.skip(str(reason))
        self.folder, self.runs = folder, folder / "runs"
        self._stack = ExitStack()
        self._mark = folder.name
        shop = [sys.executable, str(SCRIPTS / "shop.py"), str(self.runs)]
        self.environment = {
            **os.environ,
            MARK: self._mark,
            "MCP_SERVER": shlex.join(shop),
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT), str(folder)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def close(self) -> None:
        self._stack.close()

    def start_redis(self) -> None:
        server = self._stack.enter_context(running_redis(self.folder / "redis", *DURABLE))
        self.environment["REDIS_URL"] = server.url

    def run(self, *words: str) -> str:
        """Run Python in the environment; return what it prints."""
        done = subprocess.run(
            [self._python, *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [self._python, *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def count(self) -> list[str]:
        return self.runs.read_text(encoding="utf-8").split()

    def wait_for_all(self) -> None:
        """Wait until neither workers nor servers are left."""
        until = time.monotonic() + PATIENCE
        while left := family(self._mark):
            assert time.monotonic() < until, left
            time.sleep(0.05)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


def code(page: str, word: str) -> str:
    """Return the block of a guide that has a word."""
    text = (PROJECT / "docs" / "how-to" / page).read_text(encoding="utf-8")
    (block,) = [block for block in blocks(text) if word in block.text]
    return block.text


def test_a_celery_task_that_is_delivered_twice_runs_once(bench: Bench) -> None:
    bench.start_redis()
    (bench.folder / "celery_tasks.py").write_text(code("workers.md", "import celery"))
    worker = bench.start("-m", "celery", "-A", "celery_tasks", "worker", "--concurrency", "2")
    report = json.loads(bench.run(str(SCRIPTS / "celery_run.py")))
    worker.send_signal(signal.SIGTERM)
    worker.wait(LONGEST)
    assert report["paid"] == [PAID, PAID]
    assert report["crashed"] == ["TransportError", "OutcomeUnknown"]
    assert bench.count() == ["500", "13"]
    bench.wait_for_all()


def test_an_rq_job_that_is_retried_runs_once(bench: Bench) -> None:
    bench.start_redis()
    (bench.folder / "rq_jobs.py").write_text(code("workers.md", "import rq"))
    script, url = str(SCRIPTS / "rq_run.py"), bench.environment["REDIS_URL"]
    for _ in range(2):
        bench.run(script, "queue")
        bench.run("-m", "rq.cli", "worker", "--burst", "--url", url)
    report = json.loads(bench.run(script, "report"))
    assert report == {"job-1": ["finished", PAID], "job-2": ["failed", None]}
    assert sorted(bench.count()) == ["13", "500"]
    bench.wait_for_all()


def test_a_temporal_activity_runs_once_over_its_attempts(bench: Bench) -> None:
    guide = bench.folder / "guide.py"
    guide.write_text(code("workers.md", "from temporalio"))
    words = (str(bench.folder), str(guide), str(bench.runs))
    report: dict[str, Any] = json.loads(bench.run(str(SCRIPTS / "temporal_run.py"), *words))
    assert report["paid"] == [PAID, PAID]
    assert report["another run"] == PAID
    refused, crashed, cancelled = (report[name] for name in ("refused", "crashed", "cancelled"))
    assert (refused["type"], refused["non_retryable"]) == ("validation", False)
    assert [error["non_retryable"] for error in crashed] == [True, True]
    assert cancelled[0] == "cancelled"
    assert (cancelled[1]["type"], cancelled[1]["non_retryable"]) == ("unknown", True)
    assert report["runs"] == ["500", "500", "13", "17"]
    bench.wait_for_all()


@pytest.mark.req("S4")
def test_a_data_frame_of_pandas_gets_a_column(bench: Bench) -> None:
    function = code("bulk.md", "def add_column").partition("\nrecords =")[0]
    script = bench.folder / "frame.py"
    script.write_text(
        "import json, pandas\n"
        + function
        + "\nframe = pandas.DataFrame({'a': [1, 3], 'b': [2, 4]}, index=[7, 9])\n"
        + "rows = pandas.DataFrame(add_column(frame.to_dict('records'), 'add', 'sum'))\n"
        + "print(json.dumps([row['sum'] for row in rows['sum']]))\n"
    )
    assert json.loads(bench.run(str(script))) == [3, 7]
    bench.wait_for_all()
