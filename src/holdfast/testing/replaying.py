"""Serve a test from its recording."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast._core.server.incoming import Incoming
from holdfast._core.wire.codes import METHOD_NOT_FOUND, RequestError
from holdfast.calllog.mock import MockServer
from holdfast.lock.lockfile import read
from holdfast.policies import Redaction
from holdfast.testing.recording import (
    MANIFEST,
    VERSION,
    Manifest,
    RecordedClient,
    folder_name,
    lock_path,
)

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
            found = msgspec.json.decode(path.read_bytes(), type=Manifest)
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
