"""The person's side of a login: a loopback listener, a browser, a terminal to paste into."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TextIO
from urllib.parse import parse_qsl, urlsplit

from holdfast._core.auth import urls
from holdfast._core.auth.options import LoginRequest
from holdfast._core.auth.steps import Listen, Pause, Step, Visit
from holdfast._core.callbacks import ends_task
from holdfast._core.text import one_line
from holdfast.errors import Hint, HoldfastError, LoginFailed

MAX_REQUEST: Final = 16 * 1024
MAX_CONNECTIONS: Final = 32
MAX_PASTES: Final = 5
"""Addresses that a person may paste before the login fails."""
LINGER: Final = 1.0
"""Seconds for the browser to fetch the last page."""
PATIENCE: Final = 5.0
"""Seconds that one connection to the listener may take."""

_HEADERS: Final = (
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n"
)
_PAGES: Final = {
    "/done": "You are logged in. You can close this window.",
    "/failed": "The login did not succeed. Look at the program that started it.",
}


class Listener:
    """Receives the browser on loopback. Only the answer with the right state ends the wait.

    Everything else is answered and forgotten: another path with 404, a wrong state with 400, a
    wrong ``Host`` (DNS rebinding) with 400.
    """

    def __init__(self, redirect_uri: str) -> None:
        self.redirect_uri = redirect_uri
        self._servers: list[asyncio.Server] = []
        self._state: str | None = None
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._open: list[asyncio.StreamWriter] = []
        self._sent_on: asyncio.Future[None] | None = None
        """Done when the browser has fetched the page that it was redirected to."""

    @classmethod
    async def start(cls, preferred: str | None, path: str, *, fixed: bool) -> Listener:
        """Listen on the port of ``preferred`` if it is free, else on any.

        A redirect URI that is not on loopback is not listened to: the application receives it.
        """
        parts = urlsplit(preferred or f"http://127.0.0.1{path}")
        host, port = parts.hostname or "127.0.0.1", parts.port
        if not urls.is_loopback(host):
            return cls(preferred or "")
        listener = cls("")
        for wanted in [port, 0] if port and not fixed else [port or 0]:
            try:
                found = await listener._bind(host, wanted)
            except OSError as error:
                reason = error.strerror or "it is taken"
                continue
            name = f"[{host}]" if ":" in host else host
            listener.redirect_uri = f"http://{name}:{found}{parts.path or path}"
            return listener
        raise LoginFailed(
            f"port {port} on {host} cannot be listened to ({reason}); the client is registered "
            "for that port: free it",
            hints=(Hint("auth.redirect_uri", "gives another"),),
        )

    async def _bind(self, host: str, port: int) -> int:
        """Listen; ``localhost`` means both families, as browsers try either."""
        for one in ["127.0.0.1", "::1"] if host == "localhost" else [host]:
            try:
                server = await asyncio.start_server(
                    self._serve, one, port, limit=MAX_REQUEST, backlog=MAX_CONNECTIONS
                )
            except OSError:
                if not self._servers:
                    raise
                continue
            self._servers.append(server)
            port = server.sockets[0].getsockname()[1]
        return port

    async def wait(self, state: str) -> Mapping[str, str]:
        """Return the parameters of the answer to the request with this state."""
        self._state = state
        return await asyncio.shield(self._answer)

    def paste(self, url: str, *, take: bool = True) -> str:
        """Take a pasted redirect URL; return what is wrong with it, or an empty string."""
        place, _, query = url.strip().partition("?")
        if place != self.redirect_uri.partition("?")[0]:
            return f"it does not begin with {self.redirect_uri}"
        return self._take(query.partition("#")[0], take=take)

    def _take(self, query: str, *, take: bool = True) -> str:
        try:
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=50)
        except ValueError:
            return "its parameters cannot be read"
        params = dict(pairs)
        if len(params) != len(pairs):
            return "it has a parameter twice"
        expected = (self._state or "").encode()
        if not expected or not hmac.compare_digest(params.get("state", "").encode(), expected):
            return "it belongs to another login"
        if take and not self._answer.done():
            self._answer.set_result(params)
        return ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.append(writer)
        if len(self._open) > MAX_CONNECTIONS:
            # A browser sends its request at once, so the oldest connection is an idle one.
            self._open.pop(0).transport.abort()
        try:
            async with asyncio.timeout(PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._respond(head.decode("latin-1")).encode())
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            if writer in self._open:
                self._open.remove(writer)
            writer.close()

    def _respond(self, head: str) -> str:
        line, _, rest = head.partition("\r\n")
        method, _, target = line.partition(" ")
        path, _, query = target.partition(" ")[0].partition("?")
        home = urlsplit(self.redirect_uri)
        hosts = [value.strip() for value in re.findall(r"(?im)^host:(.*)$", rest)]
        if method != "GET" or hosts != [home.netloc]:
            return _page("400 Bad Request", "This request cannot be answered.")
        wrong = self._take(query) if path == home.path else "elsewhere"
        if wrong and path in _PAGES:
            if self._sent_on is not None and not self._sent_on.done():
                self._sent_on.set_result(None)
            return _page("200 OK", _PAGES[path])
        if wrong == "elsewhere":
            return _page("404 Not Found", "There is nothing here.")
        if wrong:
            return _page("400 Bad Request", "This answer belongs to another login.")
        # Redirect to a page without the code in its URL, and so in the browser's history.
        place = "/failed" if "error=" in query else "/done"
        self._sent_on = self._sent_on or asyncio.get_running_loop().create_future()
        return f"HTTP/1.1 303 See Other\r\nLocation: {place}\r\nContent-Length: 0\r\n{_HEADERS}\r\n"

    async def close(self) -> None:
        if self._sent_on is not None:
            # Let the browser fetch the page that it was redirected to.
            await asyncio.wait((self._sent_on,), timeout=LINGER)
        for server in self._servers:
            server.close()
        for writer in self._open:
            writer.transport.abort()
        if not self._answer.done():
            self._answer.cancel()


def _page(status: str, text: str) -> str:
    body = f"<!doctype html><meta charset=utf-8><title>Holdfast</title><p>{text}</p>\n"
    kind = "Content-Type: text/html; charset=utf-8"
    return f"HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {len(body)}\r\n{_HEADERS}\r\n{body}"


class InteractiveLogin:
    """The steps of a conversation that need a person."""

    def __init__(self, server: str, account: str, handler: Any) -> None:
        self._server = server
        self._account = account
        self._handler = handler
        self._listener: Listener | None = None
        self._shown: asyncio.Task[Any] | None = None

    async def perform(self, step: Step) -> Any:
        match step:
            case Listen(preferred, path, fixed):
                await self.close()
                self._listener = await Listener.start(preferred, path, fixed=fixed)
                return self._listener.redirect_uri
            case Visit(user_code=None, state=str(state)):
                return await self._wait(step, state)
            case Visit():
                self._shown = asyncio.create_task(self._call(step))
                return None
            case Pause(seconds):
                # Wait, but raise at once if the handler fails: then nobody enters the code.
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        if self._shown is not None:
                            await asyncio.shield(self._shown)
                        await asyncio.Event().wait()
                return None
        raise AssertionError(step)

    async def _wait(self, step: Visit, state: str) -> Mapping[str, str]:
        """Wait for the redirect, from the listener or returned by the handler."""
        listener = self._listener
        assert listener is not None
        heard = asyncio.ensure_future(listener.wait(state))
        asked = asyncio.create_task(self._call(step))
        try:
            await asyncio.wait([heard, asked], return_when=asyncio.FIRST_COMPLETED)
            if not heard.done() and (given := asked.result()):
                wrong = listener.paste(given)
                if wrong:
                    raise LoginFailed(f"the address given back cannot be used: {wrong}")
            return await heard
        finally:
            heard.cancel()
            asked.cancel()

    async def _call(self, step: Visit) -> str | None:
        listener = self._listener
        assert listener is not None
        request = LoginRequest(
            **{name: getattr(step, name) for name in ("url", "issuer", "scopes", "user_code")},
            server=self._server,
            account=self._account,
            redirect_uri=listener.redirect_uri,
            check=partial(listener.paste, take=False),
        )
        try:
            found = self._handler(request)
            found = await found if inspect.isawaitable(found) else found
        except HoldfastError:
            raise
        except BaseException as error:
            if ends_task(error):
                raise
            raise LoginFailed(f"the login handler failed: {type(error).__name__}") from error
        return found if isinstance(found, str) else None

    async def close(self) -> None:
        if self._shown is not None:
            self._shown.cancel()
        if self._listener is not None:
            await self._listener.close()
            self._listener = None


def open_browser(url: str) -> bool:
    """Open a URL without a shell, as one argument; return whether a browser was started."""
    urls.checked(url, insecure=True, limit=urls.MAX_OPENED)
    if os.environ.get("HOLDFAST_NO_BROWSER"):
        return False
    if sys.platform == "win32":
        os.startfile(url)
        return True
    opener: str | None = "/usr/bin/open"
    if sys.platform != "darwin":
        screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        opener = shutil.which("xdg-open") if screen else None
    own = shlex.split(os.environ.get("BROWSER", "").split(os.pathsep)[0])
    command = [url if one == "%s" else one for one in own or [opener or ""]]
    if not command[0]:
        return False
    try:
        process = subprocess.Popen(
            command if url in command else [*command, url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    # Some browsers keep running: reap the process whenever it ends.
    threading.Thread(target=process.wait, daemon=True).start()
    return True


async def browser_login(request: LoginRequest) -> str | None:
    """Log in at a terminal: open the browser, print the URL, take a pasted redirect URL.

    Use it as ``Handlers(login=holdfast.browser_login)``.

    Args:
        request: What is asked, by whom, and for which scopes.

    Returns:
        The redirect URL if it was pasted; the listener receives it otherwise.
    """
    say = partial(print, file=sys.stderr, flush=True)
    say(describe(request))
    opened = request.user_code is None and open_browser(request.url)
    say("A browser was opened at:" if opened else "Open this address:")
    say(f"\n  {request.url}\n")
    if request.user_code is not None:
        say(f"and enter the code: {request.user_code}\n")
        return None
    if hint := ssh_hint(request.redirect_uri, os.environ):
        say(hint)
    if not sys.stdin.isatty():
        return None
    ask = "Or paste the address that the browser ends at, and press Enter:"
    for _ in range(MAX_PASTES):
        say(ask)
        while (line := await _line(sys.stdin)).isspace():
            pass
        wrong = request.check(line) if line else ""
        if not wrong:
            break
        ask = f"That address cannot be used: {wrong}. Paste another, and press Enter:"
    return line


def describe(request: LoginRequest) -> str:
    """Return a sentence that says which server asks for a login, where, and for which scopes."""
    scopes = f" for: {' '.join(request.scopes)}" if request.scopes else ""
    account = "" if request.account == "default" else f" as {request.account!r}"
    who, where = one_line(request.server, 200), one_line(request.issuer, 200)
    return f"{who} asks you to log in{account} at {where}{scopes}."


def ssh_hint(redirect_uri: str | None, environ: Mapping[str, str]) -> str:
    """Return the ``ssh -L`` command for the listener; empty outside an SSH session."""
    if not environ.get("SSH_CONNECTION") or redirect_uri is None:
        return ""
    port, words = urlsplit(redirect_uri).port, environ["SSH_CONNECTION"].split()
    tunnel = f"ssh -L {port}:127.0.0.1:{port} {words[2] if len(words) > 2 else 'this-host'}"
    return f"This is an SSH session. On your own machine run:  {tunnel}"


async def _line(stream: TextIO) -> str:
    """Read one line without blocking the loop and without a thread."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[str] = loop.create_future()

    def ready() -> None:
        if not found.done():
            found.set_result(stream.readline())

    try:
        loop.add_reader(stream.fileno(), ready)
    except (NotImplementedError, OSError, ValueError):
        return await asyncio.Future[str]()
    try:
        return await found
    finally:
        loop.remove_reader(stream.fileno())
