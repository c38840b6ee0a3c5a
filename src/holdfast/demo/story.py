"""``make demo``: a client at work, and what it does when its server is killed under it.

The server is the one that comes with Holdfast. Everything shown is checked as it happens: the
exit code is 0 only if all of it went as promised.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TextIO, TypeVar

import holdfast
from holdfast import Progress, RunningCall, State, StateError, ToolResult, TransportError

T = TypeVar("T")

WIDEST: Final = 100
PATIENCE: Final = 20.0
"""Seconds for the whole story, many times what it takes: a demo that hangs shows nothing."""

SERVER: Final = ("sh", "-c", 'echo "pid $$" >&2; exec "$0" -m holdfast.demo.server')
"""The server tells its process id on stderr first, so that the story can kill it for real."""

_BOLD, _DIM, _RED, _GREEN = "1", "2", "31", "32"


class Screen:
    """Prints the story: wrapped and, if wanted, coloured on a terminal; plain lines elsewhere."""

    def __init__(self, out: TextIO, environment: Mapping[str, str]) -> None:
        terminal = out.isatty()
        self._out = out
        self._colour = terminal and not environment.get("NO_COLOR")
        columns = shutil.get_terminal_size().columns
        self._width = max(40, min(WIDEST, columns) - 1) if terminal else None

    def heading(self, text: str) -> None:
        self._write("")
        self._write(self._paint(text, _BOLD))

    def note(self, text: str) -> None:
        self._line("", text)

    def call(self, what: str) -> None:
        self._line("call", what)

    def result(self, what: str) -> None:
        self._line("  ->", what)

    def error(self, what: str) -> None:
        self._line("  !!", what, _RED)

    def log(self, what: str) -> None:
        self._line(" log", what, _DIM)

    def good(self, text: str) -> None:
        self._line("  ok", text, _GREEN)

    def _line(self, mark: str, text: str, colour: str = "") -> None:
        """One entry; its lines after the first stand under its text."""
        for line in text.splitlines() or [""]:
            indent = line[: len(line) - len(line.lstrip())]
            for part in self._wrap(line.strip(), indent):
                self._write(self._paint(f"{mark:>6}  {part}", colour))
                mark = ""

    def _wrap(self, line: str, indent: str) -> list[str]:
        if self._width is None:
            return [indent + line]
        return textwrap.wrap(
            line, self._width - 8, initial_indent=indent, subsequent_indent=indent
        ) or [""]

    def _paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._colour and colour else text

    def _write(self, text: str) -> None:
        print(text.rstrip(), file=self._out, flush=True)


class Log(logging.Handler):
    """Shows Holdfast's own log, where every change of state is a line."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.DEBUG)
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        # The end of the server's stderr follows the first line; the story shows it elsewhere.
        first = record.getMessage().partition("\n")[0].strip()
        try:
            self._screen.log(f"{record.levelname} {record.name} {first}")
        except BrokenPipeError:
            pass  # the client that logs is not to blame; the story's next line meets it too


class BrokenPromiseError(Exception):
    """Something did not go as the story says."""


