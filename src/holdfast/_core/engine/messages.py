"""The errors that callers see: which server, which call, what happened, what to try."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast._core.boundary import Call, LinkChanged, Refused
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast._core.wire.jsonrpc import ErrorObject
from holdfast.errors import (
    BackpressureError,
    CancelledCallError,
    HandshakeTimeout,
    Hint,
    HoldfastError,
    ProtocolError,
    RequestTimeout,
    RpcError,
    ShutdownError,
    StateError,
    TransportError,
    ValidationError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from holdfast._core.engine.connection import Connection


def subject(call: Call) -> str:
    """Return the name of a call for messages."""
    return f"{call.method} {call.about!r}" if call.about else call.method


def seconds(span: float) -> str:
    return f"{span:.3g} s" if span >= 1 else f"{span * 1000:.0f} ms"


def in_all(call: Call) -> str:
    """Say which time ran out: the option that gave it, and what it was, not what was left."""
    span = call.total + call.spent
    option = call.total_name
    if option == "timeout":
        option = f"{span / call.idle:.3g} times its timeout of {seconds(call.idle)}"
    return f"not done within {seconds(span)} in all ({option})"


def timed_out(
    name: str, call: Call, *, sent: bool, total: bool, reason: HoldfastError | None = None
) -> HoldfastError:
    """Return the error of a deadline; ``reason``: how the last attempt to connect failed."""
    if not sent:
        span = call.total if total else call.idle
        why = "" if reason is None else f" (the last attempt: {reason.message})"
        waited = f"not connected within {seconds(span)}{why}; nothing was sent"
        hint = Hint("timeout", "gives it longer")
        error = RequestTimeout(f"{name}: {subject(call)}: {waited}", hints=(hint,))
        error.__cause__ = reason
        return error
    waited = in_all(call) if total else f"no answer within {seconds(call.idle)} (timeout)"
    text = f"{name}: {subject(call)}: {waited}; the server was told to stop, it may have run"
    return RequestTimeout(text, outcome_unknown=True)


def without_token(name: str, call: Call) -> HoldfastError:
    text = (
        f"no token came from the authorization server within {seconds(min(call.idle, call.total))}"
    )
    return RequestTimeout(f"{name}: {subject(call)}: {text}; nothing was sent")


def unanswered(name: str, call: Call) -> HoldfastError:
    text = f"the server's question was not answered in time: {in_all(call)}"
    return RequestTimeout(f"{name}: {subject(call)}: {text}")


def lost(name: str, call: Call, loss: HoldfastError, *, sent: bool) -> HoldfastError:
    effect = "it had been sent, so it may have run" if sent else "it had not been sent"
    return loss.again(f"{name}: {subject(call)}: {loss.message}; {effect}", outcome_unknown=sent)


def unconnected(name: str, loss: HoldfastError) -> HoldfastError:
    return loss.again(f"{name}: {loss.message}")


def refused_by_server(
    name: str, call: Call, fault: ErrorObject, unusual: Mapping[str, Raw] | None = None
) -> HoldfastError:
    message = fault.message if fault.message else "no message"
    integral = isinstance(fault.code, int) or (
        isinstance(fault.code, float) and fault.code.is_integer()
    )
    code = int(fault.code) if integral else None  # type: ignore[arg-type]
    code_text = fault.code if fault.code is not None else "without a code"
    text = f"{name}: {subject(call)}: the server answered with error {code_text}: {message}"
    lacking = _LACKING.get(call.method) if code == METHOD_NOT_FOUND else None
    hints = () if lacking is None else (Hint("", lacking),)
    return RpcError(
        text,
        code=code,
        data=fault.data,
        server_message=fault.message or "",
        unusual=unusual or {},
        hints=hints,
    )


# Some servers answer so for one tool, prompt or resource that they do not know.
_LACKING: Final = {
    "tools/list": "it offers no tools",
    "tools/call": "perhaps it offers no tools",
    "resources/list": "it offers no resources",
    "resources/templates/list": "it offers no resource templates",
    "resources/read": "perhaps it offers no resources",
    "resources/subscribe": "it offers no subscriptions",
    "resources/unsubscribe": "it offers no subscriptions",
    "subscriptions/listen": "it offers no subscriptions",
    "prompts/list": "it offers no prompts",
    "prompts/get": "perhaps it offers no prompts",
    "completion/complete": "it offers no completion",
    "logging/setLevel": "it offers no log levels",
}
"""What is said of a server that does not know a method."""


def bad_answer(name: str, call: Call, reason: str, *hints: Hint) -> HoldfastError:
    text = f"{name}: {subject(call)}: the server's answer breaks the protocol: {reason}"
    return ProtocolError(text, outcome_unknown=True, hints=hints)


def refused(name: str, call: Call, report: Refused, *, repeated: bool = False) -> HoldfastError:
    """Return the error of a request that the server, or a proxy, did not accept.

    ``repeated``: it had been sent before.
    """
    if report.fault is not None:
        return refused_by_server(name, call, report.fault)
    unknown = report.processed or repeated
    effect = "it may have run" if unknown else "it was not run"
    text = f"{name}: {subject(call)}: {report.error.message}; {effect}"
    return report.error.again(text, outcome_unknown=unknown)


def backpressure(name: str, call: Call, *, total: bool) -> HoldfastError:
    span = seconds(call.total if total else call.idle)
    text = (
        f"{name}: {subject(call)}: it could not be sent within {span}: the server is busy with "
        "what was sent before, or cannot be reached; nothing of this request was sent"
    )
    return BackpressureError(text)


def not_ready(connection: Connection, timeout: float | None) -> HoldfastError:
    """Return the error of those who waited for a connection until their time was over."""
    assert timeout is not None
    why = "" if connection.reason is None else f": {connection.reason.message}"
    waited = f"not ready within {timeout:.3g} s (it is '{connection.state}'{why})"
    return RequestTimeout(f"{connection.name}: {waited}")


def no_place(name: str, call: Call, reason: str, limit: str, span: float) -> HoldfastError:
    """Return the error of a call whose time ran out before it got a place under a limit."""
    lack = "its turn did not come" if reason == "rate" else "no place became free"
    text = f"{lack} within {seconds(span)} ({limit}); nothing was sent"
    options = (
        Hint("timeout", "gives it longer"),
        Hint(f"limits.{'rate' if reason == 'rate' else 'concurrent'}", "allows more"),
    )
    return RequestTimeout(f"{name}: {subject(call)}: {text}", hints=options)


def turned_away(name: str, call: Call, wait: float, span: float) -> HoldfastError:
    """Return the error of a call that the server wants later than its time allows."""
    text = (
        f"the server takes no calls for another {seconds(wait)}, and this one has only "
        f"{seconds(max(0.0, span))}; nothing was sent"
    )
    return BackpressureError(f"{name}: {subject(call)}: {text}", retry_in=wait)


def link_changed(name: str, call: Call, *, repeated: bool, refusals: int) -> LinkChanged:
    text = f"{name}: {subject(call)}: the connection it was checked on is gone; it was not sent"
    return LinkChanged(text, may_have_run=repeated, refusals=refusals)


def asked_before(name: str, call: Call) -> HoldfastError:
    """Return the error of answers for a server that takes none: it would begin from the start."""
    text = f"{name}: {subject(call)}: the server that asked is gone, the new one asks differently"
    return TransportError(
        f"{text}; the call had been sent, so it may have run", outcome_unknown=True
    )


def with_outcome(error: HoldfastError, call: Call, *, may_have_run: bool) -> HoldfastError:
    """Return the error that ends a call, whatever request of it failed.

    The error of a list or a login knows about its own request only.
    """
    if error.outcome_unknown == may_have_run:
        return error
    copy = error.again()
    if not may_have_run:
        copy.message = f"{error.message}; {subject(call)} was not sent"
    copy.outcome_unknown = may_have_run
    return copy


def of_task(error: HoldfastError, task_id: str) -> HoldfastError:
    """Return the error that ends a call which is a task: it leaves open what the task does.

    An error of the server's is an outcome.
    """
    copy = error.again()
    copy.task_id = task_id
    copy.outcome_unknown = error.outcome_unknown or not isinstance(error, RpcError)
    return copy


def unencodable(name: str, call: Call, error: BaseException) -> HoldfastError:
    text = f"{name}: {subject(call)}: the parameters cannot be written as JSON: {error}"
    return ValidationError(text)


def cancelled(name: str, call: Call, *, sent: bool) -> HoldfastError:
    effect = "the server was told to stop, it may have run" if sent else "nothing was sent"
    return CancelledCallError(f"{name}: {subject(call)}: cancelled; {effect}", outcome_unknown=sent)


def ended(name: str, call: Call, outcome: BaseException | None) -> HoldfastError:
    """Return the error of a cancelled call, whose outcome may have come first; None: a result."""
    if isinstance(outcome, CancelledCallError):
        return outcome
    if isinstance(outcome, LinkChanged):
        return cancelled(name, call, sent=outcome.may_have_run)
    if not isinstance(outcome, HoldfastError) or isinstance(outcome, RpcError):
        ending, unknown = "the server's answer had just come", True
    else:
        ending, unknown = f"it had just failed: {outcome.message}", outcome.outcome_unknown
    text = f"{name}: {subject(call)}: cancelled; {ending}"
    return CancelledCallError(text, outcome_unknown=unknown)


def shut(name: str, call: Call, *, sent: bool) -> HoldfastError:
    effect = "it had been sent, so it may have run" if sent else "it had not been sent"
    text = f"{name}: {subject(call)}: the client was closed; {effect}"
    return ShutdownError(text, outcome_unknown=sent)


def closed(name: str, call: Call, state: str) -> HoldfastError:
    return ShutdownError(f"{name}: {subject(call)}: the client is {state}; open a new one")


def gave_up(name: str, call: Call, reason: HoldfastError) -> HoldfastError:
    return reason.again(f"{name}: {subject(call)}: the client has given up: {reason.message}")


def down(name: str, call: Call, reason: HoldfastError | None, retry_in: float) -> HoldfastError:
    why = f" ({reason.message})" if reason else ""
    text = f"{name}: {subject(call)}: the server is down{why}; next attempt in {seconds(retry_in)}"
    hints = (*(() if reason is None else reason.hints), Hint("when_down", "waits for it", "wait"))
    error = StateError(text, state="backoff", retry_in=retry_in, hints=hints)
    error.__cause__ = reason
    return error


def slow_handshake(span: float, waiting_for: str | None) -> HoldfastError:
    """Return the error of a handshake timeout; ``waiting_for`` None: not even reached."""
    if waiting_for is None:
        return HandshakeTimeout(f"could not be reached within {seconds(span)}")
    text = (
        f"the server did not answer the handshake within {seconds(span)} (no answer to "
        f"{waiting_for})"
    )
    question = Hint("", "is it an MCP server, or does it wait for something else first?")
    return HandshakeTimeout(text, hints=(question, Hint("timeouts.handshake", "gives it longer")))


def died_of_probe(first: HoldfastError, second: HoldfastError) -> HoldfastError:
    """Return an error with the causes of both failed openings, unless they are the same."""
    if second.message in first.message:
        return second
    error = second.again(f"{second.message} (and before that: {first.message})")
    error.__cause__ = first
    return error
