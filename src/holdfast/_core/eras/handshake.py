"""The revisions with an ``initialize`` handshake, up to 2025-11-25."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from holdfast._core.boundary import Dress, WireId
from holdfast._core.eras import headers
from holdfast._core.eras.base import COMPLETE, Reading, Wish
from holdfast._core.eras.revisions import BATCHING
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.jsonrpc import Id


class Handshake:
    """What is agreed once holds for the whole connection; messages carry nothing extra."""

    may_ask = True
    listens = False
    mirrors = False

    def __init__(self, version: str) -> None:
        self.version = version
        self.batches: bool = version == BATCHING
        self.session: str | None = None
        self._worn: Dress | None = None

    def __repr__(self) -> str:
        return f"<Handshake {self.version}>"

    def greet(self) -> list[bytes]:
        return [jsonrpc.notification("notifications/initialized")]

    def stamp(
        self,
        params: dict[str, Any] | None,
        meta: dict[str, Any] | None = None,
        token: WireId | None = None,
    ) -> dict[str, Any] | None:
        if token is not None:
            meta = {"progressToken": token} if meta is None else {**meta, "progressToken": token}
        elif meta is None:
            return params
        return {"_meta": meta} if params is None else {**params, "_meta": meta}

    def read(self, method: str, result: Raw) -> Reading:
        return COMPLETE

    def dress(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        mirror: dict[str, str] | None = None,
    ) -> Dress:
        worn = self._worn
        if worn is None or worn.headers.get(headers.SESSION) != self.session:
            named = {} if self.session is None else {headers.SESSION: self.session}
            worn = self._worn = Dress({headers.VERSION: self.version, **named}, resume=True)
        return worn

    def cancel(self, wire_id: WireId, reason: str, *, streams: bool = False) -> bytes | None:
        return cancelled(wire_id, reason)

    def farewell(self) -> Dress | None:
        return None if self.session is None else self.dress("")

    def ping(self) -> Wish:
        return Wish("ping")

    def log_level(self, level: str) -> Wish | None:
        return Wish("logging/setLevel", {"level": level})

    def watch(self, uri: str) -> Wish:
        return Wish("resources/subscribe", {"uri": uri})

    def unwatch(self, uri: str) -> Wish:
        return Wish("resources/unsubscribe", {"uri": uri})

    def subscription(self, params: Raw) -> Id | None:
        return None

    def listen(self, uris: Iterable[str], changes: Iterable[str]) -> Wish:
        raise AssertionError("changes come by themselves in this era")


def cancelled(wire_id: WireId, reason: str) -> bytes:
    params = {"requestId": wire_id, "reason": reason}
    return jsonrpc.notification("notifications/cancelled", params)
