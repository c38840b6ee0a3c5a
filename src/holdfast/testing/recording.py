"""Record a test's calls to disk.

    recordings/
      test_shop.py-test_cart_usd-1f0c2a9b/     one folder for each test
        recording.json                         its clients, in the order in which it made them
        1.jsonl                                the call log of the first
        1/4-browser_snapshot.txt               and its long results
      tools/3b1c….lock                         what servers listed, shared by the tests

Secrets are redacted as in any call log, and in the same way in the calls of a replay before they
are compared.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from holdfast._core.files import read_bytes, write_atomic
from holdfast._core.observers.observer import TOOL_CALL, ObservedCall
from holdfast._core.server.request import ServerRequest
from holdfast._core.text import counted, truncate
from holdfast._core.wire.codes import METHOD_NOT_FOUND, RequestError
from holdfast.calllog.log import CallLog
from holdfast.calllog.mock import MockServer
from holdfast.client import Client
from holdfast.errors import HoldfastError
from holdfast.lock.lockfile import LockedServer, LockFile, read, render, write
from holdfast.policies import Redaction
from holdfast.types.tools import Tool

MOST_LINES: Final = 200
MOST_CHARACTERS: Final = 64 * 1024
LONGEST_LINE: Final = 4 * 1024


class Notes:
    """The last lines of one client's log, within a bound. The log calls `take` under its lock."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._characters = 0
        self._dropped = 0

    def take(self, line: str) -> None:
        """Add a line, truncated if it is too long."""
        self._lines.append(truncate(line, LONGEST_LINE))
        self._characters += len(self._lines[-1])
        while len(self._lines) > MOST_LINES or self._characters > MOST_CHARACTERS:
            self._characters -= len(self._lines.popleft())
            self._dropped += 1

    def __str__(self) -> str:
        # A copy: synchronous clients write from another thread.
        left_out = [f"({self._dropped} earlier lines left out)"] if self._dropped else []
        return "\n".join([*left_out, *self._lines.copy()])


VERSION: Final = 1
MOST_BYTES: Final = 1 << 20
MANIFEST: Final = "recording.json"
LONGEST_NAME: Final = 80
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class RecordedClient(Struct, kw_only=True, forbid_unknown_fields=True):
    """One client of a test."""

    client: str
    """The name of the client, which begins its error messages."""
    server: str | None = None
    tools: str | None = None
    """The file in ``tools``; None if the server listed no tools."""


class Manifest(Struct, kw_only=True, forbid_unknown_fields=True):
    """The content of ``recording.json``."""

    version: int = VERSION
    test: str
    clients: list[RecordedClient]


def folder_name(nodeid: str) -> str:
    """Return the folder name of a test: valid on any file system, and unique."""
    path, *names = nodeid.split("::")
    readable = _UNSAFE.sub("_", "-".join([path.rpartition("/")[2], *names])).strip("_.")
    # The readable part is truncated and simplified; the hash keeps names apart.
    whole = hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{readable[:LONGEST_NAME]}-{whole[:8]}"


def lock_path(folder: Path, number: str) -> Path:
    """Return the path of the lockfile of a recording."""
    return folder / "tools" / f"{number}.lock"


_WAITS: Final = object()
"""The state of a call that is written later."""


class RecordingLog(CallLog):
    """The log of one client.

    Calls of tools that are not listed yet are written at the end: redaction by schema needs the
    definition, and recording must not add a request before a test's first call.
    """

    def __init__(self, path: Path, redaction: Redaction) -> None:
        super().__init__(path, sidecars=path.stem, redaction=redaction)
        self.client: Client | None = None
        self._listed: list[Tool] = []
        self._waiting: list[ObservedCall] = []

    @property
    def tools(self) -> list[Tool]:
        """The tools of the server, as far as they are known."""
        current = None if self.client is None else list(self.client.tools.values())
        return current or self._listed

    def begin(self, call: ObservedCall) -> Any:
        """Write a tool call, or have it wait; one that follows others waits with them."""
        unknown = call.tool is None and not self.tools
        if call.method == TOOL_CALL and (unknown or self._waiting):
            return _WAITS
        return super().begin(call)

    def end(self, call: ObservedCall, state: Any) -> None:
        """Write the end of a tool call, or have all of it wait."""
        if state is _WAITS:
            self._waiting.append(call)
        else:
            super().end(call, state)

    def close(self) -> None:
        """Write the calls that are still waiting, and close the log."""
        tools = {tool.name: tool for tool in self.tools}
        for call in self._waiting:
            call.tool = call.tool or tools.get(call.about)
            begun = super().begin(call)
            assert begun is not None
            super().end(call, begun)
        self._waiting.clear()
        super().close()

    async def learn(self) -> None:
        """List the server's tools if the client has not; its cache is not touched."""
        client = self.client
        if client is not None and not client.tools and client.is_connected:
            deadline = client._requester.deadline("tools/list")
            with suppress(HoldfastError):
                listing = await client._cached.listing(
                    "tools/list", "tools", Tool, deadline, "bypass"
                )
                self._listed = list(listing)

    def part(self, folder: Path) -> RecordedClient:
        """Return the manifest entry of this client, and write its tools to the shared folder."""
        client, number = self.client, None
        assert client is not None
        name = None if client.server_info is None else client.server_info.name
        if self.tools:
            entry = LockedServer.of(self.tools, client.instructions)
            file = LockFile({name or client.name: entry})
            number = hashlib.sha256(render(file)).hexdigest()[:16]
            path = lock_path(folder, number)
            path.parent.mkdir(exist_ok=True)
            write(path, file, keep_others=False)
        return RecordedClient(client=client.name, server=name, tools=number)


