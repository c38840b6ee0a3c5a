"""Many servers behind one: their tools and prompts as ``server.name``, their resources as they are.

Each server has its own relay for the host, which does what passes between the two. Here is only
which one is meant, and what becomes of lists. A server that fails, or takes long to start, costs
nothing but what it offers: it is missing from the lists, and the host is told when it is there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from holdfast._core.eras.revisions import VERSIONS
from holdfast._core.eras.serving import LEVELS, Json
from holdfast._core.server import lifecycle
from holdfast._core.server.request import InputRequired, ServerRequest
from holdfast._core.server.server import Server
from holdfast._core.server.session import CANCELLED, ServerSession
from holdfast._core.wire.codes import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
    RequestError,
)
from holdfast._core.wire.jsonrpc import MALFORMED, encode
from holdfast._version import __version__
from holdfast.errors import HoldfastError, RequestTimeout
from holdfast.relay.envelope import fault_of, fields_of, items_of
from holdfast.relay.host_wishes import listen
from holdfast.relay.passing import INITIALIZED, Relay
from holdfast.relay.tasks.shapes import without_wish

if TYPE_CHECKING:
    from holdfast.relay.sharing import SharedRelay

PATIENCE: Final = 10.0
"""Seconds for which one server may delay the introduction and the lists of all."""
MOST_PAGES: Final = 1_000
MOST_OWNERS: Final = 10_000
"""Resources whose server is remembered."""
LISTED: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The fields of results that hold the items of a list."""
_NOT_THERE: Final = (RESOURCE_NOT_FOUND, INVALID_PARAMS, METHOD_NOT_FOUND)
"""The codes of servers that do not have a resource, in the revisions that there are."""


