"""A part of a locustfile: ends the test once Locust has counted so many requests.

Locust's own files have the requests; what it counted as failures goes to ``failures.json``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gevent
from locust import events, runners

runners.HEARTBEAT_LIVENESS = 300
"""Seconds of silence after which the master gives a worker up: a busy machine is not a dead one."""


@events.init.add_listener  # type: ignore[untyped-decorator, unused-ignore]
def watch(environment: Any, **_: Any) -> None:
    if not isinstance(environment.runner, runners.WorkerRunner):
        gevent.spawn(end_after, environment, int(os.environ["LOCUST_TEST_REQUESTS"]))


def end_after(environment: Any, requests: int) -> None:
    while environment.stats.total.num_requests < requests:
        gevent.sleep(0.05)
    failures = {
        failure["name"]: [failure["error"], failure["occurrences"]]
        for failure in environment.stats.serialize_errors().values()
    }
    Path("failures.json").write_text(json.dumps(failures))
    environment.runner.quit()
