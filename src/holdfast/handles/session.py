"""One session, over as many connections as it takes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from holdfast.client import Client
from holdfast.errors import HoldfastError
from holdfast.handles.adapters import SessionAdapter
from holdfast.types.tools import Tool

log: logging.Logger = logging.getLogger("holdfast")


class Phase(StrEnum):
    """The state of a session."""

    ABSENT = "absent"
    OPEN = "open"
    DOUBT = "doubt"
    """It was asked for, and no answer came."""


class HandleSession:
    """The session that a handle holds open at the server for its calls."""

    def __init__(
        self, client: Client, adapter: SessionAdapter, name: str, arguments: Mapping[str, object]
    ) -> None:
        self.name = name
        self.phase: Phase = Phase.ABSENT
        self._client = client
        self._adapter = adapter
        self._arguments = dict(arguments)
        self._dies_with_the_link: bool = getattr(adapter, "reopen", True)

    def __repr__(self) -> str:
        return f"<Session {self.name!r} {self.phase}>"

    @property
    def is_open(self) -> bool:
        """Return True if the session is open."""
        return self.phase is Phase.OPEN

    async def open(self) -> None:
        """See that it is open."""
        if self.is_open:
            return
        self.phase = Phase.DOUBT
        try:
            await self._adapter.open(self._client, self.name, self._arguments)
        except HoldfastError as error:
            if not error.outcome_unknown:
                self.phase = Phase.ABSENT
            raise
        # The link may have been lost again just as the answer came.
        if self.phase is Phase.DOUBT:
            self.phase = Phase.OPEN

    def lost(self) -> None:
        """Mark the session as absent if it ends with its connection."""
        if self._dies_with_the_link:
            self.phase = Phase.ABSENT

    async def close(self) -> None:
        """Close the session if it is open; ignore errors of one in doubt."""
        phase, self.phase = self.phase, Phase.ABSENT
        if phase is Phase.ABSENT:
            return
        try:
            await self._adapter.close(self._client, self.name)
        except HoldfastError as error:
            if phase is Phase.OPEN:
                raise
            log.debug("%s: session %r: %s", self._client.name, self.name, error)

    def place(self, tool: Tool | None, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments to send: with the session, if the tool is known and wants it."""
        if tool is None or not self._adapter.has_session(tool):
            return arguments
        return self._adapter.inject_session(arguments, self.name)
