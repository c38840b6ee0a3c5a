"""What a server tells of its own accord, for one host: log messages, changes, tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast._core.calls.handlers import Notification
from holdfast._core.eras.serving import LEVELS, Json
from holdfast._core.server.request import ServerRequest
from holdfast._core.server.session import MOST_EARLY, MOST_EARLY_BYTES, ServerSession
from holdfast._core.wire.jsonrpc import MALFORMED
from holdfast.relay.envelope import of_any_hop
from holdfast.relay.tasks.host import CHANGED, STATUS

if TYPE_CHECKING:
    from holdfast.relay.passing import Relay

MESSAGE: Final = "notifications/message"
UPDATED: Final = "notifications/resources/updated"

DEFAULT_LEVEL: Final = "info"
"""From where a host that names no level gets log messages, once another has named one."""


class Notices:
    """Passes notifications of the server to a host.

    Args:
        relay: Of the host.
        sessions: The sessions of the host.
        followed: Its requests that are under way.
    """

    def __init__(
        self, relay: Relay, sessions: Iterable[ServerSession], followed: Iterable[ServerRequest]
    ) -> None:
        self._relay = relay
        self._sessions = sessions
        self._followed = followed
        self._early: list[Notification] = []
        """Notifications that came before the end of the host's handshake."""

    def __repr__(self) -> str:
        return f"<Notices {self._relay!r}>"

    def pass_on(self, notification: Notification) -> None:
        """Pass a notification, if it is one that the host wants."""
        sessions = [session for session in self._sessions if self._is_ready(session)]
        if sessions or not any(self._sessions):
            self.pass_early()
            self._pass(sessions, notification)
        elif len(self._early) < MOST_EARLY and self._early_size() <= MOST_EARLY_BYTES:
            # A server may log before it answers `initialize`, which the host waits for.
            self._early.append(notification)

    def pass_early(self) -> None:
        """Pass what came before the end of the host's handshake."""
        early, self._early = self._early, []
        for notification in early:
            self.pass_on(notification)

    def _early_size(self) -> int:
        return sum(len(notification.raw or b"") for notification in self._early)

    def _pass(self, sessions: list[ServerSession], notification: Notification) -> None:
        method = notification.method
        if method in (CHANGED, STATUS):
            self._pass_status(sessions, notification)
        elif method == UPDATED or method.endswith("/list_changed"):
            self._announce(sessions, notification)
        elif self._relay.is_lasting:
            self._pass_by_requests(notification)
        elif self._wants(method, _level_of(notification), self._relay.log_level):
            for session in sessions:
                session.notify(method, notification.raw)

    def _announce(self, sessions: list[ServerSession], notification: Notification) -> None:
        """Tell the host of a change."""
        method = notification.method
        params = None if notification.raw is None else _fields_of(notification)
        uri = msgspec.json.decode((params or {}).get("uri", b"null"))
        watched = self._relay.shared.watched_for(uri)
        for session in sessions:
            if method == UPDATED and watched is None and session.era is not None:
                # Nobody has subscribed to it: the server has its reasons.
                session.notify(method, params)
            else:
                session.announce(method, params, watched)

    def _pass_by_requests(self, notification: Notification) -> None:
        # A stateless request over HTTP has a stream of its own, and nothing else reaches it.
        method, level = notification.method, _level_of(notification)
        for request in list(self._followed):
            if self._wants(method, level, request.era.log_level):
                request.notify(method, notification.raw)

    def _pass_status(self, sessions: list[ServerSession], notification: Notification) -> None:
        """Tell the host of a task that has changed, if it is one of its own."""
        if notification.raw is None:
            return
        method, tasks = notification.method, self._relay.tasks
        for session in sessions:
            in_core = session.era is not None and session.era.knows("initialize", "tasks")
            status = tasks.status(method, notification.raw, in_core=in_core)
            if status is not None:
                session.notify(*status)

    def _is_ready(self, session: ServerSession) -> bool:
        """Return whether a session may be told anything: not before the end of its handshake."""
        return session.era is not None or not self._relay.is_handshake

    def _wants(self, method: str, level: Any, least: str | None) -> bool:
        """Return whether the host wants a notification: a log message only from a level."""
        if method != MESSAGE:
            return True
        is_handshake = self._relay.is_handshake
        if level not in LEVELS:
            return is_handshake or least is not None
        if least is None:
            # In the stateless era nothing is sent unasked; before it, the server chooses.
            if not is_handshake:
                return False
            if self._relay.shared.level is None:
                return True
            least = DEFAULT_LEVEL
        if is_handshake and least == self._relay.shared.level:
            return True  # the server was told just that, and knows what it means
        return LEVELS.index(level) >= LEVELS.index(least)


def _level_of(notification: Notification) -> Any:
    """Return the level of a log message; None for anything else."""
    if notification.method != MESSAGE:
        return None
    return msgspec.json.decode(_fields_of(notification).get("level", b"null"))


def _fields_of(notification: Notification) -> Json:
    """Return the parameters by their names, each as it came; none if they are no object."""
    try:
        return {} if notification.raw is None else of_any_hop(notification.raw)
    except MALFORMED:
        return {}
