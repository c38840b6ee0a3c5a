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
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from html import escape
from secrets import token_urlsafe
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
OUTCOME_PATIENCE: Final = 120.0
"""Seconds that the last page waits for the end of the login: the code is still to be exchanged."""

_HEADERS: Final = (
    "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\n"
    "Content-Security-Policy: default-src 'none'\r\nX-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n"
)
LOGGED_IN: Final = "You are logged in. You can close this window."


# Who may knock at the listener's door, besides the browser that we wait for:
#
# - A page of somebody else in the same browser. It can send requests to loopback, but cannot read
#   the answers, and does not know the state. A wrong state must not end the wait (RFC 6749
#   §10.12): otherwise such a page could make every login fail.
# - The same page by a name of its own that it lets resolve to 127.0.0.1 (DNS rebinding), which
#   makes the answers readable. Hence the check of ``Host``.
# - Another program of this machine, or of another user on it. It can connect, and hold
#   connections open. Hence the limits; the oldest connection gives way, for a browser sends its
#   request at once. The page with the outcome has an address that nobody can guess.
# - The browser itself, twice: some fetch a page again to restore a window. The second answer
#   with the right state changes nothing.
#
# The code is in the URL that the browser comes with, and so would be in its history. It is sent on
# at once to an address without it (303), and no page has anything that could send a referrer.


class Listener:
    """Receives the browser on loopback. Only the answer with the right state ends the wait.

    Everything else is answered and forgotten: another path with 404, a wrong state with 400, a
    wrong ``Host`` (DNS rebinding) with 400.

    The browser is sent on to a page that comes when the login has ended, and says how: an answer
    with a code is no login yet. Nobody else can guess the address of that page.
    """

    def __init__(self, redirect_uri: str) -> None:
        self.redirect_uri = redirect_uri
        self._servers: list[asyncio.Server] = []
        self._state: str | None = None
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()
        self._open: list[asyncio.StreamWriter] = []
        self._outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The text of the last page."""
        self._outcome_path = f"/outcome/{token_urlsafe(16)}"
        self._fetched: asyncio.Future[None] | None = None
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
        for candidate in _ports(port, fixed=fixed):
            try:
                bound_port = await listener._bind(host, candidate)
            except OSError as error:
                reason = error.strerror or "it is taken"
                continue
            name = f"[{host}]" if ":" in host else host
            listener.redirect_uri = f"http://{name}:{bound_port}{parts.path or path}"
            return listener
        raise LoginFailed(
            f"port {port} on {host} cannot be listened to ({reason}); the client is registered "
            "for that port: free it",
            hints=(Hint("auth.redirect_uri", "gives another"),),
        )

    async def _bind(self, host: str, port: int) -> int:
        """Listen; ``localhost`` means both families, as browsers try either."""
        for address in ["127.0.0.1", "::1"] if host == "localhost" else [host]:
            try:
                server = await asyncio.start_server(
                    self._serve, address, port, limit=MAX_REQUEST, backlog=MAX_CONNECTIONS
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
            response = self._respond(head.decode("latin-1"))
            is_last = response is None
            if response is None:
                # No longer one of those that a flood of connections may push out.
                self._open.remove(writer)
                async with asyncio.timeout(OUTCOME_PATIENCE):
                    response = _page("200 OK", await asyncio.shield(self._outcome))
            async with asyncio.timeout(PATIENCE):
                writer.write(response.encode())
                await writer.drain()
            if is_last and self._fetched is not None and not self._fetched.done():
                self._fetched.set_result(None)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            if writer in self._open:
                self._open.remove(writer)
            writer.close()

    def _respond(self, head: str) -> str | None:
        """Return the response to a request; None: that of the last page, once it is known."""
        line, _, rest = head.partition("\r\n")
        method, _, target = line.partition(" ")
        path, _, query = target.partition(" ")[0].partition("?")
        home = urlsplit(self.redirect_uri)
        hosts = [value.strip() for value in re.findall(r"(?im)^host:(.*)$", rest)]
        if method != "GET" or hosts != [home.netloc]:
            return _page("400 Bad Request", "This request cannot be answered.")
        if hmac.compare_digest(path.encode(), self._outcome_path.encode()):
            return None
        if path != home.path:
            return _page("404 Not Found", "There is nothing here.")
        if self._take(query):
            return _page("400 Bad Request", "This answer belongs to another login.")
        # Redirect to a page without the code in its URL, and so in the browser's history.
        self._fetched = self._fetched or asyncio.get_running_loop().create_future()
        place = f"Location: {self._outcome_path}\r\nContent-Length: 0"
        return f"HTTP/1.1 303 See Other\r\n{place}\r\n{_HEADERS}\r\n"

    async def close(self, outcome: str) -> None:
        """End with a text for the browser's window; let it fetch the page that has it."""
        if not self._outcome.done():
            self._outcome.set_result(outcome)
        if self._fetched is not None:
            await asyncio.wait((self._fetched,), timeout=LINGER)
        for server in self._servers:
            server.close()
        for writer in self._open:
            writer.transport.abort()
        if not self._answer.done():
            self._answer.cancel()


