"""What callers read: the server, the call, what happened, what to try."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast._core.boundary import Call, LinkChanged
from holdfast._core.engine import messages
from holdfast._core.wire.jsonrpc import ErrorObject
from holdfast.errors import (
    BackpressureError,
    CancelledCallError,
    HandshakeTimeout,
    HoldfastError,
    ProtocolError,
    RequestTimeout,
    RpcError,
    ShutdownError,
    StateError,
    TransportError,
    ValidationError,
)
from tests.engine.rig import Rig
from tests.rows import rows

CALL = Call("tools/call", about="add", idle=5.0, total=60.0)
LOSS = TransportError("exited with code 3", exit_code=3, stderr_tail="KeyError: x")


@pytest.mark.req("E2")
@rows(
    ("error", "kind"),
    [
        (messages.timed_out("srv", CALL, sent=True, total=False), RequestTimeout),
        (messages.timed_out("srv", CALL, sent=False, total=False), RequestTimeout),
        (messages.lost("srv", CALL, LOSS, sent=True), TransportError),
        (messages.refused_by_server("srv", CALL, ErrorObject(-32000, "no")), RpcError),
        (messages.bad_answer("srv", CALL, "why"), ProtocolError),
        (messages.backpressure("srv", CALL, total=False), BackpressureError),
        (messages.no_place("srv", CALL, "rate", "5/s", 2.0), RequestTimeout),
        (messages.turned_away("srv", CALL, 9.0, 2.0), BackpressureError),
        (messages.unencodable("srv", CALL, TypeError("x")), ValidationError),
        (messages.cancelled("srv", CALL, sent=True), CancelledCallError),
        (messages.ended("srv", CALL, None), CancelledCallError),
        (messages.ended("srv", CALL, RequestTimeout("no answer")), CancelledCallError),
        (messages.shut("srv", CALL, sent=True), ShutdownError),
        (messages.closed("srv", CALL, "closed"), ShutdownError),
        (messages.gave_up("srv", CALL, LOSS), TransportError),
        (messages.down("srv", CALL, LOSS, 1.5), StateError),
    ],
    ids=lambda value: value.kind if isinstance(value, HoldfastError) else "",
)
def test_every_failed_call_names_server_and_call(
    error: HoldfastError, kind: type[HoldfastError]
) -> None:
    assert type(error) is kind
    assert error.message.startswith("srv: tools/call 'add': ")


@pytest.mark.req("R6", "R11")
@rows(
    ("outcome", "unknown"),
    [
        (None, True),
        (RpcError("no", code=-32000), True),
        (messages.lost("srv", CALL, LOSS, sent=True), True),
        (messages.lost("srv", CALL, LOSS, sent=False), False),
        (messages.cancelled("srv", CALL, sent=True), True),
        (messages.cancelled("srv", CALL, sent=False), False),
    ],
)
def test_a_cancelled_call_may_have_run_unless_its_outcome_says_otherwise(
    outcome: HoldfastError | None, unknown: bool
) -> None:
    assert messages.ended("srv", CALL, outcome).outcome_unknown is unknown


def test_a_call_without_a_subject_is_its_method() -> None:
    assert messages.subject(Call("ping")) == "ping"


@rows(
    ("span", "shown"),
    [(0.5, "500 ms"), (0.0, "0 ms"), (1.0, "1 s"), (1.25, "1.25 s"), (30, "30 s")],
)
def test_spans_are_shown_as_people_say_them(span: float, shown: str) -> None:
    assert messages.seconds(span) == shown


@pytest.mark.req("E2", "R3")
@pytest.mark.parametrize(
    ("sent", "total", "words"),
    [
        (True, False, "no answer within 5 s (timeout)"),
        (True, True, "not done within 60 s in all (Timeouts.total)"),
        (False, False, "not connected within 5 s; nothing was sent"),
        (False, True, "not connected within 60 s; nothing was sent"),
    ],
)
def test_a_timeout_says_which_clock_ran_out(sent: bool, total: bool, words: str) -> None:
    error = messages.timed_out("srv", CALL, sent=sent, total=total)
    assert words in error.message
    assert error.outcome_unknown is sent


@pytest.mark.req("E2", "R3")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (Call("x", total=9.0, total_name="total_timeout"), "9 s in all (total_timeout)"),
        (Call("x", total=3.0, spent=6.0, total_name="total_timeout"), "9 s in all (total_timeout)"),
        (
            Call("x", idle=0.0873, total=0.262, total_name="timeout"),
            "262 ms in all (3 times its timeout of 87 ms)",
        ),
        (Call("x", total=1.0, spent=299.0), "300 s in all (Timeouts.total)"),
    ],
)
def test_a_time_in_all_is_told_by_its_option_and_in_full(call: Call, words: str) -> None:
    error = messages.timed_out("s", call, sent=True, total=True)
    assert f"not done within {words}" in error.message
    assert f"not done within {words}" in messages.unanswered("s", call).message


@pytest.mark.req("E2", "R3")
def test_a_question_that_nobody_answers_in_time_is_told_as_such() -> None:
    error = messages.unanswered("srv", CALL)
    assert isinstance(error, RequestTimeout)
    assert "question was not answered in time" in error.message
    assert "60 s" in error.message


@pytest.mark.req("E2", "R11")
@pytest.mark.parametrize("sent", [True, False])
def test_a_loss_keeps_the_links_own_story_and_says_whether_it_was_sent(sent: bool) -> None:
    error = messages.lost("srv", CALL, LOSS, sent=sent)
    assert isinstance(error, TransportError)
    assert "exited with code 3" in error.message
    assert ("it had been sent" if sent else "it had not been sent") in error.message
    assert (error.exit_code, error.stderr_tail) == (3, "KeyError: x")
    assert error.outcome_unknown is sent
    assert error.__cause__ is LOSS
    assert LOSS.message == "exited with code 3", "the original is not touched"


@pytest.mark.req("E3")
@rows(
    ("fault", "code", "words"),
    [
        (ErrorObject(-32601, "nope", {"x": 1}), -32601, "error -32601: nope"),
        (ErrorObject(-32000.0, "nope"), -32000, "error -32000.0: nope"),
        (ErrorObject(1.5, "nope"), None, "error 1.5: nope"),
        (ErrorObject("E_FAIL", "nope"), None, "error E_FAIL: nope"),
        (ErrorObject(), None, "error without a code: no message"),
        (ErrorObject(0, ""), 0, "error 0: no message"),
    ],
)
def test_the_servers_error_is_passed_on(fault: ErrorObject, code: int | None, words: str) -> None:
    error = messages.refused_by_server("srv", CALL, fault)
    assert (error.code, error.data) == (code, fault.data)
    assert words in error.message
    assert not error.outcome_unknown


@pytest.mark.req("E3")
@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("prompts/list", "; it offers no prompts"),
        ("resources/read", "; perhaps it offers no resources"),
        ("logging/setLevel", "; it offers no log levels"),
        ("acme/own", "error -32601: nope"),
    ],
)
def test_a_server_without_a_method_lacks_a_feature(method: str, words: str) -> None:
    error = messages.refused_by_server("srv", Call(method), ErrorObject(-32601, "nope"))
    assert str(error).endswith(words)
    assert "offer" not in str(messages.refused_by_server("srv", Call(method), ErrorObject(0, "no")))


def test_a_bad_answer_leaves_the_outcome_open() -> None:
    assert messages.bad_answer("srv", CALL, "why").outcome_unknown


@pytest.mark.req("R7")
def test_backpressure_says_that_nothing_was_sent() -> None:
    error = messages.backpressure("srv", CALL, total=False)
    assert "could not be sent within 5 s" in error.message
    assert "nothing of this request was sent" in error.message
    assert not error.outcome_unknown


@pytest.mark.parametrize("sent", [True, False])
@pytest.mark.parametrize("word", [messages.cancelled, messages.shut])
def test_an_ended_call_says_whether_it_may_have_run(word: Any, sent: bool) -> None:
    error = word("srv", CALL, sent=sent)
    assert error.outcome_unknown is sent
    assert ("may have run" in error.message) is sent


@pytest.mark.req("L11", "E2")
def test_a_server_that_is_down_says_why_and_until_when() -> None:
    error = messages.down("srv", CALL, LOSS, 1.5)
    assert isinstance(error, StateError)
    assert (error.state, error.retry_in) == ("backoff", 1.5)
    assert "exited with code 3" in error.message
    assert "next attempt in 1.5 s" in error.message
    assert "when_down='wait'" in str(error)
    assert "when_down" not in error.message, "a setting is nothing for a language model"
    assert error.__cause__ is LOSS
    assert "(" not in messages.down("srv", CALL, None, 1.5).message


def test_giving_up_keeps_the_reason() -> None:
    error = messages.gave_up("srv", CALL, LOSS)
    assert "given up: exited with code 3" in error.message
    assert error.__cause__ is LOSS


@pytest.mark.req("L6", "E2")
def test_a_slow_handshake_says_what_was_waited_for_and_what_to_try() -> None:
    error = messages.slow_handshake(10.0, "initialize")
    assert isinstance(error, HandshakeTimeout)
    assert "within 10 s (no answer to initialize)" in error.message
    assert "Timeouts(handshake=…)" in str(error)
    assert isinstance(messages.slow_handshake(10.0, None), HandshakeTimeout)


@pytest.mark.req("L3", "E2")
def test_when_both_openings_kill_the_server_both_deaths_are_told() -> None:
    second = TransportError("exited with code 9")
    error = messages.died_of_probe(LOSS, second)
    assert "exited with code 9" in error.message
    assert "exited with code 3" in error.message
    assert error.__cause__ is LOSS
    assert messages.died_of_probe(LOSS, LOSS) is LOSS, "one death twice is told once"


@pytest.mark.req("E2")
def test_a_server_that_cannot_be_reached_is_named() -> None:
    error = messages.unconnected("srv", LOSS)
    assert error.message == "srv: exited with code 3"
    assert error.__cause__ is LOSS


@pytest.mark.req("R11")
@pytest.mark.parametrize("may_have_run", [False, True])
def test_an_error_that_is_right_about_the_call_stays_as_it_is(may_have_run: bool) -> None:
    error = TransportError("gone", outcome_unknown=may_have_run)
    assert messages.with_outcome(error, CALL, may_have_run=may_have_run) is error


@pytest.mark.req("R11")
def test_the_error_of_another_request_says_that_the_call_was_not_sent() -> None:
    error = TransportError("the list was lost", outcome_unknown=True)
    copy = messages.with_outcome(error, CALL, may_have_run=False)
    assert copy.message == "the list was lost; tools/call 'add' was not sent"
    assert (copy.outcome_unknown, error.outcome_unknown) == (False, True)


@pytest.mark.req("R11")
def test_an_attempt_that_was_not_sent_does_not_undo_one_that_was() -> None:
    copy = messages.with_outcome(TransportError("gone"), CALL, may_have_run=True)
    assert (copy.message, copy.outcome_unknown) == ("gone", True)


@pytest.mark.req("K1")
def test_the_error_of_a_task_leaves_open_what_it_does_unless_the_server_says() -> None:
    lost = messages.of_task(TransportError("gone"), "t-1")
    assert (lost.task_id, lost.outcome_unknown) == ("t-1", True)
    refused = messages.of_task(RpcError("no"), "t-1")
    assert (refused.task_id, refused.outcome_unknown) == ("t-1", False)


@pytest.mark.req("R6")
@pytest.mark.parametrize("may_have_run", [False, True])
def test_a_cancellation_that_met_a_change_of_the_link_knows_what_was_sent(
    may_have_run: bool,
) -> None:
    error = messages.ended("git", CALL, LinkChanged("changed", may_have_run=may_have_run))
    assert isinstance(error, CancelledCallError)
    assert error.outcome_unknown is may_have_run


@pytest.mark.req("E2", "S3")
@pytest.mark.parametrize(
    ("reason", "limit", "words", "option"),
    [
        ("rate", "5/s", "its turn did not come within 2 s (5/s)", "limits.rate"),
        ("concurrent", "4", "no place became free within 2 s (4)", "limits.concurrent"),
    ],
)
def test_a_call_without_a_place_names_the_limit_and_the_option_that_raises_it(
    reason: str, limit: str, words: str, option: str
) -> None:
    error = messages.no_place("srv", CALL, reason, limit, 2.0)
    assert words in error.message
    assert [hint.option for hint in error.hints] == ["timeout", option]
    assert not error.outcome_unknown


@pytest.mark.req("E2", "S3")
@pytest.mark.parametrize(("rest", "shown"), [(2.0, "only 2 s"), (-1.0, "only 0 ms")])
def test_a_call_turned_away_says_when_to_try_again(rest: float, shown: str) -> None:
    error = messages.turned_away("srv", CALL, 9.0, rest)
    assert "no calls for another 9 s" in error.message
    assert shown in error.message
    assert isinstance(error, BackpressureError)
    assert (error.retry_in, error.outcome_unknown) == (9.0, False)


@pytest.mark.req("L10")
def test_waiting_in_vain_for_a_connection_tells_its_state_and_the_last_loss() -> None:
    rig = Rig(opening="initialize")
    error = messages.not_ready(rig.engine, 2.0)
    assert error.message == "server: not ready within 2 s (it is 'new')"
    rig.open()
    rig.lose(LOSS)
    error = messages.not_ready(rig.engine, 2.0)
    assert error.message.startswith("server: not ready within 2 s (it is 'backoff': ")
    assert "exited with code 3" in error.message
