"""The handshake era's requests from the server to the client, until they are answered."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

from .wire import Json, Pipe


class Questions:
    """Remembers which call waits for which answer."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._waiting: dict[str, SimpleQueue[Any]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def put(self, method: str, params: Json, inbox: SimpleQueue[Any]) -> str:
        """Sends a request, whose answer will come to the inbox; returns the request's id."""
        with self._lock:
            self._count += 1
            question = f"demo-{self._count}"
            self._waiting[question] = inbox
        self._pipe.send({"jsonrpc": "2.0", "id": question, "method": method, "params": params})
        return question

    def answered(self, message: Json) -> None:
        """Hands the answer to the call that waits for it; others are ignored."""
        question = message.get("id")
        inbox = self._waiting.pop(question, None) if isinstance(question, str) else None
        if inbox is not None:
            inbox.put(message)

    def withdraw(self, question: str) -> None:
        """Tells the client that the answer is no longer wanted."""
        if self._waiting.pop(question, None) is not None:
            self._pipe.notify("notifications/cancelled", {"requestId": question})
