"""What each client does when its server misbehaves, recorded as it happened.

One scenario: open, make the call that goes wrong, try the next call, close, look for processes
that are left. Nothing is waited for without end: what has not ended when the watchdog comes is
written down as ``hung``, and a client that grows past a gibibyte is ended.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import rogue_http
from benchmarks.peers.clients import Client
from benchmarks.peers.link import MEMORY_LIMIT, Driver, Reply, driver, remaining

ROGUE: Final = Path(__file__).resolve().with_name("rogue_server.py")
TIMEOUT: Final = 3.0
"""Seconds that the calls are given, through each client's own option for that."""
LATE: Final = 2.0
"""Seconds after which an end that should have come is late."""
WATCHDOG: Final = 20.0
DEFAULT_WATCHDOG: Final = 70.0
NEXT_WITHIN: Final = 5.0
"""Seconds in which the next call should work again."""
RETRY: Final = 0.2
MUCH_MEMORY: Final = 256 * 1024 * 1024
MIB: Final = 1024 * 1024
CANCELLED: Final = "TaskCancelledError"


@dataclass(frozen=True)
class Fault:
    """A misbehaviour. ``due`` is when a call should have ended, in seconds."""

    key: str
    title: str
    about: str
    tool: str
    wire: str = "stdio"
    before: tuple[str, ...] = ()
    size: int = 5
    timeout: float | None = TIMEOUT
    watchdog: float = WATCHDOG
    stubborn: bool = False
    way: str = "call"  # call, close (by another task, during the call), leave or kill
    waits: bool = False  # costs no CPU, so that all clients can be tried at the same time
    trials: int = 1  # where luck has a part: as many, and the best of them counts
    recovers: bool = True  # the next call can work: with a server that stays deaf it cannot

    @property
    def due(self) -> float | None:
        """None where no time was set: then any end is in time."""
        return None if self.timeout is None else self.timeout + LATE


FAULTS: Final = (
    Fault(
        "dies",
        "the server dies in the middle of a call",
        "It kills itself with SIGKILL when the call arrives.",
        "die",
        waits=True,
    ),
    Fault(
        "babbles",
        "the server writes one line without end",
        "No newline ever comes; the call has 3 s.",
        "babble",
    ),
    Fault(
        "chatters",
        "the server floods with notifications",
        "Log messages as fast as the pipe takes them, and no answer to the call, which has 3 s; "
        "other calls are still answered. The best of up to three trials.",
        "chatter",
        trials=3,
    ),
    Fault(
        "mute",
        "the server never answers; the call has 3 s",
        "Everything else goes on as usual.",
        "mute",
        waits=True,
    ),
    Fault(
        "deaf",
        "the server stops reading; the call has 3 s",
        "The call is one of 1 MiB, which no pipe takes in. The server stays deaf: no further call "
        "can succeed, but it can end in time.",
        "echo",
        before=("deafen",),
        size=MIB,
        waits=True,
        recovers=False,
    ),
    Fault(
        "forgotten",
        "the server never answers, and no time was set",
        "The client's own default decides; it is watched for 70 s.",
        "mute",
        timeout=None,
        watchdog=DEFAULT_WATCHDOG,
        waits=True,
        recovers=False,
    ),
    Fault(
        "closed",
        "another task closes the client during a call",
        "What the call ends with, how soon, and whether the close itself succeeds.",
        "mute",
        timeout=None,
        way="close",
        waits=True,
    ),
    Fault(
        "stubborn",
        "the server ignores the end of its input and SIGTERM",
        "The client is closed in the ordinary way.",
        "",
        stubborn=True,
        way="leave",
        waits=True,
    ),
    Fault(
        "killed",
        "the client's process is killed, and the server ignores the end of its input",
        "Nobody is left to close anything; looked at after 5 s.",
        "",
        stubborn=True,
        way="kill",
        waits=True,
    ),
    Fault(
        "expired",
        "HTTP: the session has expired (404)",
        "The server answers a call and forgets the session; then another call is made.",
        "echo",
        wire="http",
        before=("expire",),
        waits=True,
    ),
    Fault(
        "cut",
        "HTTP: the connection is cut in the middle of a call",
        "The server takes the request and resets the connection.",
        "cut",
        wire="http",
        waits=True,
    ),
    Fault(
        "http-mute",
        "HTTP: the server never answers; the call has 3 s",
        "The request is taken, and no response comes.",
        "mute",
        wire="http",
        waits=True,
    ),
)


