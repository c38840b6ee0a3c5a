"""A test's calls on disk.

    recordings/
      test_shop.py-test_cart_usd-1f0c2a9b/     one folder for each test
        recording.json                         its clients, in the order in which it made them
        1.jsonl                                the call log of the first
        1/4-browser_snapshot.txt               and its long results
      tools/3b1c….lock                         what servers listed, shared by the tests

Secrets are blacked out as in any call log, and blacked out in the same way in the calls of a
replay before they are compared.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from holdfast._core.wire.codes import METHOD_NOT_FOUND
from holdfast.calllog.log import CallLog
from holdfast.client import Client
from holdfast.errors import HoldfastError
from holdfast.lock.lockfile import LockedServer, LockFile, render, write
from holdfast.policies import Redaction
from holdfast.types.tools import Tool, ToolResult

VERSION: Final = 1
MANIFEST: Final = "recording.json"
LONGEST_NAME: Final = 80
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Part(Struct, kw_only=True, forbid_unknown_fields=True):
    """One client of a test."""

    client: str
    """The client's own name, which its errors begin with."""
    server: str | None = None
    tools: str | None = None
    """Which of the files in ``tools``; None if the server listed none."""


class Manifest(Struct, kw_only=True, forbid_unknown_fields=True):
    """What ``recording.json`` says."""

    version: int = VERSION
    test: str
    clients: list[Part]


def folder_name(nodeid: str) -> str:
    """The name of a test's folder: fit for any file system, and no other test's."""
    path, *names = nodeid.split("::")
    shown = _UNSAFE.sub("_", "-".join([path.rpartition("/")[2], *names])).strip("_.")
    # Long, or differing in what is not shown: only the whole tells two tests apart.
    whole = hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown[:LONGEST_NAME]}-{whole[:8]}"


def lock_path(folder: Path, number: str) -> Path:
    return folder / "tools" / f"{number}.lock"


class RecordingLog(CallLog):
    """The log of one client, and what its server is.

    Both lines of a call are written after it: what a schema says is secret is known only once
    there was a connection, and a test's first call must not be another for being recorded.
    """

    def __init__(self, path: Path, redaction: Redaction) -> None:
        super().__init__(path, sidecars=path.stem, redaction=redaction)
        self.client: Client | None = None
        self._tools: list[Tool] | None = None
        self._told: tuple[str | None, str | None] = (None, None)

    async def watch(
        self,
        name: str,
        arguments: Mapping[str, Any],
        schema: Callable[[], Any],
        work: Coroutine[Any, Any, ToolResult],
    ) -> ToolResult:
        seq, began = next(self._numbers), time.perf_counter()
        try:
            result = await work
        except BaseException as error:
            self._write(name, arguments, seq, began, error)
            raise
        await self.learn()
        self._write(name, arguments, seq, began, result)
        return result

    def _write(
        self,
        name: str,
        arguments: Mapping[str, Any],
        seq: int,
        began: float,
        ending: ToolResult | BaseException,
    ) -> None:
        head = self._before(name, arguments, lambda: self._schema(name), seq)
        self._after(head, name, seq, began, ending)

    def _schema(self, name: str) -> Any:
        known = self._tools or ()
        return next((tool.input_schema for tool in known if tool.name == name), None)

    async def learn(self) -> None:
        """Have the server's tools listed, once, without the client taking notice of the list."""
        client = self.client
        if client is None or self._tools is not None:
            return
        if client.tools:
            self._take(client, list(client.tools.values()))
        elif client.is_connected:
            try:
                found = await client._reader.listing("tools/list", "tools", Tool, "bypass")
            except HoldfastError as error:
                if error.code != METHOD_NOT_FOUND:
                    return  # The next call, or the end, tries again.
                found = None
            self._take(client, list(found or ()))

    def _take(self, client: Client, tools: list[Tool]) -> None:
        info = client.server_info
        self._tools = tools
        self._told = (None if info is None else info.name, client.instructions)

    def part(self, folder: Path) -> Part:
        """What the manifest says of this client; its tools are written where all tests' are."""
        assert self.client is not None
        name, instructions = self._told
        number = None
        if self._tools:
            entry = LockedServer.of(self._tools, instructions)
            file = LockFile({name or self.client.name: entry})
            number = hashlib.sha256(render(file)).hexdigest()[:16]
            path = lock_path(folder, number)
            path.parent.mkdir(exist_ok=True)
            write(path, file, keep_others=False)
        return Part(client=self.client.name, server=name, tools=number)


class Recording:
    """The recording of one test, as it is made."""

    def __init__(self, folder: Path, nodeid: str) -> None:
        self._folder = folder
        self._nodeid = nodeid
        self._home = folder / folder_name(nodeid)
        self._logs: list[RecordingLog] = []

    def log(self, redaction: Redaction) -> RecordingLog:
        """The log for the next client. The first one clears what an earlier run left."""
        if not self._logs:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home.mkdir(parents=True, exist_ok=True)
        made = RecordingLog(self._home / f"{len(self._logs) + 1}.jsonl", redaction)
        self._logs.append(made)
        return made

    def undo(self) -> None:
        """The client came to nothing: its options were wrong."""
        self._logs.pop()

    def finish(self) -> None:
        """Write the manifest: from now on there is a recording."""
        if not self._logs:
            return
        parts = [log.part(self._folder) for log in self._logs]
        manifest = msgspec.to_builtins(Manifest(test=self._nodeid, clients=parts))
        text = json.dumps(manifest, indent=2, ensure_ascii=False)
        (self._home / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
