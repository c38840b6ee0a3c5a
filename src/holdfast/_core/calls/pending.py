"""A call that waits for its caller's answers: stored, read again, and resumed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from holdfast._core.calls.inputs import accepted
from holdfast._core.eras.base import NeedsInput
from holdfast.errors import ValidationError
from holdfast.types.content import TextContent
from holdfast.types.tools import ResultNotes, ToolResult


class PendingCall(Struct, frozen=True):
    """A tool call that the server answered with questions.

    ``msgspec.json.encode`` stores it, ``msgspec.json.decode(…, type=PendingCall)`` reads it.

    Attributes:
        tool: The tool's name.
        arguments: The arguments of the call.
        questions: The questions by key, each with ``method`` and ``params``.
        request_state: The server's own state as JSON text, which goes back to it unchanged.
    """

    tool: str
    arguments: dict[str, Any]
    questions: dict[str, Any]
    request_state: str | None = None


def pending_result(name: str, arguments: Mapping[str, Any], reading: NeedsInput) -> ToolResult:
    """Return the result of a call that waits for its caller's answers."""
    questions = {key: msgspec.json.decode(raw) for key, raw in reading.requests.items()}
    state = None if reading.state is None else bytes(reading.state).decode()
    content: list[Any] = []
    for question in questions.values():
        params = question.get("params") if isinstance(question, dict) else None
        message = params.get("message") if isinstance(params, dict) else None
        text = f"The server asks: {message or 'a question without a text'}"
        content.append(TextContent(text=text))
    result = ToolResult(content=content, result_type="input_required")
    result._notes = ResultNotes(pending=PendingCall(name, dict(arguments), questions, state))
    return result


def answer_params(server: str, pending: PendingCall, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that carry the answers.

    Specification 2026-07-28, "Multi Round-Trip Requests": the request is sent again with
    ``inputResponses``, and with ``requestState`` exactly as it came.
    """
    missing = [key for key in pending.questions if key not in answers]
    unknown = [key for key in answers if key not in pending.questions]
    if missing or unknown:
        wrong = f"no answer to {missing}" if missing else f"no question {unknown}"
        text = f"{server}: tools/call {pending.tool!r}: {wrong}; nothing was sent"
        raise ValidationError(text)
    params: dict[str, Any] = {}
    if answers:
        params["inputResponses"] = {key: accepted(value) for key, value in answers.items()}
    if pending.request_state is not None:
        params["requestState"] = Raw(pending.request_state.encode())
    return params
