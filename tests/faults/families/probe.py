"""The probe, which era the server is of, and what it prints before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.rows import LOGGED, Fault, at, line, refusal, result, say


def probes() -> Iterator[Fault]:
    def row(
        name: str,
        does: str,
        *rules: str,
        ends: tuple[str, ...] = ("ok",),
        after: str = "same",
        **more: Any,
    ) -> Fault:
        return Fault(name, does, rules, ends, after, ("L3", "R2"), "start", **more)

    legacy: dict[str, Any] = {"agreed": "2025-06-18", "spawns": 1}
    modern: dict[str, Any] = {"agreed": "2026-07-28", "spawns": 1, "era": "modern"}
    for code in (-32601, -32000, 42, '"-32601"', "null"):
        yield row(
            f"discover-error{code}".replace('"', "'"),
            f"refuses the probe with code {code} and then initializes well",
            *at("discover", refusal(code)),
            **legacy,
        )
    garbage = {
        "null": b"null",
        "empty": b"{}",
        "versions-string": b'{"supportedVersions":"2026-07-28"}',
        "versions-null": b'{"supportedVersions":null,"capabilities":{}}',
    }
    for name, body in garbage.items():
        yield row(
            f"discover-result-{name}",
            f"answers the probe with {body.decode()} and then initializes well",
            *at("discover", result(body)),
            **legacy,
        )
    yield row(
        "discover-junk",
        "answers the probe with a line of text and then initializes well",
        *at("discover", line(b"unknown command: server/discover")),
        **legacy,
    )
    yield row(
        "discover-silence",
        "stays silent at the probe and then initializes well",
        *at("discover"),
        **legacy,
    )
    yield row(
        "discover-silence-then-death",
        "stays silent at the probe and dies at the next message; good when initialized first",
        *at("discover", "await:initialize", "exit:1"),
        agreed="2025-06-18",
        spawns=2,
    )
    yield row(
        "discover-kills",
        "dies of the probe; good when initialized first",
        *at("discover", "exit:1"),
        agreed="2025-06-18",
        spawns=2,
    )
    yield row(
        "discover-late-after-refusal",
        "is modern but slow: refuses the hedged initialize, then answers the probe",
        *at("discover", "hold:9"),
        *at("initialize", "good", "release"),
        **modern,
    )
    yield row(
        "discover-late-before-refusal",
        "is modern but slow: answers the probe late, then refuses the hedged initialize",
        *at("discover", "hold:9"),
        *at("initialize", "release", "good"),
        **modern,
    )
    yield row(
        "discover-late-and-initialize",
        "is of both eras and slow: answers initialize, then the probe",
        *at("discover", "hold:9"),
        *at("initialize", "good", "release"),
        era="both",
        spawns=1,
    )
    yield row(
        "discover-legacy-only",
        "answers the probe and lists a handshake revision only",
        *at("discover", result(b'{"supportedVersions":["2025-06-18"],"capabilities":{}}')),
        era="both",
        agreed="2025-06-18",
    )
    yield row(
        "discover-mixed-versions",
        "lists a good version among nonsense",
        *at(
            "discover",
            result(b'{"supportedVersions":["2099-01-01",7,null,"2026-07-28"],"capabilities":{}}'),
        ),
        **modern,
    )
    for name, versions in {"unknown": b'["2099-01-01"]', "none": b"[]"}.items():
        yield row(
            f"discover-versions-{name}",
            f"lists the versions {versions.decode()} and is modern",
            *at("discover", result(b'{"supportedVersions":%s,"capabilities":{}}' % versions)),
            era="modern",
            ends=("protocol", "rpc:-32022"),
            after="final",
        )
    unsupported = {
        "legacy": (b'{"supported":["2025-06-18"]}', ("ok",), "both"),
        "unknown": (b'{"supported":["2099-01-01"]}', ("protocol", "rpc:-32022"), "modern"),
        "same": (b'{"supported":["2026-07-28"]}', ("protocol", "rpc:-32022"), "modern"),
        "no-data": (b"null", ("protocol", "rpc:-32022"), "modern"),
        "wrong-data": (b'{"supported":"2025-06-18"}', ("protocol", "rpc:-32022"), "modern"),
    }
    for name, (data, ends, era) in unsupported.items():
        yield row(
            f"discover-unsupported-{name}",
            f"refuses the probe with -32022 and data {data.decode()}",
            *at("discover", refusal(-32022, data)),
            ends=ends,
            era=era,
            after="same" if ends == ("ok",) else "final",
        )
    yield row(
        "discover-no-server-info",
        "answers the probe without its name",
        *at("discover", result(b'{"supportedVersions":["2026-07-28"],"capabilities":{}}')),
        **modern,
    )
    yield row(
        "discover-wrong-server-info",
        "answers the probe with a name that is a number and wrong capabilities",
        *at(
            "discover",
            result(
                b'{"supportedVersions":["2026-07-28"],"capabilities":[],"_meta":'
                b'{"io.modelcontextprotocol/serverInfo":5},"instructions":9}'
            ),
        ),
        **{**modern, "ends": ("ok", "protocol"), "after": "mended"},
    )
    yield row("slow-start", "reads its stdin late", *at("start", "sleep:0.5"), **legacy)
    yield row(
        "slow-start-modern",
        "is modern and reads its stdin late",
        *at("start", "sleep:0.5"),
        **modern,
    )


def banners() -> Iterator[Fault]:
    shown = {
        "text": (b"Server running on stdio\n", "a line of text"),
        "ansi": (b"\x1b[32m\x1b[1mready\x1b[0m\n", "a coloured line"),
        "bom": (b"\xef\xbb\xbf\n", "a byte order mark"),
        "blank": (b"\n\n\r\n \n\t\n", "blank lines"),
        "long": (b"@PAD:65536@\n", "64 KiB without a newline, then one"),
        "crlf": (b"Microsoft Windows\r\n(c) Corporation\r\n", "lines with CRLF"),
        "latin1": (b"d\xe9marrage\n", "a line that is not UTF-8"),
        "box": ("╭──╮\n│ok│\n╰──╯\n".encode(), "a box"),
        "many": (b"loading...\n" * 500, "500 lines"),
        "json": (b'{"level":"info","msg":"up"}\n', "a line of JSON that is no message"),
        "notification": (LOGGED, "a notification nobody asked for"),
        "answer": (b'{"jsonrpc":"2.0","id":424242,"result":{}}\n', "an answer to nobody"),
    }
    for name, (data, does) in shown.items():
        for era in ("legacy", "modern") if name in ("text", "notification") else ("legacy",):
            yield Fault(
                f"banner-{name}" + ("-modern" if era == "modern" else ""),
                f"prints {does} on stdout before anything else",
                at("start", say(data)),
                ("ok",),
                "same",
                ("R10", "X1", "L3"),
                "start",
                era=era,
                spawns=1,
            )
    for era in ("legacy", "modern"):
        yield Fault(
            "banner-glued" + ("-modern" if era == "modern" else ""),
            "prints a banner without a newline, glued to its first answer",
            at("start", say(b"Starting... ")),
            ("ok",),
            "same",
            ("R10", "X1", "L3"),
            "start",
            era=era,
        )
