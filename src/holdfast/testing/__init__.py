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

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from holdfast.testing.factories import (
        ClientFactory,
        HandleFactory,
        SyncClientFactory,
        SyncHandleFactory,
    )
    from holdfast.testing.peer import SILENCE, Incoming, Peer, PeerError

__all__ = [
    "SILENCE",
    "ClientFactory",
    "HandleFactory",
    "Incoming",
    "Peer",
    "PeerError",
    "SyncClientFactory",
    "SyncHandleFactory",
]

_HOMES: Final = {name: "factories" if name.endswith("Factory") else "peer" for name in __all__}
"""Where each name lives. pytest loads `plugin` in every run of everyone: nothing else with it."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = found
        return found
