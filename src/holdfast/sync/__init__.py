"""The same verbs without ``await``: for scripts, notebooks, threads.

    with holdfast.sync.connect("python server.py") as client:
        print(client.call_tool("add", {"a": 1, "b": 2}).text)

All clients share one loop in a thread of its own, started at the first ``connect``.
"""

from __future__ import annotations

from holdfast.sync.client import Client
from holdfast.sync.connecting import connect
from holdfast.sync.running import RunningCall

__all__ = ["Client", "RunningCall", "connect"]