# -- one scenario --------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What was seen. ``call`` and ``close`` are ends as in Reply; None where there was none."""

    opened: str = ""
    call: str | None = None
    kind: str = ""
    message: str = ""
    seconds: float = 0.0
    grown: int = 0
    next_works: bool | None = None
    next_after: float = 0.0
    next_seconds: float = 0.0
    next_kind: str = ""
    close: str | None = None
    close_kind: str = ""
    close_seconds: float = 0.0
    left: int | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def attempt(fault: Fault, client: Client, target: Any) -> Outcome:
    """One fault with one client."""
    best: Outcome | None = None
    for _ in range(fault.trials):
        with driver(client) as started:
            outcome = play(fault, started, target)
        faulty = len(shortcomings(fault, outcome))
        if best is None or faulty < len(shortcomings(fault, best)):
            best = outcome
        if not faulty:
            break
    assert best is not None
    return best


def play(fault: Fault, link: Driver, target: Any) -> Outcome:
    outcome = Outcome()
    if not isinstance(target, str):
        target = [*target, "--mark", link.mark]
    opened = link.ask(WATCHDOG, "open", target=target)
    if opened.ended != "answer":
        outcome.opened = f"{opened.ended} {opened.kind} {opened.message}".strip()
        return outcome
    WAYS[fault.way](fault, link, outcome)
    return outcome


def by_call(fault: Fault, link: Driver, outcome: Outcome) -> None:
    for tool in fault.before:
        link.ask(fault.watchdog, "call", tool=tool, timeout=TIMEOUT)
    before = link.peak = link.resident()
    details = {"tool": fault.tool, "size": fault.size, "timeout": fault.timeout}
    reply = link.ask(fault.watchdog, "call", **details)
    note_call(outcome, reply)
    outcome.grown = max(link.peak - before, 0)
    if reply.ended == "hung":
        link.ask(WATCHDOG, "give up")
    if fault.timeout is not None:
        try_next(link, outcome)
    leave(link, outcome)


def by_close(fault: Fault, link: Driver, outcome: Outcome) -> None:
    call = link.send("call", tool=fault.tool)
    time.sleep(0.5)  # until it is under way, and nothing tells when
    close = link.send("close", elsewhere=True)
    closed = link.wait(close, fault.watchdog)
    reply = link.wait(call, 1.0 if closed.ended == "hung" else fault.watchdog)
    note_call(outcome, reply)
    outcome.seconds = max(reply.seconds - 0.5, 0.0)
    note_close(link, outcome, closed)


def by_leaving(fault: Fault, link: Driver, outcome: Outcome) -> None:
    leave(link, outcome)


def by_killing(fault: Fault, link: Driver, outcome: Outcome) -> None:
    link.process.kill()
    outcome.left = remaining(link.mark, NEXT_WITHIN)


WAYS: Final[dict[str, Callable[[Fault, Driver, Outcome], None]]] = {
    "call": by_call,
    "close": by_close,
    "leave": by_leaving,
    "kill": by_killing,
}


def try_next(link: Driver, outcome: Outcome) -> None:
    """Until it works or its time is up: a client may pause before it starts the server again."""
    started, outcome.next_works = time.monotonic(), False
    while (spent := time.monotonic() - started) < NEXT_WITHIN:
        reply = link.ask(WATCHDOG, "call", tool="echo", timeout=TIMEOUT)
        outcome.next_kind, outcome.next_seconds = reply.kind or reply.ended, reply.seconds
        if reply.ended == "answer":
            outcome.next_works, outcome.next_after = True, spent
            return
        if reply.ended == "hung":
            link.ask(WATCHDOG, "give up")
        if reply.ended in ("hung", "died", "memory"):
            return
        time.sleep(RETRY)


def leave(link: Driver, outcome: Outcome) -> None:
    note_close(link, outcome, link.ask(WATCHDOG, "close"))


def note_call(outcome: Outcome, reply: Reply) -> None:
    outcome.call, outcome.kind, outcome.message = reply.ended, reply.kind, reply.message
    outcome.seconds = reply.seconds


def note_close(link: Driver, outcome: Outcome, reply: Reply) -> None:
    outcome.close, outcome.close_kind = reply.ended, reply.kind
    outcome.close_seconds = reply.seconds
    outcome.left = remaining(link.mark)


# -- in words ------------------------------------------------------------------------------------


def call_in_words(outcome: Outcome) -> str:
    after = f"after {seconds_in_words(outcome.seconds)}"
    match outcome.call:
        case None:
            return outcome.opened or "—"
        case "answer":
            said = f"answered {after}"
        case "error":
            said = f"{kind_in_words(outcome.kind)} {after}"
        case "hung":
            said = f"**hung**: no end {after}"
        case "memory":
            return f"**memory**: past {MEMORY_LIMIT >> 30} GiB {after}"
        case _:
            return f"**the client's process died** {after}"
    if outcome.grown > 32 * MIB:
        said += f", {outcome.grown // MIB} MiB more"
    return said


