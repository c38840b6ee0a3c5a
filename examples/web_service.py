"""A web service with one client for all its requests. Run: python examples/web_service.py"""

from collections.abc import AsyncIterator

from aiohttp import web

import holdfast

CLIENT = web.AppKey("client", holdfast.Client)


async def client_for_life(app: web.Application) -> AsyncIterator[None]:
    async with holdfast.connect("python -m holdfast.demo.server", when_down="wait") as client:
        app[CLIENT] = client
        yield


async def add(request: web.Request) -> web.Response:
    numbers = {name: int(request.query[name]) for name in ("a", "b")}
    try:
        result = await request.app[CLIENT].call_tool("add", numbers, timeout=5)
    except holdfast.HoldfastError as error:
        return web.json_response({"error": str(error), "kind": error.kind}, status=502)
    return web.json_response(result.structured)


def make() -> web.Application:
    app = web.Application()
    app.cleanup_ctx.append(client_for_life)
    app.router.add_get("/add", add)
    return app


if __name__ == "__main__":
    web.run_app(make(), host="127.0.0.1", port=8080)
