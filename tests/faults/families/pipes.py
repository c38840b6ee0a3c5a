"""The writing side: servers that do not read."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.rows import ANSWER, LOGGED, Fault, at, refusal


def writing() -> Iterator[Fault]:
    reqs = ("R7", "R2", "L8")
    yield Fault(
        "deaf-many",
        "stops reading; 300 calls follow",
        at("fault", "hang"),
        ("timeout", "backpressure"),
        "down",
        reqs,
        "crowd",
        count=300,
        size=2048,
        timeout=0.25,
    )
    yield Fault(
        "deaf-many-tiny",
        "stops reading; 500 small calls follow",
        at("fault", "hang"),
        ("timeout", "backpressure"),
        "down",
        reqs,
        "crowd",
        count=500,
        size=8,
        timeout=0.25,
    )
    yield Fault(
        "deaf-large",
        "stops reading; a call of 8 MiB follows",
        at("fault", "hang"),
        ("timeout", "backpressure"),
        "down",
        reqs,
        "crowd",
        count=1,
        size=8 << 20,
        timeout=0.25,
    )
    yield Fault(
        "deaf-large-many",
        "stops reading; 20 calls of 1 MiB follow",
        at("fault", "hang"),
        ("timeout", "backpressure"),
        "down",
        reqs,
        "crowd",
        count=20,
        size=1 << 20,
        timeout=0.25,
    )
    yield Fault(
        "deaf-while-flooding",
        "stops reading and writes notifications for ever",
        at("fault", ("endless", LOGGED)),
        ("timeout", "backpressure"),
        "down",
        reqs,
        "crowd",
        count=100,
        size=2048,
        timeout=0.25,
    )
    yield Fault(
        "deaf-for-a-while",
        "stops reading until a file appears, then answers everything",
        at("fault", "until:{tmp}/release", "good"),
        ("ok",),
        "same",
        ("R7", "R2"),
        "released",
        count=30,
        size=20_000,
    )
    yield Fault(
        "deaf-and-back",
        "stops reading, outlives the timeouts of long calls, and reads on",
        at("fault#1", "until:{tmp}/release", "good"),
        ("timeout", "backpressure"),
        "same",
        ("R7", "R4", "R2"),
        "resumed",
        count=20,
        size=300_000,
        timeout=0.25,
    )
    yield Fault(
        "reads-slowly",
        "reads one byte at a time",
        at("start", "slowly"),
        ("ok",),
        "same",
        ("R7",),
        size=100_000,
    )
    yield Fault(
        "closes-stdin-mid-request",
        "closes its stdin in the middle of a request",
        at("partial", "close:stdin", "hang"),
        ("lost",),
        "restarted",
        ("R11", "L5"),
        size=1 << 20,
    )
    yield Fault(
        "exits-mid-request",
        "exits in the middle of a request",
        at("partial", "exit:9"),
        ("lost",),
        "restarted",
        ("R11", "L5"),
        size=1 << 20,
    )
    yield Fault(
        "answers-too-early",
        "answers before it has read the whole request",
        (*at("partial", ANSWER), *at("fault")),
        ("ok",),
        "same",
        ("R2", "R7"),
        size=1 << 20,
    )
    yield Fault(
        "refuses-too-early",
        "refuses before it has read the whole request",
        (*at("partial", refusal(-32600)), *at("fault")),
        ("rpc:-32600",),
        "same",
        ("R2", "R7"),
        size=1 << 20,
    )
    yield Fault(
        "answers-too-early-and-stops",
        "answers half a request and reads no more",
        at("partial", ANSWER, "hang"),
        ("ok",),
        "down",
        ("R2", "R7"),
        size=1 << 20,
    )
    yield Fault(
        "answers-too-early-and-exits",
        "answers half a request and exits",
        at("partial", ANSWER, "exit:0"),
        ("ok",),
        "either",
        ("R2", "R7", "L5"),
        size=1 << 20,
    )
    yield Fault(
        "stopped",
        "is stopped (SIGSTOP) in the middle of a call",
        at("fault", "stop"),
        ("timeout",),
        "down",
        ("R2", "L8"),
    )
    yield Fault(
        "closes-stdin-after-answer",
        "answers and closes its stdin",
        at("fault", "close:stdin", "good", "hang"),
        ("ok",),
        "restarted",
        ("L5", "R11"),
        "stumble",
    )
