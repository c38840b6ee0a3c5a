"""Answers to a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import ANSWER, PATIENT, Fault, at, error, line, refusal, result, text


def answers() -> Iterator[Fault]:
    def row(
        name: str, does: str, *deeds: str | tuple[str, bytes], ends: tuple[str, ...], **more: Any
    ) -> Fault:
        more.setdefault("reqs", ("R2", "R5", "R10"))
        more.setdefault("after", "same")
        return Fault(name, does, at("fault", *deeds), ends, **more)

    late = ("R2", "R4", "R5")
    good = ("ok",)
    wrong = ("protocol",)
    lenient = ("ok", "protocol")
    silent = ("timeout",)
    yield row("never-answers", "never answers a call", ends=silent, reqs=late)
    yield row(
        "late",
        "answers only after it was told to stop",
        "await:cancelled",
        ANSWER,
        ends=silent,
        reqs=late,
    )
    yield row(
        "late-error",
        "answers with an error after it was told to stop",
        "await:cancelled",
        refusal(-32800),
        ends=silent,
        reqs=late,
    )
    yield row(
        "late-many",
        "answers a hundred times after it was told to stop",
        "await:cancelled",
        ("flood", b"100:@ANSWER@\n"),
        ends=silent,
        reqs=late,
    )
    yield row("twice", "answers twice", ANSWER, ANSWER, ends=good)
    yield row(
        "a-thousand-times", "answers a thousand times", ("flood", b"1000:@ANSWER@\n"), ends=good
    )
    yield row(
        "result-then-error", "answers well, then with an error", ANSWER, refusal(-1), ends=good
    )
    yield row(
        "error-then-result",
        "answers with an error, then well",
        refusal(-1),
        ANSWER,
        ends=("rpc:-1",),
    )
    yield row(
        "forged-next",
        "answers the next 50 requests before they are sent",
        *(
            line(b'{"jsonrpc":"2.0","id":@NEXT:%d@,"result":%s}' % (n, text(b'"forged"')))
            for n in range(1, 51)
        ),
        ANSWER,
        ends=good,
    )
    for name, identifier in {
        "unknown": b"99999999",
        "null": b"null",
        "list": b"[1]",
        "huge": b"1" + b"0" * 40,
        "text": b'"abc"',
        "fraction": b"0.5",
    }.items():
        stray = line(b'{"jsonrpc":"2.0","id":%s,"result":{}}' % identifier)
        yield row(
            f"id-{name}-first",
            f"answers the id {identifier.decode()} first",
            stray,
            ANSWER,
            ends=good,
        )
    yield row(
        "id-unknown-only",
        "answers an id that nobody waits for instead",
        line(b'{"jsonrpc":"2.0","id":99999999,"result":{}}'),
        ends=silent,
    )
    yield row(
        "id-as-string",
        "answers with the id as a string",
        line(b'{"jsonrpc":"2.0","id":"@ID@","result":@RESULT@}'),
        ends=("timeout", "ok"),
    )
    yield row(
        "id-as-float",
        "answers with the id as 7.0",
        line(b'{"jsonrpc":"2.0","id":@ID@.0,"result":@RESULT@}'),
        ends=("timeout", "ok"),
    )
    yield row(
        "id-missing",
        "answers without an id",
        line(b'{"jsonrpc":"2.0","result":@RESULT@}'),
        ends=silent,
    )
    yield row(
        "error-id-null",
        "reports an error with a null id first, then answers",
        line(b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}'),
        ANSWER,
        ends=good,
    )
    both = b'{"jsonrpc":"2.0","id":@ID@,"result":@RESULT@,"error":{"code":5,"message":"x"}}'
    yield row("both", "answers with a result and an error", line(both), ends=wrong)
    yield row("neither", "answers with neither", line(b'{"jsonrpc":"2.0","id":@ID@}'), ends=wrong)
    yield row(
        "error-null-beside-result",
        "answers with a result and a null error, as JSON-RPC 1.0 did",
        line(b'{"jsonrpc":"2.0","id":@ID@,"result":@RESULT@,"error":null}'),
        ends=lenient,
    )
    yield row(
        "result-null-beside-error",
        "answers with an error and a null result, as JSON-RPC 1.0 did",
        line(b'{"jsonrpc":"2.0","id":@ID@,"result":null,"error":{"code":5,"message":"x"}}'),
        ends=("rpc:5", "protocol"),
    )
    for name, body in {
        "list": b"[]",
        "null": b"null",
    }.items():
        for era in ("legacy", "modern"):
            yield row(
                f"result-{name}" + ("-modern" if era == "modern" else ""),
                f"answers with the result {body.decode()}",
                result(body),
                ends=wrong,
                era=era,
            )
    for name, body in {
        "string": b'"no"',
        "null": b"null",
        "empty": b"{}",
        "no-code": b'{"message":"no"}',
        "string-code": b'{"code":"E_NO","message":"no"}',
        "huge-code": b'{"code":%s,"message":"no"}' % (b"9" * 30),
        "no-message": b'{"code":-32000}',
        "object-message": b'{"code":-32000,"message":{"en":"no"}}',
    }.items():
        yield row(
            f"error-{name}",
            f"answers with the error {body.decode()[:60]}",
            error(body),
            ends=("protocol", "rpc"),
            reqs=("R2", "E3"),
        )
    for code in (-32601, -32002, 0, 1):
        yield row(
            f"error{code:+d}",
            f"answers with error {code} and data",
            refusal(code, b'{"deep":[1,{"x":null}]}'),
            ends=(f"rpc:{code}",),
            says=("refused",),
            reqs=("E3", "R2"),
            drive="refused",
        )
    yield row(
        "error-long-message",
        "answers with an error of 1 MiB",
        error(b'{"code":-32000,"message":"@PAD:1048576@"}'),
        ends=("rpc:-32000",),
        reqs=("E3",),
    )
    yield row(
        "extra-fields",
        "adds fields nobody knows",
        line(b'{"x":1,"jsonrpc":"2.0","y":[{}],"id":@ID@,"result":@RESULT@,"method2":"z"}'),
        ends=good,
    )
    yield row(
        "fields-in-any-order",
        "puts the id last",
        line(b'{"result":@RESULT@,"jsonrpc":"2.0","id":@ID@}'),
        ends=good,
    )
    for name, version in {
        "missing": b"",
        "1.0": b'"jsonrpc":"1.0",',
        "number": b'"jsonrpc":2.0,',
    }.items():
        yield row(
            f"jsonrpc-{name}",
            f"answers with jsonrpc {name}",
            line(b"{" + version + b'"id":@ID@,"result":@RESULT@}'),
            ends=lenient,
        )
    yield row(
        "method-beside-result",
        "answers with a message that is also a request",
        line(b'{"jsonrpc":"2.0","id":@ID@,"method":"ping","result":@RESULT@}'),
        ends=("ok", "protocol", "timeout"),
    )
    yield row(
        "duplicate-id-key",
        "gives the id twice",
        line(b'{"jsonrpc":"2.0","id":@ID@,"id":@ID@,"result":@RESULT@}'),
        ends=lenient,
    )
    yield row(
        "duplicate-result-key",
        "gives the result twice",
        line(b'{"jsonrpc":"2.0","id":@ID@,"result":{"content":[]},"result":@RESULT@}'),
        ends=lenient,
    )


def concurrency() -> Iterator[Fault]:
    def row(name: str, does: str, *deeds: str, **more: Any) -> Fault:
        return Fault(name, does, at("fault", *deeds), ("ok",), "same", ("R2", "R5"), "many", **more)

    for era in ("legacy", "modern"):
        suffix = "-modern" if era == "modern" else ""
        yield row(
            f"shuffled{suffix}",
            "answers 50 calls in any order",
            "hold:50",
            "release:shuffled",
            count=50,
            era=era,
        )
    yield row("backwards", "answers 50 calls in reverse", "hold:50", "release:backwards", count=50)
    yield row(
        "all-in-one-write",
        "answers 200 calls in one write",
        "hold:200",
        "release:at once",
        count=200,
    )
    yield row(
        "answers-all-twice",
        "answers 50 calls, and all of them again",
        "hold:50",
        "release:shuffled",
        count=50,
    )
    yield Fault(
        "half-never-answered",
        "answers every other call and never the rest",
        tuple(rule for n in range(1, 41, 2) for rule in at(f"fault#{n}")),
        ("ok", "timeout"),
        "same",
        ("R2", "R4"),
        "halves",
        count=40,
        timeout=PATIENT,
    )
