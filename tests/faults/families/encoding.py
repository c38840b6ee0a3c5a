"""What is between the bytes and the message."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.rows import ANSWER, Fault, at, line, note, say, text


def encodings() -> Iterator[Fault]:
    """What is between the bytes and the message."""

    def row(name: str, does: str, data: bytes, *ends: str, value: str | None = None) -> Fault:
        return Fault(
            name, does, at("fault", say(data)), ends, "same", ("R2", "R10", "X1"), value=value
        )

    def of(body: bytes) -> bytes:
        return b'{"jsonrpc":"2.0","id":@ID@,"result":' + body + b"}\n"

    def structured(value: bytes) -> bytes:
        return of(b'{"content":[],"structuredContent":{"n":%s}}' % value)

    lenient = ("ok", "protocol")
    junk = ("timeout", "protocol")
    unreadable = ("protocol",)
    yield row("huge-float", "answers with the number 1e999", structured(b"1e999"), *lenient)
    yield row(
        "huge-integer", "answers with a number of 400 digits", structured(b"9" * 400), *lenient
    )
    yield row("tiny-float", "answers with the number 1e-999", structured(b"1e-999"), *lenient)
    yield row(
        "long-fraction", "answers with 5,000 decimals", structured(b"0." + b"3" * 5000), *lenient
    )
    yield row("nan", "answers with NaN", structured(b"NaN"), *unreadable)
    yield row("infinity", "answers with -Infinity", structured(b"-Infinity"), *unreadable)
    yield row("deep", "answers with 100,000 nested lists", structured(b"@DEEP:100000@"), *lenient)
    yield row("deep-open", "opens 100,000 lists and closes none", b"@OPEN:100000@\n", *junk)
    yield row("deep-result", "answers with nested lists", of(b"@DEEP:100000@"), *unreadable)
    yield row("lone-surrogate", "escapes half a character", of(text(b'"\\ud800"')), "ok")
    yield row(
        "surrogates-swapped",
        "escapes a pair in the wrong order",
        of(text(b'"\\udc00\\ud800"')),
        *lenient,
    )
    yield row(
        "surrogate-pair",
        "escapes an emoji",
        of(text(b'"\\ud83d\\ude00"')),
        "ok",
        value="\N{GRINNING FACE}",
    )
    yield row("bad-escape", "uses an unknown escape", of(text(b'"\\uZZZZ \\q"')), *unreadable)
    yield row("escaped-nul", "escapes a NUL", of(text(b'"a\\u0000b"')), "ok", value="a\0b")
    yield row(
        "line-separators",
        "uses U+2028, U+2029 and U+0085 unescaped",
        of(text('"a\u2028b\u2029c\u0085d"'.encode())),
        "ok",
        value="a\u2028b\u2029c\u0085d",
    )
    yield row("invalid-utf8", "puts a stray byte into a string", of(text(b'"caf\xe9!"')), *lenient)
    yield row("overlong-utf8", "encodes a slash in two bytes", of(text(b'"\xc0\xaf"')), *lenient)
    yield row(
        "utf8-surrogate", "encodes half a character as UTF-8", of(text(b'"\xed\xa0\x80"')), *lenient
    )
    yield row(
        "utf8-cut", "cuts a character at the end of a string", of(text(b'"\xf0\x9f\x98"')), *lenient
    )
    yield row(
        "raw-control", "puts a control character into a string", of(text(b'"\x01"')), *lenient
    )
    yield row("raw-tab", "puts a tab into a string", of(text(b'"a\tb"')), *lenient)
    utf16 = b"".join(bytes([byte, 0]) for byte in b'{"jsonrpc":"2.0","id":1,"result":{}}\n')
    yield row("utf16", "answers in UTF-16", utf16 + b"\n", "timeout")
    yield row(
        "bom-first", "begins its answer with a byte order mark", b"\xef\xbb\xbf@ANSWER@\n", "ok"
    )
    yield row("nul-first", "begins its answer with a NUL", b"\0@ANSWER@\n", *lenient)
    yield row("nul-last", "ends its answer with a NUL", b"@ANSWER@\0\n", *lenient)
    yield row(
        "newline-inside",
        "breaks its answer over two lines",
        b'{"jsonrpc":"2.0","id":@ID@,\n"result":@RESULT@}\n',
        *junk,
    )
    yield row(
        "pretty-printed",
        "prints its answer prettily, over many lines",
        b'{\n  "jsonrpc": "2.0",\n  "id": @ID@,\n  "result": @RESULT@\n}\n',
        *junk,
    )
    yield row("crlf", "ends its lines with CRLF", b"@ANSWER@\r\n", "ok")
    yield row(
        "blanks-around", "puts blanks and tabs around its answer", b" \t @ANSWER@ \t \n", "ok"
    )
    yield row("two-on-a-line", "writes two messages on one line", b"@ANSWER@@ANSWER@\n", *lenient)
    yield row("text-before", "writes a log prefix before its answer", b"[info] @ANSWER@\n", "ok")
    yield row("text-behind", "writes text behind its answer", b"@ANSWER@ // done\n", *unreadable)
    yield row(
        "trailing-comma",
        "ends its object with a comma",
        b'{"jsonrpc":"2.0","id":@ID@,"result":@RESULT@,}\n',
        *junk,
    )
    yield row(
        "single-quotes", "uses single quotes", b"{'jsonrpc':'2.0','id':@ID@,'result':{}}\n", *junk
    )
    yield row(
        "truncated",
        "breaks off",
        b'{"jsonrpc":"2.0","id":@ID@,"resu\n',
        *unreadable,
    )
    yield row(
        "headers",
        "writes its answer with Content-Length headers",
        b"Content-Length: 52\r\n\r\n@ANSWER@\r\n",
        "ok",
    )
    yield row(
        "event-stream",
        "writes its answer as a server-sent event",
        b"event: message\ndata: @ANSWER@\n\n",
        "ok",
    )
    yield row("gzip", "writes compressed bytes", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xabV\xca\n", *junk)
    yield Fault(
        "cr-only",
        "ends its answer with CR alone, the newline following much later",
        (*at("fault", say(b"@ANSWER@\r")), *at("cancelled", say(b"\n"))),
        ("timeout", "ok"),
        "same",
        ("R10", "X1"),
    )
    yield Fault(
        "one-byte-writes",
        "writes its answer byte by byte",
        at("fault", ("trickle", b"@ANSWER@\n")),
        ("ok",),
        "same",
        ("X1",),
    )
    yield Fault(
        "split-newline",
        "writes its newline only when told to stop",
        (*at("fault", say(b"@ANSWER@")), *at("cancelled", say(b"\n"))),
        ("timeout",),
        "same",
        ("X1", "R5"),
    )


def batches() -> Iterator[Fault]:
    stray = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}'
    shapes = {
        "one": (b"[@ANSWER@]\n", "its answer in an array", True),
        "mixed": (b'[%s,7,null,"x",{},@ANSWER@]\n' % stray, "its answer among junk", True),
        "empty": (b"[]\n@ANSWER@\n", "an empty array first", None),
        "nested": (b"[[@ANSWER@]]\n", "its answer in an array of an array", False),
        "numbers": (b"[1,2,3]\n@ANSWER@\n", "an array of numbers first", None),
        "twice": (b"[@ANSWER@,@ANSWER@]\n", "its answer twice in one array", True),
        "long": (
            b"[" + b"%s," % stray * 500 + b"@ANSWER@]\n",
            "its answer behind 500 others",
            True,
        ),
    }
    for version in ("2025-03-26", "2025-06-18", ""):
        tried = shapes.items() if version == "2025-03-26" else [("mixed", shapes["mixed"])]
        for name, (data, does, legal) in tried:
            allowed = version == "2025-03-26"
            if legal is None or (legal and allowed):
                ends: tuple[str, ...] = ("ok",)
            elif legal:
                ends = ("protocol",)
            else:
                ends = ("timeout", "ok", "protocol")
            yield Fault(
                f"batch-{name}-{version or 'modern'}",
                f"sends {does} ({version or '2026-07-28'})",
                at("fault", say(data)),
                ends,
                "same",
                ("R10", "L3"),
                version=version,
                era="legacy" if version else "modern",
            )


def junk() -> Iterator[Fault]:
    """Lines that are no messages, before a good answer: counted, and nothing is lost."""
    lines = {
        "blank": b"",
        "blanks": b"   \t ",
        "many-blanks": b"\n" * 5000,
        "text": b"DEBUG handling tools/call",
        "null": b"null",
        "string": b'"hello"',
        "object": b"{}",
        "only-jsonrpc": b'{"jsonrpc":"2.0"}',
        "method-number": b'{"jsonrpc":"2.0","method":5}',
        "not-utf8": b"\xff\xfe\xfd\x80",
        "nul": b"\0\0\0",
        "ansi": b"\x1b[2J\x1b[1;1Hworking",
        "progress-bar": b"\r 10%\r 50%\r100%",
        "half-json": b'{"jsonrpc":"2.0","id":1,"res',
        "long-text": b"@PAD:300000@",
        "many-lines": b"\n".join(b"line %d" % n for n in range(2000)),
    }
    for name, data in lines.items():
        yield _before_answer(f"junk-{name}", data, junk=True)
    for name in ("text", "half-json"):
        yield _before_answer(f"junk-{name}-modern", lines[name], junk=True, era="modern")


def notes() -> Iterator[Fault]:
    """Odd notifications before a good answer."""
    params = {
        "params-list": ("message", b"[1]"),
        "params-null": ("message", b"null"),
        "unknown": ("rogue", b"{}"),
        "long": ("message", b'{"level":"info","data":"@PAD:1048576@"}'),
        "log-wrong": ("message", b'{"level":7}'),
        "updated-wrong": ("resources/updated", b'{"uri":7}'),
        "updated-no-params": ("resources/updated", b"{}"),
        "cancelled-unknown": ("cancelled", b'{"requestId":12345}'),
        "cancelled-ours": ("cancelled", b'{"requestId":@ID@}'),
        "cancelled-nothing": ("cancelled", b"{}"),
        "cancelled-wrong": ("cancelled", b'{"requestId":{"a":[]}}'),
        "initialized": ("initialized", b"{}"),
        "acknowledged-wrong": (
            "subscriptions/acknowledged",
            b'{"_meta":{"io.modelcontextprotocol/subscriptionId":[]}}',
        ),
        "meta-wrong": ("message", b'{"_meta":7}'),
    }
    again = ("updated-wrong", "cancelled-ours", "acknowledged-wrong")
    for era in ("legacy", "modern"):
        suffix = "-modern" if era == "modern" else ""
        for name, (method, body) in params.items():
            if era == "legacy" or name in again:
                data = note(b"notifications/" + method.encode(), body)[:-1]
                yield _before_answer(f"note-{name}{suffix}", data, era=era)
        bare = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
        yield _before_answer(f"note-bare{suffix}", bare, era=era)
    yield _before_answer("note-method-empty", b'{"jsonrpc":"2.0","method":""}')


def _before_answer(name: str, data: bytes, *, junk: bool = False, era: str = "legacy") -> Fault:
    return Fault(
        name,
        f"writes {ascii(data.decode('latin-1'))[:60]} before its answer",
        at("fault", line(data), ANSWER),
        ("ok",),
        "same",
        ("R10", "X1", "R2"),
        era=era,
        junk=junk,
    )