class Story:
    """What happens, in order."""

    def __init__(self, screen: Screen) -> None:
        self.show = screen
        self.kept: int = 0
        self._took = 0.0
        self._stderr: list[str] = []
        command = (*SERVER, sys.executable)
        self._client = holdfast.connect(command, name="demo", stderr=self._stderr.append)

    async def tell(self) -> None:
        self.show.heading("Holdfast: one client, and a server that is killed under it")
        async with self._client as client:
            self._promise(client.state is State.NEW, "nothing runs before the first use")
            await self._connect()
            await self._call_tools()
            await self._read()
            await self._kill_in_the_middle()
            await self._call_meanwhile()
            await self._recover()
            self.show.heading("6. Close")
        self._promise(client.state is State.CLOSED, "closed: the server has ended")

    # The chapters

    async def _connect(self) -> None:
        self.show.heading("1. Connect: the first use starts the server")
        client = self._client
        tools = await self._time("list_tools()", client.list_tools())
        self._result(", ".join(tool.name for tool in tools))
        info = client.server_info
        self._promise(info is not None and client.is_connected, "the server is ready")
        assert info is not None
        self.show.note(f"{info.name} {info.version}, protocol {client.protocol_version}")

    async def _call_tools(self) -> None:
        self.show.heading("2. Call: text, structure, progress, a picture, a failure")
        echoed = await self._call("echo", text="hold fast")
        self._result(f"text {echoed.text!r}")
        self._promise(echoed.text == "hold fast", "the text came back")

        added = await self._call("add", a=2, b=40)
        self._result(f"structured {added.structured}")
        self._promise(added.structured == {"sum": 42}, "the sum is right")

        steps: list[float] = []

        def on_progress(step: Progress) -> None:
            self.show.result(f"progress {step.progress}/{step.total}: {step.message}")
            steps.append(step.progress)

        counted = await self._call("countdown", on_progress=on_progress, steps=3, seconds=0.1)
        self._result(f"text {counted.text!r}")
        self._promise(steps == [1, 2, 3], "each step was heard of")

        drawn = await self._call("picture", width=32, height=32)
        (image,) = drawn.content
        data = getattr(image, "bytes", b"")
        self._result(f"{image.type} of {len(data)} bytes, starts with {data[:4]!r}")
        self._promise(data.startswith(b"\x89PNG"), "it is a PNG")

        failed = await self._call("fail", message="no luck today")
        self._result(f"is_error {failed.is_error}: {failed.text}")
        self._promise(failed.is_error, "a tool that fails gives a result, not an exception")

    async def _read(self) -> None:
        self.show.heading("3. Read: a resource and a prompt")
        tides = await self._time("read_resource('demo://tides')", self._read_tides())
        self._result(tides.strip())
        self._promise("holds on" in tides, "the resource was read")
        arguments = {"name": "Ada", "style": "pirate"}
        work = self._client.get_prompt("greeting", arguments)
        prompt = await self._time(f"get_prompt('greeting', {json.dumps(arguments)})", work)
        (message,) = prompt.messages
        text = getattr(message.content, "text", "")
        self._result(f"{message.role}: {text}")
        self._promise("Ada" in text, "the prompt was filled in")

    async def _kill_in_the_middle(self) -> None:
        self.show.heading("4. Kill the server in the middle of a call")
        running = await self._start_slow_call()
        victim = self._server_pid()
        self.show.note(f"kill -9 {victim}")
        os.kill(victim, signal.SIGKILL)
        try:
            await running
        except TransportError as error:
            self._show_error(error, f"outcome_unknown={error.outcome_unknown}")
            self._promise(error.exit_code == -signal.SIGKILL, "the error says how the server died")
            self._promise(error.outcome_unknown, "and that the call may have run")
        else:
            raise BrokenPromiseError("the call ended as if its server were alive")

    async def _call_meanwhile(self) -> None:
        self.show.heading("5. Meanwhile and after")
        self._promise(self._client.state is State.BACKOFF, "the client waits before it tries again")
        try:
            await self._call("add", a=1, b=1)
        except StateError as error:
            self._show_error(
                error, f"retry_in={error.retry_in or 0:.2f}", f"after {self._took:.1f}ms"
            )
            self._promise(bool(error.retry_in), "a call fails at once, with the time to wait")
        else:
            raise BrokenPromiseError("a call went through while the server was down")

    async def _recover(self) -> None:
        before = self._server_pid()
        self.show.note("no call is made: the client brings the server back by itself")
        await self._client.wait_ready(10)
        after = self._server_pid()
        self._promise(after != before, f"ready again, with a new process ({after})")
        added = await self._call("add", a=1, b=1)
        self._result(f"structured {added.structured}")
        self._promise(added.structured == {"sum": 2}, "the same call works now")

    # Their tools

    async def _call(
        self, tool: str, *, on_progress: Callable[[Progress], None] | None = None, **arguments: Any
    ) -> ToolResult:
        work = self._client.call_tool(tool, arguments, on_progress=on_progress)
        return await self._time(f"{tool} {json.dumps(arguments)}", work)

    async def _time(self, what: str, work: Awaitable[T]) -> T:
        """Show a call and await it, noting how long it takes however it ends."""
        self.show.call(what)
        started = time.perf_counter()
        try:
            return await work
        finally:
            self._took = (time.perf_counter() - started) * 1000

    def _result(self, text: str) -> None:
        self.show.result(f"{text}  [{self._took:.1f}ms]")

    async def _read_tides(self) -> str:
        return (await self._client.read_resource("demo://tides")).text

    async def _start_slow_call(self) -> RunningCall[ToolResult]:
        """A call that the server is known to be working on."""
        under_way = asyncio.Event()

        def on_progress(progress: Progress) -> None:
            self.show.result(f"progress {progress.progress}/{progress.total}")
            under_way.set()

        arguments = {"steps": 100, "seconds": 0.1}
        self.show.call(f"countdown {json.dumps(arguments)}")
        running = self._client.start_tool("countdown", arguments, on_progress=on_progress)
        await under_way.wait()
        return running

    def _server_pid(self) -> int:
        """What the latest server said of itself on stderr."""
        return int([line for line in self._stderr if line.startswith("pid ")][-1].split()[1])

    def _show_error(self, error: Exception, *facts: str) -> None:
        self.show.error(f"{type(error).__name__}: {error}")
        self.show.note("  ".join((*facts, f"state={self._client.state}")))

    def _promise(self, kept: bool, what: str) -> None:
        if not kept:
            raise BrokenPromiseError(f"not so: {what}")
        self.kept += 1
        self.show.good(what)


async def play(screen: Screen) -> None:
    """Tell the story; raise if any of it is not so."""
    log = logging.getLogger("holdfast")
    handler = Log(screen)
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    started = time.perf_counter()
    try:
        story = Story(screen)
        async with asyncio.timeout(PATIENCE):
            await story.tell()
    finally:
        log.removeHandler(handler)
    took = time.perf_counter() - started
    screen.heading(f"All {story.kept} promises kept, in {took:.1f} s.")


def main() -> int:
    """Run the story; the exit code says whether it held."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    screen = Screen(sys.stdout, os.environ)
    try:
        asyncio.run(play(screen))
    except BrokenPipeError:
        # Whoever read this has enough. Python would complain at the exit as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except (BrokenPromiseError, holdfast.HoldfastError, TimeoutError) as error:
        screen.error(f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