def _ports(preferred: int | None, *, fixed: bool) -> list[int]:
    """Return the ports to try; 0 is any that is free."""
    if not preferred:
        return [0]
    return [preferred] if fixed else [preferred, 0]


def _page(status: str, text: str) -> str:
    # The text may be an authorization server's.
    body = f"<!doctype html><meta charset=utf-8><title>Holdfast</title><p>{escape(text)}</p>\n"
    length = len(body.encode())
    kind = "Content-Type: text/html; charset=utf-8"
    return f"HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {length}\r\n{_HEADERS}\r\n{body}"


class LoginPhase:
    """Tells those who wait for a login what it waits for itself: a person, or a server."""

    def __init__(self) -> None:
        self.person_asked: bool = False
        self._changed: asyncio.Future[None] | None = None

    async def next(self) -> None:
        """Wait until a person is asked, or has answered."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def change(self, person_asked: bool) -> None:
        """Note that a person is asked, or has answered."""
        self.person_asked = person_asked
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None


class InteractiveLogin:
    """The steps of a conversation that need a person."""

    def __init__(
        self,
        server: str,
        account: str,
        handler: Any,
        on_phase: Callable[[bool], None] = lambda person_asked: None,
    ) -> None:
        self._on_phase = on_phase
        """Called with True when a person is asked, with False when the answer has come."""
        self._server = server
        self._account = account
        self._handler = handler
        self._listener: Listener | None = None
        self._handler_task: asyncio.Task[Any] | None = None
        """Shows the code of a device login."""

    async def perform(self, step: Step) -> Any:
        match step:
            case Listen(preferred, path, fixed):
                await self.close("The login begins anew: another page opens.")
                self._listener = await Listener.start(preferred, path, fixed=fixed)
                return self._listener.redirect_uri
            case Visit(user_code=None, state=str(state)):
                self._on_phase(True)
                try:
                    return await self._wait(step, state)
                finally:
                    self._on_phase(False)
            case Visit():
                # The person answers the authorization server, which is asked about it.
                self._on_phase(True)
                self._handler_task = asyncio.create_task(self._call(step))
                return None
            case Pause(seconds):
                # Wait, but raise at once if the handler fails: then nobody enters the code.
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        if self._handler_task is not None:
                            await asyncio.shield(self._handler_task)
                        await asyncio.Event().wait()
                return None
        raise AssertionError(step)

    async def _wait(self, step: Visit, state: str) -> Mapping[str, str]:
        """Wait for the redirect, from the listener or returned by the handler."""
        listener = self._listener
        assert listener is not None
        redirected = asyncio.ensure_future(listener.wait(state))
        handled = asyncio.create_task(self._call(step))
        try:
            await asyncio.wait([redirected, handled], return_when=asyncio.FIRST_COMPLETED)
            if not redirected.done() and (pasted := handled.result()):
                wrong = listener.paste(pasted)
                if wrong:
                    raise LoginFailed(f"the address given back cannot be used: {wrong}")
            return await redirected
        finally:
            redirected.cancel()
            handled.cancel()

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
            answer = self._handler(request)
            answer = await answer if inspect.isawaitable(answer) else answer
        except HoldfastError:
            raise
        except BaseException as error:
            if ends_task(error):
                raise
            raise LoginFailed(f"the login handler failed: {type(error).__name__}") from error
        return answer if isinstance(answer, str) else None

    async def close(self, outcome: str) -> None:
        """End the login's part that needs a person; its window shows the outcome."""
        if self._handler_task is not None:
            self._handler_task.cancel()
            self._on_phase(False)
        if self._listener is not None:
            await self._listener.close(outcome)
            self._listener = None


def _browser_command(url: str) -> list[str]:
    """Return the command that opens a URL; its first word is empty if there is no browser."""
    opener: str | None = "/usr/bin/open"
    if sys.platform != "darwin":
        screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        opener = shutil.which("xdg-open") if screen else None
    chosen = shlex.split(os.environ.get("BROWSER", "").split(os.pathsep)[0])
    command = [url if word == "%s" else word for word in chosen or [opener or ""]]
    return command if url in command else [*command, url]


def open_browser(url: str) -> bool:
    """Open a URL without a shell, as one argument; return whether a browser was started."""
    urls.checked(url, insecure=True, limit=urls.MAX_OPENED)
    if os.environ.get("HOLDFAST_NO_BROWSER"):
        return False
    if sys.platform == "win32":
        os.startfile(url)
        return True
    command = _browser_command(url)
    if not command[0]:
        return False
    try:
        process = subprocess.Popen(
            command,
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

    Use it as ``Handlers(login=holdfast.auth.browser_login)``.

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
    line: asyncio.Future[str] = loop.create_future()

    def ready() -> None:
        if not line.done():
            line.set_result(stream.readline())

    try:
        loop.add_reader(stream.fileno(), ready)
    except (NotImplementedError, OSError, ValueError):
        return await asyncio.Future[str]()
    try:
        return await line
    finally:
        loop.remove_reader(stream.fileno())
