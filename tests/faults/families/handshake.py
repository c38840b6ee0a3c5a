"""The answer to initialize."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import ANSWER, LOGGED, Fault, at, error, line, refusal, result, say


def handshakes() -> Iterator[Fault]:
    def row(
        name: str, does: str, *deeds: str | tuple[str, bytes], ends: tuple[str, ...], **more: Any
    ) -> Fault:
        after = more.pop("after", "same" if ends == ("ok",) else "mended")
        return Fault(
            name,
            f"answers initialize {does}",
            at("initialize", *deeds),
            ends,
            after,
            ("L3", "R2", "R10"),
            "start",
            **more,
        )

    wrong = ("protocol",)
    lenient = ("ok", "protocol")
    yield row("initialize-null", "with null", result(b"null"), ends=wrong)
    yield row("initialize-list", "with a list", result(b"[]"), ends=wrong)
    yield row("initialize-empty", "with an empty object", result(b"{}"), ends=wrong)

    def body(version: bytes, capabilities: bytes = b"{}", info: bytes = b"") -> bytes:
        server = info or b'{"name":"rogue","version":"1"}'
        return b'{"protocolVersion":%s,"capabilities":%s,"serverInfo":%s}' % (
            version,
            capabilities,
            server,
        )

    known = b'"2025-06-18"'
    for name, version in {
        "unknown": b'"2099-01-01"',
        "number": b"20250618",
        "null": b"null",
    }.items():
        yield row(
            f"initialize-version-{name}",
            f"with the version {version.decode()}",
            result(body(version)),
            ends=wrong,
            after="final",
        )
    yield row(
        "initialize-version-modern",
        "with a revision that has no initialize",
        result(body(b'"2026-07-28"')),
        ends=lenient,
        after="final",
    )
    yield row(
        "initialize-old-version",
        "with the oldest revision",
        result(body(b'"2024-11-05"')),
        ends=("ok",),
        agreed="2024-11-05",
    )
    yield row(
        "initialize-echoes-version",
        "with whatever version it was asked for",
        result(body(b'"2025-11-25"')),
        ends=("ok",),
        agreed="2025-11-25",
    )
    yield row(
        "initialize-no-server-info",
        "without serverInfo",
        result(b'{"protocolVersion":%s,"capabilities":{}}' % known),
        ends=lenient,
    )
    yield row(
        "initialize-server-info-wrong",
        "with a serverInfo that is a string",
        result(body(known, info=b'"rogue"')),
        ends=lenient,
    )
    yield row(
        "initialize-no-capabilities",
        "without capabilities",
        result(b'{"protocolVersion":%s,"serverInfo":{"name":"r","version":"1"}}' % known),
        ends=lenient,
    )
    yield row(
        "initialize-capabilities-wrong",
        "with capabilities that are a list",
        result(body(known, b'["tools"]')),
        ends=lenient,
    )
    yield row(
        "initialize-twice",
        "twice",
        ANSWER,
        ANSWER,
        ends=("ok",),
    )
    yield row(
        "initialize-after-noise",
        "after a log line, a notification, a blank line and an answer to nobody",
        line(b"INFO listening"),
        say(LOGGED),
        line(b""),
        line(b'{"jsonrpc":"2.0","id":987654,"result":{}}'),
        ANSWER,
        ends=("ok",),
    )
    for code in (-32602, -32000, 0, 2147483648):
        yield row(
            f"initialize-error{code:+d}",
            f"with error {code}",
            refusal(code, b'{"why":"because"}'),
            ends=(f"rpc:{code}", "protocol"),
            says=("refused",),
        )
    yield row(
        "initialize-error-malformed",
        "with an error that is a string",
        error(b'"no"'),
        ends=("protocol", "rpc"),
    )
    yield row(
        "initialize-both",
        "with a result and an error",
        line(b'{"jsonrpc":"2.0","id":@ID@,"result":@RESULT@,"error":{"code":1,"message":"x"}}'),
        ends=("protocol", "rpc", "ok"),
    )
