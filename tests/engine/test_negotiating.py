"""The negotiation over one link: frames, timers, and whose answer is whose."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast._core.boundary import Effect, Send, WireId
from holdfast._core.engine.inflight import NEVER, Inflight
from holdfast._core.engine.negotiating import Negotiator
from holdfast._core.eras.conversation import Agreement, NoAgreement, Plan, StartAgain
from holdfast._core.wire.jsonrpc import Envelope
from holdfast.policies import Identity
from tests.engine.rig import DISCOVERED, INITIALIZED, MISSING, Json, Rig, frames, line
from tests.rows import rows

_message = msgspec.json.Decoder(Envelope)


class Bench:
    def __init__(self, **plan: Any) -> None:
        self.inflight = Inflight(75.0, 100)
        self.negotiator = Negotiator(Plan(Identity(), **plan), self.inflight)
        self.out: list[Effect] = []

    def begin(self, now: float = 0.0) -> Bench:
        self.negotiator.begin(now, self.out)
        return self

    def hear(
        self, wire_id: int, reply: Json, now: float = 0.0
    ) -> Agreement | StartAgain | NoAgreement | None:
        message = _message.decode(line({"id": wire_id, **reply}))
        heard = self.negotiator.answer(WireId(wire_id), message)
        return self.negotiator.feed(heard, now, self.out)

    def silence(self, now: float, *, unread: bool = False) -> None:
        self.negotiator.feed(self.negotiator.silence(unread=unread), now, self.out)

    def said(self) -> list[str]:
        return [frame["method"] for frame in frames(self.out)]


@pytest.mark.req("R1")
def test_the_questions_take_their_ids_from_the_common_count() -> None:
    bench = Bench()
    bench.inflight.number()
    bench.begin()
    assert [frame["id"] for frame in frames(bench.out)] == [2]
    assert bench.negotiator.questions == {WireId(2): "server/discover"}


@pytest.mark.req("L3")
def test_patience_is_a_time_to_sound_the_link() -> None:
    bench = Bench(patience=0.5).begin(now=10.0)
    assert bench.negotiator.check_at == 10.5
    bench.silence(10.5, unread=True)
    assert bench.negotiator.check_at == 11.0
    bench.silence(11.0)
    assert bench.negotiator.check_at == NEVER
    assert bench.said() == ["server/discover", "initialize"]


def test_a_known_opening_is_waited_for_without_sounding() -> None:
    assert Bench(opening="initialize").begin().negotiator.check_at == NEVER


@pytest.mark.req("L3")
def test_an_answer_that_settles_it_gives_the_agreement() -> None:
    bench = Bench(patience=0.5).begin()
    assert not bench.negotiator.answered
    agreement = bench.hear(1, DISCOVERED)
    assert isinstance(agreement, Agreement)
    assert agreement.opening == "discover"
    assert bench.negotiator.answered
    assert bench.negotiator.questions == {}
    assert bench.negotiator.check_at == NEVER


@pytest.mark.req("L3")
def test_an_answer_that_leads_on_gives_the_next_question() -> None:
    bench = Bench().begin()
    assert bench.hear(1, MISSING) is None
    assert bench.said() == ["server/discover", "initialize"]
    assert isinstance(bench.hear(2, INITIALIZED), Agreement)


@pytest.mark.req("L3")
def test_a_server_that_accepts_both_openings_is_started_again() -> None:
    bench = Bench().begin()
    bench.silence(1.0)
    bench.hear(1, DISCOVERED)
    ending = bench.hear(2, INITIALIZED)
    assert isinstance(ending, StartAgain)
    assert ending.opening == "discover"


ANONYMOUS = Envelope(id=None, error=msgspec.Raw(b'{"code":-32700,"message":"what?"}'))


@pytest.mark.req("L3")
def test_an_error_without_an_id_is_the_answer_only_if_no_other_follows() -> None:
    """Some servers answer what they cannot read with an error of id null."""
    bench = Bench().begin()
    bench.negotiator.check_at = NEVER
    assert bench.negotiator.anonymous(ANONYMOUS, 1.0)
    assert bench.negotiator.check_at == 1.0 + bench.negotiator.plan.patience
    mark = len(bench.out)
    bench.silence(2.0)
    (sent,) = bench.out[mark:]
    assert isinstance(sent, Send)
    assert b"initialize" in sent.frame
    assert "-32700" in bench.negotiator.waiting_for


@pytest.mark.req("L3")
def test_an_error_without_an_id_does_not_end_a_handshake_whose_good_answer_follows() -> None:
    rig = Rig(opening="initialize")
    rig.open()
    (asked,) = frames(rig.opened())
    rig.deliver({"id": None, "error": {"code": -32600, "message": "not you"}})
    rig.deliver({"id": asked["id"], **INITIALIZED})
    assert rig.state == "ready"


def test_an_error_without_an_id_that_may_be_for_either_of_two_requests_is_for_none() -> None:
    bench = Bench().begin()
    bench.silence(1.0)
    assert not bench.negotiator.anonymous(ANONYMOUS, 1.0), "two questions: whose is it?"
    assert not Bench().begin().negotiator.anonymous(Envelope(id=None), 1.0)


@rows(("wire_id", "asked"), [(1, 1), (1.0, 1), (2, None), ("1", None), (msgspec.UNSET, None)])
def test_an_answer_finds_its_question_by_id(wire_id: object, asked: int | None) -> None:
    assert Bench().begin().negotiator.question(wire_id) == asked


@pytest.mark.req("L3")
@rows(
    "reply",
    [{}, {"error": None}, {"error": "text"}, {"error": {}}, {"result": {}, "error": {"code": 1}}],
    ids=repr,
)
def test_an_answer_of_no_good_shape_is_a_refusal(reply: Json) -> None:
    bench = Bench().begin()
    assert bench.hear(1, reply) is None
    assert bench.said() == ["server/discover", "initialize"]
    assert isinstance(bench.hear(2, reply), NoAgreement)


@pytest.mark.req("L3")
def test_a_result_beside_an_error_of_null_is_a_result() -> None:
    """As in every other answer: some servers write both fields always."""
    bench = Bench().begin()
    assert isinstance(bench.hear(1, {**DISCOVERED, "error": None}), Agreement)


@pytest.mark.req("L6")
def test_what_is_waited_for_is_named() -> None:
    bench = Bench().begin()
    assert repr(bench.negotiator) == "<Negotiator waiting for server/discover>"
    bench.silence(1.0)
    assert bench.negotiator.waiting_for == "server/discover and initialize"
    assert Bench().negotiator.waiting_for == "anything"
