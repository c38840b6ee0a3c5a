"""Progress, and the lack of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import ANSWER, Fault, at, line, note, progress, say


def progressing() -> Iterator[Fault]:
    def row(
        name: str,
        does: str,
        *deeds: str | tuple[str, bytes],
        ends: tuple[str, ...] = ("ok",),
        **more: Any,
    ) -> Fault:
        more.setdefault("reqs", ("P5", "R8", "R2"))
        more.setdefault("after", "same")
        return Fault(name, does, at("fault", *deeds), ends, drive="progress", **more)

    for era in ("legacy", "modern"):
        suffix = "-modern" if era == "modern" else ""
        yield row(
            f"progress-flood{suffix}",
            "reports progress 50,000 times before it answers",
            ("flood", b"50000:" + progress(b"@I@")),
            ANSWER,
            era=era,
        )
        yield row(
            f"progress-unknown-token{suffix}",
            "reports progress of things nobody asked for",
            say(progress(b"1", b'"nobody"') + progress(b"1", b"987654")),
            ANSWER,
            era=era,
        )
        yield row(
            f"progress-after-answer{suffix}",
            "reports progress after its answer",
            ANSWER,
            say(progress(b"1")),
            era=era,
        )
    yield row(
        "progress-backwards",
        "reports 5, 3, 1",
        say(progress(b"5") + progress(b"3") + progress(b"1")),
        ANSWER,
    )
    for name, params in {
        "token-object": b'{"progressToken":{"a":1},"progress":1}',
        "token-float": b'{"progressToken":0.5,"progress":1}',
        "no-token": b'{"progress":1}',
        "value-string": b'{"progressToken":@TOKEN@,"progress":"half"}',
        "value-huge": b'{"progressToken":@TOKEN@,"progress":1e999}',
        "no-value": b'{"progressToken":@TOKEN@}',
        "total-string": b'{"progressToken":@TOKEN@,"progress":1,"total":"ten"}',
        "message-number": b'{"progressToken":@TOKEN@,"progress":1,"message":7}',
        "params-list": b"[1,2]",
        "message-long": b'{"progressToken":@TOKEN@,"progress":1,"message":"@PAD:1000000@"}',
    }.items():
        yield row(
            f"progress-{name}",
            f"reports progress as {params.decode()[:60]}",
            say(note(b"notifications/progress", params)),
            ANSWER,
        )
    yield row(
        "progress-no-params",
        "reports progress without parameters",
        line(b'{"jsonrpc":"2.0","method":"notifications/progress"}'),
        ANSWER,
    )
    beat: list[str | tuple[str, bytes]] = []
    for number in range(4):
        question = (
            b'{"jsonrpc":"2.0","id":"s%d","method":"sampling/createMessage",'
            b'"params":{"messages":[],"maxTokens":1}}' % number
        )
        beat += [say(progress(b"%d" % number)), line(question), f"listen:s{number}"]
    yield row(
        "progress-keeps-alive",
        "asks four times what takes 40 s to answer, where 70 s are allowed, and reports progress",
        *beat,
        ANSWER,
        reqs=("R3", "P5"),
        timeout=70.0,
        options={"handlers": "long", "timeouts": {"total": 190.0}},
    )
    yield row(
        "progress-for-ever",
        "reports progress for ever and never answers",
        ("endless", progress(b"1")),
        ends=("timeout",),
        after="down",
        reqs=("R3", "R2"),
        options={"timeouts": {"total": 0.6}},
        timeout=0.3,
    )
    yield row(
        "progress-then-exit",
        "exits while it reports progress",
        ("flood", b"100:" + progress(b"@I@")),
        "exit:1",
        ends=("lost",),
        after="restarted",
        reqs=("R11", "L5"),
    )
