"""Load tests: recorded calls, so many at once for so long, and how they went.

stats        durations and failures, by tool and over time; bounded
run          calls again and again until the time is over
report       the result as text, and as JSON
page         the result as one page with a plot
locust_user  McpUser: a user for Locust, by the extra ``holdfast[load]``
caller       the process in which Locust's users have their clients
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

if TYPE_CHECKING:
    from holdfast.load.locust_user import McpUser as McpUser

_HOMES = {"locust_user": ("McpUser",)}

__all__ = ["McpUser"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
