"""For tests: a server that follows a script, and a contract that every transport keeps."""

from __future__ import annotations

from holdfast.testing.peer import SILENCE, Incoming, Peer, PeerError

__all__ = ["SILENCE", "Incoming", "Peer", "PeerError"]
