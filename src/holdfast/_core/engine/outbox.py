"""What is sent besides requests: notifications, answers, and the words that open a conversation."""

from __future__ import annotations

from typing import Any

from holdfast._core.boundary import Asked, Effect, Listen, Send
from holdfast._core.engine.inflight import Inflight
from holdfast._core.engine.link_state import LinkState
from holdfast._core.eras.base import Era
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import INTERNAL_ERROR, UNENCODABLE


class Outbox:
    """Frames for the line of the moment, dressed as its streams need it."""

    def __init__(self, link: LinkState, inflight: Inflight) -> None:
        self.log_level: str | None = None
        """What the server is told on every new link."""
        self._link = link
        self._inflight = inflight

    def notify(self, method: str, params: dict[str, Any] | None) -> list[Effect]:
        return [Send(jsonrpc.notification(method, params), None, self._link.options(method))]

    def answer(self, asked: Asked, result: Any) -> list[Effect]:
        try:
            frame = jsonrpc.response(asked.id, result)
        except UNENCODABLE as error:
            return self.refuse(asked, INTERNAL_ERROR, f"unusable result: {error}")
        return [Send(frame, None, self._link.options(""))]

    def refuse(self, asked: Asked, code: int, message: str) -> list[Effect]:
        frame = jsonrpc.error_response(asked.id, code, message)
        return [Send(frame, None, self._link.options(""))]

    def open_conversation(self, era: Era, now: float) -> list[Effect]:
        """What a server is told once the revision is agreed, and a stream for what it says."""
        options = self._link.options("", first=True)
        out: list[Effect] = [Send(frame, None, options) for frame in era.greet()]
        if era.may_ask and (options := self._link.options("")) is not None:
            out.append(Listen(options))
        request = None if self.log_level is None else era.log_level(self.log_level)
        if request is not None:
            # Nobody waits for this answer: it is expected as a late one.
            wire_id = self._inflight.number()
            self._inflight.bury(wire_id, now)
            frame = jsonrpc.request(wire_id, request.method, request.params)
            out.append(Send(frame, wire_id, self._link.options(request.method)))
        return out
