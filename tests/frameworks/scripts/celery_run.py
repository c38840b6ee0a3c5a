"""Send the tasks of the guide to a Celery worker; print what came of them."""

from __future__ import annotations

import json
from typing import Any

from celery_tasks import charge  # type: ignore[import-not-found]

LONGEST = 150


def outcome(cents: int, task_id: str) -> Any:
    # What a broker does that delivers a task twice, and a worker that died before its end.
    result = charge.apply_async((cents,), task_id=task_id)
    try:
        return result.get(timeout=LONGEST)
    except Exception as error:
        return type(error).__name__
    finally:
        result.forget()


report = {
    "paid": [outcome(500, "task-1"), outcome(500, "task-1")],
    "crashed": [outcome(13, "task-2"), outcome(13, "task-2")],
}
print(json.dumps(report))
