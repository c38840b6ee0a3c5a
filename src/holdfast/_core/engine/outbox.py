"""Messages other than requests: notifications, answers, and what follows an agreement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Raw

from holdfast._core.boundary import Asked, Effect, OpenStream, Send, Violated
from holdfast._core.engine.inflight import NEVER, Inflight
from holdfast._core.engine.link_state import LinkState
from holdfast._core.eras.base import Era
from holdfast._core.wire import jsonrpc
from holdfast._core.wire.codes import INTERNAL_ERROR, UNENCODABLE
from holdfast.policies import jittered

ATTEMPTS: Final = 3
"""How often a message is offered to a link that is full, or to a server that is busy."""
PAUSE: Final = 0.010
"""Seconds between two attempts, more or less by `PAUSE_JITTER`."""
PAUSE_JITTER: Final = 0.5
MOST_REFUSED: Final = 100
"""The most messages queued for a link that is full."""


class Outbox:
    """Encodes messages for the current link, with the options that its streams need."""

    def __init__(self, link: LinkState, inflight: Inflight, jitter: Iterator[float]) -> None:
        self.log_level: str | None = None
        """Sent to the server on every new link."""
        self.retry_at: float = NEVER
        """The time to retry messages that the link did not accept."""
        self._link = link
        self._inflight = inflight
        self._jitter = jitter
        self._refused: list[tuple[Send, int]] = []
        """Messages that the link did not take, and how often."""
        self._offered: list[tuple[Send, int]] = []
        """Those of them that it was offered again last."""
        self._dropped = 0

    def notify(self, method: str, params: dict[str, Any] | Raw | None) -> list[Effect]:
        return [Send(jsonrpc.notification(method, params), None, self._link.options(method))]

    def answer(self, request: Asked, result: Any) -> list[Effect]:
        try:
            frame = jsonrpc.response(request.id, result)
        except UNENCODABLE as error:
            return self.refuse(request, INTERNAL_ERROR, f"unusable result: {error}")
        return [Send(frame, None, self._link.options(""))]

    def refuse(self, request: Asked, code: int, message: str, data: Any = None) -> list[Effect]:
        frame = jsonrpc.error_response(request.id, code, message, data)
        return [Send(frame, None, self._link.options(""))]

    def busy(self, command: Send, now: float, out: list[Effect]) -> None:
        """Offer a message that nobody waits for a few times in quick succession, then drop it."""
        offers = 1 + next((times for offered, times in self._offered if offered is command), 0)
        if offers < ATTEMPTS and len(self._refused) < MOST_REFUSED:
            self._refused.append((command, offers))
            self.retry_at = now + jittered(PAUSE, PAUSE_JITTER, self._jitter)
        else:
            detail = jsonrpc.snippet(command.frame)
            self._dropped += 1
            reason = "the server does not read; a message was dropped"
            out.append(Violated(reason, detail, self._dropped))

    def retry(self, out: list[Effect]) -> None:
        """Offer the messages that the link did not take again."""
        self.retry_at = NEVER
        self._offered, self._refused = self._refused, []
        out.extend(command for command, _ in self._offered)

    def forget(self) -> None:
        """Drop what was meant for a link that is gone."""
        self.retry_at = NEVER
        self._offered, self._refused = [], []

    def open_conversation(self, era: Era, now: float) -> list[Effect]:
        """Return what follows an agreement: ``initialized``, the server's own stream, log level."""
        options = self._link.options("", first=True)
        out: list[Effect] = [Send(frame, None, options) for frame in era.greet()]
        if era.may_ask and (options := self._link.options("")) is not None:
            out.append(OpenStream(options))
        request = None if self.log_level is None else era.log_level(self.log_level)
        if request is not None:
            # Nobody waits for this answer: it is expected as a late one.
            wire_id = self._inflight.number()
            self._inflight.bury(wire_id, now)
            frame = jsonrpc.request(wire_id, request.method, request.params)
            out.append(Send(frame, wire_id, self._link.options(request.method)))
        return out
