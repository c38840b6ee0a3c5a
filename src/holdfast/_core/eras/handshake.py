"""The revisions with an ``initialize`` handshake, up to 2025-11-25."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from holdfast._core.boundary import StreamOptions, WireId
from holdfast._core.eras import headers
from holdfast._core.eras.base import COMPLETE, OutgoingRequest, Reading
from holdfast._core.eras.revisions import BATCHING, CORE_TASKS, MODERN_ERRORS
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import INVALID_PARAMS
from holdfast._core.wire.jsonrpc import ErrorObject, Id

if TYPE_CHECKING:
    from holdfast._core.eras.tasks import TaskForm

_NO_META: Final = r"(?i)\b_meta\b|\bio\.modelcontextprotocol/|\bprotocol ?version\b"
"""The words of a server of the stateless revisions for a request without its ``_meta``."""


class Handshake:
    """Version and capabilities hold for the whole connection, once agreed.

    2025-11-25 basic/lifecycle, Initialization.
    """

    may_ask = True
    withheld: frozenset[str] = frozenset()
    listens = False
    param_headers = False

    def __init__(self, version: str) -> None:
        self.version = version
        self.batches: bool = version == BATCHING
        self.session: str | None = None
        self._options: StreamOptions | None = None

    def __repr__(self) -> str:
        return f"<Handshake {self.version}>"

    def greet(self) -> list[bytes]:
        # basic/lifecycle, Initialization: "After successful initialization, the client MUST send
        # an initialized notification".
        return [jsonrpc.notification("notifications/initialized")]

    def stamp(
        self,
        params: dict[str, Any] | None,
        meta: dict[str, Any] | None = None,
        token: WireId | None = None,
        extensions: tuple[str, ...] = (),
    ) -> dict[str, Any] | None:
        # basic/utilities/progress, Progress Flow: the progressToken is part of the metadata.
        if token is not None:
            meta = {"progressToken": token} if meta is None else {**meta, "progressToken": token}
        elif meta is None:
            return params
        return {"_meta": meta} if params is None else {**params, "_meta": meta}

    def read(self, method: str, result: Raw) -> Reading:
        return COMPLETE

    def tasks(self, capabilities: Raw) -> TaskForm | None:
        if self.version != CORE_TASKS:
            return None
        from holdfast._core.eras.tasks import core_tasks

        return core_tasks(capabilities)

    def options(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        param_headers: dict[str, str] | None = None,
    ) -> StreamOptions:
        # basic/transports, Session Management: clients "MUST include it in the Mcp-Session-Id
        # header on all of their subsequent HTTP requests"; Protocol Version Header: "the client
        # MUST include the MCP-Protocol-Version"; Resumability and Redelivery allows resuming.
        options = self._options
        if options is None or options.headers.get(headers.SESSION) != self.session:
            session_header = {} if self.session is None else {headers.SESSION: self.session}
            options = self._options = StreamOptions(
                {headers.VERSION: self.version, **session_header}, resume=True
            )
        return options

    def cancel(self, wire_id: WireId, reason: str, *, streams: bool = False) -> bytes | None:
        # basic/transports, Sending Messages to the Server: "Disconnection SHOULD NOT be
        # interpreted as the client cancelling its request", hence the notification.
        return cancelled(wire_id, reason)

    def contradicted_by(self, fault: ErrorObject | None) -> bool:
        return fault is None or self.disowned_by("", fault)

    def disowned_by(self, method: str, fault: ErrorObject) -> bool:
        # 2026-07-28 basic/versioning: a recognized modern error identifies a modern server.
        # One that looks for the fields of _meta first answers with -32602.
        malformed = fault.code == INVALID_PARAMS and re.search(_NO_META, fault.message or "")
        return fault.code in MODERN_ERRORS or bool(malformed)

    def farewell(self) -> StreamOptions | None:
        # basic/transports, Session Management: clients that no longer need a session "SHOULD
        # send an HTTP DELETE to the MCP endpoint with the Mcp-Session-Id header".
        return None if self.session is None else self.options("")

    def ping(self) -> OutgoingRequest:
        return OutgoingRequest("ping")

    def log_level(self, level: str) -> OutgoingRequest | None:
        return OutgoingRequest("logging/setLevel", {"level": level})

    def watch(self, uri: str) -> OutgoingRequest:
        return OutgoingRequest("resources/subscribe", {"uri": uri})

    def unwatch(self, uri: str) -> OutgoingRequest:
        return OutgoingRequest("resources/unsubscribe", {"uri": uri})

    def subscription(self, params: Raw) -> Id | None:
        return None

    def listen(self, uris: Iterable[str], changes: Iterable[str]) -> OutgoingRequest:
        raise AssertionError("changes come by themselves in this era")


def cancelled(wire_id: WireId, reason: str) -> bytes:
    params = {"requestId": wire_id, "reason": reason}
    return jsonrpc.notification("notifications/cancelled", params)
