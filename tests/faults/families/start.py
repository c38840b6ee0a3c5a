"""Programs that are no server, and servers that do not come up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tests.faults.rows import LOGGED, Fault, at, say


def programs() -> Iterator[Fault]:
    def row(
        name: str, does: str, *command: str, ends: tuple[str, ...] = ("transport",), **more: Any
    ) -> Fault:
        return Fault(
            name, does, (), ends, "down", ("E2", "L6", "R2"), "program", command=command, **more
        )

    yield row(
        "command-not-found",
        "is not there",
        "holdfast-no-such-command",
        says=("holdfast-no-such-command",),
    )
    yield row(
        "path-not-found",
        "is a path that leads nowhere",
        "{tmp}/nowhere/server",
        says=("nowhere/server",),
    )
    yield row(
        "not-executable", "is a file without the right to run", "{tmp}/plain", says=("plain",)
    )
    yield row("directory-as-command", "is a folder", "{tmp}", says=("{tmp}",))
    yield row("no-interpreter", "is a script whose interpreter is missing", "{tmp}/orphan")
    yield row("not-a-program", "is executable but no program", "{tmp}/gibberish")
    yield row(
        "folder-missing",
        "should start in a folder that is not there",
        sys.executable,
        options={"cwd": "{tmp}/no-such-folder"},
        says=("no-such-folder",),
    )
    yield row("true", "is `true`: exits with 0, reading nothing", "true", exit_code=0)
    yield row("false", "is `false`: exits with 1, reading nothing", "false", exit_code=1)
    yield row(
        "cat",
        "is `cat`: sends back whatever it is sent",
        "cat",
        ends=("protocol", "rpc", "handshake", "transport"),
    )
    yield row("yes", "is `yes`: writes `y` for ever", "yes", ends=("handshake",))
    yield row("yes-json", "writes `{}` for ever", "yes", "{}", ends=("handshake",))
    yield row(
        "zeros",
        "writes zero bytes for ever, never a newline",
        "cat",
        "/dev/zero",
        ends=("protocol",),
        options={"limits": {"frame_bytes": 1 << 20}},
    )
    yield row(
        "sleep", "is `sleep`: says nothing, reads nothing", "sleep", "60", ends=("handshake",)
    )


def starts() -> Iterator[Fault]:
    def row(
        name: str, does: str, *rules: str, ends: tuple[str, ...] = ("transport",), **more: Any
    ) -> Fault:
        return Fault(name, does, rules, ends, "mended", ("L5", "L6", "R2", "E2"), "start", **more)

    for code in (0, 127):
        yield row(
            f"exits-at-once-{code}",
            f"exits with {code} before it reads anything",
            *at("start", f"exit:{code}"),
            exit_code=code,
            says=(str(code),),
        )
    for name in ("SIGSEGV",):
        yield row(
            f"dies-at-once-{name.lower()}",
            f"dies of {name} before it reads anything",
            *at("start", f"kill:{name}"),
            says=(name,),
        )
    yield row(
        "traceback-at-start",
        "writes a traceback to stderr and exits with 1",
        *at(
            "start",
            ("err", b"Traceback (most recent call last):\nModuleNotFoundError: no 'frobnicate'\n"),
            "exit:1",
        ),
        exit_code=1,
        says=("1", "ModuleNotFoundError: no 'frobnicate'"),
    )
    yield row(
        "long-stderr-at-start",
        "writes 5,000 lines to stderr, the last one telling, and exits with 2",
        *at("start", ("errflood", b"5000:noise @I@\n"), ("err", b"the last straw\n"), "exit:2"),
        exit_code=2,
        says=("the last straw",),
    )
    yield row(
        "stderr-not-utf8-at-start",
        "writes bytes that are not UTF-8 to stderr, without a newline, and exits with 3",
        *at("start", ("err", b"caf\xe9 \xff\xfe \x00 closed"), "exit:3"),
        exit_code=3,
        says=("closed",),
    )
    yield row(
        "daemonises-at-start",
        "goes on in a child of its own and exits with 0",
        *at("start", "daemonise"),
        ends=("transport", "ok"),
    )
    yield row(
        "closes-stderr-at-start",
        "closes its stderr and is good",
        *at("start", "close:stderr"),
        ends=("ok",),
    )
    yield row(
        "exits-at-first-message",
        "exits with 1 at the first message, whatever it is",
        *at("discover", "exit:1"),
        *at("initialize", "exit:1"),
    )
    yield row(
        "exits-at-initialize",
        "exits with 4 when it is asked to initialize",
        *at("initialize", "exit:4"),
        exit_code=4,
    )
    yield row(
        "half-an-answer-at-initialize",
        "writes half of its answer to initialize and exits",
        *at("initialize", say(b'{"jsonrpc":"2.0","id":@ID@,"res'), "exit:1"),
    )
    yield row(
        "closes-stdout-at-start",
        "closes its stdout and lives on",
        *at("start", "close:stdout", "hang"),
    )
    yield row(
        "closes-stdin-at-start",
        "closes its stdin and lives on",
        *at("start", "close:stdin", "hang"),
        ends=("transport", "handshake"),
    )
    yield row(
        "silent",
        "reads everything and never answers",
        *at("discover"),
        *at("initialize"),
        ends=("handshake",),
    )
    yield row(
        "deaf-at-start", "neither reads nor writes", *at("start", "hang"), ends=("handshake",)
    )
    yield row(
        "stopped-at-start", "is stopped before it reads", *at("start", "stop"), ends=("handshake",)
    )
    yield row(
        "floods-instead-of-handshake",
        "writes notifications for ever instead of answering",
        *at("discover", ("endless", LOGGED)),
        ends=("handshake",),
    )
    yield row(
        "endless-line-at-start",
        "writes one line that never ends",
        *at("start", ("endless", b"x")),
        ends=("protocol",),
        options={"limits": {"frame_bytes": 1 << 20}},
    )
    yield row(
        "crowds-stderr-and-hangs",
        "writes to stderr for ever and never answers",
        *at("start", ("errspew", b"still starting\n"), "hang"),
        ends=("handshake",),
    )
