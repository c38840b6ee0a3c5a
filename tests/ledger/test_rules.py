"""What a call with a key may do: each rule, and every order of steps of many owners."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast._core.ledger.record import (
    NEXT,
    CorruptRecord,
    Record,
    RecordedOutcome,
    decode,
    digest_of,
    encode,
    moved,
)
from holdfast._core.ledger.rules import Request, decide

pytestmark = pytest.mark.req("S2")
REQUEST = Request("charge", "digest")


def record(state: Any, **fields: Any) -> Record:
    facts = {"key": "k", "server": "s", "scope": "", "tool": "charge", "arguments": "digest"}
    return Record(**{**facts, "state": state, "number": 1, **fields})


ENDED = RecordedOutcome(error={"message": "no"})


@pytest.mark.parametrize(
    ("present", "lives", "verdict"),
    [
        (None, False, "run"),
        (record("intended"), True, "wait"),
        (record("intended"), False, "unknown"),
        (record("sent"), True, "wait"),
        (record("sent"), False, "unknown"),
        (record("sent", task_id="t"), True, "wait"),
        (record("sent", task_id="t"), False, "follow"),
        (record("unknown"), True, "unknown"),
        (record("unknown", task_id="t"), False, "follow"),
        (record("unknown", pending="q"), False, "unknown"),
        (record("done", outcome=ENDED), False, "known"),
        (record("failed", outcome=ENDED), False, "known"),
        (record("failed"), False, "run"),
        (record("done", outcome=ENDED, tool="refund"), False, "other"),
        (record("failed", tool="refund"), False, "other"),
        (record("intended", arguments="others"), True, "other"),
    ],
)
def test_each_record_allows_one_thing(present: Record | None, lives: bool, verdict: str) -> None:
    assert decide(present, REQUEST, owner_lives=lives) == verdict


def test_answers_to_the_servers_questions_go_on() -> None:
    asked = record("unknown", pending="questions")
    request = Request("charge", "digest", "questions")
    assert decide(asked, request, owner_lives=False) == "run"
    assert decide(asked, Request("charge", "digest", "others"), owner_lives=False) == "unknown"


@pytest.mark.parametrize("state", NEXT)
@pytest.mark.parametrize("following", NEXT)
def test_only_steps_of_the_table_are_made(state: str, following: Any) -> None:
    if following in NEXT[state]:
        assert moved(record(state), following).state == following
    else:
        with pytest.raises(AssertionError, match=f"{state!r} cannot become {following!r}"):
            moved(record(state), following)


def test_a_record_with_an_outcome_goes_nowhere() -> None:
    for state in ("done", "failed"):
        for following in NEXT:
            with pytest.raises(AssertionError):
                moved(record(state, outcome=ENDED), following)  # type: ignore[arg-type]


def test_records_are_read_as_they_were_written() -> None:
    outcome = RecordedOutcome(result=msgspec.Raw(b'{"content":[]}'))
    full = record("done", task_id="t", note="n", outcome=outcome, owner="o", begun=1.5)
    assert encode(decode(encode(full))) == encode(full)


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"null", b"\xff", b"{" * 100_000, encode(record("done", version=2))],
)
def test_what_is_no_record_is_told(data: bytes) -> None:
    with pytest.raises(CorruptRecord):
        decode(data)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}, True),
        ({"a": [1, 2]}, {"a": (1, 2)}, True),
        ({"a": {"x", "y", "z"}}, {"a": ["x", "y", "z"]}, True),
        ({"a": 1, "b": [2.0]}, {"a": 1.0, "b": [2]}, True),
        ({"a": 2**53 + 1}, {"a": float(2**53)}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": None}, {}, False),
        ({}, {}, True),
    ],
)
def test_arguments_are_the_same_if_their_json_is(first: Any, second: Any, same: bool) -> None:
    assert (digest_of(first) == digest_of(second)) is same


# Every order of steps


class Worker:
    """One process that wants the key: what it has read, and where it stands."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.alive = True
        self.read: bytes | None = None
        self.has_read = False
        self.held: bytes | None = None
        """The record that it holds, as it wrote it."""
        self.sent = False
        self.told: str | None = None
        self.incarnation = 0


