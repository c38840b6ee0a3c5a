"""Lists, results and resources of the wrong shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import CHANGED, Fault, at, refusal, result, say


def lists() -> Iterator[Fault]:
    def row(
        name: str, does: str, *rules: str, ends: tuple[str, ...] = ("ok",), **more: Any
    ) -> Fault:
        more.setdefault("reqs", ("T1", "R2"))
        return Fault(name, does, rules, ends, "same", drive="list", **more)

    def page(tools: bytes, cursor: bytes = b"") -> tuple[str, bytes]:
        following = b',"nextCursor":' + cursor if cursor else b""
        return result(b'{"tools":[%s]%s}' % (tools, following))

    few = {"limits": {"pages": 20}}
    for era in ("legacy", "modern"):
        suffix = "-modern" if era == "modern" else ""
        yield row(
            f"pages-endless{suffix}",
            "has a next page for ever",
            *at("list", page(b"@TOOL@", b'"page @COUNT@"')),
            ends=("protocol",),
            options=few,
            era=era,
        )
        yield row(
            f"pages-repeated-cursor{suffix}",
            "gives the same cursor again and again",
            *at("list", page(b"@TOOL@", b'"same"')),
            ends=("protocol",),
            era=era,
        )
        yield row(
            f"pages-empty-cursor{suffix}",
            "gives an empty string as cursor, and means it",
            *at("list#1", page(b"@TOOL@", b'""')),
            *at("list", page(b"@TOOL@")),
            count=2,
            era=era,
        )
    yield row(
        "pages-cursor-cycle",
        "leads from a to b to a",
        *at("list#1", page(b"@TOOL@", b'"a"')),
        *at("list#2", page(b"@TOOL@", b'"b"')),
        *at("list", page(b"@TOOL@", b'"a"')),
        ends=("protocol",),
    )
    yield row(
        "pages-null-cursor",
        "gives null as cursor: the end",
        *at("list", page(b"@TOOL@", b"null")),
        count=1,
        ends=("ok", "protocol"),
    )
    for name, cursor in {"number": b"7", "object": b'{"page":2}'}.items():
        yield row(
            f"pages-cursor-{name}",
            f"gives {cursor.decode()} as cursor",
            *at("list", page(b"@TOOL@", cursor)),
            ends=("protocol",),
        )
    yield row(
        "pages-empty-pages",
        "gives 15 empty pages before a tool",
        *(rule for n in range(1, 16) for rule in at(f"list#{n}", page(b"", b'"%d"' % n))),
        *at("list", page(b"@TOOL@")),
        count=1,
    )
    yield row(
        "pages-fail-midway",
        "refuses the second page",
        *at("list#1", page(b"@TOOL@", b'"2"')),
        *at("list", refusal(-32602)),
        ends=("rpc:-32602",),
    )
    for name, body in {
        "missing": b"{}",
        "null": b'{"tools":null}',
        "object": b'{"tools":{}}',
        "string": b'{"tools":"echo"}',
    }.items():
        yield row(
            f"tools-{name}",
            f"lists {body.decode()}",
            *at("list", result(body)),
            ends=("protocol", "ok"),
            count=0,
        )
    malformed = {
        "null": b"null",
        "empty": b"{}",
        "no-name": b'{"inputSchema":{"type":"object"}}',
        "name-number": b'{"name":7,"inputSchema":{"type":"object"}}',
        "schema-string": b'{"name":"bad","inputSchema":"object"}',
        "schema-missing": b'{"name":"bad"}',
        "description-list": b'{"name":"bad","description":[],"inputSchema":{"type":"object"}}',
        "annotations-string": b'{"name":"bad","inputSchema":{},"annotations":"x"}',
        "output-schema-number": b'{"name":"bad","inputSchema":{},"outputSchema":3}',
    }
    for name, tool in malformed.items():
        yield row(
            f"tool-{name}",
            f"lists the tool {tool.decode()[:60]} among good ones",
            *at("list", page(b"@TOOL:1@," + tool + b",@TOOL:2@")),
            count=-2,
        )
    yield row("tools-10000", "lists 10,000 tools", *at("list", page(b"@TOOLS:10000@")), count=10000)
    yield row(
        "tools-duplicate",
        "lists a tool three times",
        *at("list", page(b"@TOOL:1@,@TOOL:1@,@TOOL:1@,@TOOL:2@")),
        count=-2,
    )
    yield row(
        "tools-deep-schema",
        "lists a tool with a schema of 5,000 nested lists",
        *at("list", page(b'@TOOL:1@,{"name":"deep","inputSchema":{"x":@DEEP:5000@}},@TOOL:2@')),
        ends=("ok", "protocol", "timeout"),
        count=-2,
    )
    yield row(
        "tools-odd-names",
        "lists tools with odd names",
        *at(
            "list",
            page(
                b'@TOOL:1@,@TOOL:2@,{"name":"","inputSchema":{}},'
                b'{"name":"\\u0000\\u202e","inputSchema":{}}'
            ),
        ),
        count=-2,
    )
    yield row(
        "tools-changed-while-listing",
        "says that its tools changed within every page",
        *at("list", say(CHANGED * 50), page(b"@TOOL:1@"), say(CHANGED * 50)),
        count=1,
    )
    yield row("list-never-answered", "never answers tools/list", *at("list"), ends=("timeout",))


def results() -> Iterator[Fault]:
    """Results of the right shape on the wire and the wrong one inside."""
    bodies: dict[str, tuple[bytes, tuple[str, ...]]] = {
        "no-content": (b"{}", ("ok", "protocol")),
        "content-null": (b'{"content":null}', ("protocol", "ok")),
        "content-string": (b'{"content":"hello"}', ("protocol",)),
        "content-object": (b'{"content":{"type":"text","text":"x"}}', ("protocol",)),
        "item-null": (b'{"content":[null]}', ("protocol", "ok")),
        "item-string": (b'{"content":["x"]}', ("protocol", "ok")),
        "item-no-type": (b'{"content":[{"text":"x"}]}', ("ok", "protocol")),
        "item-unknown-type": (b'{"content":[{"type":"hologram","beam":1}]}', ("ok",)),
        "text-number": (b'{"content":[{"type":"text","text":7}]}', ("protocol", "ok")),
        "image-no-data": (b'{"content":[{"type":"image"}]}', ("ok", "protocol")),
        "image-bad-base64": (
            b'{"content":[{"type":"image","data":"!","mimeType":"image/png"}]}',
            ("ok", "protocol"),
        ),
        "is-error-string": (b'{"content":[],"isError":"yes"}', ("protocol", "ok")),
        "structured-list": (b'{"content":[],"structuredContent":[1]}', ("ok", "protocol")),
        "meta-list": (b'{"content":[],"_meta":[]}', ("ok", "protocol")),
        "many-items": (
            b'{"content":[' + b'{"type":"text","text":""},' * 2999 + b'{"type":"x"}]}',
            ("ok",),
        ),
    }
    for name, (body, ends) in bodies.items():
        yield Fault(
            f"tool-{name}",
            f"answers with the tool result {body.decode()[:60]}",
            at("fault", result(body)),
            ends,
            "same",
            ("T2", "R2"),
        )


def resources() -> Iterator[Fault]:
    def row(
        name: str,
        does: str,
        *deeds: str | tuple[str, bytes],
        ends: tuple[str, ...],
        reqs: tuple[str, ...] = ("P1", "R2"),
        era: str = "legacy",
    ) -> Fault:
        return Fault(name, does, at("resources/read", *deeds), ends, "same", reqs, "read", era=era)

    for code in (-32002, -32602):
        for era in ("legacy", "modern"):
            yield row(
                f"resource-missing{code}" + ("-modern" if era == "modern" else ""),
                f"says with {code} that there is no such resource",
                refusal(code, b'{"uri":"test://one"}'),
                ends=(f"missing:{code}",),
                reqs=("E3", "P1"),
                era=era,
            )
    yield row(
        "resource-error",
        "fails to read a resource",
        refusal(-32603),
        ends=("rpc:-32603",),
        reqs=("E3", "P1"),
    )
    for name, body in {
        "no-contents": b"{}",
        "contents-null": b'{"contents":null}',
        "contents-string": b'{"contents":"x"}',
        "item-null": b'{"contents":[null]}',
        "item-bare": b'{"contents":[{}]}',
        "blob-number": b'{"contents":[{"uri":"test://one","blob":7}]}',
    }.items():
        yield row(
            f"resource-{name}",
            f"answers a read with {body.decode()}",
            result(body),
            ends=("protocol", "ok"),
        )
    yield row(
        "resource-bad-base64",
        "answers a read with a blob that is not base64",
        result(b'{"contents":[{"uri":"test://one","blob":"!!!!"}]}'),
        ends=("ok", "protocol"),
    )
    yield row(
        "resource-other-uri",
        "answers a read with another resource",
        result(b'{"contents":[{"uri":"test://two","text":"two"}]}'),
        ends=("ok", "protocol"),
    )
