"""The aims: for each row the most that Holdfast may take, in times what it is measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FLOORS: Final = {
    "raw-fd": "a bare loop on the pipe's descriptors: own reads and writes, msgspec, a dict of "
    "futures; no timeouts, no checks, no errors",
    "raw": "the same on asyncio's subprocess pipes",
    "aiohttp": "a bare aiohttp loop that makes the same requests in the same era",
    "python": "the start of Python",
    "cold": "a program that imports the library, connects, calls once and ends",
    "start": "the start of the command itself, with all that it loads: `holdfast call --help`",
    "plain": "the same call without it, in the same process, in turns",
}
"""What the rows are measured against, by the name that the table prints."""


@dataclass(frozen=True)
class Aim:
    """At most this many times the floor."""

    most: float
    floor: str


AIMS: Final = {
    # stdio
    "sequential": Aim(1.5, "raw-fd"),
    "typed": Aim(1.5, "raw-fd"),
    "c64": Aim(1.35, "raw-fd"),
    "c1000": Aim(1.4, "raw-fd"),
    "1mib": Aim(1.2, "raw-fd"),
    "10mib": Aim(1.3, "raw-fd"),
    "progress": Aim(1.4, "raw-fd"),
    "connect": Aim(1.15, "raw-fd"),
    "import": Aim(1.12, "raw"),
    "cold": Aim(1.12, "raw"),
    "memory": Aim(0.9, "raw"),
    # HTTP
    "http-json": Aim(1.1, "aiohttp"),
    "http-c64-json": Aim(1.1, "aiohttp"),
    "http-sse": Aim(1.15, "aiohttp"),
    "http-c64-sse": Aim(1.15, "aiohttp"),
    "http-progress": Aim(1.3, "aiohttp"),
    "http-connect": Aim(1.5, "aiohttp"),
    # The command line
    "help": Aim(1.5, "python"),
    "offline": Aim(3.0, "python"),
    "call": Aim(1.3, "cold"),
    "daemon": Aim(1.5, "start"),
    # What users add
    "shared": Aim(2.5, "plain"),
    "validation": Aim(1.1, "plain"),
    "output": Aim(1.2, "plain"),
    "cache-hit": Aim(0.3, "plain"),
    "call-log": Aim(1.35, "plain"),
    "call-log-python": Aim(1.35, "plain"),
    "trace": Aim(1.3, "plain"),
    "trace-python": Aim(1.3, "plain"),
    "audit": Aim(1.25, "plain"),
    "events": Aim(1.15, "plain"),
    "opentelemetry": Aim(1.75, "plain"),
    "lock": Aim(1.02, "plain"),
    "limit": Aim(1.05, "plain"),
    "relay-memory": Aim(1.6, "plain"),
    "relay-stdio": Aim(2.2, "plain"),
    "relay-copy": Aim(2.2, "plain"),
    "relay-memory-python": Aim(1.6, "plain"),
    "relay-stdio-python": Aim(2.2, "plain"),
    "relay-asyncio-python": Aim(2.2, "plain"),
    "shared-python": Aim(2.5, "plain"),
    "relay-copy-python": Aim(2.2, "plain"),
    "threads": Aim(1.5, "plain"),
    "threads-c64": Aim(1.2, "plain"),
    "bearer": Aim(1.01, "plain"),
    "stored-login": Aim(1.01, "plain"),
    "dpop": Aim(1.5, "plain"),
}

LINEAR: Final = 1.1
"""The most that a slope's exponent may be where cost grows with the work."""
CONSTANT: Final = 0.1
"""The same where it should not grow at all."""


def floor_of(key: str, wire: str) -> str:
    """Return the name of what a row is measured against; rows without an aim have one too."""
    if key in AIMS:
        return AIMS[key].floor
    return "aiohttp" if wire == "http" else "raw-fd"


def floor_side(floor: str, side: str) -> str:
    """Return the side whose time is the floor of another's: over HTTP that of the same era."""
    if floor != "aiohttp":
        return floor
    return "raw-stateless" if side.endswith("-stateless") else "raw"
