"""The status of one server among many."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from holdfast.errors import HoldfastError

DISABLED: Final = "disabled"
UNTRUSTED: Final = "untrusted"
INVALID: Final = "invalid"
NOT_STARTED: Final = "not started"


class Failure(Struct, frozen=True, kw_only=True):
    """An error of one server, with its time."""

    server: str
    error: HoldfastError
    time: datetime

    @property
    def is_timeout(self) -> bool:
        """True if the server did not start or answer in time."""
        return isinstance(self.error, TimeoutError)

    def __str__(self) -> str:
        text = str(self.error)
        return text if text.startswith(f"{self.server}: ") else f"{self.server}: {text}"


class Status(Struct, frozen=True, kw_only=True):
    """One server.

    ``state`` is ``"not started"``; a state of its client (`holdfast.State`), once that is in
    use; ``"disabled"`` or ``"untrusted"``, if it may not be started; or ``"invalid"``, if
    what is configured can make no client. ``failure`` is the last thing that went wrong with
    the connection: a server that is ready may have one, from before. ``tools`` counts the
    list that was seen last; None is never.
    """

    name: str
    state: str
    failure: Failure | None = None
    tools: int | None = None
    server: str | None = None
    """The name and version that the server reports."""
    protocol_version: str | None = None
    source: str | None = None
    """The file it is configured in."""

    @property
    def is_ready(self) -> bool:
        """Return True if the server is connected and ready."""
        return self.state == "ready"

    @property
    def error(self) -> HoldfastError | None:
        """The last thing that went wrong."""
        return None if self.failure is None else self.failure.error

    def __str__(self) -> str:
        return "  ".join(filter(None, (self.name, self.state, *self._details())))

    def _details(self) -> tuple[str, ...]:
        count = "" if self.tools is None else f"{self.tools} tool{'s' * (self.tools != 1)}"
        wrong = "" if self.failure is None or self.is_ready else self.failure.error.message
        return (count, self.server or "", wrong)
