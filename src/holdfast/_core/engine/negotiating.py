"""One run of the negotiation over one link: turns become messages and timers."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from holdfast._core.boundary import Effect, RefusalReason, Refused, Send, WireId
from holdfast._core.engine.inflight import NEVER, Inflight
from holdfast._core.eras.conversation import (
    Agreement,
    Conversation,
    Heard,
    NoAgreement,
    Plan,
    Reply,
    Silence,
    StartAgain,
    Turn,
)
from holdfast._core.eras.negotiation import DISCOVER, negotiate
from holdfast._core.wire import jsonrpc

_ANSWERS: Final = frozenset(
    {RefusalReason.NO_SUCH_SESSION, RefusalReason.NOT_UNDERSTOOD, RefusalReason.REJECTED}
)
"""Refusals that say something about the request rather than about who sent it, or when."""


class Negotiator:
    """Gives answers to the negotiation and sends the requests that it yields."""

    def __init__(self, plan: Plan, inflight: Inflight) -> None:
        self.plan = plan
        self.questions: dict[WireId, str] = {}
        """Requests without an answer yet."""
        self.answered: bool = False
        """The server has answered something."""
        self.refused: str = ""
        """The last refusal, for the error if the negotiation fails."""
        self.check_at: float = NEVER
        """The deadline of the wait for an answer."""
        self._inflight = inflight
        self._anonymous: jsonrpc.Envelope | None = None
        """An error without an id."""
        self._conversation: Conversation = negotiate(plan)

    def __repr__(self) -> str:
        return f"<Negotiator waiting for {self.waiting_for}>"

    @property
    def waiting_for(self) -> str:
        waiting = " and ".join(self.questions.values()) or "anything"
        return f"{waiting}; {self.refused}" if self.refused else waiting

    def begin(self, now: float, out: list[Effect]) -> None:
        self._take(next(self._conversation), now, out)

    def question(self, wire_id: object) -> WireId | None:
        """Return the request that an answer is for."""
        return next((question for question in self.questions if question == wire_id), None)

    def anonymous(self, message: jsonrpc.Envelope, now: float) -> bool:
        """Keep an error without an id, in case that no better answer follows.

        JSON-RPC 2.0 section 5: the id is null if it could not be read in the request. It may
        as well be meant for something else, such as a notification, so it ends nothing at once.
        """
        if len(self.questions) != 1 or message.error is UNSET:
            return False
        self._anonymous = message
        self.check_at = min(self.check_at, now + self.plan.patience)
        return True

    def answer(self, wire_id: WireId, message: jsonrpc.Envelope) -> Reply:
        """Note an answer to one of the questions; return it as the conversation hears it."""
        self.answered = True
        method = self.questions.pop(wire_id)
        raw_error = message.error
        failed = raw_error is not UNSET and bytes(raw_error) != b"null"
        if message.result is not UNSET and not failed:
            return Reply(method, result=message.result)
        fault = None if raw_error is UNSET else jsonrpc.decode_error_object(raw_error)
        fault = fault or jsonrpc.ErrorObject()
        self.refused = f"{method} was refused with error {fault.code}: {fault.message}"
        return Reply(method, fault=fault)

    def can_go_on(self, report: Refused) -> bool:
        """Return True if a refusal is about the request; others end the attempt."""
        if report.reason is RefusalReason.CRASHED:
            # Some servers break over a method that they do not know.
            unsure = self.plan.opening is None and self.plan.pin is None
            return unsure and self.questions[report.wire_id] == DISCOVER
        return report.reason in _ANSWERS

    def refusal(self, report: Refused) -> Reply:
        """Note a refusal below the protocol; return it as the conversation hears it."""
        self.answered = True
        method = self.questions.pop(report.wire_id)
        fault = report.fault or jsonrpc.ErrorObject(
            code=report.error.code, message=report.error.message
        )
        return Reply(method, fault=fault, reason=report.reason)

    def silence(self, *, unread: bool) -> Heard:
        """Return what is to be heard after a time without an answer."""
        message, self._anonymous = self._anonymous, None
        if message is not None and len(self.questions) == 1:
            return self.answer(next(iter(self.questions)), message)
        return Silence(unread)

    def feed(
        self, heard: Heard, now: float, out: list[Effect]
    ) -> Agreement | StartAgain | NoAgreement | None:
        """Go on with the conversation; return how it ended, or None if it goes on."""
        try:
            self._take(self._conversation.send(heard), now, out)
        except StopIteration as done:
            self.check_at = NEVER
            agreement: Agreement = done.value
            return agreement
        except (StartAgain, NoAgreement) as ending:
            return ending
        return None

    def _take(self, turn: Turn, now: float, out: list[Effect]) -> None:
        for request in turn.requests:
            wire_id = self._inflight.number()
            self.questions[wire_id] = request.method
            options = request.options if self.plan.streams else None
            out.append(
                Send(jsonrpc.request(wire_id, request.method, request.params), wire_id, options)
            )
        self.check_at = NEVER if turn.patience is None else now + turn.patience
