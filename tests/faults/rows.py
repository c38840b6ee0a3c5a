"""What a row of the catalogue is, and small words to write one with."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.faults.rogue import encode_text

PATIENT = 100.0
"""Seconds for what a server does do, on a machine that may be busy."""

ROGUE = Path(__file__).with_name("rogue.py")
TEMPORARY = "{tmp}"
"""Stands for the test's own folder in rules, commands and options."""

ENDS = {
    "ok": "an answer",
    "timeout": "timeout",
    "handshake": "handshake timeout",
    "lost": "transport error, outcome unknown",
    "unsent": "transport error, nothing sent",
    "transport": "transport error",
    "protocol": "protocol error",
    "rpc": "the server's error",
    "state": "state error",
    "backpressure": "back-pressure error",
    "validation": "validation error",
    "missing": "no such resource",
}
AFTER = {
    "same": "the same process goes on",
    "restarted": "a new process serves the next call",
    "either": "the next call is served",
    "mended": "connects once the server is mended",
    "final": "the client has given up and says why",
    "down": "the next call ends in a typed error in time",
    "closed": "close() is bounded and leaves nothing",
}


@dataclass(frozen=True)
class Fault:
    """One misbehaviour."""

    name: str
    does: str
    rules: tuple[str, ...]
    ends: tuple[str, ...]
    after: str
    reqs: tuple[str, ...]
    drive: str = "call"
    """How the client is used, one of ``tests.faults.drives.DRIVES``."""
    era: str = "legacy"
    version: str = ""
    agreed: str = ""
    """The revision that must have been agreed."""
    command: tuple[str, ...] = ()
    """Another program than the rogue."""
    says: tuple[str, ...] = ()
    """What the error's message must tell."""
    value: str | None = None
    """What the answer's text must hold."""
    lives: int | None = None
    """The starts for which the rules hold."""
    heir: str = ""
    """The era of the server after those."""
    exit_code: int | None = None
    spawns: int | None = None
    """How many processes the first connection may take."""
    junk: bool = False
    """What the server writes must be counted as a violation."""
    count: int = 1
    """Concurrent calls, listed tools, rounds, starts: what the drive counts."""
    size: int = 0
    """Bytes of argument that the call carries."""
    timeout: float = 0.0
    """Seconds for the call; 0 chooses by the expected end."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of ``connect``; policies as mappings of their fields."""

    @property
    def expected(self) -> str:
        words = [ENDS.get(end.partition(":")[0], end) for end in self.ends]
        return f"{' or '.join(dict.fromkeys(words))}; {AFTER[self.after]}"

    @property
    def patience(self) -> float:
        if self.timeout:
            return self.timeout
        return 0.1 if "timeout" in self.ends else PATIENT

    def argv(self, *, log: str | None = None, lives: int | None = None) -> list[str]:
        """The command line of this server."""
        if self.command:
            return list(self.command)
        # -I -S: no site packages, for a start of some 25 ms.
        argv = [sys.executable, "-I", "-S", str(ROGUE), "--era", self.era]
        if self.version:
            argv += ["--version", self.version]
        if log is not None:
            argv += ["--log", log]
        if (held := self.lives if lives is None else lives) is not None:
            argv += ["--lives", str(held)]
        if self.heir:
            argv += ["--heir", self.heir]
        return [*argv, *self.rules]


# Small words to write rules with.


def at(event: str, *deeds: str | tuple[str, bytes]) -> tuple[str, ...]:
    """Rules of one event; no deed at all means that nothing is done."""
    return tuple(f"{event}={_deed(deed)}" for deed in deeds or ("sleep:0",))


def _deed(deed: str | tuple[str, bytes]) -> str:
    return deed if isinstance(deed, str) else f"{deed[0]}:{encode_text(deed[1])}"


def say(data: bytes) -> tuple[str, bytes]:
    return ("write", data)


def line(text: bytes) -> tuple[str, bytes]:
    return ("write", text + b"\n")


def result(body: bytes) -> tuple[str, bytes]:
    return line(b'{"jsonrpc":"2.0","id":@ID@,"result":' + body + b"}")


def error(body: bytes) -> tuple[str, bytes]:
    return line(b'{"jsonrpc":"2.0","id":@ID@,"error":' + body + b"}")


def refusal(code: int | str, data: bytes = b"null") -> tuple[str, bytes]:
    return error(b'{"code":%s,"message":"refused","data":%s}' % (str(code).encode(), data))


def text(body: bytes) -> bytes:
    """A tool result of one text, given as JSON."""
    return b'{"content":[{"type":"text","text":' + body + b"}]}"


def note(method: bytes, params: bytes = b"{}") -> bytes:
    return b'{"jsonrpc":"2.0","method":"' + method + b'","params":' + params + b"}\n"


def progress(value: bytes, token: bytes = b"@TOKEN@") -> bytes:
    return note(b"notifications/progress", b'{"progressToken":%s,"progress":%s}' % (token, value))


ANSWER = line(b"@ANSWER@")
CHANGED = note(b"notifications/tools/list_changed")
LOGGED = note(b"notifications/message", b'{"level":"info","data":"again and again"}')


def in_folder(fault: Fault, folder: Path) -> Fault:
    """The fault with its own folder put in."""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(TEMPORARY, str(folder))
        if isinstance(value, tuple):
            return tuple(put(item) for item in value)
        if isinstance(value, dict):
            return {key: put(item) for key, item in value.items()}
        return value

    return replace(
        fault,
        rules=put(fault.rules),
        command=put(fault.command),
        says=put(fault.says),
        options=put(fault.options),
    )
