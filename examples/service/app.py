"""The web service: a shop whose goods and orders are behind two MCP servers.

GET  /item/{id}           what an item is: a resource, kept for a second
GET  /stock/{id}          how many there are: a tool that reads
POST /order               writes an order down: a tool that must not run twice
GET  /order/{operation}   whether that happened
GET  /health              the state of each client; ?probe=1 asks the servers too
GET  /metrics             this worker's numbers

uvicorn --factory examples.service.app:create --workers 2
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import holdfast
from examples.service import clients, faults
from examples.service.settings import Settings
from examples.service.watching import Watch

log = logging.getLogger("service")


class Shop:
    """What a worker has: two clients, and somebody who watches."""

    def __init__(self, settings: Settings) -> None:
        self.watch = Watch(settings)
        self.inventory = clients.inventory(settings, self.watch.observability)
        self.ledger = clients.ledger(settings, self.watch.observability)
        for client in self.clients:
            self.watch.metrics.watch(client)

    @property
    def clients(self) -> tuple[holdfast.Client, holdfast.Client]:
        return self.inventory, self.ledger

    async def open(self) -> None:
        """Connect ahead of the first request. A server that is down does not keep us from it."""
        opened = await asyncio.gather(
            *(client.open() for client in self.clients), return_exceptions=True
        )
        for error in opened:
            if isinstance(error, holdfast.HoldfastError):
                log.warning("%s; it is tried again", error)

    async def close(self) -> None:
        await asyncio.gather(*(client.close() for client in self.clients))
        self.watch.close()


@contextlib.asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, Any]]:
    shop = Shop(Settings.read())
    await shop.open()
    try:
        yield {"shop": shop}
    finally:
        await shop.close()


def shop_of(request: Request) -> Shop:
    found: Shop = request.state.shop
    return found


# What the service does


async def item(request: Request) -> Response:
    uri = f"inventory://item/{request.path_params['id']}"
    found = await shop_of(request).inventory.read_resource(uri)
    return JSONResponse({**msgspec.json.decode(found.text), "stale": found.stale})


async def stock(request: Request) -> Response:
    arguments = {"item": request.path_params["id"]}
    found = await shop_of(request).inventory.call_tool("stock", arguments)
    return JSONResponse(found.raise_for_error().structured)


async def order(request: Request) -> Response:
    """Write an order down. The caller names the operation, so that it can look for it later."""
    wanted = await _body(request)
    try:
        done = await shop_of(request).ledger.call_tool("record_order", wanted)
        return JSONResponse(done.raise_for_error().structured, status_code=201)
    except holdfast.HoldfastError as error:
        if not error.outcome_unknown:
            raise
        # It may have run: no second try from here. The caller can look it up.
        return faults.response(error, look_up=f"/order/{wanted.get('operation')}")


async def find_order(request: Request) -> Response:
    arguments = {"operation": request.path_params["operation"]}
    found = await shop_of(request).ledger.call_tool("find_order", arguments)
    return JSONResponse(found.raise_for_error().structured)


async def health(request: Request) -> Response:
    shop = shop_of(request)
    if request.query_params.get("probe"):
        await asyncio.gather(*(client.ping() for client in shop.clients))
    states = {client.name: str(client.state) for client in shop.clients}
    ready = all(client.is_connected for client in shop.clients)
    body = {"worker": os.getpid(), "clients": states}
    return JSONResponse(body, status_code=200 if ready else 503)


async def metrics(request: Request) -> Response:
    return PlainTextResponse("".join(shop_of(request).watch.metrics.lines()))


async def _body(request: Request) -> dict[str, Any]:
    try:
        found = await request.json()
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the body must be an object")
    return found


# Around it


async def refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, holdfast.HoldfastError)
    return faults.response(error)


class Counted:
    """Says which worker answered, and counts the answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-worker", b"%d" % os.getpid())]
                route = "/" + scope["path"].split("/")[1]
                scope["state"]["shop"].watch.metrics.responded(route, message["status"])
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


def create() -> Starlette:
    return Starlette(
        routes=[
            Route("/item/{id}", item),
            Route("/stock/{id}", stock),
            Route("/order", order, methods=["POST"]),
            Route("/order/{operation}", find_order),
            Route("/health", health),
            Route("/metrics", metrics),
        ],
        lifespan=lifespan,
        middleware=[Middleware(Counted)],
        exception_handlers={holdfast.HoldfastError: refuse},
    )
