"""The policies of a client: small frozen values with the defaults in one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from msgspec import Struct, field

from holdfast.errors import ValidationError

WhenDown = Literal["fail", "wait"]
Replay = Literal["never", "safe"]

EPSILON = 5.0
"""Seconds added to a tombstone's life for jitter and scheduling."""


def _positive(policy: Struct, names: Iterable[str], *, zero: bool = False) -> None:
    """Refuse a number that could never work, by name and value."""
    for name in names:
        value = getattr(policy, name)
        if value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or value != value or value < 0 or (value == 0 and not zero):
            least = "0 or more" if zero else "more than 0"
            owner = type(policy).__name__
            raise ValidationError(f"{owner}({name}={value!r}): must be a number, {least}")


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds. ``request`` is an idle clock that progress resets; ``total`` is the hard cap.

    ``tools``, ``resources`` and ``prompts`` replace ``request`` for their kind of method.
    ``probe`` is how long a server that has read our probe may stay silent before the
    older handshake is tried as well.
    """

    request: float = 30.0
    handshake: float = 10.0
    total: float = 300.0
    tools: float | None = None
    resources: float | None = None
    prompts: float | None = None
    probe: float = 0.5

    def __post_init__(self) -> None:
        _positive(self, self.__struct_fields__)

    def for_method(self, method: str) -> float:
        kind = method.partition("/")[0]
        own: float | None = getattr(self, kind) if kind in _KINDS else None
        return self.request if own is None else own


_KINDS = frozenset({"tools", "resources", "prompts"})


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds on what a server can make us hold."""

    frame_bytes: int = 16 * 1024 * 1024
    """The longest message that is read; a longer one closes the link."""
    pages: int = 1000
    """Pages of one list."""
    rounds: int = 10
    """Rounds of ``input_required`` in one call."""
    mailbox: int = 1000
    """Notifications waiting for a handler; the oldest go first."""
    asks: int = 64
    """Requests of the server that are handled at once."""
    tombstones: int = 65_536
    """Ended requests whose late answers are still recognised."""
    backlog_bytes: int = 1024 * 1024
    """Bytes waiting for a server that does not read."""
    stderr_bytes: int = 64 * 1024
    """The tail of the server's stderr that is kept."""

    def __post_init__(self) -> None:
        _positive(self, self.__struct_fields__)


class Backoff(Struct, frozen=True, kw_only=True):
    """How a lost server is brought back: ``first`` seconds, doubling to ``max``, ± ``jitter``.

    The delay starts over only after ``healthy_after`` seconds of uptime: a good handshake
    alone is not health. ``attempts`` failed attempts in a row end the client (None: never).
    """

    first: float = 1.0
    max: float = 30.0
    jitter: float = 0.2
    healthy_after: float = 10.0
    attempts: int | None = None

    def __post_init__(self) -> None:
        _positive(self, ("first", "max", "attempts"))
        _positive(self, ("jitter", "healthy_after"), zero=True)
        if self.jitter > 1:
            raise ValidationError(f"Backoff(jitter={self.jitter!r}): must be at most 1")

    def delay(self, failures: int, luck: Iterator[float]) -> float:
        """The pause after ``failures`` failed attempts in a row (1 is the first)."""
        exponent = min(failures - 1, 62)
        return spread(min(self.max, self.first * 2.0**exponent), self.jitter, luck)


class Retry(Struct, frozen=True, kw_only=True):
    """How often a busy transport is offered the same frame."""

    attempts: int = 3
    delay: float = 0.010
    jitter: float = 0.5

    def pause(self, luck: Iterator[float]) -> float:
        return spread(self.delay, self.jitter, luck)


def spread(delay: float, factor: float, luck: Iterator[float]) -> float:
    """``delay`` ± ``factor``; ``luck`` yields numbers in [0, 1)."""
    return max(0.0, delay * (1.0 + (next(luck) - 0.5) * 2.0 * factor))


class Identity(Struct, frozen=True, kw_only=True):
    """Who we say we are, and what we declare."""

    name: str = "holdfast"
    version: str = "0.1.0"
    title: str | None = None
    capabilities: dict[str, Any] = field(default_factory=dict)

    def info(self) -> dict[str, str]:
        title = {} if self.title is None else {"title": self.title}
        return {"name": self.name, "version": self.version, **title}


class Policy(Struct, frozen=True, kw_only=True):
    """All policies of one client, together."""

    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    backoff: Backoff = Backoff()
    retry: Retry = Retry()
    identity: Identity = Identity()
    protocol: str | None = None
    when_down: WhenDown = "fail"
    replay: Replay = "never"

    def __post_init__(self) -> None:
        _one_of("when_down", self.when_down, ("fail", "wait"))
        _one_of("replay", self.replay, ("never", "safe"))

    @property
    def tombstone_ttl(self) -> float:
        """Covers the longest way of a late answer: request, backoff, handshake."""
        times = self.timeouts
        return times.request + times.handshake + self.backoff.max + EPSILON


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise ValidationError(f"{name}={value!r}: must be {choices}")
