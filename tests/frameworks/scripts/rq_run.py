"""Queue the jobs of the guide for an RQ worker, or print what came of them."""

from __future__ import annotations

import json
import os
import sys

from redis import Redis
from rq import Queue, Retry
from rq.job import Job

JOBS = {"job-1": 500, "job-2": 13}
connection = Redis.from_url(os.environ["REDIS_URL"])
if sys.argv[1] == "queue":
    for name, cents in JOBS.items():
        Queue(connection=connection).enqueue(
            "rq_jobs.charge", cents, job_id=name, retry=Retry(max=2)
        )
else:
    jobs = [Job.fetch(name, connection=connection) for name in JOBS]
    results = [(job.latest_result(), job.get_status().value) for job in jobs]
    report = {
        job.id: [status, None if result is None else result.return_value]
        for job, (result, status) in zip(jobs, results, strict=True)
    }
    print(json.dumps(report))
