"""Who is told when a resource changes: the session of the handshake era, and open streams."""

from __future__ import annotations

import threading

from .eras import SERVER_INFO, SERVER_INFO_KEY, SUBSCRIPTION_KEY
from .wire import Json, Pipe, RequestId


class Subscriptions:
    """Tools announce from their own threads, so everything here happens under one lock."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._session: set[str] | None = None
        self._streams: dict[RequestId, Json] = {}

    def open_session(self) -> None:
        """From now on the session hears of new resources, subscribed or not."""
        self._session = set()

    def subscribe(self, uri: str) -> None:
        with self._lock:
            assert self._session is not None
            self._session.add(uri)

    def unsubscribe(self, uri: str) -> None:
        with self._lock:
            assert self._session is not None
            self._session.discard(uri)

    def open_stream(self, request_id: RequestId, wanted: Json) -> None:
        """Begins a stream. Its acknowledgement must come before anything else on it."""
        with self._lock:
            params = {"notifications": wanted, **_marked(request_id)}
            self._pipe.notify("notifications/subscriptions/acknowledged", params)
            self._streams[request_id] = wanted

    def drop_stream(self, request_id: RequestId) -> None:
        with self._lock:
            self._streams.pop(request_id, None)

    def end_streams(self) -> None:
        """Answers the requests that opened the streams: they ended in good order."""
        with self._lock:
            for request_id in self._streams:
                meta = {SERVER_INFO_KEY: SERVER_INFO, SUBSCRIPTION_KEY: request_id}
                self._pipe.result(request_id, {"resultType": "complete", "_meta": meta})
            self._streams.clear()

    def announce(self, uri: str, is_new: bool) -> None:
        """Tells whoever asked for it that a resource changed or came to be."""
        with self._lock:
            if self._session is not None:
                self._tell(uri, {}, is_new, uri in self._session)
            for request_id, wanted in self._streams.items():
                list_changed = is_new and "resourcesListChanged" in wanted
                updated = uri in wanted.get("resourceSubscriptions", ())
                self._tell(uri, _marked(request_id), list_changed, updated)

    def _tell(self, uri: str, mark: Json, list_changed: bool, updated: bool) -> None:
        if list_changed:
            self._pipe.notify("notifications/resources/list_changed", mark)
        if updated:
            self._pipe.notify("notifications/resources/updated", {"uri": uri, **mark})


def _marked(request_id: RequestId) -> Json:
    """The `_meta` that says which stream a message belongs to."""
    return {"_meta": {SUBSCRIPTION_KEY: request_id}}
