"""Long lines and floods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import ANSWER, CHANGED, LOGGED, Fault, at, line, note, result, say, text

SMALL = {"limits": {"frame_bytes": 65536}}


def sizes() -> Iterator[Fault]:
    def row(
        name: str,
        does: str,
        *deeds: str | tuple[str, bytes],
        ends: tuple[str, ...] = ("ok",),
        after: str = "same",
        **more: Any,
    ) -> Fault:
        more.setdefault("reqs", ("R9", "R2"))
        return Fault(name, does, at("fault", *deeds), ends, after, **more)

    over = ("protocol",)
    yield row(
        "line-under-limit",
        "answers with 60,000 bytes where 65,536 are allowed",
        result(text(b'"@PAD:60000@"')),
        options=SMALL,
    )
    yield row(
        "line-over-limit",
        "answers with 70,000 bytes where 65,536 are allowed",
        result(text(b'"@PAD:70000@"')),
        options=SMALL,
        ends=over,
        after="restarted",
    )
    yield row(
        "junk-over-limit",
        "writes a text of 70,000 bytes where 65,536 are allowed",
        line(b"@PAD:70000@"),
        ANSWER,
        options=SMALL,
        ends=over,
        after="restarted",
    )
    yield row(
        "notification-over-limit",
        "sends a notification that is too long",
        say(note(b"notifications/message", b'{"data":"@PAD:70000@"}')),
        ANSWER,
        options=SMALL,
        ends=over,
        after="restarted",
    )
    yield row(
        "many-under-limit",
        "sends 200 long lines, each allowed, before its answer",
        ("flood", b"200:" + note(b"notifications/message", b'{"data":"@PAD:60000@"}')),
        ANSWER,
        options=SMALL,
    )
    yield row(
        "over-limit-many-waiting",
        "answers too long with 20 calls waiting",
        "hold:20",
        line(b"@PAD:70000@"),
        options=SMALL,
        ends=over,
        after="restarted",
        count=20,
        drive="many",
    )
    yield row(
        "endless-line",
        "writes a line that never ends",
        ("endless", b"x"),
        options={"limits": {"frame_bytes": 1 << 20}},
        ends=over,
        after="restarted",
        drive="bounded_memory",
    )
    yield row(
        "endless-answer",
        "begins an answer that never ends",
        say(b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[{"text":"'),
        ("endless", b"abc "),
        options={"limits": {"frame_bytes": 1 << 20}},
        ends=over,
        after="restarted",
        drive="bounded_memory",
    )
    yield row("ten-mebibytes", "answers with 10 MiB", result(text(b'"@PAD:10485760@"')))
    yield row(
        "default-limit",
        "answers with 17 MiB where 16 are allowed",
        result(text(b'"@PAD:17825792@"')),
        ends=over,
        after="restarted",
    )
    yield row(
        "stderr-flood",
        "writes 100 MB to stderr before it answers",
        ("errflood", b"1000000:" + b"x" * 99 + b"\n"),
        ANSWER,
        reqs=("X1", "R8"),
        drive="bounded_memory",
    )
    yield row(
        "stderr-endless-line",
        "writes 30 MB to stderr without a newline",
        ("errflood", b"300000:" + b"x" * 100),
        ANSWER,
        reqs=("X1",),
        drive="bounded_memory",
    )
    yield row(
        "stderr-for-ever",
        "writes to stderr for ever from its first call on",
        ("errspew", b"and on\n"),
        ANSWER,
        reqs=("X1", "L8"),
    )
    flood = ("R8", "P6")
    yield row(
        "notification-flood",
        "sends 100,000 notifications before it answers",
        ("flood", b"100000:" + LOGGED),
        ANSWER,
        reqs=flood,
        drive="noticed",
    )
    yield row(
        "notification-flood-modern",
        "sends 100,000 notifications before it answers",
        ("flood", b"100000:" + LOGGED),
        ANSWER,
        reqs=flood,
        drive="noticed",
        era="modern",
    )
    yield row(
        "list-changed-storm",
        "says 20,000 times that its tools changed",
        ("flood", b"20000:" + CHANGED),
        ANSWER,
        reqs=flood,
        drive="storm",
    )
    yield row(
        "notifications-for-ever",
        "sends notifications for ever, answering in between",
        ("spew", LOGGED),
        ANSWER,
        reqs=flood,
        drive="flooded",
    )
    yield row(
        "junk-for-ever",
        "writes junk for ever, answering in between",
        ("spew", b"still alive\n"),
        ANSWER,
        reqs=("R8", "R10"),
        drive="flooded",
    )
    yield row(
        "strays-for-ever",
        "answers a request nobody made for ever, and the others too",
        ("spew", b'{"jsonrpc":"2.0","id":7777777,"result":{}}\n'),
        ANSWER,
        reqs=("R8", "R5"),
        drive="flooded",
    )
    yield row(
        "flood-without-answer",
        "sends notifications for ever and answers no more",
        ("endless", LOGGED),
        ends=("timeout",),
        after="down",
        reqs=("R8", "R2"),
    )
    yield row(
        "junk-without-answer",
        "writes junk for ever and answers no more",
        ("endless", b"nothing new\n"),
        ends=("timeout",),
        after="down",
        reqs=("R8", "R2"),
    )
