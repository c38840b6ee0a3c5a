"""Questions of a server to the person in front of a live page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast._core.calls.handlers import Handlers
from holdfast._core.redact.known import KNOWN
from holdfast.errors import HoldfastError
from holdfast.schema.faults import SchemaFault, Unusable
from holdfast.schema.validate import Checker
from holdfast.types.inputs import SamplingRequest, UrlElicitation

if TYPE_CHECKING:
    from holdfast.types.inputs import AnyElicitation

MOST: Final = 32
"""Questions that wait for an answer; more are cancelled at once."""
LONGEST_MESSAGES: Final = 100_000
"""Characters of a conversation, for which a model's answer is asked, that are shown."""


class DeclinedError(HoldfastError):
    """The person did not want to answer in the place of a model."""


class PageQuestion(msgspec.Struct):
    """One question, and the answer that is waited for."""

    number: int
    server: str
    kind: str
    """``form``, ``url`` or ``sampling``."""
    message: str
    answer: asyncio.Future[dict[str, Any]]
    schema: dict[str, Any] = {}
    url: str = ""

    def shown(self) -> dict[str, Any]:
        """Return what the page shows: without secrets, except in a URL that is to be opened."""
        facts = {"number": self.number, "server": self.server, "kind": self.kind}
        texts = KNOWN.hide_in({"message": self.message, "schema": self.schema})
        return {**facts, **texts, "url": self.url}


class PageQuestions:
    """The questions that wait, of all servers; ``changed`` is called when they are others."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._open: dict[int, PageQuestion] = {}
        self._count = 0
        self.version = 0
        """Another one whenever the questions are others."""

    def handlers(self, server: Callable[[], str]) -> Handlers:
        """Return the handlers of one client; its name is known later than they are needed."""

        async def elicitation(request: AnyElicitation) -> dict[str, Any]:
            if isinstance(request, UrlElicitation):
                return await self._ask(server(), "url", request.message, url=request.url)
            schema = request.requested_schema
            return await self._ask(server(), "form", request.message, schema=schema)

        async def sampling(request: SamplingRequest) -> str:
            answer = await self._ask(server(), "sampling", _conversation(request))
            if answer["action"] != "accept":
                raise DeclinedError("the person at the page does not answer for a model")
            return str((answer.get("content") or {}).get("text", ""))

        return Handlers(elicitation=elicitation, sampling=sampling)

    def shown(self) -> list[dict[str, Any]]:
        """Return all that wait, the oldest first."""
        return [question.shown() for question in self._open.values()]

    def answer(self, number: int, action: str, content: Any) -> tuple[SchemaFault, ...] | None:
        """Answer a question; return what does not fit its form, None if it waits no more.

        An answer with faults answers nothing: the person corrects it.
        """
        question = self._open.get(number)
        if question is None or question.answer.done():
            return None
        if action != "accept":
            question.answer.set_result({"action": action})
            return ()
        faults = _faults(question.schema, content) if question.kind == "form" else ()
        if not faults:
            answer = {"action": "accept"} if question.kind == "url" else {"content": content}
            question.answer.set_result({"action": "accept", **answer})
        return faults

    async def _ask(self, server: str, kind: str, message: str, **fields: Any) -> dict[str, Any]:
        if len(self._open) >= MOST:
            return {"action": "cancel"}
        self._count += 1
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        question = PageQuestion(self._count, server, kind, message, answer, **fields)
        self._open[question.number] = question
        self._tell()
        try:
            return await answer
        finally:
            # Answered, or withdrawn: the call was cancelled, or ran out of time.
            del self._open[question.number]
            self._tell()

    def _tell(self) -> None:
        self.version += 1
        self._changed()


def _faults(schema: dict[str, Any], content: Any) -> tuple[SchemaFault, ...]:
    try:
        return Checker(schema).faults(content)
    except Unusable:
        return ()


def _conversation(request: SamplingRequest) -> str:
    """Return what a model would be asked, as text."""
    parts = [f"system: {request.system_prompt}"] if request.system_prompt else []
    parts += [f"{message.role}: {message.text}" for message in request.messages]
    return "\n\n".join(parts)[:LONGEST_MESSAGES]
