"""What a live page is fed with: complete, without doubles, within bounds; and a file that grows."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast._core.boundary import Generation
from holdfast._core.tap import TraceEvent
from holdfast.testing import Peer
from holdfast.trace import writer
from holdfast.trace.format import Line, Reading
from holdfast.trace.writer import TraceFile
from holdfast.view import feed as feeds
from holdfast.view.feed import Feed, FeedRecorder
from holdfast.view.follow import Follower
from tests.view.sample import bad_day


def lines_of(text: str) -> list[Line]:
    return list(Reading("x").lines(text.encode().splitlines(keepends=True)))


class Watcher:
    """A page: it has a cursor, and keeps the newest of each row."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.cursor = 0
        self.rows: dict[int, list[Any]] = {}

    def look(self) -> int:
        """Take what is new; return how many rows came."""
        count = 0
        while self.cursor < self.feed.end:
            rows, self.cursor = self.feed.since(self.cursor)
            for raw in rows:
                number, *values = json.loads(bytes(raw))
                self.rows[number] = values
                count += 1
        return count


@pytest.mark.req("W3")
def test_a_message_that_is_too_deep_for_a_look_inside_is_a_row_too() -> None:
    head = '{"holdfast-trace":1}\n{"t":0,"kind":"request","dir":">","method":"tools/call","id":1}\n'
    shapes = {
        "request": ('"dir":">","method":"tools/call","id":2', '{"params":{"name":"x","z":%s}}'),
        "result": ('"dir":"<","id":1', '{"result":{"z":%s}}'),
    }
    limit = sys.getrecursionlimit()
    for kind, (fields, body) in shapes.items():
        for depth in range(limit - 100, limit):
            deep = body % ("[" * depth + "]" * depth)
            text = f'{head}{{"t":1,"kind":"{kind}",{fields},"body":{deep}}}\n'
            feed, reading = Feed("x", lambda: 0.0), Reading("x")
            feed.add(reading.lines(text.encode().splitlines(keepends=True)))
            assert len(feed) + reading.skipped == 2


@pytest.mark.req("W3")
def test_long_names_are_cut_where_no_body_can_be_forgotten() -> None:
    feed, long = Feed("x", lambda: 0.0), "m" * 1_000_000
    fields = {"method": long, "server": long, "why": long, "id": long, "of": long}
    body = {"method": "tools/call", "params": {"name": long}}
    for kind in ("request", "notification", "state", "outcome", long):
        text = json.dumps({"t": 1, "kind": kind, **fields, "body": body})
        feed.add(lines_of(f'{{"holdfast-trace":1}}\n{text}\n'))
    call = json.dumps({"t": 2, "kind": "request", "method": "tools/call", "body": body})
    feed.add(lines_of(f'{{"holdfast-trace":1}}\n{call}\n'))
    rows, _ = feed.since(0)
    assert len(rows) == 6
    assert max(len(bytes(row)) for row in rows) < 100_000


@pytest.mark.req("W3")
def test_a_page_that_looks_often_and_one_that_looks_once_have_the_same_rows() -> None:
    lines, feed = lines_of(bad_day(60)), Feed("x", lambda: 0.0)
    often, once = Watcher(feed), Watcher(feed)
    for line in lines:
        feed.add([line])
        often.look()
    once.look()
    assert often.rows == once.rows
    assert sorted(once.rows) == list(range(len(lines)))
    assert often.look() == 0
    outcomes = {values[13] for values in once.rows.values()}
    assert {"ok", "timeout", "unknown", "cancelled", "late"} <= outcomes


@pytest.mark.req("W3")
def test_the_rows_are_bounded_and_a_page_is_told_to_begin_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "MOST_ROWS", 100)
    feed, epoch = Feed("x", lambda: 0.0), 1
    for number in range(1000):
        feed.add([Line(t=number / 10, kind="notification", method=f"n{number}")])
        assert len(feed) <= 100
    assert feed.epoch > epoch
    assert feed.left_out + len(feed) == 1000
    watcher = Watcher(feed)
    watcher.look()
    assert [values[6] for values in watcher.rows.values()][-1] == "n999"


@pytest.mark.req("W3")
def test_the_bodies_are_bounded_and_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "MOST_BYTES", 10_000)
    feed = Feed("x", lambda: 0.0)
    for number in range(20):
        feed.add([Line(t=number, kind="stderr", text=f"{number:04}" * 1000)])
    assert b"not kept any more" in (feed.body(1, 0) or b"")
    assert b"0019" in (feed.body(1, 19) or b"")
    assert feed.body(2, 0) is None
    assert feed.body(1, 20) is None


