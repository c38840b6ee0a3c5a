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

# A busy machine is not a dead one. A worker that is not answered in CONNECT_TIMEOUT says a second
# time that it is ready; if the test has begun by then, Locust takes it for a new one and starts its
# users again beside those that it has.
runners.HEARTBEAT_LIVENESS = runners.MASTER_HEARTBEAT_TIMEOUT = runners.CONNECT_TIMEOUT = 500


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