class MergedRelay:
    """Serves one host what many servers offer.

    Args:
        servers: The shared relays, by the names that servers are known by.
        is_lasting: As for `SharedRelay.join`.
        patience: Seconds for which one server may delay what is made of all.

    Attributes:
        server: What to serve to the host.
    """

    def __init__(
        self,
        servers: Mapping[str, SharedRelay],
        *,
        is_lasting: bool = False,
        patience: float = PATIENCE,
    ) -> None:
        self._relays = {
            # The ids of tasks name no server.
            name: shared.join(is_lasting=is_lasting, has_tasks=False)
            for name, shared in servers.items()
        }
        self._is_lasting = is_lasting
        self._patience = patience
        self._owners: dict[str, str] = {}
        """The servers of resources and templates, by URI, the latest last."""
        self._is_listed = False
        """True once resources were listed to find the server of one."""
        self._awaited: dict[str, asyncio.Task[None]] = {}
        """Servers that were missing from a list: the host is told when they are there."""
        self.server: Server = Server(
            "holdfast",
            {
                "initialize": self._initialize,
                "server/discover": self._discover,
                "tools/list": self._list_named,
                "prompts/list": self._list_named,
                "resources/list": self._list_resources,
                "resources/templates/list": self._list_resources,
                "tools/call": self._pass_named,
                "prompts/get": self._pass_named,
                "resources/read": self._pass_resource,
                "resources/subscribe": self._pass_resource,
                "resources/unsubscribe": self._pass_resource,
                "completion/complete": self._complete,
                "logging/setLevel": self._set_level,
                "subscriptions/listen": self._listen,
                INITIALIZED: self._tell_all,
                CANCELLED: self._tell_all,
            },
            default=self._pass,
            capabilities=self._capabilities,
        )
        self.server.info = {"name": "holdfast", "version": __version__}
        self.server.verbatim = True
        self.server.heard = self._heard
        self.server.left = self._left
        self.server.watchable = lambda uri: any(
            uri in relay.watched for relay in self._relays.values()
        )

    def __repr__(self) -> str:
        return f"<MergedRelay {', '.join(self._relays)}>"

    async def leave(self) -> None:
        """End all that is of this host."""
        self._forget_awaited()
        await asyncio.gather(*(relay.leave() for relay in self._relays.values()))

    def _heard(self, request: ServerRequest) -> None:
        for relay in self._relays.values():
            relay.heard(request)

    def _left(self, session: ServerSession) -> None:
        if not self._is_lasting:
            self._forget_awaited()
        for relay in self._relays.values():
            relay.left(session)

    # What the servers say of themselves

    async def _initialize(self, request: ServerRequest) -> Json:
        era = lifecycle.begin_session(request)
        introduction = await self._introduction()
        return {"protocolVersion": era.version, "serverInfo": self.server.info, **introduction}

    async def _discover(self, request: ServerRequest) -> Json:
        return {"supportedVersions": list(VERSIONS), **await self._introduction()}

    async def _introduction(self) -> Json:
        """Start every server; return what those say that are there in time."""
        await self._each(lambda relay: relay.open())
        texts = {name: relay.instructions for name, relay in self._relays.items()}
        parts = [f"{name}: {text}" for name, text in texts.items() if text]
        return {
            "capabilities": self._capabilities(),
            **({"instructions": "\n\n".join(parts)} if parts else {}),
        }

    def _capabilities(self) -> Json:
        """Return what any server offers; one that is not there may offer everything."""
        whole: Json = {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "completions": {},
            "logging": {},
        }
        declared = [relay.server_capabilities for relay in self._relays.values()]
        return {
            name: section
            for name, section in whole.items()
            if name == "tools" or any(part is None or name in part for part in declared)
        }

    # Lists

    async def _list_named(self, request: ServerRequest) -> Json:
        """Return the tools or prompts of all servers, each under the name of its server."""
        items, key = [], LISTED[request.method]
        for server, item in await self._collect(request):
            name = text_in(item, "name")
            if name is not None:
                named = {"name": full_name(server, name, self._relays)}
                items.append(Raw(encode({**fields_of.decode(item), **named})))
        return {key: items}

    async def _list_resources(self, request: ServerRequest) -> Json:
        """Return the resources of all servers; of two with one URI, that of the first server."""
        items: dict[str, Raw] = {}
        key = LISTED[request.method]
        field = "uri" if key == "resources" else "uriTemplate"
        for server, item in await self._collect(request):
            uri = text_in(item, field)
            if uri is not None and uri not in items:
                items[uri] = item
                self._note_owner(uri, server)
        return {key: list(items.values())}

    async def _collect(self, request: ServerRequest) -> list[tuple[str, Raw]]:
        """Return the items of all pages of all servers, each with the name of its server."""
        if request.get("cursor") is not None:
            raise RequestError(INVALID_PARAMS, "unknown cursor: the list has one page")
        section = request.method.partition("/")[0]

        async def list_all(relay: Relay) -> list[Raw]:
            await relay.open()
            if section not in (relay.server_capabilities or ()):
                return []
            return [item async for item in pages(relay.handle, request)]

        lists = await self._each(list_all)
        return [(name, item) for name, items in lists.items() for item in items]

    async def _each(self, work: Callable[[Relay], Awaitable[Any]]) -> dict[str, Any]:
        """Return what work returns for each server that is there in time.

        Raises:
            RequestError: None is; it is that of the first.
        """

        async def attempt(name: str, relay: Relay) -> Any:
            was_there = relay.is_there
            try:
                async with asyncio.timeout(self._patience):
                    return await work(relay)
            except (TimeoutError, RequestError, HoldfastError) as error:
                if not (was_there and relay.is_there):
                    self._await(name, relay)
                if isinstance(error, RequestError):
                    return error
                if not isinstance(error, HoldfastError):
                    error = RequestTimeout(f"{name}: not there within {self._patience:g} s")
                return fault_of(error)

        results = await asyncio.gather(
            *(attempt(name, relay) for name, relay in self._relays.items())
        )
        outcomes = dict(zip(self._relays, results, strict=True))
        faults = [outcome for outcome in results if isinstance(outcome, RequestError)]
        if len(faults) == len(outcomes):
            raise faults[0]
        return {name: x for name, x in outcomes.items() if not isinstance(x, RequestError)}

    def _await(self, name: str, relay: Relay) -> None:
        """Tell the host that lists have changed once a server is there."""
        if name not in self._awaited:
            task = asyncio.get_running_loop().create_task(self._announce_ready(relay))
            self._awaited[name] = task
            task.add_done_callback(lambda _: self._awaited.pop(name, None))

    async def _announce_ready(self, relay: Relay) -> None:
        try:
            await relay.wait_ready()
        except HoldfastError:
            return  # it was closed
        for section in ("tools", "prompts", "resources"):
            self.server.announce(f"notifications/{section}/list_changed")

    def _forget_awaited(self) -> None:
        for task in self._awaited.values():
            task.cancel()

    # What is for one server

    async def _pass_named(self, request: ServerRequest) -> Any:
        server, name = self._resolve(request.get("name"))
        return await self._relays[server].handle(without_wish(renamed(request, name=name)))

    def _resolve(self, name: Any) -> tuple[str, str]:
        """Return the server and the tool, or prompt, of a full name."""
        split = split_name(name, self._relays) if isinstance(name, str) else None
        if split is None:
            text = f"{name!r} begins with no server: the names are SERVER.NAME, of "
            raise RequestError(INVALID_PARAMS, text + ", ".join(self._relays))
        return split

    async def _pass_resource(self, request: ServerRequest) -> Any:
        uri = lifecycle.uri_of(request)
        return await self._first_with(request, uri, lambda relay: relay.handle(request))

    async def _owner(self, request: ServerRequest, uri: str) -> str | None:
        """Return the server that lists a resource, or the template that it seems to be of."""
        if uri not in self._owners and not self._is_listed:
            self._is_listed = True
            for method in ("resources/list", "resources/templates/list"):
                with suppress(RequestError):
                    await self._list_resources(listing(request, method))
        if uri in self._owners:
            return self._owners[uri]
        beginnings = [known.partition("{")[0] for known in self._owners if "{" in known]
        fitting = [text for text in beginnings if text and uri.startswith(text)]
        if not fitting:
            return None
        longest = max(fitting, key=len)
        return next(self._owners[known] for known in self._owners if known.startswith(longest))

    async def _first_with(
        self, request: ServerRequest, uri: str, work: Callable[[Relay], Awaitable[Any]]
    ) -> Any:
        """Return what the server of a resource returns; unless listed, the first that has it."""
        owner = await self._owner(request, uri)
        fault: RequestError | None = None
        for name in self._relays if owner is None else (owner,):
            try:
                result = await work(self._relays[name])
            except InputRequired:
                self._note_owner(uri, name)  # its questions are not answered by another
                raise
            except RequestError as error:
                if owner is not None or error.code not in _NOT_THERE:
                    raise
                fault = fault or error
                continue
            self._note_owner(uri, name)
            return result
        assert fault is not None
        raise fault

    def _note_owner(self, uri: str, name: str) -> None:
        self._owners.pop(uri, None)
        self._owners[uri] = name
        if len(self._owners) > MOST_OWNERS:
            del self._owners[next(iter(self._owners))]

    async def _complete(self, request: ServerRequest) -> Any:
        reference = request.get("ref")
        if not isinstance(reference, dict):
            raise RequestError(INVALID_PARAMS, "ref must be an object")
        if "name" in reference:
            server, name = self._resolve(reference["name"])
            passed = renamed(request, ref={**reference, "name": name})
            return await self._relays[server].handle(passed)
        uri = str(reference.get("uri"))
        return await self._first_with(request, uri, lambda relay: relay.handle(request))

    # What is for all

    async def _set_level(self, request: ServerRequest) -> Json:
        level = request.get("level")
        lifecycle.set_level(request)
        assert level in LEVELS
        for relay in self._relays.values():
            relay.log_level = level
            try:
                await relay.wishes.tell_level()
            except HoldfastError:
                continue  # it is told with the next request
        return {}

    async def _listen(self, request: ServerRequest) -> Any:
        return await listen(
            request,
            lambda uri: self._first_with(request, uri, lambda relay: relay.wishes.watch(uri)),
        )

    async def _tell_all(self, request: ServerRequest) -> None:
        for relay in self._relays.values():
            await relay.handle(request)

    def _pass(self, request: ServerRequest) -> Any:
        """Handle what names no server: notifications are for all, requests for none."""
        if request.id is None:
            return self._tell_all(request)
        text = f"method not found: {request.method} (it names none of several servers)"
        raise RequestError(METHOD_NOT_FOUND, text)


