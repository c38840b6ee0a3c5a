"""The live page: served on loopback, fed by server-sent events, to whoever has its address."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from holdfast.errors import ValidationError
from holdfast.trace.format import Header, Reading
from holdfast.view.feed import Feed
from holdfast.view.page import build_page, live_page, policy_of
from holdfast.view.questions import PageQuestions
from holdfast.view.workbench import Workbench, shown_faults

HOST: Final = "127.0.0.1"
LARGEST_POST: Final = 32 * 1024 * 1024
"""Bytes of a call with its arguments: a file may be one of them."""
MOST_PAGES: Final = 16
"""Pages that are fed at the same time."""
HEARTBEAT: Final = 1.0
"""Seconds after which a page hears that it is still fed."""
REST: Final = 0.04
"""Seconds between two events, so that a flood becomes few large ones."""

# Who may ask
#
# The page shows what servers were told and calls their tools, so it is worth an attack: by another
# program on this machine, by another user, or by a web page that is open in the same browser.
#
#   loopback        nobody else on the network reaches it
#   token           256 random bits in the path; another user of this machine does not know them,
#                   and ``Referrer-Policy`` keeps them from leaking along
#   Host            a name that an attacker lets point to 127.0.0.1 (DNS rebinding) is refused
#   Origin          what changes anything must come from the page itself
#   Sec-Fetch-Site  nothing is answered that another site has asked for, not even the page
#   no frames       nobody can lay the page under their own buttons


_SAFE: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _OwnFaults(logging.Filter):
    """Keeps what others did wrong off the terminal: anybody on this machine can connect."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)


log: Final = logging.getLogger("holdfast.view")
log.addFilter(_OwnFaults())


