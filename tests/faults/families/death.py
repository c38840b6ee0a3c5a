"""Servers that die."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import ANSWER, Fault, at, result, say, text


def deaths() -> Iterator[Fault]:
    def row(
        name: str,
        does: str,
        *deeds: str | tuple[str, bytes],
        ends: tuple[str, ...] = ("lost",),
        **more: Any,
    ) -> Fault:
        more.setdefault("reqs", ("L5", "R2", "R11"))
        # After a last answer the next call may still be written to the dying process.
        after = "either" if "ok" in ends else "restarted"
        return Fault(name, does, at("fault", *deeds), ends, after, **more)

    for code in (0, 42):
        yield row(
            f"exits-in-call-{code}",
            f"exits with {code} in the middle of a call",
            f"exit:{code}",
            exit_code=code,
        )
    for name in ("SIGKILL", "SIGSEGV"):
        yield row(
            f"dies-in-call-{name.lower()}",
            f"dies of {name} in the middle of a call",
            f"kill:{name}",
            says=(name,),
        )
    yield row("exits-in-call-modern", "exits in the middle of a call", "exit:1", era="modern")
    yield row(
        "tells-why-it-dies",
        "says why on stderr and exits with 7 in the middle of a call",
        ("err", b"fatal: the disk is on fire\n"),
        "exit:7",
        exit_code=7,
        says=("the disk is on fire",),
        reqs=("E2", "R11"),
    )
    yield row(
        "dies-with-50",
        "dies with 50 calls waiting",
        "hold:50",
        "kill:SIGKILL",
        count=50,
        drive="many",
    )
    yield row(
        "dies-mid-frame",
        "is killed in the middle of its answer",
        say(b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":['),
        "kill:SIGKILL",
    )
    yield row(
        "dies-mid-character",
        "is killed in the middle of a character",
        say(b'{"jsonrpc":"2.0","id":@ID@,"result":{"x":"\xf0\x9f'),
        "kill:SIGKILL",
    )
    yield row(
        "answers-and-exits",
        "answers and exits at once",
        ANSWER,
        "exit:0",
        ends=("ok",),
        reqs=("R2", "L5"),
    )
    yield row(
        "answers-many-and-exits",
        "answers 50 calls and exits at once",
        "hold:50",
        "release:at once",
        "exit:0",
        ends=("ok",),
        count=50,
        drive="many",
        reqs=("R2", "L5"),
    )
    yield row(
        "answers-long-and-exits",
        "answers with 3 MiB and exits at once",
        result(text(b'"@PAD:3145728@"')),
        "exit:0",
        ends=("ok",),
        reqs=("R2", "L5"),
    )
    yield row(
        "answers-without-newline-and-exits",
        "exits before the newline of its answer",
        say(b"@ANSWER@"),
        "exit:0",
        ends=("ok", "lost"),
    )
    yield row(
        "closes-stdout-in-call",
        "closes its stdout in the middle of a call and lives on",
        "close:stdout",
        "hang",
    )
    yield row(
        "closes-everything-in-call",
        "closes all its pipes and lives on",
        "close:stdout",
        "close:stdin",
        "close:stderr",
        "hang",
    )
    yield row(
        "leaves-a-ghost",
        "exits and leaves a child that answers on the old pipe",
        "fork:ghost",
        "exit:1",
        reqs=("L9", "L5"),
        drive="haunted",
    )
    yield row(
        "leaves-a-child",
        "exits and leaves a child that holds the pipes",
        "fork:plain",
        "exit:1",
        reqs=("L5", "L8", "R2"),
    )
    yield row(
        "leaves-a-stubborn-child",
        "exits and leaves a child that ignores SIGTERM",
        "fork:stubborn",
        "exit:1",
        reqs=("L5", "L8", "R2"),
    )
    for before, after in (("legacy", "modern"), ("modern", "legacy"), ("modern", "both")):
        yield row(
            f"comes-back-{after}-after-{before}",
            f"exits, and is of another era when it comes back ({before}, then {after})",
            "exit:1",
            era=before,
            lives=1,
            heir=after,
            reqs=("L3", "L5"),
        )
    yield Fault(
        "dies-on-cancel",
        "dies when it is told to stop",
        (*at("fault"), *at("cancelled", "exit:3")),
        ("timeout",),
        "restarted",
        ("R4", "L5", "R2"),
        "stumble",
    )
    for name, rules in {
        "after-initialize": at("initialize", "good", "exit:1"),
        "after-initialized": at("initialized", "exit:1"),
    }.items():
        yield Fault(
            f"dies-{name}",
            f"dies right {name.replace('-', ' ')}, every time",
            rules,
            ("transport", "state", "timeout"),
            "down",
            ("L5", "L11", "R2"),
            "crashloop",
            count=6,
        )
    yield Fault(
        "dies-after-discover",
        "dies right after its answer to the probe, every time",
        at("discover", "good", "exit:1"),
        ("transport", "state", "timeout"),
        "down",
        ("L5", "L11", "R2"),
        "crashloop",
        era="modern",
        count=6,
    )
    yield Fault(
        "dies-at-every-start",
        "dies at every start",
        at("start", "exit:1"),
        ("transport", "state", "timeout"),
        "down",
        ("L5", "L11", "R2"),
        "crashloop",
        count=12,
    )
