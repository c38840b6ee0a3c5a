"""For tests: a server that follows a script, a contract that every transport keeps, and what
pytest hands out (`plugin`).

peer             a scripted server in memory
contract         what every transport keeps
  obedient
plugin           fixtures, markers and options for pytest
  keeping        a test's clients and handles, from the first to the last
  endings        closing on the loop of the test
  noting         its calls, kept in case it fails
  recording      its calls on disk
  replaying      a server made of them
  factories      the types of the fixtures
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast._core.lazy import lazily

if TYPE_CHECKING:
    from holdfast._core.server.incoming import SILENCE, Incoming
    from holdfast._core.wire.codes import RequestError
    from holdfast.testing.factories import (
        ClientFactory,
        HandleFactory,
        SyncClientFactory,
        SyncHandleFactory,
    )
    from holdfast.testing.peer import Peer

__all__ = [
    "SILENCE",
    "ClientFactory",
    "HandleFactory",
    "Incoming",
    "Peer",
    "RequestError",
    "SyncClientFactory",
    "SyncHandleFactory",
]

_HOMES: Final = {
    "factories": ("ClientFactory", "HandleFactory", "SyncClientFactory", "SyncHandleFactory"),
    "peer": ("SILENCE", "Incoming", "Peer", "RequestError"),
}
"""Where each name lives. pytest loads `plugin` in every run of everyone: nothing else with it."""

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
