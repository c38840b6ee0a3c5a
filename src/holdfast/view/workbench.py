"""The connections that a live page owns: their tools, and the calls that a person makes."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from holdfast._core.observers.observer import TOOL_CALL, ObservedCall, Observer, secret_names_of
from holdfast._core.redact.known import KNOWN
from holdfast._core.redact.redactor import default_redactor
from holdfast.errors import HoldfastError, ValidationError
from holdfast.schema.explain import pointer
from holdfast.schema.faults import SchemaFault

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.types.tools import Tool

MOST_CALLS: Final = 64
"""Calls under way at the same time."""
REMEMBERED: Final = 500
"""Calls whose arguments are kept, so that they can be sent again."""
LONGEST_ERROR: Final = 4000
_MISSING: Final = re.compile(r"(['\"])(.+?)\1 is required and missing")


class PageCall(Struct, eq=False):
    """A call that a person made: with its arguments as they are, which no trace has."""

    server: str
    tool: str
    arguments: dict[str, Any]
    task: asyncio.Task[Any] | None = None
    wire_id: str = ""
    """The id of its request, once it was sent."""


_present: ContextVar[PageCall | None] = ContextVar("page call", default=None)


class _SentIds(Observer):
    """Learns the wire id of each call, by which the page knows it."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    def begin(self, call: ObservedCall) -> None:
        page_call = _present.get()
        if page_call is not None and call.method == TOOL_CALL:
            call.sent = lambda wire_id: self._bench.sent(page_call, str(wire_id))


class Workbench:
    """Makes the calls of a live page. Everything that it returns is free of secrets."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self.clients: Mapping[str, Client] = {client.name: client for client in clients}
        self._calls: set[PageCall] = set()
        self._sent: OrderedDict[tuple[str, str], PageCall] = OrderedDict()
        self._opening: list[asyncio.Task[Any]] = []
        for client in clients:
            client._observers.all.append(_SentIds(self))

    def open(self) -> None:
        """Start every server; what fails is in the trace."""
        self._opening = [asyncio.create_task(_open(client)) for client in self.clients.values()]

    async def close(self) -> None:
        """End all calls, and close the connections."""
        tasks = [*self._opening, *(call.task for call in self._calls if call.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(
            *(client.close() for client in self.clients.values()), return_exceptions=True
        )

    # What a page asks for

    async def tools(self, server: str) -> dict[str, Any]:
        """Return the tools of a server, with their schemas."""
        client = self._client(server)
        try:
            tools = await client.list_tools()
        except HoldfastError as error:
            return {"error": _text(error)}
        return {"tools": [_described(tool) for tool in tools]}

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; return the id of the request that was sent, or what does not fit."""
        client = self._client(server)
        if len(self._calls) >= MOST_CALLS:
            return {"error": f"{MOST_CALLS} calls are under way; wait for one, or cancel it."}
        call = PageCall(server, tool, arguments)
        self._calls.add(call)
        call.task = asyncio.create_task(self._run(client, call))
        try:
            # The page may go away meanwhile: the call goes on, and its outcome is in the trace.
            return await asyncio.shield(call.task)
        except asyncio.CancelledError:
            if not call.task.cancelled():
                raise
            return {"id": call.wire_id, "cancelled": True}

    async def again(self, server: str, wire_id: str) -> dict[str, Any]:
        """Send a call again, with the arguments that it had."""
        call = self._sent.get((server, wire_id))
        if call is None:
            return {"error": "This call is not remembered any more; call it by its form."}
        return await self.call(server, call.tool, call.arguments)

    def cancel(self, server: str, wire_id: str) -> bool:
        """Cancel a call under way; return False if it has ended."""
        call = self._sent.get((server, wire_id))
        if call is None or call not in self._calls or call.task is None:
            return False
        return call.task.cancel()

    def sent(self, call: PageCall, wire_id: str) -> None:
        """Note the id of a request."""
        call.wire_id = wire_id
        self._sent[call.server, wire_id] = call
        if len(self._sent) > REMEMBERED:
            self._sent.popitem(last=False)

    async def _run(self, client: Client, call: PageCall) -> dict[str, Any]:
        _present.set(call)
        try:
            # A server tells of progress only if it is asked to; the trace has what it tells.
            await client.call_tool(call.tool, call.arguments, on_progress=_ignore)
        except HoldfastError as error:
            return {"id": call.wire_id, "error": _text(error), "faults": faults_of(error)}
        finally:
            self._calls.discard(call)
        return {"id": call.wire_id}

    def _client(self, server: str) -> Client:
        if server not in self.clients:
            raise ValidationError(f"There is no server {server!r} here.")
        return self.clients[server]


def _ignore(progress: object) -> None:
    """Take a report that the page reads from the trace."""


async def _open(client: Client) -> None:
    try:
        await client.open()
    except HoldfastError:
        pass  # The trace has it.


def faults_of(error: HoldfastError) -> dict[str, str]:
    """Return the places of arguments that do not fit, and how."""
    faults = error.data if isinstance(error.data, tuple) else ()
    return shown_faults(fault for fault in faults if isinstance(fault, SchemaFault))


def shown_faults(faults: Iterable[SchemaFault]) -> dict[str, str]:
    """Return faults by their places, without the secrets that a value may be."""
    hide = default_redactor().text
    texts: dict[str, str] = {}
    for fault in faults:
        place = fault.path
        # What is missing is a fault of the object; a form shows it beside the field.
        message = fault.message
        if missing := _MISSING.match(message):
            # Its name, its kind and what it is for stand there already.
            place, message = place + pointer(missing[2]), "required and missing"
        texts[place] = "; ".join(filter(None, [texts.get(place), hide(message)]))
    return texts


def _text(error: HoldfastError) -> str:
    return default_redactor().text(error.message)[:LONGEST_ERROR]


def _described(tool: Tool) -> dict[str, Any]:
    """Return what a form shows of a tool, without secrets that the server repeats in it."""
    shown = {"title": tool.title, "description": tool.description, "schema": tool.input_schema}
    names = secret_names_of(tool)
    secret = None if names is None else sorted(names)
    return {"name": tool.name, **KNOWN.hide_in(shown), "secret": secret}
