"""``make demo``: a client at work while its server is killed.

The server is `holdfast.demo.server`. Every step is checked; the exit code is 0 if all passed.
``-v`` shows the client's log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import holdfast
from holdfast import Progress, StateError, ToolResult, TransportError
from holdfast._core.engine.state import State

T = TypeVar("T")

WIDEST: Final = 100
PATIENCE: Final = 20.0
"""Seconds for the whole story, many times what it takes."""

SERVER: Final = (
    sys.executable,
    "-c",
    "import os, runpy, sys; print('pid', os.getpid(), file=sys.stderr, flush=True); "
    "runpy.run_module('holdfast.demo.server', run_name='__main__')",
)
"""The process id goes to stderr first, so that the story can kill the real process."""
_KILL: Final[int] = getattr(signal, "SIGKILL", signal.SIGTERM)
_KILLED: Final = _KILL if sys.platform == "win32" else -_KILL
"""The exit code of a process that was killed."""

_BOLD, _DIM, _RED, _GREEN = "1", "2", "31", "32"
_COLOURS: Final = {"!!": _RED, "ok": _GREEN}


class Screen:
    """Prints the story: wrapped and coloured on a terminal, plain lines elsewhere."""

    def __init__(self, out: TextIO, environment: Mapping[str, str]) -> None:
        self._out = out
        self._colour = out.isatty() and not environment.get("NO_COLOR")
        columns = shutil.get_terminal_size().columns
        self._width = max(40, min(WIDEST, columns) - 1) if out.isatty() else sys.maxsize

    def heading(self, text: str, intro: str = "") -> None:
        """Print a heading, and an introduction under it."""
        self._write("")
        self._write(text, _BOLD)
        if intro:
            self._write(textwrap.fill(intro, self._width), _DIM)

    def line(self, mark: str, text: str) -> None:
        """Print one entry after its mark; its lines after the first stand under its text."""
        colour = _COLOURS.get(mark, "")
        for line in text.splitlines() or [""]:
            indent = " " * (8 + len(line) - len(line.lstrip()))
            first = f"{mark:>6}".ljust(len(indent))
            wrapped = textwrap.fill(
                line.strip(), self._width, initial_indent=first, subsequent_indent=indent
            )
            self._write(wrapped or first, colour)
            mark = ""

    def _write(self, text: str, colour: str = "") -> None:
        for line in text.splitlines() or [""]:
            visible = line.rstrip()
            if self._colour and colour:
                visible = f"\x1b[{colour}m{visible}\x1b[0m"
            print(visible, file=self._out, flush=True)


class CheckFailedError(Exception):
    """Something did not go as the story says."""


class Story:
    """The chapters, in order."""

    def __init__(self, screen: Screen) -> None:
        self.show = screen
        self.passed: int = 0
        self._took = 0.0
        self._stderr: list[str] = []
        self._trace = Path(tempfile.mkdtemp(prefix="holdfast-demo-")) / "demo.jsonl"
        command = SERVER
        self._client = holdfast.connect(
            command, name="demo", stderr=self._stderr.append, trace=self._trace
        )

    async def tell(self) -> None:
        """Run all chapters; raise `CheckFailedError` if a check fails."""
        self.show.heading(
            "Holdfast: one client, and a server that is killed",
            "call: what the client does   ->: what comes back   !!: an error   ok: a check passed",
        )
        async with self._client as client:
            self._check(client.state is State.NEW, "connect() starts nothing yet")
            await self._connect()
            await self._call_tools()
            await self._read()
            await self._kill_in_the_middle()
            await self._call_meanwhile()
            await self._recover()
            self.show.heading("7. Close", "Leaving the `async with` block ends the server.")
        self._check(client.state is State.CLOSED, "the client is closed and the server has ended")

    def write_page(self) -> Path:
        """Make a page of what crossed the wire; return its path."""
        from holdfast.trace.format import Reading
        from holdfast.view.page import build_page

        reading, page = Reading(self._trace.name), self._trace.with_suffix(".html")
        with self._trace.open("rb") as rows:
            page.write_text(build_page(reading, reading.lines(rows)), encoding="utf-8")
        return page

    # The chapters

    async def _connect(self) -> None:
        self.show.heading(
            "1. Connect",
            "The first request starts the server process and negotiates the protocol revision.",
        )
        client = self._client
        tools = await self._time("list_tools()", client.list_tools())
        self._result(", ".join(tool.name for tool in tools))
        info = client.server_info
        self._check(info is not None and client.is_connected, "the client is connected")
        assert info is not None
        self.show.line("", f"{info.name} {info.version}, protocol {client.protocol_version}")

    async def _call_tools(self) -> None:
        self.show.heading(
            "2. Call tools", "Text, structured data, progress, a picture and a failing tool."
        )
        echoed = await self._call("echo", text="hold fast")
        self._result(f"text {echoed.text!r}")
        self._check(echoed.text == "hold fast", "the text is the one that was sent")

        added = await self._call("add", a=2, b=40)
        self._result(f"structured {added.structured}")
        self._check(added.structured == {"sum": 42}, "the sum is right")

        steps: list[float] = []

        def on_progress(step: Progress) -> None:
            self.show.line("->", f"progress {step.progress}/{step.total}: {step.message}")
            steps.append(step.progress)

        counted = await self._call("countdown", on_progress=on_progress, steps=3, seconds=0.1)
        self._result(f"text {counted.text!r}")
        self._check(steps == [1, 2, 3], "progress was reported for each step")

        drawn = await self._call("picture", width=32, height=32)
        (image,) = drawn.content
        data = getattr(image, "bytes", b"")
        self._result(f"{image.type} of {len(data)} bytes, starts with {data[:4]!r}")
        self._check(data.startswith(b"\x89PNG"), "it is a PNG")

        failed = await self._call("fail", message="out of paper")
        self._result(f"is_error {failed.is_error}: {failed.text}")
        self._check(failed.is_error, "a failing tool gives a result with is_error")

    async def _read(self) -> None:
        self.show.heading("3. Read a resource and a prompt")
        work = self._client.read_resource("demo://tides")
        tides = (await self._time("read_resource('demo://tides')", work)).text
        self._result(tides.strip())
        self._check("holds on" in tides, "the resource was read")
        arguments = {"name": "Ada", "style": "pirate"}
        call = self._client.get_prompt("greeting", arguments)
        prompt = await self._time(f"get_prompt('greeting', {json.dumps(arguments)})", call)
        (message,) = prompt.messages
        text = getattr(message.content, "text", "")
        self._result(f"{message.role}: {text}")
        self._check("Ada" in text, "the prompt was filled in")

    async def _kill_in_the_middle(self) -> None:
        self.show.heading(
            "4. Kill the server during a call",
            "A slow call is running. The server gets SIGKILL, as from the kernel.",
        )
        under_way = asyncio.Event()

        def on_progress(progress: Progress) -> None:
            self.show.line("->", f"progress {progress.progress}/{progress.total}")
            under_way.set()

        arguments = {"steps": 100, "seconds": 0.1}
        self.show.line("call", f"countdown {json.dumps(arguments)}")
        running = self._client.start_tool("countdown", arguments, on_progress=on_progress)
        await under_way.wait()
        victim = self._server_pid()
        self.show.line("", f"kill -9 {victim}")
        os.kill(victim, _KILL)
        try:
            await running
        except TransportError as error:
            self._show_error(error, f"outcome_unknown={error.outcome_unknown}")
            self._check(error.exit_code == _KILLED, "the error says how the server ended")
            self._check(error.outcome_unknown, "and that the call may have run (outcome_unknown)")
        else:
            raise CheckFailedError("the call succeeded although the server was killed")

    async def _call_meanwhile(self) -> None:
        self.show.heading(
            "5. Call while the server is down",
            "The client waits before it starts the server again. Calls fail at once until then "
            "(or wait, with when_down='wait').",
        )
        self._check(self._client.state is State.BACKOFF, "the client is in the state backoff")
        try:
            await self._call("add", a=1, b=1)
        except StateError as error:
            self._show_error(
                error, f"retry_in={error.retry_in or 0:.2f}", f"after {self._took:.1f}ms"
            )
            self._check(bool(error.retry_in), "the call failed at once and says when to retry")
        else:
            raise CheckFailedError("a call went through while the server was down")

    async def _recover(self) -> None:
        before = self._server_pid()
        self.show.heading(
            "6. Recover", "Nobody calls anything: the client starts the server again on its own."
        )
        await self._client.wait_ready(10)
        after = self._server_pid()
        self._check(after != before, f"ready again, in a new process ({after})")
        added = await self._call("add", a=1, b=1)
        self._result(f"structured {added.structured}")
        self._check(added.structured == {"sum": 2}, "the same client calls again, and it works")

    # Helpers

    async def _call(
        self, tool: str, *, on_progress: Callable[[Progress], None] | None = None, **arguments: Any
    ) -> ToolResult:
        work = self._client.call_tool(tool, arguments, on_progress=on_progress)
        return await self._time(f"{tool} {json.dumps(arguments)}", work)

    async def _time(self, what: str, work: Awaitable[T]) -> T:
        """Show a call, await it and measure how long it takes."""
        self.show.line("call", what)
        started = time.perf_counter()
        try:
            return await work
        finally:
            self._took = (time.perf_counter() - started) * 1000

    def _result(self, text: str) -> None:
        self.show.line("->", f"{text}  [{self._took:.1f}ms]")

    def _server_pid(self) -> int:
        """Return the process id that the latest server wrote to stderr."""
        return int([line for line in self._stderr if line.startswith("pid ")][-1].split()[1])

    def _show_error(self, error: Exception, *facts: str) -> None:
        self.show.line("!!", f"{type(error).__name__}: {error}")
        self.show.line("", "  ".join((*facts, f"state={self._client.state}")))

    def _check(self, passed: bool, what: str) -> None:
        if not passed:
            raise CheckFailedError(f"check failed: {what}")
        self.passed += 1
        self.show.line("ok", what)


def main(*, verbose: bool = False) -> int:
    """Run the story and return the exit code.

    Args:
        verbose: Show the client's log as well.
    """
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    screen = Screen(sys.stdout, os.environ)
    if verbose:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter("   log  %(levelname)s %(name)s %(message)s"))
        log = logging.getLogger("holdfast")
        log.addHandler(handler)
        log.setLevel(logging.DEBUG)
        logging.raiseExceptions = False  # whoever stops reading meets the story's own lines too
    story, started = Story(screen), time.perf_counter()
    try:
        asyncio.run(asyncio.wait_for(story.tell(), PATIENCE))
        took = time.perf_counter() - started
        screen.heading(f"All {story.passed} checks passed in {took:.1f} s.")
        screen.line("", "What crossed the wire, as a page to open in a browser:")
        screen.line("", str(story.write_page()))
    except BrokenPipeError:
        # Python would complain about the closed pipe at exit as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except (CheckFailedError, holdfast.HoldfastError, TimeoutError) as error:
        screen.line("!!", f"{type(error).__name__}: {error}")
        return 1
    return 0
