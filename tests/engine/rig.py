"""A bench for the engine: a connection, a clock that is a number, and a scripted server.

Without a script, a test plays the server's part itself: ``opened``, ``deliver``, ``lose``.
With one, ``run`` lets engine and server talk until a given time, every timer at its moment.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from holdfast._core.boundary import (
    Busy,
    Call,
    CheckRead,
    Completed,
    Delivered,
    Drained,
    Effect,
    Failed,
    Lost,
    Moved,
    Open,
    Opened,
    ReadChecked,
    Report,
    Room,
    Send,
    Ticket,
    Violated,
    WireId,
)
from holdfast._core.engine.connection import Connection
from holdfast._core.engine.inflight import NEVER
from holdfast._core.eras.conversation import Opening, Plan
from holdfast.errors import HoldfastError, TransportError
from holdfast.policies import Identity, Policy

Json: TypeAlias = dict[str, Any]
E = TypeVar("E")

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
CRASH = TransportError("the server exited with code 1", exit_code=1)

MISSING = {"error": {"code": -32601, "message": "Method not found"}}
DISCOVERED = {
    "result": {
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {}},
        "instructions": "Mind the gap.",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}},
    }
}
INITIALIZED = {
    "result": {
        "protocolVersion": LEGACY,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "legacy", "version": "1"},
        "instructions": "Mind the step.",
    }
}


def refusal(code: Any, message: str = "no", data: Any = None) -> Json:
    return {"error": {"code": code, "message": message, **({} if data is None else {"data": data})}}


def unsupported(*versions: str) -> Json:
    return refusal(-32022, "Unsupported protocol version", {"supported": list(versions)})


def initialized(version: str) -> Json:
    return {"result": {"protocolVersion": version, "capabilities": {}, "serverInfo": {}}}


def only(effects: Iterable[object], kind: type[E]) -> list[E]:
    """The effects of one kind."""
    return [effect for effect in effects if isinstance(effect, kind)]


def one(effects: Iterable[object], kind: type[E]) -> E:
    """The only effect of its kind."""
    (found,) = only(effects, kind)
    return found


def frames(effects: Iterable[Effect]) -> list[Json]:
    """What is sent, decoded."""
    return [json.loads(send.frame) for send in only(effects, Send)]


def methods(effects: Iterable[Effect]) -> list[str]:
    return [frame["method"] for frame in frames(effects)]


def result_of(completed: Completed) -> Any:
    return msgspec.json.decode(completed.result)


def line(message: object) -> bytes:
    """A message as a line; bytes and text go as they are."""
    if isinstance(message, bytes):
        return message + b"\n"
    if isinstance(message, str):
        return message.encode() + b"\n"
    return json.dumps(message).encode() + b"\n"


# The scripted server


class Dies:
    """The server ends instead of answering."""


class Silent:
    """The server reads and does not answer."""


DIES, SILENT = Dies(), Silent()
Reply: TypeAlias = Json | Dies | Silent
Script: TypeAlias = dict[str, Reply | Callable[["Process"], Reply]]


class Process:
    """One life of the server: what it has heard so far."""

    def __init__(self, script: Script, reads_at: float) -> None:
        self.script = script
        self.reads_at = reads_at
        self.heard: list[str] = []
        self.waiting: list[Json] = []

    def reply(self, message: Json) -> Reply:
        method = message["method"]
        reply = self.script.get(method, MISSING)
        if callable(reply):
            reply = reply(self)
        self.heard.append(method)
        return reply


class Rig:
    """Drives a ``Connection`` and checks, on the way, what must hold at every step."""

    def __init__(
        self,
        script: Script | None = None,
        *,
        reads_after: float = 0.0,
        pin: str | None = None,
        opening: Opening | None = None,
        abilities: Iterable[str] = (),
        jitter: Iterator[float] | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.now = 0.0
        self.policy = Policy() if policy is None else policy
        plan = Plan(
            identity=Identity(name="rig", version="1"),
            abilities=frozenset(abilities),
            pin=pin,
            opening=opening,
            patience=self.policy.timeouts.probe,
        )
        self.unsent: set[WireId] = set()
        """The requests of which no byte has left the link."""
        delays = itertools.repeat(0.5) if jitter is None else jitter
        unsent = lambda: frozenset(self.unsent)  # noqa: E731
        self.engine = Connection("server", self.policy, plan, delays, unsent)
        self.effects: list[Effect] = []
        """Everything that the engine ever gave out."""
        self.outcomes: dict[Ticket, list[Completed | Failed]] = {}
        self.wire_ids: list[int] = []
        self.processes: list[Process] = []
        self._script = script
        self._reads_after = reads_after
        self._reports: list[Report] = []

    # Calls

    def open(self) -> list[Effect]:
        return self._take(self.engine.open(self.now, Call("open", wait=True)))

    def call(self, method: str = "tools/call", **options: Any) -> Ticket:
        """Make a call; its effects are the last in ``effects``."""
        ticket, effects = self.engine.call(Call(method, **options), self.now)
        assert ticket not in self.outcomes
        self.outcomes[ticket] = []
        self._take(effects)
        return ticket

    def request(self, method: str = "tools/call", **options: Any) -> tuple[Ticket, WireId]:
        """Make a call that is sent at once: its ticket and its wire id."""
        mark = len(self.effects)
        ticket = self.call(method, **options)
        wire_id = one(self.effects[mark:], Send).wire_id
        assert wire_id is not None
        return ticket, wire_id

    def cancel(self, ticket: Ticket, reason: str = "changed my mind") -> list[Effect]:
        return self._take(self.engine.cancel(ticket, reason, self.now))

    def close(self) -> list[Effect]:
        return self._take(self.engine.close(self.now))

    # Reports

    def report(self, report: Report) -> list[Effect]:
        return self._take(self.engine.report(report, self.now))

    def opened(self) -> list[Effect]:
        return self.report(Opened(self.engine.link.generation))

    def deliver(self, *messages: object) -> list[Effect]:
        data = b"".join(map(line, messages))
        return self.report(Delivered(self.engine.link.generation, data))

    def answer(self, wire_id: int, reply: Json | None = None) -> list[Effect]:
        return self.deliver({"jsonrpc": "2.0", "id": wire_id, **(reply or {"result": {}})})

    def room(self) -> list[Effect]:
        return self.report(Room(self.engine.link.generation))

    def busy(self, wire_id: WireId) -> list[Effect]:
        return self.report(Busy(self.engine.link.generation, Send(b"", wire_id)))

    def lose(
        self, error: HoldfastError = CRASH, unsent: frozenset[WireId] = frozenset()
    ) -> list[Effect]:
        return self.report(Lost(self.engine.link.generation, error, unsent))

    def drained(self) -> list[Effect]:
        return self.report(Drained(self.engine.link.generation))

    def sounded(self, unread: bool = False) -> list[Effect]:
        return self.report(ReadChecked(self.engine.link.generation, unread))

    # Time

    def tick(self) -> list[Effect]:
        effects = self._take(self.engine.tick(self.now))
        # A driver calls back at `due`: were it not ahead, it would spin.
        assert self.engine.due > self.now, f"due {self.engine.due} at {self.now}"
        return effects

    def at(self, moment: float) -> list[Effect]:
        """Tick at every due time up to ``moment`` and be there."""
        mark = len(self.effects)
        while self.engine.due <= moment:
            self.now = max(self.now, self.engine.due)
            self.tick()
        self.now = max(self.now, moment)
        return self.effects[mark:]

    def wait(self, seconds: float) -> list[Effect]:
        return self.at(self.now + seconds)

    # The scripted server

    def run(self, seconds: float = 0.0) -> list[Effect]:
        """Let both sides talk for so long."""
        mark, until = len(self.effects), self.now + seconds
        while True:
            self._converse()
            moment = min(self.engine.due, self._next_read())
            if moment > until:
                break
            self.now = max(self.now, moment)
            self._read()
            if self.engine.due <= self.now:
                self.tick()
        self.now = until
        return self.effects[mark:]

    def connect(self, seconds: float = 0.0) -> list[Effect]:
        mark = len(self.effects)
        self.open()
        self.run(seconds)
        return self.effects[mark:]

    def _converse(self) -> None:
        while self._reports:
            self.report(self._reports.pop(0))

    def _next_read(self) -> float:
        process = self.processes[-1] if self.processes else None
        return process.reads_at if process is not None and process.waiting else NEVER

    def _read(self) -> None:
        process = self.processes[-1] if self.processes else None
        if process is None or process.reads_at > self.now:
            return
        while process.waiting:
            message = process.waiting.pop(0)
            generation = self.engine.link.generation
            reply = process.reply(message)
            if isinstance(reply, Dies):
                self._reports.append(Lost(generation, CRASH))
            elif isinstance(reply, dict) and "id" in message:
                answer = line({"jsonrpc": "2.0", "id": message["id"], **reply})
                self._reports.append(Delivered(generation, answer))

    def _play(self, effect: Effect) -> None:
        """Do what a transport would do with a command."""
        if isinstance(effect, Open):
            assert self._script is not None
            self.processes.append(Process(self._script, self.now + self._reads_after))
            self._reports.append(Opened(effect.generation))
        elif isinstance(effect, Send):
            self.processes[-1].waiting.append(json.loads(effect.frame))
        elif isinstance(effect, CheckRead):
            unread = bool(self.processes[-1].waiting)
            self._reports.append(ReadChecked(self.engine.link.generation, unread))

    # What is looked at

    @property
    def state(self) -> str:
        return str(self.engine.state)

    def outcome(self, ticket: Ticket) -> Completed | Failed:
        """The one outcome of a call."""
        (found,) = self.outcomes[ticket]
        return found

    def error(self, ticket: Ticket) -> Any:
        outcome = self.outcome(ticket)
        assert isinstance(outcome, Failed)
        return outcome.error

    def result(self, ticket: Ticket) -> Any:
        outcome = self.outcome(ticket)
        assert isinstance(outcome, Completed)
        return result_of(outcome)

    def open_tickets(self) -> set[Ticket]:
        return {ticket for ticket, found in self.outcomes.items() if not found}

    def moves(self) -> list[str]:
        return [move.new for move in only(self.effects, Moved)]

    def openings(self) -> list[list[str]]:
        """What each process of the scripted server heard before anything else."""
        return [
            [method for method in process.heard if method in ("server/discover", "initialize")]
            for process in self.processes
        ]

    def violations(self) -> list[str]:
        return [violation.reason for violation in only(self.effects, Violated)]

    def _take(self, effects: list[Effect]) -> list[Effect]:
        self.effects.extend(effects)
        for effect in effects:
            if isinstance(effect, Completed | Failed):
                self.outcomes[effect.ticket].append(effect)
                assert len(self.outcomes[effect.ticket]) == 1, "a second outcome"
            elif isinstance(effect, Send) and effect.wire_id is not None:
                self.wire_ids.append(effect.wire_id)
            if self._script is not None:
                self._play(effect)
        assert {pending.ticket for pending in self.engine.inflight} == self.open_tickets()
        return effects


# Short ways to a state


def ready(
    era: Literal["handshake", "stateless"] = "handshake",
    *,
    policy: Policy | None = None,
    jitter: Iterator[float] | None = None,
) -> Rig:
    """A rig whose connection is ready; the rest is up to the test."""
    rig = Rig(
        policy=policy, jitter=jitter, opening="discover" if era == "stateless" else "initialize"
    )
    rig.open()
    get_ready(rig)
    return rig


def get_ready(rig: Rig) -> list[Effect]:
    """From starting to ready, by whatever opening the engine chooses."""
    mark = len(rig.effects)
    (asked,) = frames(rig.opened())
    reply = DISCOVERED if asked["method"] == "server/discover" else INITIALIZED
    rig.answer(asked["id"], reply)
    assert rig.state == "ready"
    return rig.effects[mark:]


def reconnect(rig: Rig) -> list[Effect]:
    """Out of backoff and on to ready: what was sent on the way and after."""
    mark = len(rig.effects)
    while rig.state == "backoff":
        rig.at(rig.engine.due)
    get_ready(rig)
    return rig.effects[mark:]
