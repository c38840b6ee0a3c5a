"""The same verbs without ``await``: for scripts, notebooks, threads.

    with holdfast.sync.connect("python server.py") as client:
        print(client.call_tool("add", {"a": 1, "b": 2}).text)

All clients share one loop in a thread of its own, started at the first ``connect``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily
from holdfast.sync.client import Client, RunningCall, connect

if TYPE_CHECKING:
    from holdfast.sync.servers import Servers

__all__ = ["Client", "RunningCall", "Servers", "connect"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, {"servers": ("Servers",)})
