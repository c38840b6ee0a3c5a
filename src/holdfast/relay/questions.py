"""What a server asks: passed to the host, in whatever way the host can be asked."""

# A server of the handshake era asks by a request of its own while a call is under way, and keeps
# the call open. A host of the stateless era is asked by a *result*: its request is answered with
# ``input_required``, and it sends the request again with the answers. Between these two, the easy
# way is to run the call again when the host comes back. It would book the flight twice.
#
# So a call that is asked something is parked:
#
#   host                      relay                            server
#   tools/call ─────────────▶ begins the call ───────────────▶ tools/call
#                                                            ◀ elicitation/create
#   input_required, state S ◀ parks the call under S           (waits)
#   tools/call, S, answers ─▶ takes it up: no second call ───▶ the answer
#                                                            ◀ the result
#   the result ◀───────────── ends it
#
# Invariants:
#
# - A call is sent to the server once. A ``requestState`` of ours leads to its call or to an error,
#   never to another call; that is why it is recognised by its beginning even when it is unknown.
# - A state is random and serves once: whoever guesses could answer for somebody else, and two
#   repetitions of one request must not both wait for the same answer.
# - A parked call ends with its total time at the server's side, with the cancellation of the host's
#   repeated request, or with the host. At most `MOST_PARKED` are open: a question beyond them is
#   refused to the server. A call that has ended while it was parked waits for the host to come for
#   its result, and makes room if others need it.
#
# A question of the handshake era does not name its call. All calls here are of one host, so the
# newest that the host follows carries it: whichever brings the answer back, the server gets it. A
# question outside of any call has no way to a stateless host, and is refused.
#
# In the other three pairs nothing is parked. A handshake host is asked by a request, while its own
# stays open; the client repeats a call to a stateless server, as the specification has it. A
# stateless host and a stateless server pass rounds to each other as they are.

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from holdfast._core.eras.serving import Json
from holdfast._core.server.request import InputRequired, ServerRequest
from holdfast._core.wire.codes import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RequestError,
)
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.errors import RpcError

MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""The requests that may be answered with questions (2026-07-28 basic/patterns/mrtr)."""
MOST_PARKED: Final = 100
"""Calls of one host that wait for its answers."""
STATE: Final = "holdfast-parked-"
"""The beginning of every ``requestState`` that is made here."""

_responses = msgspec.json.Decoder(dict[str, Raw])


class Question(Struct, eq=False):
    """One question of the server, until it is answered."""

    method: str
    params: Raw
    answer: asyncio.Future[Raw]

    def shown(self) -> Json:
        """Return it as a result that asks has it."""
        return {"method": self.method, "params": self.params}

    def settle(self, answer: Raw) -> None:
        """Give the server the host's answer, unless it has one."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self, text: str, code: int = INTERNAL_ERROR) -> None:
        """Tell the server that the host is not asked, unless it has an answer."""
        if not self.answer.done():
            self.answer.set_exception(RpcError(text, code=code))


class OpenCall(Struct, eq=False):
    """A call at the server, which the host follows or which is parked."""

    work: asyncio.Future[Raw]
    began: ServerRequest
    """The request of the host that began it."""
    request: ServerRequest
    """The request of the host that follows it now, or did last: it gets the progress."""
    questions: dict[str, Question]
    """Unanswered questions, by their keys among those of this call."""
    news: asyncio.Future[None]
    """Settled when there is a question for the host."""
    count: int = 0

    def add(self, question: Question) -> str:
        """Ask the host one more question; return its key."""
        self.count += 1
        key = f"question-{self.count}"
        self.questions[key] = question
        if not self.news.done():
            self.news.set_result(None)
        return key

    def is_same(self, request: ServerRequest) -> bool:
        """Return whether a request repeats the one that began this call."""
        before = self.request
        same = all(before.get(name) == request.get(name) for name in ("name", "uri"))
        return same and before.method == request.method


