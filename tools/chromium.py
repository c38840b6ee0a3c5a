"""A headless Chromium, driven by the DevTools protocol: what pages of ours are looked at with."""

from __future__ import annotations

import base64
import contextlib
import itertools
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from typing import IO, Any, Final
from urllib.parse import urljoin

import aiohttp

PATIENCE: Final = 120.0

# Without these Chromium looks for updates and suggestions on the network.
QUIET: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-quic", "--hide-scrollbars", "--remote-debugging-port=0"),
    # A test changes the address faster than a person can.
    "--disable-ipc-flooding-protection",
)


class Tab:
    """One page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        """What the browser has told since the page was opened."""

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._receive()
            if message.get("id") == number:
                assert "error" not in message, f"{method}: {message}"
                return dict(message["result"])

    async def open(self, url: str) -> None:
        """Go to a page, and wait until all of it is loaded."""
        self.events.clear()
        await self.send("Page.navigate", url=url)
        while not self.told("Page.loadEventFired"):
            await self._receive()

    def told(self, method: str) -> list[dict[str, Any]]:
        """Return the parameters of the events of this name."""
        return [event["params"] for event in self.events if event["method"] == method]

    async def resize(self, width: int, height: int) -> None:
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    async def ask(self, expression: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited."""
        answer = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true, asked anew with every frame that is drawn."""
        return await self.ask(
            "new Promise(resolve => { const look = () => { const value = (" + expression + ");"
            " value ? resolve(value) : requestAnimationFrame(look); }; look(); })"
        )

    async def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, **text)

    async def type(self, text: str) -> None:
        await self.send("Input.insertText", text=text)

    async def mouse(self, kind: str, x: float, y: float, **fields: Any) -> None:
        await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **fields)

    async def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self.mouse(kind, x, y, button="left", clickCount=1)

    async def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        await self.mouse("mousePressed", *start, button="left", clickCount=1)
        await self.mouse("mouseMoved", *end, button="left", buttons=1)
        await self.mouse("mouseReleased", *end, button="left", clickCount=1)

    async def picture(self, *, whole: bool = True) -> bytes:
        """Return a picture: from the top of the page to its foot, or of the window."""
        clip: dict[str, Any] = {}
        if whole:
            size = (await self.send("Page.getLayoutMetrics"))["cssContentSize"]
            area = {"x": 0, "y": 0, "scale": 1, "width": size["width"], "height": size["height"]}
            clip = {"captureBeyondViewport": True, "clip": area}
        answer = await self.send("Page.captureScreenshot", format="png", **clip)
        return base64.b64decode(answer["data"])

    async def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = await self._socket.receive_json(timeout=PATIENCE)
        if "method" in message:
            self.events.append(message)
        return message


def chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextlib.asynccontextmanager
async def browser(program: str) -> AsyncIterator[Tab]:
    """Start a browser for one tab."""
    with started(program) as address:
        async with new_tab(address) as tab:
            yield tab


@contextlib.contextmanager
def started(program: str) -> Iterator[str]:
    """Start a browser with an empty profile; yields the address of its DevTools."""
    with (
        tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile,
        subprocess.Popen(
            [program, *QUIET, "--allow-file-access-from-files", f"--user-data-dir={profile}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process,
    ):
        assert process.stderr is not None
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        try:
            address = _address(process.stderr)
            drain.start()
            yield address
        finally:
            process.terminate()
            if drain.ident is not None:
                drain.join()


@contextlib.asynccontextmanager
async def new_tab(address: str) -> AsyncIterator[Tab]:
    """Open a tab with storage of its own; it tells of requests, errors and dialogs."""
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(address, max_msg_size=0) as control:
            whole = Tab(control)
            storage = await whole.send("Target.createBrowserContext")
            target = await whole.send("Target.createTarget", url="about:blank", **storage)
            page = urljoin(address, f"/devtools/page/{target['targetId']}")
            async with session.ws_connect(page, max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Network", "Runtime", "Log"):
                    await tab.send(f"{domain}.enable")
                yield tab
            await whole.send("Target.disposeBrowserContext", **storage)


def _address(stderr: IO[bytes]) -> str:
    """Wait until the browser has said where it listens."""
    for line in stderr:
        if address := re.search(rb"DevTools listening on (ws://\S+)", line):
            return address[1].decode()
    raise AssertionError("Chromium ended")