@pytest.mark.req("W3")
def test_whatever_a_line_has_counts_and_servers_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "MOST_BYTES", 10_000)
    monkeypatch.setattr(feeds, "MOST_SERVERS", 10)
    feed, long = Feed("x", lambda: 0.0), "x" * 4000
    feed.add([Line(t=1, kind="request", id=1, dir=">", method="tools/call")])
    feed.add([Line(t=2, kind="result", id=1, dir="<", faults={f"/{long}": long})])
    watcher = Watcher(feed)
    watcher.look()
    assert watcher.rows[0][15] == {f"/{long}": long}
    for _ in range(5):
        feed.add([Line(t=3, kind="http", headers={"name": long}, sidecar=long)])
    assert b"not kept any more" in (feed.body(1, 1) or b"")
    assert b"not kept any more" in (feed.body(1, 2) or b"")
    late = Watcher(feed)
    late.look()
    assert late.rows[0][15] is None
    for number in range(100):
        feed.add([Line(t=4, kind="server", server=f"s{number}", target=long, transport=long)])
    assert len(feed.known_servers()) == 10
    assert len(json.dumps(feed.known_servers())) < 30_000
    feed.add([Line(t=5, kind="server", server="s9", target="another")])
    assert feed.known_servers()[-1]["target"] == "another"


@pytest.mark.req("W3")
async def test_a_client_is_recorded_into_a_feed_without_its_secrets() -> None:
    feed, peer = Feed("x", lambda: 0.0), Peer()
    peer.tool("log_in")(lambda password: f"welcome, {password}")
    peer.tool("large")(lambda: "z" * 200_000)
    recorder = FeedRecorder(feed, asyncio.get_running_loop())
    client = holdfast.connect(peer, name="house")
    recorder.watch(client)
    async with client:
        await client.call_tool("log_in", {"password": "hunter2hunter2"})
        await client.call_tool("large")
    recorder.close()
    await asyncio.sleep(0)
    watcher = Watcher(feed)
    watcher.look()
    whole = b"".join(feed.body(1, number) or b"" for number in range(len(feed)))
    assert b"hunter2" not in whole
    assert "hunter2" not in json.dumps(watcher.rows)
    assert b"z" * 200_000 in whole, "a page shows what is large, too"
    assert feed.servers["house"]["transport"] == "memory"


def message(number: int) -> TraceEvent:
    frame = json.dumps({"id": number, "method": "ping"}).encode()
    return TraceEvent(1.0, "message", Generation(1), "→", frame)


async def ids_in(feed: Feed, count: int) -> list[str]:
    """Wait until there are so many messages; return their ids."""
    while True:
        watcher = Watcher(feed)
        watcher.look()
        ids = [values[8] for values in watcher.rows.values() if values[5] == "request"]
        if len(ids) >= count:
            return ids
        await feed.wait(asyncio.Event(), 0.05)


@pytest.mark.req("W3")
async def test_a_growing_file_is_followed_over_its_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    trace = TraceFile(path)
    tap = trace.tap("git")
    monkeypatch.setattr(writer, "ROTATE_AT", 1500)
    monkeypatch.setattr(writer, "KEPT_FILES", 50)
    for number in range(20):
        tap(message(number))
        trace.flush()
    assert path.with_name("run.jsonl.1").exists()
    feed = Feed("run.jsonl", lambda: 0.0)
    following = asyncio.create_task(Follower(path, feed).run())
    # What was there comes first, from the older files too.
    before = [int(wire_id) for wire_id in await ids_in(feed, 20)]
    assert before == [*range(20)]
    for number in range(20, 32):
        tap(message(number))
        trace.flush()
        ids = await ids_in(feed, len(before) + number - 19)
        assert int(ids[-1]) == number
    trace.close()
    assert [int(wire_id) for wire_id in ids] == [*before, *range(20, 32)]
    # Another run begins in the same place: it is another trace.
    epoch, second = feed.epoch, TraceFile(path)
    second.tap("docs")(message(1))
    second.close()
    while feed.epoch == epoch or not len(feed):
        await feed.wait(asyncio.Event(), 0.05)
    assert await ids_in(feed, 1) == ["1"]
    assert list(feed.servers) == ["docs"]
    following.cancel()


@pytest.mark.req("W3")
async def test_half_a_line_is_taken_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"holdfast-trace": 1}\n{"t": 1, "kind": "reque')
    feed = Feed("x", lambda: 0.0)
    following = asyncio.create_task(Follower(path, feed).run())
    await asyncio.sleep(0)
    assert len(feed) == 0
    with path.open("a") as file:
        file.write('st", "id": 7, "method": "ping"}\nnot json\n')
    assert await ids_in(feed, 1) == ["7"]
    while not feed.skipped:
        await feed.wait(asyncio.Event(), 0.05)
    following.cancel()


@pytest.mark.req("W3")
def test_what_is_no_trace_is_not_followed(tmp_path: Path) -> None:
    feed = Feed("x", lambda: 0.0)
    with pytest.raises(holdfast.ValidationError, match="No such file"):
        Follower(tmp_path / "none.jsonl", feed)
    (tmp_path / "text").write_text("hello\n")
    with pytest.raises(holdfast.ValidationError, match="not a trace"):
        Follower(tmp_path / "text", feed)
