"""Servers that ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import ANSWER, Fault, at, line, note, result, say, text


def asks() -> Iterator[Fault]:
    def row(
        name: str,
        does: str,
        *deeds: str | tuple[str, bytes],
        ends: tuple[str, ...] = ("ok",),
        **more: Any,
    ) -> Fault:
        more.setdefault("reqs", ("P7", "R2"))
        more.setdefault("after", "same")
        return Fault(name, does, at("fault", *deeds), ends, **more)

    def ask(method: bytes, identifier: bytes = b'"s1"', params: bytes = b"") -> tuple[str, bytes]:
        extra = b',"params":' + params if params else b""
        return line(b'{"jsonrpc":"2.0","id":%s,"method":"%s"%s}' % (identifier, method, extra))

    told = result(text(b"@REPLY@"))
    message = b'{"messages":[],"maxTokens":1}'
    form = b'{"message":"name?","requestedSchema":{"type":"object","properties":{}}}'
    yield row("asks-ping", "pings", ask(b"ping"), "listen:s1", told, value='"result": {}')
    yield row(
        "asks-ping-number",
        "pings with a number as id",
        ask(b"ping", b"77"),
        "listen:77",
        told,
        value='"result": {}',
    )
    yield row(
        "asks-ping-zero",
        "pings with the id 0",
        ask(b"ping", b"0"),
        "listen:0",
        told,
        value='"result": {}',
    )
    yield row(
        "asks-ping-empty-id",
        "pings with an empty string as id",
        ask(b"ping", b'""'),
        "listen:",
        told,
        value='"result": {}',
    )
    yield row(
        "asks-ping-odd-id",
        "pings with an id of quotes and newlines",
        ask(b"ping", b'"\\"\\n\\u2028"'),
        "await:answered",
        ANSWER,
    )
    yield row(
        "asks-unknown",
        "asks for a method nobody has",
        ask(b"rogue/steal"),
        "listen:s1",
        told,
        value='"code": -32601',
    )
    yield row(
        "asks-our-own",
        "asks us to call a tool",
        ask(b"tools/call", params=b'{"name":"x"}'),
        "listen:s1",
        told,
        value='"code": -32601',
    )
    for method, params in {
        "roots/list": b"{}",
        "sampling/createMessage": message,
        "elicitation/create": form,
    }.items():
        yield row(
            f"asks-{method.partition('/')[0]}-unhandled",
            f"asks for {method} of a client without a handler",
            ask(method.encode(), params=params),
            "listen:s1",
            told,
            value='"code": -32601',
        )
    handled = ("R12", "P4", "R2")
    sampling = ask(b"sampling/createMessage", params=message)
    yield row(
        "asks-handler-raises",
        "asks a handler that fails",
        sampling,
        "listen:s1",
        told,
        value='"error"',
        reqs=handled,
        options={"handlers": "raising"},
    )
    yield row(
        "asks-handler-blocks",
        "asks a handler that never ends, and answers without it",
        sampling,
        ANSWER,
        reqs=handled,
        options={"handlers": "blocking"},
    )
    yield row(
        "asks-handler-returns-nonsense",
        "asks a handler that returns what JSON cannot hold",
        sampling,
        "listen:s1",
        told,
        value='"error"',
        reqs=handled,
        options={"handlers": "nonsense"},
    )
    yield row(
        "asks-handler-is-slow-and-dies",
        "asks a handler that never ends, and exits",
        sampling,
        "exit:1",
        ends=("lost",),
        after="restarted",
        reqs=handled,
        options={"handlers": "blocking"},
    )
    yield Fault(
        "asks-handler-calls-back",
        "asks a handler that calls a tool of the same server",
        (*at("fault", sampling, "hold:1"), *at("answered", "release")),
        ("ok",),
        "same",
        handled,
        options={"handlers": "calling"},
    )
    yield row(
        "asks-and-comes-back",
        "asks a handler and exits; the answer comes when there is a new process",
        sampling,
        "exit:1",
        ends=("lost",),
        after="restarted",
        reqs=("L9", "R12"),
        drive="orphaned",
        options={"handlers": "gated"},
    )
    yield row(
        "asks-bad-params",
        "asks for sampling with a string as parameters",
        ask(b"sampling/createMessage", params=b'"x"'),
        "listen:s1",
        told,
        value='"error"',
        reqs=handled,
        options={"handlers": "good"},
    )
    yield row(
        "asks-and-cancels",
        "asks a handler that never ends, and takes it back",
        sampling,
        say(note(b"notifications/cancelled", b'{"requestId":"s1"}')),
        ANSWER,
        reqs=handled,
        options={"handlers": "blocking"},
    )
    yield row(
        "asks-and-cancels-another",
        "takes back what it never asked",
        say(note(b"notifications/cancelled", b'{"requestId":"s9"}')),
        ANSWER,
    )
    yield row(
        "asks-flood",
        "pings 3,000 times without reading, then reads",
        ("flood", b'3000:{"jsonrpc":"2.0","id":"p@I@","method":"ping"}\n'),
        "listen:p2999",
        told,
        value="p2999",
        reqs=("P7", "R8"),
    )
    yield row(
        "asks-flood-handled",
        "asks a handler that never ends 500 times, and answers",
        (
            "flood",
            b'500:{"jsonrpc":"2.0","id":"p@I@","method":"sampling/createMessage",'
            b'"params":' + message + b"}\n",
        ),
        ANSWER,
        reqs=("R8", "R12"),
        options={"handlers": "blocking"},
    )
    yield row(
        "asks-and-never-reads",
        "pings for ever and reads nothing",
        ("endless", b'{"jsonrpc":"2.0","id":5,"method":"ping"}\n'),
        ends=("timeout",),
        after="down",
        reqs=("R7", "R8"),
        drive="bounded_memory",
    )
    yield row(
        "asks-with-our-id",
        "pings with the id of the call under way",
        ask(b"ping", b"@ID@"),
        "await:answered",
        ANSWER,
    )
    for name, identifier in {
        "null": b"null",
        "fraction": b"1.5",
        "huge": b"9" * 40,
    }.items():
        yield row(
            f"asks-id-{name}",
            f"pings with the id {identifier.decode()}",
            ask(b"ping", identifier),
            ANSWER,
        )
    yield row(
        "asks-same-id-twice",
        "asks twice with the same id",
        ask(b"ping"),
        ask(b"ping"),
        "listen:s1",
        told,
        value='"result": {}',
    )
    yield Fault(
        "asks-during-initialize",
        "pings before it answers initialize",
        at("initialize", ask(b"ping"), "listen:s1", "good"),
        ("ok",),
        "same",
        ("P7", "L3"),
        "start",
        spawns=1,
    )
    yield Fault(
        "asks-before-anything",
        "pings before it reads anything",
        at("start", ask(b"ping")),
        ("ok",),
        "same",
        ("P7", "L3"),
        "start",
        spawns=1,
    )
    for method in ("ping", "roots/list", "rogue/steal"):
        yield row(
            f"asks-modern-{method.replace('/', '-')}",
            f"asks for {method} in an era without server requests",
            ask(method.encode()),
            ANSWER,
            era="modern",
            drive="unanswered",
        )
