"""The clients and handles of one test: made as it asks for them, closed when it is over.

Where they lead is the test's business, or that of its markers, or of the suite's settings; or
nowhere, if the suite is replayed. Every one of them notes its calls.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeAlias

import pytest
from msgspec import Struct

from holdfast import _connect, sync
from holdfast._core.targets import VARIABLE, Target
from holdfast.calllog.log import CallLog, open_log
from holdfast.client import Client
from holdfast.errors import ValidationError
from holdfast.handles import Handle, SyncHandle
from holdfast.policies import Observability, Redaction
from holdfast.testing.notes import NotingLog
from holdfast.testing.recording import Recording, RecordingLog
from holdfast.testing.replaying import Missing, Replay

LONGEST_END: Final = 30.0
"""Seconds that a client on a loop of another thread has to close."""
_OF_TRANSPORTS: Final = frozenset(_connect.Options.__annotations__)

Thing: TypeAlias = "Client | sync.Client | Handle | SyncHandle"
"""What is handed out."""


class Aim(Struct):
    """Where a client leads, and with which options."""

    target: Any
    options: dict[str, Any]

    @property
    def redaction(self) -> Redaction:
        return (self.options.get("observability") or Observability()).redaction


class Kept(Struct):
    """One thing that was handed out, and how its calls are noted."""

    thing: Thing
    log: NotingLog | None = None
    tape: RecordingLog | None = None
    closed: bool = False


class Keeper:
    """All that one test was handed out."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._kept: list[Kept] = []
        here = item.config.invocation_params.dir
        record, replay = (item.config.getoption(name) for name in ("mcp_record", "mcp_replay"))
        self._recording = Recording(here / record, item.nodeid) if record else None
        self._replay = Replay(here / replay, item.nodeid, replay) if replay else None
        self._told = False
        self._file: CallLog | None = None

    # Handing out

    def client(self, target: Target = None, **options: Any) -> Client:
        """A client, closed when the test is over; ``options`` are `holdfast.connect`'s."""
        made: Client = self._make(_connect.connect, self._aim(target, options))
        return made

    def client_sync(self, target: Target = None, **options: Any) -> sync.Client:
        """The same without ``await``."""
        made: sync.Client = self._make(sync.connect, self._aim(target, options))
        return made

    def handle(
        self, kind: Any, session: str | None = None, *, target: Any = None, **options: Any
    ) -> Any:
        """A handle: of a generated module, or of a class. Its session is closed with it."""
        return self._handle(kind, session, target, options, "connect")

    def handle_sync(
        self, kind: Any, session: str | None = None, *, target: Any = None, **options: Any
    ) -> Any:
        """The same without ``await``."""
        return self._handle(kind, session, target, options, "connect_sync")

    def _handle(
        self, kind: Any, session: str | None, target: Any, options: dict[str, Any], verb: str
    ) -> Any:
        make, own = _maker(kind, verb)

        def handle(target: Any, **options: Any) -> Any:
            return make(session=session, target=target, **options)

        if isinstance(target, Client | sync.Client):
            # It has its own settings and notes already.
            made = handle(target, **options)
            self._kept.append(Kept(made))
            return made
        return self._make(handle, self._aim(target, options, own))

    def _make(self, make: Callable[..., Any], aim: Aim) -> Any:
        tape: RecordingLog | None = None
        others = self._logs(aim.options.pop("log", None), aim.redaction)
        if self._recording is not None:
            tape = self._recording.log(aim.redaction)
            others.append(tape)
        elif self._replay is not None:
            self._lead_to_recording(self._replay, aim)
        log = NotingLog(aim.redaction, others)
        try:
            made = make(aim.target, log=log, **aim.options)
        except BaseException:
            self._undo()
            raise
        if tape is not None:
            tape.client = _client_of(made)
        self._kept.append(Kept(made, log, tape))
        return made

    def _lead_to_recording(self, replay: Replay, aim: Aim) -> None:
        try:
            server, name = replay.server(aim.redaction)
        except Missing as missing:
            self._told = True
            pytest.fail(str(missing), pytrace=False)
        kept = {key: value for key, value in aim.options.items() if key not in _OF_TRANSPORTS}
        aim.target, aim.options = server, {"name": name, **kept}

    def _undo(self) -> None:
        for one in (self._recording, self._replay):
            if one is not None:
                one.undo()

    # Where to

    def _aim(self, target: Any, options: dict[str, Any], own: Any = None) -> Aim:
        """The target: the caller's, the marker's, the module's own, the suite's, or the
        environment's."""
        if target is not None or self._replay is not None:
            return Aim(target, dict(options))
        marker = self._item.get_closest_marker("mcp_target")
        if marker is not None:
            target, settings = _marked(marker, "target")
            return Aim(target, {**settings, **options})
        if own is not None:
            return Aim(own, dict(options))
        config = self._item.config
        ours = config.getini("mcp_target")
        if ours:
            return Aim(ours, _placed(ours, config.rootpath, options))
        if not os.environ.get(VARIABLE) and "base_url" not in options:
            raise ValidationError(
                "no target: name one in the call, with @pytest.mark.mcp_target(…), as "
                f"mcp_target in pytest's configuration, or in {VARIABLE}"
            )
        return Aim(None, dict(options))

    def _logs(self, own: Any, redaction: Redaction) -> list[CallLog]:
        """Where else calls are to be written: the caller's log, and the file of the marker."""
        found = [] if own is None else [open_log(own, redaction)]
        marker = self._item.get_closest_marker("mcp_log")
        if marker is None:
            return found
        if self._file is None:
            path, settings = _marked(marker, "path")
            place = self._item.config.rootpath / path
            place.parent.mkdir(parents=True, exist_ok=True)
            self._file = CallLog(place, **{"redaction": redaction, **settings})
        return [*found, self._file]

    # What there is to tell

    def sections(self) -> list[tuple[str, str]]:
        """For the report of a test that failed: the calls of each client, and what was missed."""
        logs = [(one.thing, one.log) for one in self._kept if one.log is not None]
        many = len(logs) > 1
        found = [
            (f"MCP calls {number}: {_client_of(thing).name}" if many else "MCP calls", text)
            for number, (thing, log) in enumerate(logs, 1)
            if (text := str(log.notes))
        ]
        missed = self._missed()
        return [*found, ("MCP replay", missed)] if missed else found

    def _missed(self) -> str:
        """Told once: in the report of the failure, or else as one."""
        text = "" if self._replay is None or self._told else self._replay.misses()
        self._told = self._told or bool(text)
        return text

    # The end

    async def end(self) -> None:
        """Close what is async, last one first, on the loop that runs now."""
        faults = []
        for one in self._open():
            thing = one.thing
            if isinstance(thing, Client | Handle):
                one.closed = True
                try:
                    await _close(thing, one.tape)
                except Exception as error:
                    faults.append(error)
        _raise(faults)

    def close(self) -> None:
        """Close the rest, each where it lives, and finish the recording."""
        faults = []
        for one in self._open():
            one.closed = True
            try:
                _close_here(one.thing, one.tape)
            except Exception as error:
                faults.append(error)
        if self._recording is not None:
            self._recording.finish()
        _raise(faults)
        missed = self._missed()
        if missed:
            pytest.fail(missed, pytrace=False)

    def _open(self) -> list[Kept]:
        return [one for one in reversed(self._kept) if not one.closed]