class TestRecorder:
    """Makes the recording of one test."""

    __test__ = False  # pytest is not to collect it

    def __init__(self, folder: Path, nodeid: str) -> None:
        self._folder = folder
        self._nodeid = nodeid
        self._home = folder / folder_name(nodeid)
        self.logs: list[RecordingLog] = []
        """Those of the clients that were made."""

    def log(self, redaction: Redaction) -> RecordingLog:
        """Return the log of the next client; the first deletes an earlier recording."""
        if not self.logs:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home.mkdir(parents=True, exist_ok=True)
        return RecordingLog(self._home / f"{len(self.logs) + 1}.jsonl", redaction)

    def finish(self) -> None:
        """Write the manifest, which completes the recording."""
        if not self.logs:
            return
        parts = [log.part(self._folder) for log in self.logs]
        manifest = msgspec.json.encode(Manifest(test=self._nodeid, clients=parts))
        write_atomic(self._home / MANIFEST, msgspec.json.format(manifest, indent=2) + b"\n")


_NOT_RECORDED: Final = (
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
)


class MissingRecording(Exception):  # noqa: N818
    """There is no recording for a test; the message says how to make one."""


class RecordedServer(MockServer):
    """Answers from a recording, and lists what it could not answer.

    The client gets an error as well, but a test that expects an error would accept that one.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self.misses: list[str] = []
        super().__init__(*args, **options)
        self.server.handlers.update(dict.fromkeys(_NOT_RECORDED, self._refuse))

    def missed(self, message: str) -> None:
        """Record a call that is not in the recording."""
        self.misses.append(message)

    def _refuse(self, request: ServerRequest) -> None:
        text = f"{request.method!r}: only tools and their calls are recorded"
        self.misses.append(text)
        raise RequestError(METHOD_NOT_FOUND, text)


class Replay:
    """The recording of one test while it is replayed."""

    def __init__(self, folder: Path, nodeid: str, folder_option: str) -> None:
        self._folder = folder
        self._home = folder / folder_name(nodeid)
        words = ["pytest", "--mcp-record", folder_option, nodeid]
        self._again = f"record it with: {shlex.join(words)}"
        self.served: list[RecordedServer] = []
        """The servers of the clients that were made."""

    def server(self, redaction: Redaction) -> tuple[RecordedServer, str]:
        """Return the server for the test's next client, and that client's name."""
        parts = self._read().clients
        number = len(self.served) + 1
        if number > len(parts):
            clients = counted(len(parts), "client")
            text = f"this test had {clients} when it was recorded, and now makes one more"
            raise MissingRecording(f"{text}; {self._again}")
        part = parts[number - 1]
        log = self._home / f"{number}.jsonl"
        tools, instructions = self._tools(part)
        server = RecordedServer(
            log if log.exists() else [],
            tools=tools,
            name=part.server or part.client,
            instructions=instructions,
            redaction=redaction,
        )
        return server, part.client

    def _read(self) -> Manifest:
        path = self._home / MANIFEST
        try:
            data = read_bytes(path, MOST_BYTES, inside=self._folder)
            manifest = msgspec.json.decode(data, type=Manifest)
            if manifest.version == VERSION:
                return manifest
            why = f"{path} is of version {manifest.version}, and only {VERSION} is understood"
        except FileNotFoundError:
            why = f"there is no recording of this test ({path})"
        except (OSError, msgspec.DecodeError) as error:
            why = f"{path} cannot be read: {error}"
        raise MissingRecording(f"{why}; {self._again}")

    def _tools(self, part: RecordedClient) -> tuple[dict[str, dict[str, Any]] | None, str | None]:
        if part.tools is None:
            return None, None
        if not re.fullmatch("[0-9a-f]{16}", part.tools):
            raise MissingRecording(f"{self._home / MANIFEST} names no tools; {self._again}")
        (locked,) = read(lock_path(self._folder, part.tools)).servers.values()
        return locked.definitions, locked.instructions

    def misses(self) -> str:
        """Return the calls that were not recorded, as text; empty if there were none."""
        calls = [text for server in self.served for text in server.misses]
        if not calls:
            return ""
        lines = "\n".join(f"  {text}" for text in calls[:10])
        rest = f"\n  and {len(calls) - 10} more" if len(calls) > 10 else ""
        return f"not in the recording of this test:\n{lines}{rest}\n{self._again}"
