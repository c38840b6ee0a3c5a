"""The tree of errors: kinds, fields, what is printed, copies."""

from __future__ import annotations

import pickle

import pytest

from holdfast import errors
from holdfast.errors import (
    CancelledCallError,
    HandshakeTimeout,
    Hint,
    HoldfastError,
    RequestTimeout,
    ResourceNotFoundError,
    RpcError,
    StateError,
    TransportError,
)
from tests.rows import rows

KINDS = {
    "OutcomeUnknown": "unknown",
    "ApprovalError": "approval",
    "TransportError": "transport",
    "ProtocolError": "protocol",
    "RpcError": "jsonrpc",
    "ResourceNotFoundError": "jsonrpc",
    "HandshakeRefused": "jsonrpc",
    "StateError": "state",
    "CancelledCallError": "state",
    "TrustError": "trust",
    "RequestTimeout": "timeout",
    "HandshakeTimeout": "timeout",
    "ShutdownError": "shutdown",
    "ValidationError": "validation",
    "ToolError": "tool",
    "BackpressureError": "backpressure",
    "AuthError": "auth",
    "LoginRequired": "auth",
    "LoginPending": "auth",
    "LoginFailed": "auth",
    "ScopeError": "auth",
    "DiscoveryError": "auth",
    "GrantError": "auth",
    "DriftError": "drift",
}
ALL = [getattr(errors, name) for name in KINDS]


def tree(root: type[HoldfastError]) -> set[type[HoldfastError]]:
    below = root.__subclasses__()
    return set(below).union(*map(tree, below))


@pytest.mark.req("E1", "V2")
@rows(("name", "kind"), KINDS.items())
def test_every_error_has_its_kind_and_fields(name: str, kind: str) -> None:
    error = getattr(errors, name)("it broke", code=-32000, data={"why": 1}, outcome_unknown=True)
    assert isinstance(error, HoldfastError)
    assert error.kind == kind
    assert (error.message, error.code, error.data) == ("it broke", -32000, {"why": 1})
    assert error.outcome_unknown
    assert str(error) == "it broke"
    assert repr(error) == f"{name}('it broke', code=-32000)"
    assert error.args == ("it broke",)


@pytest.mark.req("E1")
@rows("cls", ALL)
def test_an_error_with_nothing_but_a_message(cls: type[HoldfastError]) -> None:
    error = cls("it broke")
    assert (error.code, error.data, error.outcome_unknown) == (None, None, False)
    assert repr(error) == f"{cls.__name__}('it broke')"


@pytest.mark.req("E1")
def test_the_tree_is_the_one_that_is_drawn() -> None:
    here = {cls for cls in tree(HoldfastError) if cls.__module__ == errors.__name__}
    assert {cls.__name__ for cls in here} == set(KINDS)
    drawing = errors.__doc__ or ""
    for cls in here:
        assert f"── {cls.__name__} " in drawing
        assert cls.kind in drawing


@pytest.mark.req("E1")
@rows("cls", ALL)
def test_timeouts_and_nothing_else_are_timeout_errors(cls: type[HoldfastError]) -> None:
    timed_out = cls.kind == "timeout" or cls is errors.LoginPending
    assert issubclass(cls, TimeoutError) is timed_out
    assert not issubclass(cls, ExceptionGroup | RuntimeError)


@pytest.mark.req("E1")
def test_the_narrower_errors_are_caught_as_the_wider_ones() -> None:
    assert issubclass(ResourceNotFoundError, RpcError)
    assert issubclass(HandshakeTimeout, RequestTimeout)
    assert issubclass(CancelledCallError, StateError)


@pytest.mark.req("E1")
@rows("cls", ALL)
def test_a_copy_is_equal_in_all_but_identity(cls: type[HoldfastError]) -> None:
    error = cls("it broke", code=7, data=[1], outcome_unknown=True)
    error.__cause__ = ValueError("deeper")
    copy = error.again()
    assert type(copy) is cls
    assert copy is not error
    assert copy.__dict__ == error.__dict__
    assert copy.args == error.args
    assert str(copy) == str(error)
    assert repr(copy) == repr(error)
    assert copy.__cause__ is error.__cause__


@pytest.mark.req("E1")
def test_a_copy_has_a_traceback_of_its_own() -> None:
    error = RequestTimeout("late")
    copy = error.again()
    with pytest.raises(RequestTimeout):
        raise copy
    assert copy.__traceback__ is not None
    assert error.__traceback__ is None
    copy.message = "changed"
    assert error.message == "late"


@pytest.mark.req("E1")
@rows("cls", ALL)
def test_an_error_survives_pickling(cls: type[HoldfastError]) -> None:
    error = cls("it broke", code=7, data=[1], outcome_unknown=True)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert copy.__dict__ == error.__dict__


@pytest.mark.req("E2")
def test_a_dead_server_is_shown_with_the_end_of_its_stderr() -> None:
    error = TransportError("exited with code 3", exit_code=3, stderr_tail="Traceback\nKeyError: x")
    assert error.exit_code == 3
    shown = "exited with code 3\n  the end of its stderr:\n    Traceback\n    KeyError: x"
    assert str(error) == shown
    assert repr(error) == "TransportError('exited with code 3')"
    assert str(error.again()) == shown


def test_a_transport_error_without_stderr_is_its_message() -> None:
    error = TransportError("gone")
    assert (error.exit_code, error.stderr_tail, str(error)) == (None, "", "gone")


@pytest.mark.req("L11")
def test_a_state_error_says_which_state_and_when_to_try_again() -> None:
    error = StateError("down", state="backoff", retry_in=1.5)
    assert (error.state, error.retry_in) == ("backoff", 1.5)
    assert (StateError("x").state, StateError("x").retry_in) == ("", None)


@pytest.mark.req("E2")
def test_an_error_said_again_keeps_its_facts_and_names_its_cause() -> None:
    first = TransportError("the server went away", exit_code=3, hints=(Hint("timeout", "helps"),))
    second = first.again("git: tools/list: the server went away", outcome_unknown=True)
    assert (second.exit_code, second.outcome_unknown, second.hints) == (3, True, first.hints)
    assert second.__cause__ is None, "a traceback would show the hint twice"
    assert TransportError("gone").again("git: gone").__cause__ is not None
    assert str(second) == "git: tools/list: the server went away; timeout=… helps"
    assert (first.message, first.outcome_unknown) == ("the server went away", False)


@pytest.mark.req("E2")
def test_a_hint_after_a_question_begins_a_sentence_of_its_own() -> None:
    hints = (Hint("", "is it one?"), Hint("timeouts.handshake", "gives it longer"))
    error = HoldfastError("no answer", hints=hints)
    assert str(error) == "no answer; is it one? Timeouts(handshake=…) gives it longer"
    assert error.explain(lambda hint: "") == "no answer"