def split_name(full: str, servers: Iterable[str]) -> tuple[str, str] | None:
    """Return the server and the name of ``server.name``; None if it begins with no server.

    Both may contain dots: the longest server that fits is meant. So ``a.b.x`` is ``x`` of ``a.b``,
    where there is one of that name, and ``a..b.x`` is ``b.x`` of ``a``.
    """
    server = max((name for name in servers if full.startswith(f"{name}.")), key=len, default=None)
    if server is None:
        return None
    name = full[len(server) + 1 :]
    if name.startswith(".") and split_name(server + name, servers) != (server, name[1:]):
        name = name[1:]  # the dot keeps it apart from the name that leads elsewhere
    return server, name


def full_name(server: str, name: str, servers: Iterable[str]) -> str:
    """Return the name that leads to this one of a server: no two have the same."""
    full = f"{server}.{name}"
    return full if split_name(full, servers) == (server, name) else f"{server}..{name}"


def text_in(item: Raw, field: str) -> str | None:
    """Return a text of an item of a list; None if it has none, or cannot be read."""
    try:
        text = msgspec.json.decode(fields_of.decode(item)[field])
    except (*MALFORMED, KeyError):
        return None
    return text if isinstance(text, str) else None


def renamed(request: ServerRequest, **fields: Any) -> ServerRequest:
    """Return the same request with other parameters."""
    return request.with_params(Raw(encode({**fields_of.decode(request.params_raw), **fields})))


def listing(request: ServerRequest, method: str) -> ServerRequest:
    """Return a request for a list, made of another request."""
    made = request.with_params(Raw(encode({"_meta": request.meta})))
    made.method = method
    return made


async def pages(
    handle: Callable[[ServerRequest], Awaitable[Any]], request: ServerRequest
) -> AsyncIterator[Raw]:
    """Yield the items of all pages of a list, as they came.

    Raises:
        RequestError: A page was refused, or the list has no end.
    """
    cursors: set[bytes] = set()
    while True:
        result = await handle(request)
        try:
            fields = fields_of.decode(result if isinstance(result, Raw) else encode(result))
            items: Iterable[Raw] = items_of.decode(fields.get(LISTED[request.method], b"[]"))
        except MALFORMED as error:
            text = f"{request.method}: a page is malformed: {error}"
            raise RequestError(INVALID_PARAMS, text) from None
        for item in items:
            yield item
        cursor = bytes(fields.get("nextCursor", b"null"))
        if cursor == b"null":
            return
        if cursor in cursors or len(cursors) >= MOST_PAGES:
            raise RequestError(INVALID_PARAMS, f"{request.method}: the list has no end")
        cursors.add(cursor)
        request = renamed(request, cursor=Raw(cursor))