class LiveServer:
    """Serves one page about one feed; with a workbench, its person can call tools."""

    def __init__(
        self, feed: Feed, bench: Workbench | None = None, questions: PageQuestions | None = None
    ) -> None:
        self.url = ""
        """The address, with its token; once it is served."""
        self._feed, self._bench, self._questions = feed, bench, questions
        self._token = secrets.token_urlsafe(32)
        self._hosts: frozenset[str] = frozenset()
        self._pages = 0
        self._closing = asyncio.Event()
        self._page = live_page()
        self._policy = f"{policy_of(self._page)}; frame-ancestors 'none'"
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        """Listen on a port of loopback, any one by default; raise OSError if it is taken."""
        app = web.Application(middlewares=[self._guard], client_max_size=LARGEST_POST)
        base = f"/{self._token}"
        app.router.add_get(f"{base}/", self._show_page)
        app.router.add_get(f"{base}/events", self._events)
        app.router.add_get(f"{base}/body/{{epoch:\\d{{1,9}}}}/{{number:\\d{{1,9}}}}", self._body)
        app.router.add_get(f"{base}/save", self._save)
        for name, act in _ACTIONS.items():
            app.router.add_post(f"{base}/{name}", self._action(act))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1, logger=log)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, port)
        await site.start()
        bound_port = self._runner.addresses[0][1]
        self._hosts = frozenset({f"{HOST}:{bound_port}", f"localhost:{bound_port}"})
        self.url = f"http://{HOST}:{bound_port}{base}/"

    async def close(self) -> None:
        """End all streams, and listen no more."""
        self._closing.set()
        self._feed.wake()
        if self._runner is not None:
            await self._runner.cleanup()

    # Who may ask

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        refusal = self._refusal(request)
        if refusal is not None:
            return web.Response(status=refusal[0], text=refusal[1], headers=_SAFE)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(_SAFE)
            raise
        if not response.prepared:
            response.headers.update(_SAFE)
        return response

    def _refusal(self, request: web.Request) -> tuple[int, str] | None:
        if request.headers.get("Host", "") not in self._hosts:
            return 421, "This page is served for 127.0.0.1 only."
        site = request.headers.get("Sec-Fetch-Site", "none")
        if site not in ("none", "same-origin"):
            return 403, "Another site may not ask."
        # Without a path, as in ``OPTIONS *`` or ``CONNECT``, there is no token either.
        token = request.path.partition("/")[2].partition("/")[0].encode()
        if not hmac.compare_digest(token, self._token.encode()):
            return 404, "There is nothing here. The address has a token; is it whole?"
        if request.method != "GET":
            if request.headers.get("Origin") != f"http://{request.headers['Host']}":
                return 403, "Only the page itself may ask."
            if request.content_type != "application/json":
                return 415, "This takes JSON."
        return None

    # What is asked for

    async def _show_page(self, request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": self._policy}
        return web.Response(text=self._page, content_type="text/html", headers=headers)

    async def _body(self, request: web.Request) -> web.Response:
        epoch, number = (int(request.match_info[name]) for name in ("epoch", "number"))
        body = self._feed.body(epoch, number)
        if body is None:
            raise web.HTTPNotFound(text="This message is not kept any more.")
        return web.Response(body=body, content_type="application/json")

    async def _save(self, request: web.Request) -> web.Response:
        """Return the page as a file that opens without this server."""
        feed, reading = self._feed, Reading(self._feed.title)
        reading.header = Header(1, feed.started, dict(feed.servers))
        reading.left_out, reading.skipped = feed.left_out, feed.skipped
        lines = feed.lines()
        for line in lines:
            reading.note_state(line)
        page = await asyncio.to_thread(build_page, reading, lines)
        headers = {"Content-Disposition": 'attachment; filename="holdfast.html"'}
        return web.Response(text=page, content_type="text/html", headers=headers)

    def _action(self, act: Callable[[LiveServer, dict[str, Any]], Awaitable[Any]]) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            try:
                fields = msgspec.json.decode(await request.read(), type=dict[str, Any])
                answer = await act(self, fields)
            except ValidationError as error:
                answer = {"error": error.message}
            except (KeyError, TypeError, ValueError, RecursionError) as error:
                raise web.HTTPBadRequest(text=f"Not understood: {error}") from None
            data = msgspec.json.encode(answer, enc_hook=str)
            return web.Response(body=data, content_type="application/json")

        return handle

    # The stream

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if self._pages >= MOST_PAGES:
            raise web.HTTPServiceUnavailable(text="Too many pages are open.")
        headers = {**_SAFE, "Content-Type": "text/event-stream"}
        response = web.StreamResponse(headers=headers)
        self._pages += 1
        try:
            await response.prepare(request)
            # A page that is closed, or gone in the middle of a line, is nobody's fault.
            with suppress(ConnectionError, asyncio.CancelledError):
                await response.write(b"retry: 500\n\n")
                last = request.headers.get("Last-Event-ID") or request.query.get("last", "")
                await self._stream(response, last)
        finally:
            self._pages -= 1
        return response

    async def _stream(self, response: web.StreamResponse, last: str) -> None:
        feed, news, loop = self._feed, asyncio.Event(), asyncio.get_running_loop()
        epoch, cursor = _place(last)
        asked = known = -1
        while not self._closing.is_set():
            if epoch != feed.epoch or cursor > feed.end:
                epoch, cursor = feed.epoch, 0
                await response.write(_event("reset", {"epoch": epoch}, f"{epoch}-0"))
            rows, cursor = feed.since(cursor)
            is_behind = cursor < feed.end
            facts = {**feed.facts(), "epoch": epoch, "more": is_behind, "rows": rows}
            if known != feed.servers_version:
                known, facts["servers"] = feed.servers_version, feed.known_servers()
            await response.write(_event("rows", facts, f"{epoch}-{cursor}"))
            if self._questions is not None and self._questions.version != asked:
                asked = self._questions.version
                await response.write(_event("questions", self._questions.shown()))
            if is_behind:
                await asyncio.sleep(0)
            else:
                rested = loop.time() + REST
                await feed.wait(news, HEARTBEAT)
                await asyncio.sleep(max(0.0, rested - loop.time()))

    # Actions

    async def _do_servers(self, fields: dict[str, Any]) -> Any:
        return {"servers": [] if self._bench is None else list(self._bench.clients)}

    async def _do_tools(self, fields: dict[str, Any]) -> Any:
        return await self._required().tools(str(fields["server"]))

    async def _do_call(self, fields: dict[str, Any]) -> Any:
        server, tool, arguments = str(fields["server"]), str(fields["tool"]), fields["arguments"]
        if not isinstance(arguments, dict):
            return {"error": "", "faults": {"": "the arguments must be an object"}}
        return await self._required().call(server, tool, arguments)

    async def _do_again(self, fields: dict[str, Any]) -> Any:
        return await self._required().again(str(fields["server"]), str(fields["id"]))

    async def _do_cancel(self, fields: dict[str, Any]) -> Any:
        is_cancelled = self._required().cancel(str(fields["server"]), str(fields["id"]))
        return {} if is_cancelled else {"error": "The call has ended, or is not one of this page."}

    async def _do_answer(self, fields: dict[str, Any]) -> Any:
        if self._questions is None:
            return {"error": "Nobody asks here."}
        number, action = int(fields["number"]), str(fields["action"])
        faults = self._questions.answer(number, action, fields.get("content"))
        if faults is None:
            return {"error": "This question does not wait any more."}
        return {"faults": shown_faults(faults)}

    def _required(self) -> Workbench:
        if self._bench is None:
            raise ValidationError("This page follows a file: it has no connection of its own.")
        return self._bench


_ACTIONS: Final = {
    "servers": LiveServer._do_servers,
    "tools": LiveServer._do_tools,
    "call": LiveServer._do_call,
    "again": LiveServer._do_again,
    "cancel": LiveServer._do_cancel,
    "answer": LiveServer._do_answer,
}


def _event(name: str, value: Any, place: str = "") -> bytes:
    head = f"event: {name}\n" + (f"id: {place}\n" if place else "")
    return head.encode() + b"data: " + msgspec.json.encode(value, enc_hook=str) + b"\n\n"


def _place(last: str) -> tuple[int, int]:
    """Return the epoch and the cursor of a page that comes back."""
    epoch, _, cursor = last.partition("-")
    if epoch.isdecimal() and cursor.isdecimal() and len(last) < 30:
        return int(epoch), int(cursor)
    return 0, 0
