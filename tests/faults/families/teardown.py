"""Servers that do not want to end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import LOGGED, Fault, at, line


def teardowns() -> Iterator[Fault]:
    def row(name: str, does: str, *rules: str, **more: Any) -> Fault:
        more.setdefault("options", {"grace": 0.1})
        return Fault(name, does, rules, ("ok",), "closed", ("L8", "L7"), "teardown", **more)

    stubborn = ("ignore:SIGTERM", "ignore:SIGINT", "ignore:SIGHUP")
    yield row("ends-well", "exits when its stdin ends")
    yield row("ends-with-1", "exits with 1 when its stdin ends", *at("eof", "exit:1"))
    yield row("crashes-at-the-end", "crashes when its stdin ends", *at("eof", "kill:SIGSEGV"))
    yield row("ignores-eof", "ignores the end of its stdin", *at("eof", "hang"))
    yield row(
        "ignores-eof-and-sigterm",
        "ignores the end of its stdin and SIGTERM",
        *at("start", *stubborn),
        *at("eof", "hang"),
    )
    yield row("stops-at-the-end", "is stopped when its stdin ends", *at("eof", "stop"))
    yield row(
        "closes-stdout-at-the-end",
        "closes its stdout at the end and lives on",
        *at("eof", "close:stdout", "hang"),
    )
    yield row(
        "floods-at-the-end", "writes for ever when its stdin ends", *at("eof", ("endless", LOGGED))
    )
    yield row(
        "endless-line-at-the-end",
        "writes a line that never ends when its stdin ends",
        *at("eof", ("endless", b"x")),
    )
    yield row(
        "floods-at-the-end-stubbornly",
        "writes for ever, ignoring SIGTERM",
        *at("start", *stubborn),
        *at("eof", ("endless", LOGGED)),
    )
    yield row(
        "stderr-at-the-end",
        "writes to stderr for ever when its stdin ends",
        *at("eof", ("errspew", b"bye bye\n"), "hang"),
    )
    yield row(
        "answers-at-the-end",
        "answers once more when its stdin ends",
        *at("eof", line(b'{"jsonrpc":"2.0","id":1,"result":{}}')),
    )
    yield row(
        "asks-at-the-end",
        "asks for something when its stdin ends",
        *at("eof", line(b'{"jsonrpc":"2.0","id":"s1","method":"ping"}'), "hang"),
    )
    for kind, does in {
        "plain": "has a child that holds the pipes",
        "stubborn": "has a child that ignores SIGTERM",
        "daemon": "has a child that was daemonised in the same group",
    }.items():
        yield row(f"grandchild-{kind}", f"{does}, and exits well", *at("start", f"fork:{kind}"))
        yield row(
            f"grandchild-{kind}-and-ignores-eof",
            f"{does}, and ignores the end itself",
            *at("start", f"fork:{kind}"),
            *at("eof", "hang"),
        )
    yield row(
        "grandchildren-many",
        "has five children of all kinds",
        *at("start", "fork:plain", "fork:stubborn", "fork:daemon", "fork:plain", "fork:stubborn"),
    )
    yield row(
        "grandchild-escaped",
        "has a child in a session of its own that holds the pipes",
        *at("start", "fork:escaped"),
    )
    yield row(
        "slow-end-within-grace",
        "takes a second to exit where five are granted",
        *at("eof", "sleep:0.6", "mark:{tmp}/marker"),
        options={"grace": 5.0},
        value="marker",
    )
    yield row(
        "slow-end-beyond-grace",
        "takes long to exit where a tenth of a second is granted",
        *at("eof", "sleep:30", "mark:{tmp}/marker"),
        options={"grace": 0.1},
    )
    yield row(
        "deaf-at-the-end",
        "has stopped reading with calls under way",
        *at("fault", "hang"),
        count=50,
        size=20_000,
    )
    yield row(
        "stopped-at-the-end", "is stopped with calls under way", *at("fault", "stop"), count=10
    )
    yield row(
        "flooding-at-the-end",
        "sends notifications for ever with calls under way",
        *at("fault", ("endless", LOGGED)),
        count=10,
    )