class Interleavings(RuleBasedStateMachine):
    """Workers that read, decide, swap, send and settle, in any order, and are killed anywhere.

    The lease is judged by a liar: an owner may count as dead while it lives.
    """

    def __init__(self) -> None:
        super().__init__()
        self.store: bytes | None = None
        self.workers = [Worker(name) for name in "abc"]
        self.runs = 0
        self.outcomes: set[str] = set()
        """What the server answered."""
        self.freed_by_hand = 0

    def swap(self, old: bytes | None, new: bytes | None) -> bool:
        if self.store != old:
            return False
        self.store = new
        return True

    @rule(who=st.integers(0, 2))
    def read(self, who: int) -> None:
        worker = self.workers[who]
        if worker.alive and worker.held is None:
            worker.read, worker.has_read = self.store, True

    @rule(who=st.integers(0, 2), lies=st.booleans())
    def decide(self, who: int, lies: bool) -> None:
        worker = self.workers[who]
        if not (worker.alive and worker.has_read and worker.held is None):
            return
        worker.has_read = False
        present = None if worker.read is None else decode(worker.read)
        lives = present is not None and self.lives(present.owner) and not lies
        verdict = decide(present, REQUEST, owner_lives=lives)
        if verdict == "known":
            assert present is not None
            assert present.outcome is not None
            assert present.outcome.error is not None
            worker.told = present.outcome.error["message"]
            assert worker.told in self.outcomes, "an outcome that the server never gave"
        elif verdict == "run":
            worker.incarnation += 1
            number = 1 if present is None else present.number + 1
            owner = f"{worker.name}{worker.incarnation}"
            new = encode(record("intended", number=number, owner=owner))
            if self.swap(worker.read, new):
                worker.held, worker.sent = new, False

    def lives(self, owner: str) -> bool:
        return any(
            worker.alive and f"{worker.name}{worker.incarnation}" == owner
            for worker in self.workers
        )

    @rule(who=st.integers(0, 2))
    def send(self, who: int) -> None:
        worker = self.workers[who]
        if worker.alive and worker.held is not None and not worker.sent:
            worker.sent = True
            self.runs += 1

    @rule(who=st.integers(0, 2))
    def mark_sent(self, who: int) -> None:
        worker = self.workers[who]
        if worker.alive and worker.held is not None and worker.sent:
            new = encode(moved(decode(worker.held), "sent"))
            if self.swap(worker.held, new):
                worker.held = new

    @rule(who=st.integers(0, 2), how=st.sampled_from(["answer", "lost", "not sent"]))
    def end(self, who: int, how: str) -> None:
        worker = self.workers[who]
        if not worker.alive or worker.held is None or worker.sent is (how == "not sent"):
            return
        present = decode(worker.held)
        if how == "answer":
            answer = f"answer {self.runs}"
            self.outcomes.add(answer)
            new = moved(present, "done", outcome=RecordedOutcome(error={"message": answer}))
        else:
            new = moved(present, "unknown" if how == "lost" else "failed")
        self.swap(worker.held, encode(new))
        worker.held = None

    @rule(who=st.integers(0, 2))
    def kill(self, who: int) -> None:
        worker = self.workers[who]
        worker.alive, worker.held, worker.has_read = False, None, False

    @rule(who=st.integers(0, 2))
    def start(self, who: int) -> None:
        worker = self.workers[who]
        if not worker.alive:
            worker.alive, worker.sent = True, False
            worker.incarnation += 1

    @invariant()
    def the_key_ran_at_most_once(self) -> None:
        assert self.runs <= 1

    @invariant()
    def everybody_was_told_the_same(self) -> None:
        assert len({worker.told for worker in self.workers if worker.told is not None}) <= 1


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