def next_in_words(outcome: Outcome) -> str:
    if outcome.next_works is None:
        return "—"
    if not outcome.next_works:
        if outcome.next_kind == "hung":
            return f"**hung**: no end after {seconds_in_words(outcome.next_seconds)}"
        slow = outcome.next_seconds > TIMEOUT + LATE
        after = f" after {seconds_in_words(outcome.next_seconds)}" if slow else ""
        return f"never: {kind_in_words(outcome.next_kind)}{after}"
    at_once = outcome.next_after < RETRY
    return "works" if at_once else f"works after {seconds_in_words(outcome.next_after)}"


def close_in_words(outcome: Outcome) -> str:
    after = seconds_in_words(outcome.close_seconds)
    match outcome.close:
        case None:
            return "—"
        case "answer":
            return f"closed in {after}"
        case "error":
            return f"{kind_in_words(outcome.close_kind)} after {after}"
        case "hung":
            return f"**hung**: no end after {after}"
    return "the client had died"


def left_in_words(outcome: Outcome) -> str:
    if outcome.left is None:
        return "—"
    return f"**{outcome.left}**" if outcome.left else "none"


def kind_in_words(kind: str) -> str:
    """An error's class; the driver has a name of its own for a cancelled task."""
    return "**the caller's task cancelled**" if kind == CANCELLED else f"`{kind}`"


def seconds_in_words(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 0.1 else f"{seconds:.1f} s"


def shortcomings(fault: Fault, outcome: Outcome) -> list[str]:
    """What a caller would complain of: the same questions to every client."""
    found = []
    if outcome.opened:
        return ["could not be tried"]
    if outcome.call in ("hung", "memory", "died"):
        found.append(outcome.call)
    elif outcome.call and fault.due is not None and outcome.seconds > fault.due:
        found.append("late")
    if outcome.grown > MUCH_MEMORY and "memory" not in found:
        found.append("memory")
    if outcome.kind == CANCELLED:
        found.append("cancelled the caller's task")
    found += next_shortcomings(fault, outcome)
    if outcome.close not in (None, "answer"):
        found.append("close fails")
    if outcome.left:
        found.append("left a process")
    return found


def next_shortcomings(fault: Fault, outcome: Outcome) -> list[str]:
    if outcome.next_works is not False:
        return []
    if outcome.next_kind == "hung":
        return ["next call hung"]
    if outcome.next_seconds > TIMEOUT + LATE:
        return ["next call late"]
    return ["next call fails"] if fault.recovers else []


# -- all of them ---------------------------------------------------------------------------------

Found = dict[str, dict[str, Outcome]]
"""Outcomes by fault and client."""


def run(clients: Sequence[Client], faults: Iterable[Fault], tell: Callable[[str], None]) -> Found:
    """The longest wait runs beside all others; those that only wait, with all clients at once."""
    wanted = list(faults)
    long = [fault for fault in wanted if fault.watchdog > WATCHDOG]
    found: Found = {}
    with rogue_http.running() as web, ThreadPoolExecutor(max(len(long), 1)) as beside:
        started = {fault.key: beside.submit(try_all, fault, clients, web) for fault in long}
        for fault in wanted:
            if fault.key not in started:
                tell(f"fault: {fault.title} …")
                found[fault.key] = try_all(fault, clients, web)
        tell("fault: the longest wait …" if started else "")
        found |= {key: future.result() for key, future in started.items()}
    return {fault.key: found[fault.key] for fault in wanted}


def try_all(fault: Fault, clients: Sequence[Client], web: str) -> dict[str, Outcome]:
    targets = [target_of(fault, web, number) for number in range(len(clients))]
    with ThreadPoolExecutor(len(clients) if fault.waits else 1) as pool:
        outcomes = list(pool.map(partial(attempt, fault), clients, targets))
    return {client.name: outcome for client, outcome in zip(clients, outcomes, strict=True)}


def target_of(fault: Fault, web: str, number: int) -> Any:
    """A command; or a path of its own, as what expires must not be another client's session."""
    if fault.wire == "http":
        return f"{web}/handshake/json/{number + 8}"
    return [sys.executable, str(ROGUE), *(["--stubborn"] if fault.stubborn else [])]


def quick() -> list[Fault]:
    """Those that take a few seconds, all clients together."""
    slow = ("deaf", "forgotten", "stubborn")
    return [fault for fault in FAULTS if fault.waits and fault.key not in slow]


def named(key: str) -> Fault:
    return next(fault for fault in FAULTS if fault.key == key)
