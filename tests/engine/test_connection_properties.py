"""What holds for every connection, whatever happens to it and in whatever order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast._core.boundary import (
    Busy,
    CheckRead,
    Completed,
    Delivered,
    Drained,
    Effect,
    Failed,
    Generation,
    Lost,
    Moved,
    Opened,
    ReadChecked,
    Report,
    Retract,
    Send,
    WireId,
)
from holdfast._core.engine.inflight import NEVER
from holdfast.errors import HoldfastError, TransportError
from holdfast.policies import Backoff, Policy
from tests.engine.rig import DISCOVERED, INITIALIZED, Rig, frames, only, ready, refusal, unsupported

MOST = 50
"""Requests at once."""


# The three promises


class Delivery:
    """What the network does with one answer."""

    def __init__(self, copies: int, fails: bool) -> None:
        self.copies, self.fails = copies, fails

    def __repr__(self) -> str:
        return f"Delivery({self.copies} copies, fails={self.fails})"


deliveries = st.builds(Delivery, st.sampled_from([0, 1, 1, 1, 2, 3]), st.booleans())


@st.composite
def traffic(draw: st.DrawFn) -> tuple[list[Delivery], list[int]]:
    """Up to fifty requests, and the order in which the copies of their answers arrive."""
    plan = draw(st.lists(deliveries, min_size=1, max_size=MOST))
    arrivals = [index for index, one in enumerate(plan) for _ in range(one.copies)]
    return plan, draw(st.permutations(arrivals))


@pytest.mark.req("V1", "R2")
@given(traffic(), st.sampled_from(["wait", "lose", "close"]), st.floats(0, 0.1))
def test_every_request_has_exactly_one_outcome_whatever_becomes_of_the_answers(
    traffic: tuple[list[Delivery], list[int]], ending: str, window: float
) -> None:
    """Reordered, doubled, lost, within a hundred milliseconds or never."""
    plan, arrivals = traffic
    rig = ready()
    asked = [rig.request() for _ in plan]
    for step, index in enumerate(arrivals):
        rig.at(window * step / len(arrivals))
        wire_id = asked[index][1]
        rig.answer(wire_id, refusal(-32000) if plan[index].fails else {"result": {"of": wire_id}})
    {"wait": lambda: rig.at(30.0), "lose": rig.lose, "close": rig.close}[ending]()
    for (ticket, wire_id), delivery in zip(asked, plan, strict=True):
        outcome = rig.outcome(ticket)
        if delivery.copies and not delivery.fails:
            assert rig.result(ticket) == {"of": wire_id}
        elif delivery.copies:
            assert rig.error(ticket).kind == "jsonrpc"
        else:
            kinds = {"wait": "timeout", "lose": "transport", "close": "shutdown"}
            assert isinstance(outcome, Failed)
            assert rig.error(ticket).kind == kinds[ending]
    assert rig.open_tickets() == set()


@pytest.mark.req("V1", "R5")
@given(
    st.lists(
        st.tuples(st.floats(0.1, 60), st.sampled_from(["answer", "late", "never", "cancel"])),
        max_size=MOST,
    )
)
def test_nothing_is_left_behind_by_timeouts(requests: list[tuple[float, str]]) -> None:
    rig = ready()
    late = []
    for idle, fate in requests:
        ticket, wire_id = rig.request(idle=idle)
        if fate == "answer":
            rig.answer(wire_id)
        elif fate == "cancel":
            rig.cancel(ticket)
        elif fate == "late":
            late.append(wire_id)
    rig.at(60.0)
    assert len(rig.engine.inflight) == 0
    unanswered = sum(fate != "answer" for _, fate in requests)
    assert rig.engine.inflight.tombstones <= unanswered
    for wire_id in late:
        assert rig.answer(wire_id) == []
    assert rig.violations() == []
    # The last was buried at 60 s; it lives for 75 s and is swept within a minute after.
    rig.at(60.0 + 75.0 + 60.0)
    assert rig.engine.inflight.tombstones == 0
    assert rig.engine.due == NEVER


@pytest.mark.req("V1", "R6")
@given(st.integers(1, 10), st.data())
def test_cancelling_up_to_ten_times_is_cancelling_once(times: int, data: st.DataObject) -> None:
    """At any moment: before it is sent, while it waits, after it was answered."""
    rig = Rig(opening="initialize")
    ticket = rig.call()
    moments = sorted(data.draw(st.lists(st.integers(0, 4), min_size=times, max_size=times)))
    script: list[Callable[[], object]] = [
        rig.opened,
        lambda: rig.answer(1, INITIALIZED),
        lambda: rig.answer(2),
        lambda: rig.answer(2),
    ]
    for moment in range(5):
        for _ in range(moments.count(moment)):
            rig.cancel(ticket)
        if moment < len(script):
            script[moment]()
    assert len(rig.outcomes[ticket]) == 1
    # The server is told once if it had the request and had not answered, else never.
    told = [json.loads(one.frame or b"{}") for one in only(rig.effects, Retract)]
    assert [one["params"]["requestId"] for one in told] == [2] * (moments[0] == 2)
    assert isinstance(rig.outcome(ticket), Failed) is (moments[0] <= 2)


# Anything, in any order


@settings(stateful_step_count=60)
class Life(RuleBasedStateMachine):
    """A connection under everything that callers, servers and links can do."""

    def __init__(self) -> None:
        super().__init__()
        policy = Policy(replay="safe", backoff=Backoff(attempts=20))
        self.rig = Rig(policy=policy)
        self.waiting: list[ReadChecked] = []
        """Soundings that are not answered yet, those of older links among them."""
        self.seen = self.last_id = 0

    @initialize(begun=st.sampled_from(["not yet", "handshake", "stateless", "stateless"]))
    def begin(self, begun: str) -> None:
        if begun != "not yet":
            self.rig.open()
            self.settle(begun)

    def settle(self, era: str) -> None:
        """A link that opens and a server that answers as it should."""
        self.take(self.rig.opened())
        while self.rig.state == "initializing":
            negotiator = self.rig.engine.link.negotiator
            assert negotiator is not None
            wire_id, method = list(negotiator.questions.items())[-1]
            modern = DISCOVERED if era == "stateless" else refusal(-32601)
            self.take(self.rig.answer(wire_id, INITIALIZED if method == "initialize" else modern))

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, CheckRead):
                # The driver answers a sounding later, when other things may have happened.
                self.waiting.append(ReadChecked(self.rig.engine.link.generation, False))

    # Callers

    @rule()
    def open(self) -> None:
        try:
            self.take(self.rig.open())
        except HoldfastError:
            assert self.rig.state in ("closing", "closed")

    @rule(
        idle=st.floats(0.01, 40),
        total=st.floats(0.01, 100),
        wait=st.sampled_from([None, True, False]),
        repeatable=st.booleans(),
        lasting=st.sampled_from([False, False, True]),
        good=st.sampled_from([True, True, True, False]),
    )
    def call(self, good: bool, **options: Any) -> None:
        if len(self.rig.open_tickets()) >= MOST:
            return
        before = len(self.rig.engine.inflight)
        params = {} if good else {"x": object()}
        try:
            self.rig.call("tools/call", params=params, **options)
        except HoldfastError:
            assert self.rig.state in ("backoff", "closing", "closed")
            assert len(self.rig.engine.inflight) == before

    @rule(data=st.data(), times=st.integers(1, 3))
    def cancel(self, data: st.DataObject, times: int) -> None:
        if self.rig.outcomes:
            ticket = data.draw(st.sampled_from(sorted(self.rig.outcomes)))
            for _ in range(times):
                self.rig.cancel(ticket)
            assert self.rig.outcomes[ticket]

    @rule()
    def notify(self) -> None:
        effects = self.rig.engine.notify("notifications/roots/list_changed")
        assert not effects or self.rig.state == "ready"

    @rule(odds=st.integers(0, 9))
    def close(self, odds: int) -> None:
        if odds:
            return
        self.rig.close()
        assert self.rig.open_tickets() == set()

    # Servers

    @precondition(lambda self: self.rig.wire_ids)
    @rule(
        data=st.data(),
        reply=st.sampled_from([{"result": {}}, {"result": []}, refusal(-32603), {}]),
        copies=st.integers(1, 2),
    )
    def answer(self, data: st.DataObject, reply: dict[str, Any], copies: int) -> None:
        """In time, late, doubled, of another link: the ids do not turn."""
        wire_id = data.draw(st.sampled_from(self.rig.wire_ids))
        self.rig.deliver(*[{"id": wire_id, **reply}] * copies)

    @rule(
        message=st.sampled_from(
            [
                b"junk",
                b"",
                {"id": 9999, "result": {}},
                {"id": 5, "method": "ping"},
                {"id": "q", "method": "roots/list"},
                {"method": "notifications/message"},
                {"method": "notifications/cancelled", "params": {"requestId": 3}},
                {"method": "notifications/progress", "params": {"progressToken": 3, "progress": 1}},
                {"id": None, "error": {"code": -32700, "message": "what?"}},
            ]
        )
    )
    def say(self, message: object) -> None:
        self.take(self.rig.deliver(message))

    @precondition(lambda self: self.rig.state == "initializing")
    @rule(
        data=st.data(),
        reply=st.sampled_from(
            [
                INITIALIZED,
                DISCOVERED,
                refusal(-32601),
                unsupported("2025-06-18"),
                unsupported("2026-07-28"),
                {"result": {}},
                {},
            ]
        ),
    )
    def greet(self, data: st.DataObject, reply: dict[str, Any]) -> None:
        negotiator = self.rig.engine.link.negotiator
        assert negotiator is not None
        assert negotiator.questions, "a handshake that waits for nothing"
        wire_id = data.draw(st.sampled_from(sorted(negotiator.questions)))
        self.take(self.rig.answer(wire_id, reply))

    # Links

    @rule()
    def opened(self) -> None:
        self.take(self.rig.opened())

    @precondition(lambda self: self.rig.state == "ready" and self.rig.wire_ids)
    @rule(data=st.data())
    def busy(self, data: st.DataObject) -> None:
        wire_id = data.draw(st.sampled_from(self.rig.wire_ids[-5:]))
        self.rig.busy(WireId(wire_id))

    @precondition(lambda self: self.rig.state in ("backoff", "starting", "initializing"))
    @rule(era=st.sampled_from(["handshake", "stateless"]))
    def come_back(self, era: str) -> None:
        while self.rig.state == "backoff":
            self.take(self.rig.at(self.rig.engine.due))
        self.settle(era)

    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        sent = [one.wire_id for one in self.rig.engine.inflight if one.wire_id is not None]
        unsent = data.draw(st.sets(st.sampled_from(sent))) if sent else set()
        error = TransportError("the link was lost")
        self.rig.lose(error, frozenset(unsent))

    @rule()
    def drained(self) -> None:
        self.rig.drained()

    @precondition(lambda self: self.waiting)
    @rule(unread=st.booleans())
    def sounded(self, unread: bool) -> None:
        report = self.waiting.pop(0)
        self.take(self.rig.report(ReadChecked(report.generation, unread)))

    @rule(age=st.integers(1, 3))
    def report_of_another_link(self, age: int) -> None:
        engine = self.rig.engine
        other = Generation(engine.link.generation - age)
        wire_id = WireId(self.rig.wire_ids[-1] if self.rig.wire_ids else 1)
        before = repr(engine)
        reports: list[Report] = [
            Opened(other),
            Delivered(other, b'{"id":%d,"result":{}}\n' % wire_id),
            Busy(other, Send(b"", wire_id)),
            Lost(other, TransportError("old")),
            ReadChecked(other, False),
            Drained(other),
        ]
        for report in reports:
            assert self.rig.report(report) == []
        assert repr(engine) == before

    # Time

    @rule(seconds=st.floats(0, 50))
    def time_passes(self, seconds: float) -> None:
        """Every timer rings at its moment."""
        self.take(self.rig.wait(seconds))

    @rule(seconds=st.floats(0, 50))
    def time_jumps(self, seconds: float) -> None:
        """The loop was blocked, or the machine asleep: all that is due comes at once."""
        self.rig.now += seconds
        self.take(self.rig.tick())

    # What always holds

    @invariant()
    def every_ticket_is_open_or_has_one_outcome(self) -> None:
        rig = self.rig
        assert len(rig.engine.inflight) == len(rig.open_tickets())
        assert all(len(found) <= 1 for found in rig.outcomes.values())

    @invariant()
    def wire_ids_rise(self) -> None:
        fresh, self.seen = self.rig.effects[self.seen :], len(self.rig.effects)
        for frame in frames(fresh):
            if "id" in frame and "method" in frame:
                assert frame["id"] > self.last_id
                self.last_id = frame["id"]

    @invariant()
    def the_timer_covers_every_deadline(self) -> None:
        engine = self.rig.engine
        assert engine.due <= engine.inflight.deadline()
        if engine.state in ("starting", "initializing", "backoff"):
            assert engine.due < NEVER, "nothing would ever wake it"

    @invariant()
    def only_a_ready_link_carries_requests(self) -> None:
        carried = [one for one in self.rig.engine.inflight if one.wire_id is not None]
        assert not carried or self.rig.state == "ready"

    @invariant()
    def after_the_close_there_is_nothing_under_way(self) -> None:
        if self.rig.state in ("closing", "closed"):
            assert len(self.rig.engine.inflight) == 0

    def teardown(self) -> None:
        """However it went: it can be closed, and then nothing moves but the state."""
        rig = self.rig
        rig.close()
        mark = len(rig.effects)
        rig.tick()
        rig.at(rig.now + 1000.0)
        rig.drained()
        assert rig.state == "closed"
        assert rig.open_tickets() == set()
        assert all(isinstance(effect, Moved) for effect in rig.effects[mark:])
        assert rig.engine.due == NEVER
        assert rig.engine.inflight.tombstones == 0
        self.no_request_was_sent_too_often()

    def no_request_was_sent_too_often(self) -> None:
        """Once, or as often as a busy link gave it back, and once more if that was harmless."""
        outcomes = sum(isinstance(effect, Completed | Failed) for effect in self.rig.effects)
        assert outcomes == len(self.rig.outcomes)
        sends = [effect for effect in only(self.rig.effects, Send) if effect.wire_id is not None]
        assert len(sends) == len({send.wire_id for send in sends})


TestLife = pytest.mark.req("V1", "R2", "L1", "L9")(Life.TestCase)
