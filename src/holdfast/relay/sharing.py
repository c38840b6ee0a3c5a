"""Several hosts over one client: what each of them wants of the server, and what is for whom."""

# A server sees one client. Behind it may be many hosts, which come and go, and of which each should
# notice nothing of the others:
#
#   host A ─ Relay ─┐
#   host B ─ Relay ─┼─ SharedRelay ─ Client ─ server
#   host C ─ Relay ─┘
#
# What belongs to one call finds its way by that call: its result, its progress, its cancellation,
# and, at a server of the stateless era, its questions. What belongs to the connection has no such
# mark, and is settled here:
#
# - Capabilities are declared once, with the connection. Declared is what all hosts have that are
#   there when it is made. A host with fewer that joins later does not end a connection on which
#   others have calls: a question that it cannot answer is refused when it comes, which a server
#   must expect anyway, and the next connection is made with what all have then. A server of the
#   stateless era is told the capabilities of the very host with each request.
# - A resource is subscribed to with the first host that wants it, and unsubscribed with the last.
# - The log level is the most verbose that a host has asked for; each gets what it asked for.
# - A question of a handshake server names no call. If one host alone has calls open it is meant; so
#   is one that is alone. Otherwise any answer could be somebody else's: it is refused, and an event
#   says so.
#
# A host that leaves is gone at once: its calls are cancelled, nothing is sent to it any more. What
# the server has to be told of it (the end of subscriptions, a level) follows in the background.

from __future__ import annotations

import asyncio
from contextlib import suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from holdfast._core.calls.handlers import Notification
from holdfast._core.eras.serving import LEVELS, Json
from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.errors import HoldfastError, RpcError
from holdfast.events import QuestionRefused
from holdfast.policies import ToolPolicy
from holdfast.relay.passing import Relay
from holdfast.relay.relay_cache import RelayCache
from holdfast.relay.tasks.shapes import related_task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from msgspec import Raw

    from holdfast.client import Client

RELAYED: Final[Mapping[str, Any]] = MappingProxyType(
    {"frame_bytes": 64 * 1024 * 1024, "mailbox": 100_000}
)
"""Limits for a server behind a relay: a message may be as long as one of a host, and notifications
that wait for the host are bounded by their bytes before."""

LONGEST_LEAVE: Final = 1.0
"""Seconds for a server to be told of a host that leaves, before nobody waits for that."""

Tell: TypeAlias = "Callable[[str], Coroutine[Any, Any, object]]"
"""Tells the server of a resource or a level."""

calling: ContextVar[Relay | None] = ContextVar("holdfast_relay_calling", default=None)
"""The host whose call is under way, in the task of that call."""


