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
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from holdfast._core.files import read_bytes, write_atomic
from holdfast._core.observers.observer import TOOL_CALL, End, ObservedCall
from holdfast._core.server.incoming import Incoming
from holdfast._core.text import truncate
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
    """The last lines of one client's log, within a bound."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        self._characters = 0
        self._dropped = 0
        # Synchronous clients write from another thread than the one that makes reports.
        self._lock = threading.Lock()

    def take(self, line: str) -> None:
        """Add a line, truncated if it is too long."""
        line = truncate(line, LONGEST_LINE)
        with self._lock:
            self._lines.append(line)
            self._characters += len(line)
            while len(self._lines) > MOST_LINES or self._characters > MOST_CHARACTERS:
                self._characters -= len(self._lines.popleft())
                self._dropped += 1

    def __str__(self) -> str:
        with self._lock:
            left_out = [f"({self._dropped} earlier lines left out)"] if self._dropped else []
            return "\n".join([*left_out, *self._lines])


class NotesLog(CallLog):
    """A call log in memory, and other logs of the same calls."""

    def __init__(self, redaction: Redaction, others: Sequence[CallLog] = ()) -> None:
        self.notes: Notes = Notes()
        self._others = others
        super().__init__(self.notes.take, redaction=redaction)

    def begin(self, call: ObservedCall) -> End | None:
        """Note the start of a request; return the function that notes its end."""
        ends = [super().begin(call), *(other.begin(call) for other in self._others)]

        def end() -> None:
            for one in filter(None, ends):
                one()

        return end

    def close(self) -> None:
        """Close the other observers and this one."""
        for other in self._others:
            other.close()
        super().close()


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
    shown = _UNSAFE.sub("_", "-".join([path.rpartition("/")[2], *names])).strip("_.")
    # The readable part is truncated and simplified; the hash keeps names apart.
    whole = hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown[:LONGEST_NAME]}-{whole[:8]}"


def lock_path(folder: Path, number: str) -> Path:
    """Return the path of the lockfile of a recording."""
    return folder / "tools" / f"{number}.lock"


class RecordingLog(CallLog):
    """The log of one client, and the tools of its server.

    Both lines of a call are written after it: redaction by schema needs the list of tools, and
    recording must not add a request before a test's first call.
    """

    def __init__(self, path: Path, redaction: Redaction) -> None:
        super().__init__(path, sidecars=path.stem, redaction=redaction)
        self.client: Client | None = None
        self._tools: list[Tool] | None = None
        self._waiting: list[tuple[ObservedCall, int]] = []
        self._server: tuple[str | None, str | None] = (None, None)

    def begin(self, call: ObservedCall) -> End | None:
        """Number a tool call; return the function that records it."""
        if call.method != TOOL_CALL:
            return None
        return partial(self._write, call, next(self._numbers))

    def _write(self, call: ObservedCall, seq: int) -> None:
        """Write both lines; they wait until it is known what the schema says is secret."""
        self._take_known()
        if call.tool is None and self._tools is None:
            self._waiting.append((call, seq))
            return
        if call.tool is None:
            call.tool = next((one for one in self._tools or () if one.name == call.about), None)
        self._end(call, self._before(call, seq), seq)

    def _take_known(self) -> None:
        """Take the tools that the client has listed, if it has."""
        if self._tools is None and self.client is not None and self.client.tools:
            self._take(self.client, list(self.client.tools.values()))

    def close(self) -> None:
        """Write the calls that are still waiting, and close the log."""
        self._take_known()
        for call, seq in self._waiting:
            self._end(call, self._before(call, seq), seq)
        self._waiting.clear()
        super().close()

    async def learn(self) -> None:
        """List the server's tools once, without touching the client's cache."""
        self._take_known()
        client = self.client
        if client is not None and self._tools is None and client.is_connected:
            try:
                deadline = client._channel.deadline("tools/list")
                found = await client._cached.listing(
                    "tools/list", "tools", Tool, deadline, "bypass"
                )
            except HoldfastError as error:
                if error.code != METHOD_NOT_FOUND:
                    return  # The next call, or the end, tries again.
                found = None
            self._take(client, list(found or ()))

    def _take(self, client: Client, tools: list[Tool]) -> None:
        info = client.server_info
        self._tools = tools
        self._server = (None if info is None else info.name, client.instructions)
        waiting, self._waiting = self._waiting, []
        for call, seq in waiting:
            self._write(call, seq)

    def part(self, folder: Path) -> RecordedClient:
        """Return the manifest entry of this client, and write its tools to the shared folder."""
        assert self.client is not None
        name, instructions = self._server
        number = None
        if self._tools:
            entry = LockedServer.of(self._tools, instructions)
            file = LockFile({name or self.client.name: entry})
            number = hashlib.sha256(render(file)).hexdigest()[:16]
            path = lock_path(folder, number)
            path.parent.mkdir(exist_ok=True)
            write(path, file, keep_others=False)
        return RecordedClient(client=self.client.name, server=name, tools=number)


class Recording:
    """The recording of one test while it is made."""

    def __init__(self, folder: Path, nodeid: str) -> None:
        self._folder = folder
        self._nodeid = nodeid
        self._home = folder / folder_name(nodeid)
        self._logs: list[RecordingLog] = []

    def log(self, redaction: Redaction) -> RecordingLog:
        """Return the log of the next client; the first deletes an earlier recording."""
        if not self._logs:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home.mkdir(parents=True, exist_ok=True)
        made = RecordingLog(self._home / f"{len(self._logs) + 1}.jsonl", redaction)
        self._logs.append(made)
        return made

    def undo(self) -> None:
        """Forget the last client: it could not be made."""
        self._logs.pop()

    def finish(self) -> None:
        """Write the manifest, which completes the recording."""
        if not self._logs:
            return
        parts = [log.part(self._folder) for log in self._logs]
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

    def __init__(self, *given: Any, **options: Any) -> None:
        self.misses: list[str] = []
        super().__init__(*given, **options)
        self.server.handlers.update(dict.fromkeys(_NOT_RECORDED, self._refuse))

    def missed(self, message: str) -> None:
        """Record a call that is not in the recording."""
        self.misses.append(message)

    def _refuse(self, incoming: Incoming) -> None:
        text = f"{incoming.method!r}: only tools and their calls are recorded"
        self.misses.append(text)
        raise RequestError(METHOD_NOT_FOUND, text)


class Replay:
    """The recording of one test while it is replayed."""

    def __init__(self, folder: Path, nodeid: str, shown: str) -> None:
        self._folder = folder
        self._home = folder / folder_name(nodeid)
        words = ["pytest", "--mcp-record", shown, nodeid]
        self._again = f"record it with: {shlex.join(words)}"
        self._served: list[RecordedServer] = []

    def server(self, redaction: Redaction) -> tuple[RecordedServer, str]:
        """Return the server for the test's next client, and that client's name."""
        parts = self._read().clients
        number = len(self._served) + 1
        if number > len(parts):
            clients = "1 client" if len(parts) == 1 else f"{len(parts)} clients"
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
        self._served.append(server)
        return server, part.client

    def undo(self) -> None:
        """Forget the last client: it could not be made."""
        self._served.pop()

    def _read(self) -> Manifest:
        path = self._home / MANIFEST
        try:
            data = read_bytes(path, MOST_BYTES, inside=self._folder)
            found = msgspec.json.decode(data, type=Manifest)
        except FileNotFoundError:
            raise MissingRecording(
                f"there is no recording of this test ({path}); {self._again}"
            ) from None
        except (OSError, msgspec.DecodeError) as error:
            raise MissingRecording(f"{path} cannot be read: {error}; {self._again}") from None
        if found.version != VERSION:
            text = f"{path} is of version {found.version}, and only {VERSION} is understood"
            raise MissingRecording(f"{text}; {self._again}")
        return found

    def _tools(self, part: RecordedClient) -> tuple[dict[str, dict[str, Any]] | None, str | None]:
        if part.tools is None:
            return None, None
        if not re.fullmatch("[0-9a-f]{16}", part.tools):
            raise MissingRecording(f"{self._home / MANIFEST} names no tools; {self._again}")
        (locked,) = read(lock_path(self._folder, part.tools)).servers.values()
        return locked.definitions, locked.instructions

    def misses(self) -> str:
        """Return the calls that were not recorded, as text; empty if there were none."""
        found = [text for server in self._served for text in server.misses]
        if not found:
            return ""
        lines = "\n".join(f"  {text}" for text in found[:10])
        more = f"\n  and {len(found) - 10} more" if len(found) > 10 else ""
        return f"not in the recording of this test:\n{lines}{more}\n{self._again}"