class Questions:
    """The calls of a stateless host, and what they are asked."""

    def __init__(self) -> None:
        self._open: list[OpenCall] = []
        """Calls under way, the newest last."""
        self._parked: dict[str, OpenCall] = {}

    def __repr__(self) -> str:
        return f"<Questions {len(self._open)} open, {len(self._parked)} parked>"

    # The host's side

    async def begin(self, request: ServerRequest, work: Coroutine[Any, Any, Raw]) -> Raw:
        """Do the work of a request; return its result.

        Raises:
            InputRequired: The server asks something meanwhile; the work goes on.
        """
        call = self.take(request, asyncio.get_running_loop().create_task(work))
        return await self.follow(call)

    def take(self, request: ServerRequest, work: asyncio.Future[Raw]) -> OpenCall:
        """Take a call that is at the server: it may be asked something, and parked."""
        news = asyncio.get_running_loop().create_future()
        call = OpenCall(work, request, request, {}, news)
        self._open.append(call)
        work.add_done_callback(lambda _: self._ended(call))
        return call

    def _ended(self, call: OpenCall) -> None:
        self._open.remove(call)
        if not call.work.cancelled():
            call.work.exception()  # seen: the host may never come for it
        if not self._open:
            # No call is left whose question it could be; the server may not withdraw it.
            for parked in self._parked.values():
                for question in parked.questions.values():
                    self._place(question)

    async def resume(self, request: ServerRequest, state: str) -> Raw:
        """Take up the parked call that a repeated request is about, and give it the answers."""
        call = self._parked.get(state)
        if call is None or not call.is_same(request):
            text = "requestState is of no call that waits: it has ended, or was taken up already"
            data = {"kind": "state", "outcomeUnknown": call is None}
            raise RequestError(INVALID_PARAMS, text, data)
        answers = _answers(request)
        del self._parked[state]
        call.request = request
        for key in list(call.questions):
            if key in answers:
                call.questions.pop(key).settle(answers[key])
        call.news = asyncio.get_running_loop().create_future()
        if call.questions and not call.work.done():
            # Left out by the host: asked again.
            call.news.set_result(None)
        return await self.follow(call)

    async def follow(self, call: OpenCall) -> Raw:
        """Wait for the result of a call, or for a question.

        Raises:
            InputRequired: The server asks something meanwhile; the work goes on.
        """
        try:
            ends: list[asyncio.Future[Any]] = [call.work, call.news]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as cancelled:
            call.work.cancel(*cancelled.args)
            raise
        if call.work.done():
            for question in call.questions.values():
                # It cannot have been this call's: another may carry it.
                self._place(question)
            return await call.work
        state = STATE + secrets.token_urlsafe(24)
        self._make_room()
        self._parked[state] = call
        requests = {key: question.shown() for key, question in call.questions.items()}
        raise InputRequired(requests, state)

    def following(self, request: ServerRequest) -> ServerRequest:
        """Return the request that follows now the call which a request began."""
        for call in self._open:
            if call.began is request:
                return call.request
        return request

    def close(self) -> None:
        """End every call: the host is gone."""
        for call in (*self._open, *self._parked.values()):
            call.work.cancel()
            for question in call.questions.values():
                question.refuse(f"{question.method}: the client is gone")
        self._parked.clear()

    # The server's side

    async def ask(self, method: str, params: Raw) -> Raw:
        """Ask the host, by the newest call that is open.

        Raises:
            RpcError: It cannot be asked.
        """
        question = Question(method, params, asyncio.get_running_loop().create_future())
        self._place(question)
        try:
            return await question.answer
        finally:
            # Answered, or withdrawn by the server.
            for call in (*self._open, *self._parked.values()):
                for key, pending in list(call.questions.items()):
                    if pending is question:
                        del call.questions[key]

    def _place(self, question: Question) -> None:
        """Give a question to a call that is open; refuse it if there is none."""
        if question.answer.done():
            return
        if not self._open:
            text = f"{question.method}: no call is open that could carry it to the client"
            question.refuse(text, METHOD_NOT_FOUND)
            return
        # One that the host follows can be asked at once; a parked one when it comes back.
        followed = [call for call in self._open if not call.news.done()]
        call = (followed or self._open)[-1]
        capability = question.method.partition("/")[0]
        waiting = sum(not parked.work.done() for parked in self._parked.values())
        if capability not in call.request.era.capabilities:
            question.refuse(f"the client does not offer {question.method}", METHOD_NOT_FOUND)
        elif waiting >= MOST_PARKED and call not in self._parked.values():
            text = f"{question.method}: {MOST_PARKED} calls wait for the client's answers already"
            question.refuse(text)
        else:
            call.add(question)

    def _make_room(self) -> None:
        """Forget the oldest call that ended while it was parked, if there are too many."""
        while len(self._parked) >= MOST_PARKED:
            ended = [state for state, call in self._parked.items() if call.work.done()]
            if not ended:
                return
            del self._parked[ended[0]]


def _answers(request: ServerRequest) -> dict[str, Raw]:
    """Return the answers of a repeated request, as they came."""
    try:
        fields = _responses.decode(request.params_raw)
        return _responses.decode(fields.get("inputResponses", Raw(b"{}")))
    except MALFORMED as error:
        raise RequestError(INVALID_PARAMS, f"inputResponses must be an object: {error}") from None
