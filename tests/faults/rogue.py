"""A small MCP server over stdio that misbehaves to order.

    python rogue.py [--era legacy|modern|both] [--version V] [--log FILE]
                    [--lives N [--heir ERA]] [RULE ...]

Without rules it is a good server of two tools, ``echo`` and ``fault``. A rule is
``EVENT=ACTION`` or ``EVENT=ACTION:ARGUMENT``; the actions of one event are taken in their
order, *instead of* what a good server does (the action ``good`` does that). ``EVENT#2`` is
the event's second occurrence only. With ``--lives N`` the rules hold for the first N starts
and the server is good from then on (with ``--heir``, of another era).

Events: ``start``, ``discover``, ``initialize``, ``initialized``, ``list`` (tools/list),
``fault`` (a call of that tool), ``partial`` (part of a big request has been read),
``cancelled``, ``eof`` (end of stdin), and any other method by its name.

Actions are the functions marked ``@action`` below. Text to be written may hold
``@NAME@`` marks, see ``Rogue.marks``; other bytes than ASCII are written as escapes.

Everything that happens is one JSON line of the log: starts, messages, forks, the end.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections import Counter

TYPE_CHECKING = False  # it starts hundreds of times, and typing is a tenth of that
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    Message = dict[str, Any]
    Action = Callable[["Rogue", str], None]

VERSION = "2025-06-18"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
BUNDLE = 1 << 20
LONG = 120.0
"""Seconds that stand for ever: a failing test leaves nothing behind for good."""

ACTIONS: dict[str, Action] = {}


class Enough(Exception):  # noqa: N818
    """The remaining actions of this event are not taken."""


def action(function: Action) -> Action:
    ACTIONS[function.__name__.rstrip("_")] = function
    return function


def encode_text(data: bytes) -> str:
    """Any bytes as an ASCII argument."""
    return data.decode("latin-1").encode("unicode_escape").decode("ascii")


def decode_text(text: str) -> bytes:
    return text.encode("ascii").decode("unicode_escape").encode("latin-1")


class Rogue:
    """The server: a good one, but for its rules."""

    def __init__(self, options: dict[str, str], rules: list[str]) -> None:
        self.era = options.get("era", "legacy")
        self.version = options.get("version", VERSION)
        self.log_path = options.get("log")
        self.chunk = 1 << 16
        self.buffer = b""
        self.queue: list[Message] = []
        self.seen: Counter[str] = Counter()
        self.held: list[Message] = []
        self.message: Message = {}
        self.reply: Message = {}
        self.lock: Any = None
        life = self.log("spawn", pid=os.getpid(), group=os.getpgid(0))
        self.rules: dict[str, list[tuple[str, str]]] = {}
        if life <= int(options.get("lives", "1000000")):
            for rule in rules:
                event, _, deed = rule.partition("=")
                name, _, argument = deed.partition(":")
                self.rules.setdefault(event, []).append((name, argument))
        else:
            self.era = options.get("heir", self.era)

    # Life.

    def run(self) -> None:
        self.happen("start", lambda: None)
        while (message := self.read()) is not None:
            self.handle(message)
        self.log("eof")
        self.happen("eof", lambda: None)
        self.log("exit", code=0)

    def log(self, event: str, **fields: Any) -> int:
        """Append a line; tells how often the server has been started so far."""
        if self.log_path is None:
            return 1
        line = json.dumps({"event": event, **fields}).encode() + b"\n"
        descriptor = os.open(self.log_path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
            if event != "spawn":
                return 0
            size = os.fstat(descriptor).st_size
            return os.pread(descriptor, size, 0).count(b'"event": "spawn"')
        finally:
            os.close(descriptor)

    # Reading.

    def read(self) -> Message | None:
        """The next message, or None at the end."""
        if self.queue:
            return self.queue.pop(0)
        return self.read_wire()

    def read_wire(self) -> Message | None:
        pieces = [self.buffer]
        told = "partial" not in self.rules
        while b"\n" not in pieces[-1]:
            if not told and sum(map(len, pieces)) > 1000:
                told = self.partly(b"".join(pieces))
            piece = os.read(0, self.chunk)
            if not piece:
                return None
            pieces.append(piece)
        line, _, self.buffer = b"".join(pieces).partition(b"\n")
        message: Message = json.loads(line)
        small = message if len(line) < 10_000 else {**message, "params": "(long)"}
        self.log("got", message=small, size=len(line))
        return message

    def partly(self, data: bytes) -> bool:
        """Part of a request is here: act on it as if it were whole, if its id shows."""
        found = re.search(rb'"id":\s*(\d+)', data)
        if found is None:
            return False
        self.message = {"id": int(found[1]), "method": "tools/call", "params": {}}
        self.happen("partial", lambda: None)
        return True

    # Writing.

    def write(self, data: bytes, descriptor: int = 1) -> None:
        """All of it. A reader that is gone ends us, as it would any server."""
        try:
            if self.lock is None:
                write_all(descriptor, data)
            else:
                with self.lock:
                    write_all(descriptor, data)
        except OSError as error:
            self.log("exit", code=32, error=str(error))
            os._exit(32)

    def send(self, message: Message) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    # Handling.

    def handle(self, message: Message) -> None:
        self.message = message
        event = name_of(message)
        self.happen(event, lambda: self.good(message))

    def happen(self, event: str, otherwise: Callable[[], None]) -> None:
        self.seen[event] += 1
        deeds = self.rules.get(f"{event}#{self.seen[event]}", self.rules.get(event))
        if deeds is None:
            otherwise()
            return
        try:
            for name, argument in deeds:
                ACTIONS[name](self, argument)
        except Enough:
            pass

    def good(self, message: Message) -> None:
        """What a good server does."""
        if "method" not in message or "id" not in message:
            return
        if message["method"] == "subscriptions/listen":
            self.send(acknowledged(message))
            return
        self.send(self.answer(message))

    def answer(self, message: Message) -> Message:
        outcome = self.outcome(message["method"], message.get("params") or {})
        if "code" in outcome:
            return {"jsonrpc": "2.0", "id": message["id"], "error": outcome}
        if self.era != "legacy":
            outcome = {"resultType": "complete", **outcome}
        return {"jsonrpc": "2.0", "id": message["id"], "result": outcome}

    def outcome(self, method: str, params: Message) -> Message:
        if method == "server/discover" and self.era != "legacy":
            return discovered([MODERN])
        if method == "initialize":
            return self.initialized(params)
        if method == "tools/list":
            return {"tools": [tool("echo"), tool("fault")]}
        if method == "tools/call":
            return self.called(params)
        plain = GOOD.get(method)
        return dict(plain) if plain is not None else {"code": -32601, "message": "not here"}

    def initialized(self, params: Message) -> Message:
        if self.era == "modern":
            data = {"supported": [MODERN], "requested": params.get("protocolVersion")}
            return {"code": -32022, "message": "Unsupported protocol version", "data": data}
        return {
            "protocolVersion": self.version,
            "capabilities": CAPABILITIES,
            "serverInfo": {"name": "rogue", "version": "1"},
        }

    def called(self, params: Message) -> Message:
        """The text is the argument ``value``, or the process id."""
        value = (params.get("arguments") or {}).get("value", os.getpid())
        return {"content": [{"type": "text", "text": str(value)}]}

    # Marks.

    def render(self, text: str) -> bytes:
        """The bytes of an argument, its ``@MARKS@`` filled in."""
        return self.fill(decode_text(text))

    def fill(self, data: bytes) -> bytes:
        return re.sub(rb"@([A-Z]+)(?::(\d+))?@", self.mark, data)

    def mark(self, found: re.Match[bytes]) -> bytes:
        number = int(found[2] or 0)
        return self.marks()[found[1].decode()](number).encode("latin-1", "replace")

    def marks(self) -> dict[str, Callable[[int], str]]:
        """What may stand between ``@`` and ``@`` (``@PAD:3@`` has a number)."""
        message = self.message
        own = message.get("id", 0)
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        return {
            "ID": lambda _: json.dumps(own),
            "NEXT": lambda n: json.dumps(own + max(n, 1)),
            "TOKEN": lambda _: json.dumps((meta or {}).get("progressToken")),
            "PID": lambda _: str(os.getpid()),
            "COUNT": lambda _: str(self.seen[name_of(message)]),
            "ANSWER": lambda _: json.dumps(self.answer(message)),
            "RESULT": lambda _: json.dumps(self.answer(message)["result"]),
            "REPLY": lambda _: json.dumps(json.dumps(self.reply)),
            "PAD": lambda n: "x" * n,
            "DEEP": lambda n: "[" * n + "]" * n,
            "OPEN": lambda n: "[" * n,
            "TOOL": lambda n: json.dumps(tool(f"tool-{n or self.seen['list']}")),
            "TOOLS": lambda n: ", ".join(json.dumps(tool(f"tool-{i}")) for i in range(n)),
        }


def name_of(message: Message) -> str:
    """The event that a message is."""
    method = message.get("method")
    if not isinstance(method, str):
        return "answered"
    params = message.get("params")
    called = params.get("name") if isinstance(params, dict) else None
    if method == "tools/call" and called == "fault":
        return "fault"
    return EVENTS.get(method, method)


def tool(name: str) -> Message:
    return {"name": name, "description": "A tool.", "inputSchema": {"type": "object"}}


def discovered(versions: list[str]) -> Message:
    info = {"name": "rogue", "version": "1"}
    return {
        "supportedVersions": versions,
        "capabilities": CAPABILITIES,
        "_meta": {META + "serverInfo": info},
    }


def acknowledged(message: Message) -> Message:
    asked = message.get("params", {}).get("notifications", {})
    meta = {META + "subscriptionId": message["id"]}
    return {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"_meta": meta, "notifications": asked},
    }


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view[:BUNDLE]) :]


EVENTS = {
    "server/discover": "discover",
    "notifications/initialized": "initialized",
    "tools/list": "list",
    "notifications/cancelled": "cancelled",
}
CAPABILITIES: Message = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "prompts": {},
    "logging": {},
}
RESOURCE = {"uri": "test://one", "name": "one"}
GOOD: dict[str, Message] = {
    "ping": {},
    "logging/setLevel": {},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
    "resources/list": {"resources": [RESOURCE]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "test://one", "text": "one"}]},
    "prompts/list": {"prompts": [{"name": "hello"}]},
    "prompts/get": {"messages": []},
}


# Actions. Each is handed the server and the text after the colon.


@action
def good(rogue: Rogue, _: str) -> None:
    """What a good server would do here."""
    rogue.good(rogue.message)


@action
def write(rogue: Rogue, text: str) -> None:
    rogue.write(rogue.render(text))


@action
def err(rogue: Rogue, text: str) -> None:
    """Write to stderr."""
    rogue.write(rogue.render(text), 2)


@action
def trickle(rogue: Rogue, text: str) -> None:
    """Write byte by byte."""
    for byte in rogue.render(text):
        rogue.write(bytes([byte]))


@action
def flood(rogue: Rogue, argument: str) -> None:
    """``N:TEXT``: write the text N times; ``@I@`` counts."""
    count, _, text = argument.partition(":")
    repeat(rogue, 1, int(count), text)


@action
def errflood(rogue: Rogue, argument: str) -> None:
    count, _, text = argument.partition(":")
    repeat(rogue, 2, int(count), text)


def repeat(rogue: Rogue, descriptor: int, count: int, text: str) -> None:
    unit = rogue.fill(decode_text(text).replace(b"@I@", b"\0"))
    at_once = max(1, BUNDLE // len(unit))
    for first in range(0, count, at_once):
        numbers = range(first, min(count, first + at_once))
        if b"\0" in unit:
            data = b"".join(unit.replace(b"\0", b"%d" % number) for number in numbers)
        else:
            data = unit * len(numbers)
        rogue.write(data, descriptor)


@action
def spew(rogue: Rogue, text: str) -> None:
    """Write the text for ever, from a thread, while the rest goes on."""
    background(rogue, 1, text)


@action
def errspew(rogue: Rogue, text: str) -> None:
    background(rogue, 2, text)


def background(rogue: Rogue, descriptor: int, text: str) -> None:
    import threading

    data = rogue.render(text)
    data *= max(1, 4096 // len(data))
    rogue.lock = threading.Lock()

    def for_ever() -> None:
        while True:
            rogue.write(data, descriptor)

    threading.Thread(target=for_ever, daemon=True).start()


@action
def endless(rogue: Rogue, text: str) -> None:
    """Write the text for ever and do nothing else."""
    data = rogue.render(text)
    data *= max(1, 65536 // len(data))
    while True:
        rogue.write(data)


@action
def exit_(rogue: Rogue, code: str) -> NoReturn:
    rogue.log("exit", code=int(code))
    os._exit(int(code))


@action
def kill(rogue: Rogue, name: str) -> None:
    """Die by a signal."""
    rogue.log("exit", signal=name)
    os.kill(os.getpid(), getattr(signal, name))
    hang(rogue, "")


@action
def stop(rogue: Rogue, _: str) -> None:
    """Freeze, as under a debugger."""
    os.kill(os.getpid(), signal.SIGSTOP)


@action
def close(rogue: Rogue, name: str) -> None:
    os.close({"stdin": 0, "stdout": 1, "stderr": 2}[name])


@action
def sleep(rogue: Rogue, seconds: str) -> None:
    time.sleep(float(seconds))


@action
def hang(rogue: Rogue, _: str) -> None:
    """Live on, read nothing, say nothing."""
    rogue.log("hang")
    time.sleep(LONG)
    os._exit(0)


@action
def until(rogue: Rogue, path: str) -> None:
    """Wait for a file."""
    rogue.log("waiting")
    while not os.path.exists(path):
        time.sleep(0.005)


@action
def mark(rogue: Rogue, path: str) -> None:
    """Leave a file behind."""
    with open(path, "w") as file:
        file.write(str(os.getpid()))


@action
def ignore(rogue: Rogue, name: str) -> None:
    signal.signal(getattr(signal, name), signal.SIG_IGN)


@action
def slowly(rogue: Rogue, _: str) -> None:
    """Read byte by byte from now on."""
    rogue.chunk = 1


@action
def hold(rogue: Rogue, count: str) -> None:
    """Go on only with the Nth such request; the others are kept."""
    rogue.held.append(rogue.message)
    if len(rogue.held) < int(count):
        raise Enough


@action
def release(rogue: Rogue, how: str) -> None:
    """Answer what is kept: ``shuffled``, ``backwards`` or ``at once`` (one write)."""
    held, rogue.held = rogue.held, []
    if how == "shuffled":
        import random

        random.Random(7).shuffle(held)
    elif how == "backwards":
        held.reverse()
    lines = [json.dumps(rogue.answer(message)).encode() + b"\n" for message in held]
    for line in [b"".join(lines)] if how == "at once" else lines:
        rogue.write(line)


@action
def listen(rogue: Rogue, wanted: str) -> None:
    """Read on until the answer to our own request of this id comes; keep other messages."""
    kept: list[Message] = []
    while (message := rogue.read_wire()) is not None:
        if "method" not in message and str(message.get("id")) == wanted:
            rogue.reply = message
            break
        kept.append(message)
    rogue.queue.extend(kept)


@action
def await_(rogue: Rogue, event: str) -> None:
    """Read on until this event comes; what else comes is dropped."""
    while (message := rogue.read()) is not None:
        if name_of(message) == event:
            return


@action
def daemonise(rogue: Rogue, _: str) -> None:
    """Go on serving in a child, while the process that was started exits."""
    if os.fork() != 0:
        os._exit(0)
    rogue.log("fork", pid=os.getpid(), kind="daemon")


@action
def fork(rogue: Rogue, kind: str) -> None:
    """A grandchild that keeps our pipes: ``plain``, ``stubborn``, ``daemon``, ``escaped``."""
    ready, tell = os.pipe()
    if os.fork() == 0:
        os.close(ready)
        grandchild(rogue, kind, tell)
    os.close(tell)
    os.read(ready, 1)
    os.close(ready)


def grandchild(rogue: Rogue, kind: str, tell: int) -> NoReturn:
    try:
        if kind == "daemon" and os.fork() != 0:
            os._exit(0)
        if kind == "escaped":
            os.setsid()
        if kind == "stubborn":
            for name in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(name, signal.SIG_IGN)
        rogue.log("fork", pid=os.getpid(), kind=kind)
        os.write(tell, b"!")
        os.close(tell)
        if kind == "ghost":
            haunt(rogue.message["id"] + 1)
        time.sleep(LONG)
    finally:
        os._exit(0)


def haunt(first: int) -> None:
    """Answer requests that come later, on the pipe of a server that is dead by then."""
    result = {"content": [{"type": "text", "text": "forged"}]}
    lines = [
        {"jsonrpc": "2.0", "id": number, "result": result} for number in range(first, first + 200)
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for _ in range(2000):
        write_all(1, data)
        time.sleep(0.001)


def main(arguments: list[str]) -> None:
    options: dict[str, str] = {}
    rules: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("--"):
            options[argument[2:]] = next(rest)
        else:
            rules.append(argument)
    Rogue(options, rules).run()


if __name__ == "__main__":
    main(sys.argv[1:])
