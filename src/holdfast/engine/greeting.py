"""One run of the negotiation over one link: the conversation's turns as frames and timers."""

from __future__ import annotations

from msgspec import UNSET

from holdfast.boundary import Effect, Send, WireId
from holdfast.engine.inflight import NEVER, Inflight
from holdfast.eras.negotiation import (
    Agreement,
    Answer,
    Conversation,
    Heard,
    Plan,
    Say,
    Silence,
    negotiate,
)
from holdfast.wire import jsonrpc


class Greeting:
    """Feeds what is heard to the conversation and says what it wants said."""

    def __init__(self, plan: Plan, inflight: Inflight) -> None:
        self.plan = plan
        self.asked: dict[WireId, str] = {}
        """Requests without an answer yet."""
        self.answered = False
        """The server has said something to us."""
        self.sound_at = NEVER
        """When patience runs out."""
        self._inflight = inflight
        self._conversation: Conversation = negotiate(plan)

    def __repr__(self) -> str:
        return f"<Greeting waiting for {self.waiting_for}>"

    @property
    def waiting_for(self) -> str:
        return " and ".join(self.asked.values()) or "anything"

    def begin(self, now: float, out: list[Effect]) -> None:
        self._take(next(self._conversation), now, out)

    def question(self, wire_id: object) -> WireId | None:
        """The request that this answer is for. An error without an id answers the only one."""
        if wire_id is None and len(self.asked) == 1:
            return next(iter(self.asked))
        return next((asked for asked in self.asked if asked == wire_id), None)

    def hear(
        self, wire_id: WireId, message: jsonrpc.Message, now: float, out: list[Effect]
    ) -> Agreement | None:
        """An answer came; the agreement if that settles it."""
        self.answered = True
        method = self.asked.pop(wire_id)
        if message.result is not UNSET and message.error is UNSET:
            return self._feed(Answer(method, result=message.result), now, out)
        raw = message.error
        fault = None if raw is UNSET else jsonrpc.decode_fault(raw)
        return self._feed(Answer(method, fault=fault or jsonrpc.Fault()), now, out)

    def silence(self, unread: bool, now: float, out: list[Effect]) -> Agreement | None:
        return self._feed(Silence(unread), now, out)

    def _feed(self, heard: Heard, now: float, out: list[Effect]) -> Agreement | None:
        try:
            self._take(self._conversation.send(heard), now, out)
        except StopIteration as done:
            self.sound_at = NEVER
            agreement: Agreement = done.value
            return agreement
        return None

    def _take(self, say: Say, now: float, out: list[Effect]) -> None:
        for wish in say.wishes:
            wire_id = self._inflight.number()
            self.asked[wire_id] = wish.method
            out.append(Send(jsonrpc.request(wire_id, wish.method, wish.params)))
        self.sound_at = NEVER if say.patience is None else now + say.patience
