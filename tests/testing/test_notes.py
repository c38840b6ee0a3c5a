"""What a report keeps of a test's calls."""

from __future__ import annotations

import json

import pytest

import holdfast
from holdfast.calllog.log import CallLog
from holdfast.policies import Redaction
from holdfast.testing import Peer
from holdfast.testing.recording import LONGEST_LINE, MOST_CHARACTERS, MOST_LINES, Notes, NotesLog


def lines_of(notes: Notes) -> list[str]:
    return str(notes).splitlines()


def test_only_the_last_lines_are_kept_and_the_others_counted() -> None:
    notes = Notes()
    for number in range(MOST_LINES + 3):
        notes.take(str(number))
    first, *kept = lines_of(notes)
    assert first == "(3 earlier lines left out)"
    assert kept == [str(number) for number in range(3, MOST_LINES + 3)]


def test_long_lines_are_cut_and_many_of_them_left_out() -> None:
    notes = Notes()
    for _ in range(100):
        notes.take("x" * (2 * LONGEST_LINE))
    assert lines_of(notes)[-1] == "x" * (LONGEST_LINE - 1) + "…"
    assert len(str(notes)) <= MOST_CHARACTERS + 100


def test_no_calls_are_no_text() -> None:
    assert str(Notes()) == ""


@pytest.mark.req("F4")
async def test_every_log_hears_of_each_call_and_of_the_end() -> None:
    peer = Peer()
    first: list[str] = []
    second: list[str] = []
    peer.tool("greet")(lambda: "hello")

    class Other(CallLog):
        closed = False

        def close(self) -> None:
            self.closed = True

    others = [Other(first.append), Other(second.append)]
    log = NotesLog(Redaction(), others)
    async with holdfast.connect(peer, log=log) as client:
        await client.call_tool("greet")
    noted = lines_of(log.notes)
    assert [json.loads(line)["_phase"] for line in noted] == ["before", "after"]
    assert len(first) == len(second) == 2
    assert [other.closed for other in others] == [True, True]


async def test_a_call_that_fails_fails_through_all_of_them() -> None:
    heard: list[str] = []
    log = NotesLog(Redaction(), [CallLog(heard.append)])
    async with holdfast.connect(Peer(), log=log) as client:
        with pytest.raises(holdfast.RpcError):
            await client.call_tool("greet")
    for line in (lines_of(log.notes)[1], heard[1]):
        assert json.loads(line)["_ok"] is False