# Handles


def _maker(kind: Any, verb: str) -> tuple[Callable[..., Any], Any]:
    """What makes a handle, and the target that it has of its own."""
    base, other = (Handle, "mcp_handle_sync") if verb == "connect" else (SyncHandle, "mcp_handle")
    if isinstance(kind, type):
        if not issubclass(kind, base):
            what = f"{kind.__name__} is no {base.__name__}"
            hint = f"; use {other} for it" if issubclass(kind, Handle | SyncHandle) else ""
            raise ValidationError(f"{what}{hint}")
        module: Any = sys.modules.get(kind.__module__)
        make: Any = getattr(module, verb, None)
        if getattr(make, "__module__", None) != kind.__module__:
            return kind, None
        return make, getattr(module, "TARGET", None)
    made = getattr(kind, verb, None)
    if callable(made):
        return made, getattr(kind, "TARGET", None)
    name = kind.__name__ if isinstance(kind, ModuleType) else repr(kind)
    hint = "; generate it with --sync" if callable(getattr(kind, "connect", None)) else ""
    raise ValidationError(f"{name} is no generated module: it has no {verb}(){hint}")


# Markers and settings


def _marked(marker: pytest.Mark, name: str) -> tuple[Any, dict[str, Any]]:
    """What a marker says: one thing, and options."""
    options = dict(marker.kwargs)
    found = [*marker.args, *([options.pop(name)] if name in options else ())]
    if len(found) != 1:
        raise ValidationError(f"@pytest.mark.{marker.name}({name}, **options) takes one {name}")
    return found[0], options


def _placed(target: str, root: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """A command in pytest's configuration is run where that configuration is."""
    is_command = "://" not in target.partition(" ")[0]
    return {"cwd": root, **options} if is_command else dict(options)


# Closing


def _client_of(thing: Thing) -> Client:
    found = thing.client if isinstance(thing, Handle | SyncHandle) else thing
    return found._client if isinstance(found, sync.Client) else found


async def _close(thing: Client | Handle, tape: RecordingLog | None) -> None:
    if tape is not None:
        with suppress(Exception):
            await tape.learn()
    await thing.close()


def _close_here(thing: Thing, tape: RecordingLog | None) -> None:
    """Close from outside of any loop."""
    if isinstance(thing, sync.Client | SyncHandle):
        if tape is not None:
            with suppress(Exception):
                thing._portal.run(tape.learn())
        thing.close()
        return
    driver = _client_of(thing)._pipeline.started
    if driver is None:
        # Never used: any loop will do, and nobody else's is disturbed.
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(thing.close())
        finally:
            loop.close()
    elif driver.loop.is_running():
        work = asyncio.run_coroutine_threadsafe(_close(thing, tape), driver.loop)
        work.result(LONGEST_END)
    elif not driver.loop.is_closed():
        driver.loop.run_until_complete(_close(thing, tape))
    # A loop that is closed took the connection with it: the driver ends what its loop ends.


def _raise(faults: list[Exception]) -> None:
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ExceptionGroup("several MCP clients could not be closed well", faults)
