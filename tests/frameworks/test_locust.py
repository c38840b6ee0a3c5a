"""Users for Locust, with Locust itself: a master and two workers, and what its report has."""

from __future__ import annotations

import json
import os
import re
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
from tests.interop.hosting import free_port
from tests.interop.install import PROJECT, NotHere
from tests.interop.processes import MARK, PATIENCE, family

SCRIPTS = PROJECT / "tests" / "frameworks" / "scripts"
END = SCRIPTS / "locust_end.py"
USERS = 4
LONGEST = 500
"""Seconds that bound a hang, on a machine that has much else to do."""

pytestmark = pytest.mark.hang(600)


class Locust:
    """Locust's own command, in a folder for its reports."""

    def __init__(self, folder: Path) -> None:
        try:
            self._program = installed("locust") / "bin" / "locust"
        except NotHere as reason:
            pytest.skip(str(reason))
        self._folder = folder
        self.mark = folder.name
        self._stack = ExitStack()
        self._configure()

    def _configure(self) -> None:
        """Name the server in the user's configuration, with time for a busy machine."""
        entry = {
            "command": sys.executable,
            "args": ["-m", "holdfast.demo.server"],
            "env": {MARK: self.mark},
            "holdfast": {"timeouts": {"handshake": LONGEST}},
        }
        path = self._folder / "config" / "holdfast" / "mcp.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"mcpServers": {"demo": entry}}))

    def close(self) -> None:
        self._stack.close()

    def start(self, files: str, *words: str, requests: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [self._program, "-f", files, "--loglevel", "INFO", *words],
            cwd=self._folder,
            env={
                **os.environ,
                MARK: self.mark,
                "LOCUST_TEST_REQUESTS": str(requests),
                "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
                "PYTHONPATH": os.pathsep.join([str(PROJECT / "src"), str(PROJECT)]),
                "PYTHONDONTWRITEBYTECODE": "1",
                "XDG_CONFIG_HOME": str(self._folder / "config"),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the requests and the failures of each name, of Locust's own report."""
        return {
            row["name"]: (row["num_requests"], row["num_failures"]) for row in self.read("report")
        }

    def wait_for_all(self) -> None:
        """Wait until nothing that was started is left: neither callers nor their servers."""
        until = time.monotonic() + PATIENCE
        while left := family(self.mark):
            assert time.monotonic() < until, left
            time.sleep(0.05)

    def read(self, name: str) -> Any:
        return json.loads((self._folder / f"{name}.json").read_bytes())


@pytest.fixture
def locust(tmp_path: Path) -> Iterator[Locust]:
    command = Locust(tmp_path)
    yield command
    command.close()


@pytest.mark.req("S4")
def test_a_master_and_two_workers_report_every_call(locust: Locust) -> None:
    sums, total = USERS * 21, USERS * (1 + 20 + 1 + 1 + 1)
    files, port = f"{SCRIPTS / 'locust_visitors.py'},{END}", str(free_port())
    words = ["--headless", "--expect-workers", "2", "-u", str(USERS), "-r", str(USERS)]
    words += ["--run-time", f"{LONGEST}s", "--json-file", "report"]
    bind = ("--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", port)
    master = locust.start(files, *bind, *words, requests=total)
    join = ("--worker", "--master-host", "127.0.0.1", "--master-port", port)
    workers = [locust.start(files, *join, requests=total) for _ in range(2)]
    _, log = master.communicate(timeout=LONGEST)
    logs = [worker.communicate(timeout=LONGEST)[1] for worker in workers]
    assert master.returncode == 1, log  # Locust's word for "some requests failed"
    assert "run-time limit" not in log, log

    assert locust.counts() == {
        "connect": (USERS, 0),
        "add": (sums, 0),
        "add, wrongly": (USERS, USERS),
        "crash": (USERS, USERS),
    }
    rows = {row["name"]: row for row in locust.read("report")}
    assert {row["method"] for row in rows.values()} == {"MCP"}
    lengths = [len(f'{{"sum":{number + 1}}}') for number in (*range(20), 1)]
    assert rows["add"]["total_content_length"] == USERS * sum(lengths)
    assert rows["add"]["total_response_time"] > 0
    assert locust.read("failures") == {
        "add, wrongly": ["CallFailed('validation')", USERS],
        "crash": ["CallFailed('transport, may have run')", USERS],
    }
    for worker_log in logs:  # both have worked, and said once in full what failed
        assert (
            len(re.findall(r"add, wrongly: validation: .*do not fit its schema", worker_log)) == 1
        )
        assert "Traceback" not in worker_log, worker_log
    locust.wait_for_all()


@pytest.mark.req("S4")
def test_the_locustfile_of_the_guide_runs(locust: Locust, tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "how-to" / "load.md").read_text(encoding="utf-8")
    (block,) = [block for block in blocks(page) if block.kind == "py"]
    (tmp_path / "locustfile.py").write_text(block.text)
    words = [
        "--headless",
        "-u",
        "2",
        "-r",
        "2",
        "--run-time",
        f"{LONGEST}s",
        "--json-file",
        "report",
    ]
    process = locust.start(f"locustfile.py,{END}", *words, requests=10)
    _, log = process.communicate(timeout=LONGEST)
    assert (process.returncode, "Traceback" in log) == (0, False), log
    counts = locust.counts()
    assert counts["connect"] == (2, 0)
    assert counts["add"] >= (10 - 2, 0)
    locust.wait_for_all()


@pytest.mark.req("S4")
def test_a_user_without_a_server_is_told_what_to_set(locust: Locust, tmp_path: Path) -> None:
    file = "from holdfast.load import McpUser\nclass Lost(McpUser):\n    tasks = [print]\n"
    (tmp_path / "locustfile.py").write_text(file)
    words = ["--headless", "-u", "1", "--run-time", f"{LONGEST}s", "--json-file", "report"]
    process = locust.start(f"locustfile.py,{END}", *words, requests=0)
    _, log = process.communicate(timeout=LONGEST)
    assert "Lost has no server: set Lost.target, or give --host" in log