class SharedRelay:
    """Serves any number of hosts what one client's server offers.

    Args:
        client: A client that has not been used yet: the capabilities of the hosts are declared by
            it. It is closed by its owner, after `close`.
        tools: Names of tools that hosts may see and call, besides the client's own policy.
        is_cached: Give hosts lists and resources that are there, as the client's policy says.

    Example:
        ```python
        shared = SharedRelay(client)
        host = shared.join()
        try:
            await stdio.serve(host.server)
        finally:
            await host.leave()
        ```
    """

    def __init__(
        self, client: Client, tools: ToolPolicy | None = None, *, is_cached: bool = False
    ) -> None:
        self.client = client
        self.cache: RelayCache | None = RelayCache(client._cached.cache) if is_cached else None
        self.tools: ToolPolicy = tools or ToolPolicy()
        self.declared: Json | None = None
        """The capabilities that the next connection declares; None: no host has said anything."""
        self._hosts: list[Relay] = []
        self._watchers: dict[str, set[Relay]] = {}
        """The hosts that want updates of a resource, by its URI."""
        self._turns = asyncio.Lock()
        """Subscriptions change one after the other: a first and a last must not overtake."""
        self.level: str | None = None
        """The log level that a handshake server was told; None: it chooses for itself."""
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<SharedRelay {self.client!r} {len(self._hosts)} hosts>"

    @property
    def hosts(self) -> tuple[Relay, ...]:
        """The hosts that are there, the oldest first."""
        return tuple(self._hosts)

    @property
    def is_stateless(self) -> bool:
        """True if the server is of the stateless era; False before the first connection."""
        era = self.client._requester.opener.era()
        return era is not None and era.listens

    # Hosts

    def join(self, *, is_lasting: bool = False, has_tasks: bool = True) -> Relay:
        """Return the relay of a new host.

        Args:
            is_lasting: It stays when a session of its server ends, for those who serve many with
                one: the requests of the stateless era over HTTP.
            has_tasks: Tasks of the server are offered to the host.
        """
        host = Relay(self, is_lasting=is_lasting, has_tasks=has_tasks)
        self._hosts.append(host)
        return host

    async def leave(self, host: Relay) -> None:
        """Drop a host; return when the server knows of it, or is not there to be told."""
        # It may be down, or hang: whoever ends a host does not wait for that.
        await asyncio.wait([self.leave_soon(host)], timeout=LONGEST_LEAVE)

    def leave_soon(self, host: Relay) -> asyncio.Task[None]:
        """Drop a host; the server is told in the background."""
        if host in self._hosts:
            self._hosts.remove(host)
            self._redeclare()
        return self.spawn(self._tell_left(host))

    async def _tell_left(self, host: Relay) -> None:
        await self.end_unwanted(host, ())
        if self.client.is_connected:  # else the next request tells it
            with suppress(HoldfastError):
                await self.tell_level()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do some work that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Have every host leave. The client is not closed."""
        await asyncio.gather(*(host.leave() for host in self.hosts))
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)

    def begin_call(self, host: Relay) -> None:
        """Count a call of a host, and mark the task that makes it."""
        host.open_calls += 1
        calling.set(host)

    # Capabilities

    def declare(self) -> None:
        """Declare what all hosts can do; before the first use of the client, or for the next link.

        Called when a host has said what it can do.
        """
        if self.declared is None:
            self.declared = self._common()
            self.client._attach_answerer(self._answer, capabilities=self.declared)
            self.client.on_notification(self._notified)
            self.client._unsolicited.reconnected = self._reconnected
        else:
            self._redeclare()

    def declaring(self, capabilities: Json) -> Json | None:
        """Return what a stateless server is told of a host; None: what the connection says."""
        era = self.client._requester.opener.era()
        declared = self.client._policy.identity.declaring(capabilities).capabilities
        return None if declared == getattr(era, "declared", None) else declared

    def _redeclare(self) -> None:
        common = self._common()
        if self.declared is not None and self._hosts and common != self.declared:
            self.declared = common
            self.client._declare(common)

    def _common(self) -> Json:
        spoken = [host.capabilities for host in self._hosts if host.capabilities is not None]
        return common_capabilities(spoken)

    # Subscriptions

    async def watch(self, host: Relay, uri: str, subscribe: Tell | None = None) -> object:
        """Subscribe to a resource for a host; return what the server said, if it was told.

        The first does it, by its own request if it has one. One that is alone may do it again.
        """
        answer = None
        async with self._turns:
            watchers = self._watchers.get(uri, set())
            if not watchers or (subscribe is not None and watchers == {host}):
                answer = await (subscribe or self.client.subscribe_resource)(uri)
            self._watchers.setdefault(uri, watchers).add(host)
            host.watched.add(uri)
        if host not in self._hosts:
            await self.unwatch(host, uri)  # it left meanwhile
        return answer

    def watched_for(self, uri: Any) -> str | None:
        """Return the resource that a host watches and that an update is about, if there is one.

        It may be about a part of it (2025-11-25 server/resources: "may be a sub-resource").
        """
        if not isinstance(uri, str):
            return None
        if uri in self._watchers:
            return uri
        return max(filter(uri.startswith, self._watchers), key=len, default=None)

    async def unwatch(self, host: Relay, uri: str, unsubscribe: Tell | None = None) -> object:
        """End the subscription of a host; return what the server said, if it was told.

        The last one ends that of the server. What nobody watches is the server's to refuse.
        """
        async with self._turns:
            host.watched.discard(uri)
            watchers = self._watchers.get(uri, set())
            was_watched = host in watchers
            watchers.discard(host)
            if watchers or not (was_watched or unsubscribe):
                return None
            self._watchers.pop(uri, None)
            return await (unsubscribe or self.client.unsubscribe_resource)(uri)

    async def end_unwanted(self, host: Relay, wanted_uris: Any) -> None:
        """End the subscriptions of a host to all but some resources."""
        for uri in sorted(host.watched.difference(wanted_uris)):
            try:
                await self.unwatch(host, uri)
            except HoldfastError:
                continue  # nobody waits for it; what still comes is passed to nobody

    # Log levels

    async def tell_level(self, tell: Tell | None = None) -> object:
        """Tell a handshake server the most verbose level that a host wants, if it has changed.

        With ``tell`` it is told by that, and also if nothing has changed. Return what it said.
        """
        level = self.most_verbose()
        if level is None or self.is_stateless or not (tell or self.is_level_new):
            return None
        former, self.level = self.level, level
        try:
            return await (tell or self.client.set_log_level)(level)
        except BaseException:
            self.level = former
            raise

    def most_verbose(self) -> str | None:
        """Return the most verbose level that a host wants; None if none is wanted."""
        levels = [host.log_level for host in self._hosts if host.log_level is not None]
        return min(levels, key=LEVELS.index, default=None)

    @property
    def is_level_new(self) -> bool:
        """True if the server is to be told another level than before."""
        level = self.most_verbose()
        return level is not None and level != self.level and not self.is_stateless

    # From the server

    async def _answer(self, method: str, params: Raw) -> Raw:
        """Ask the host that a question is for."""
        host = calling.get() if self.is_stateless else self._meant(params)
        if host is None or host not in self._hosts:
            text = f"{method}: {self._ambiguity()}: none can be asked"
            events = self.client._unsolicited.events
            if events is not None and events.active:
                events.emit(QuestionRefused(self.client.name, method=method, reason=text))
            raise RpcError(text, code=METHOD_NOT_FOUND)
        return await host.ask(method, params)

    def task_owner(self, task_id: Any) -> Relay | None:
        """Return the host that a task was named to, if it is there."""
        return next((host for host in self._hosts if task_id in host.tasks), None)

    def _meant(self, params: Raw) -> Relay | None:
        """Return the host that a handshake server asks."""
        task_id = related_task(params)
        owner = None if task_id is None else self.task_owner(task_id)
        return owner or self._only_caller()

    def _only_caller(self) -> Relay | None:
        """Return the host that alone has calls open, or that is alone.

        Of the requests that a lasting one stands for, each may be of another host.
        """
        callers = [host for host in self._hosts if host.open_calls]
        candidates = callers or self._hosts
        if len(candidates) != 1 or (candidates[0].is_lasting and candidates[0].open_calls > 1):
            return None
        return candidates[0]

    def _ambiguity(self) -> str:
        calls = sum(host.open_calls for host in self._hosts)
        if len(self._hosts) == 1:
            return f"{calls} calls are open, which may be of several hosts"
        return f"{len(self._hosts)} hosts share this server, with {calls} calls open"

    def _reconnected(self) -> None:
        """Have hosts list again what the server announces: it may be another program now."""
        facts = self.client._facts
        for section in [] if facts is None else facts.changing:
            self._notified(Notification(f"notifications/{section}/list_changed", None))

    def _notified(self, notification: Notification) -> None:
        """Pass a notification of the server to the hosts that want it."""
        for host in self.hosts:
            host.notified(notification)


def common_capabilities(all_declared: list[Json]) -> Json:
    """Return what all of some clients have declared."""
    if not all_declared:
        return {}
    common = _explicit(all_declared[0])
    for declared in all_declared[1:]:
        common = _common(common, _explicit(declared))
        if common.get("elicitation") == {}:
            del common["elicitation"]
    return common if len(all_declared) > 1 else all_declared[0]


def _explicit(declared: Json) -> Json:
    """Return capabilities with the mode that an empty ``elicitation`` stands for.

    2025-11-25 client/elicitation, Capabilities.
    """
    return (
        {**declared, "elicitation": {"form": {}}} if declared.get("elicitation") == {} else declared
    )


def _common(first: Json, second: Json) -> Json:
    common: Json = {}
    for name in first.keys() & second.keys():
        mine, theirs = first[name], second[name]
        if isinstance(mine, dict) and isinstance(theirs, dict):
            common[name] = _common(mine, theirs)
        elif mine == theirs:
            common[name] = mine
    return common
