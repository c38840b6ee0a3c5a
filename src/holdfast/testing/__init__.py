"""For tests: a scripted server, the contracts of transports and stores, and a pytest plugin.

peer             a scripted server in memory
contract         tests that every transport passes
  echo_server    the server that they talk to
store_contract   tests that every store passes
plugin           fixtures, markers and options for pytest
  fixtures       the clients and handles of one test, and the types of the fixtures
  recording      its calls: notes for a report, recordings on disk, and their replay
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast._lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast._core.server.request import SILENCE, ServerRequest
    from holdfast._core.wire.codes import RequestError
    from holdfast.testing.fixtures import (
        ClientFactory, HandleFactory, SyncClientFactory, SyncHandleFactory,
    )
    from holdfast.testing.peer import Peer

__all__ = [
    "SILENCE",
    "ClientFactory",
    "HandleFactory",
    "Peer",
    "RequestError",
    "ServerRequest",
    "SyncClientFactory",
    "SyncHandleFactory",
]

_HOMES: Final = {
    "fixtures": ("ClientFactory", "HandleFactory", "SyncClientFactory", "SyncHandleFactory"),
    "peer": ("SILENCE", "ServerRequest", "Peer", "RequestError"),
}
"""The home of each name; pytest loads `plugin` in every run, and nothing else with it."""
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
