"""The clients and handles of one test: made on request, closed at its end.

The target comes from the call, a marker, the generated module, pytest's configuration or the
environment, in that order; with ``--mcp-replay`` it is the recording. Every client's calls are
noted for the report of a failure.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import Any, Final, Protocol, TypeAlias, TypeVar

import pytest
from msgspec import Struct

from holdfast import _options, sync
from holdfast._core.targets import VARIABLE, Target
from holdfast.calllog.log import CallLog
from holdfast.client import Client
from holdfast.errors import ValidationError
from holdfast.handles import Handle, SyncHandle
from holdfast.policies import Observability, Redaction
from holdfast.testing.recording import (
    MissingRecording,
    Notes,
    RecordedServer,
    RecordingLog,
    Replay,
    TestRecorder,
)

LONGEST_END: Final = 30.0
"""Seconds that a client on a loop of another thread has to close."""
_TRANSPORT_OPTIONS: Final = frozenset(_options.Options.__annotations__)

H = TypeVar("H", bound=Handle)
S = TypeVar("S", bound=SyncHandle)
M_co = TypeVar("M_co", covariant=True)

Thing: TypeAlias = "Client | sync.Client | Handle | SyncHandle"
"""The values of the fixtures."""


class Tracked(Struct):
    """A client or handle that was returned, and what is noted and recorded of its calls."""

    thing: Thing
    notes: Notes | None = None
    recorder: RecordingLog | None = None
    closed: bool = False


class ClientScope:
    """The clients and handles of one test."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self._tracked: list[Tracked] = []
        here = item.config.invocation_params.dir
        record, replay = (item.config.getoption(name) for name in ("mcp_record", "mcp_replay"))
        self._recording = TestRecorder(here / record, item.nodeid) if record else None
        self._replay = Replay(here / replay, item.nodeid, replay) if replay else None
        self._reported = False
        self._file: CallLog | None = None
        """The log of the marker ``mcp_log``."""

    # The fixtures

    def client(self, connect: Callable[..., Any], target: Target = None, **options: Any) -> Any:
        """Return a client that is closed after the test; options as in `holdfast.connect`."""
        return self._make(connect, *self._destination(target, options))

    def handle(
        self,
        verb: str,
        kind: Any,
        session: str | None = None,
        *,
        target: Any = None,
        **options: Any,
    ) -> Any:
        """Return a handle of a generated module or class; its session is closed with it."""
        make, module_target = _maker(kind, verb)

        def handle(target: Any, **options: Any) -> Any:
            return make(session=session, target=target, **options)

        if isinstance(target, Client | sync.Client):
            # The client has its settings and its notes already.
            made = handle(target, **options)
            self._tracked.append(Tracked(made))
            return made
        return self._make(handle, *self._destination(target, options, module_target))

    def _make(self, make: Callable[..., Any], target: Any, options: dict[str, Any]) -> Any:
        redaction = (options.get("observability") or Observability()).redaction
        notes, recorder, server = Notes(), None, None
        logs = [CallLog(notes.take, redaction=redaction)]
        marker = self._item.get_closest_marker("mcp_log")
        if marker is not None:
            logs.append(self._log_file(marker, redaction))
        if self._recording is not None:
            recorder = self._recording.log(redaction)
            logs.append(recorder)
        elif self._replay is not None:
            server, name = self._recorded_server(self._replay, redaction)
            policies = {
                key: value for key, value in options.items() if key not in _TRANSPORT_OPTIONS
            }
            target, options = server, {"name": name, **policies}
        made = make(target, **options)
        client = _client_of(made)
        client._requester.observers.all.extend(logs)
        if self._recording is not None and recorder is not None:
            recorder.client = client
            self._recording.logs.append(recorder)
        if self._replay is not None and server is not None:
            self._replay.served.append(server)
        self._tracked.append(Tracked(made, notes, recorder))
        return made

    def _recorded_server(self, replay: Replay, redaction: Redaction) -> tuple[RecordedServer, str]:
        try:
            return replay.server(redaction)
        except MissingRecording as missing:
            self._reported = True
            pytest.fail(str(missing), pytrace=False)

    def _log_file(self, marker: pytest.Mark, redaction: Redaction) -> CallLog:
        """Return the log that the marker names; all clients of the test share it."""
        if self._file is None:
            path, settings = _marked(marker, "path")
            place = self._item.config.rootpath / path
            place.parent.mkdir(parents=True, exist_ok=True)
            self._file = CallLog(place, **{"redaction": redaction, **settings})
        return self._file

    # The target

    def _destination(
        self, target: Any, options: dict[str, Any], module_target: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Return the target (of the call, the marker, the module, pytest's configuration or the
        environment) and the options of `holdfast.connect`."""
        if target is not None or self._replay is not None:
            return target, options
        marker = self._item.get_closest_marker("mcp_target")
        if marker is not None:
            target, settings = _marked(marker, "target")
            return target, {**settings, **options}
        if module_target is not None:
            return module_target, options
        config = self._item.config
        ours = config.getini("mcp_target")
        if ours:
            # A command runs in the folder of pytest's configuration.
            is_url = "://" in ours.partition(" ")[0]
            return ours, options if is_url else {"cwd": config.rootpath, **options}
        if not os.environ.get(VARIABLE) and "base_url" not in options:
            raise ValidationError(
                "no target: name one in the call, with @pytest.mark.mcp_target(…), as "
                f"mcp_target in pytest's configuration, or in {VARIABLE}"
            )
        return None, options

    # The report

    def sections(self) -> list[tuple[str, str]]:
        """Return the report sections of a failed test: calls per client, and replay misses."""
        noted = [(item.thing, str(item.notes)) for item in self._tracked if item.notes is not None]
        many = len(noted) > 1
        sections = [
            (f"MCP calls {number}: {_client_of(thing).name}" if many else "MCP calls", text)
            for number, (thing, text) in enumerate(noted, 1)
            if text
        ]
        missed = self._missed()
        return [*sections, ("MCP replay", missed)] if missed else sections

    def _missed(self) -> str:
        """Return the replay misses once: in the report of a failure, or else as the failure."""
        text = "" if self._replay is None or self._reported else self._replay.misses()
        self._reported = self._reported or bool(text)
        return text

    # Teardown

    async def end(self) -> None:
        """Close async clients and handles on the running loop, newest first."""
        faults = []
        for item in reversed(self._tracked):
            if isinstance(item.thing, Client | Handle) and not item.closed:
                item.closed = True
                try:
                    await _close(item.thing, item.recorder)
                except Exception as error:
                    faults.append(error)
        _raise(faults)

    def close(self) -> None:
        """Close the rest, each on its own loop, and finish the recording."""
        faults = []
        for item in reversed(self._tracked):
            if not item.closed:
                item.closed = True
                try:
                    _close_here(item.thing, item.recorder)
                except Exception as error:
                    faults.append(error)
        if self._recording is not None:
            self._recording.finish()
        _raise(faults)
        if missed := self._missed():
            pytest.fail(missed, pytrace=False)


# The types of the fixtures, for type-checked suites


class ClientFactory(Protocol):
    """The type of ``mcp_client``."""

    def __call__(self, target: Target = None, **options: Any) -> Client: ...


class SyncClientFactory(Protocol):
    """The type of ``mcp_client_sync``."""

    def __call__(self, target: Target = None, **options: Any) -> sync.Client: ...


class Module(Protocol[M_co]):
    """A generated module."""

    @property
    def connect(self) -> Callable[..., M_co]:
        """The module's ``connect``."""


class SyncModule(Protocol[M_co]):
    """A module generated with ``--sync``."""

    @property
    def connect_sync(self) -> Callable[..., M_co]:
        """The module's ``connect_sync``."""


class HandleFactory(Protocol):
    """The type of ``mcp_handle``."""

    def __call__(
        self,
        kind: type[H] | Module[H],
        session: str | None = None,
        *,
        target: Any = None,
        **options: Any,
    ) -> H: ...


class SyncHandleFactory(Protocol):
    """The type of ``mcp_handle_sync``."""

    def __call__(
        self,
        kind: type[S] | SyncModule[S],
        session: str | None = None,
        *,
        target: Any = None,
        **options: Any,
    ) -> S: ...


def _marked(marker: pytest.Mark, name: str) -> tuple[Any, dict[str, Any]]:
    """Return the one argument of a marker, and its options."""
    options = dict(marker.kwargs)
    values = [*marker.args, *([options.pop(name)] if name in options else ())]
    if len(values) != 1:
        raise ValidationError(f"@pytest.mark.{marker.name}({name}, **options) takes one {name}")
    return values[0], options


# Handles


def _maker(kind: Any, verb: str) -> tuple[Callable[..., Any], Any]:
    """Return what makes a handle, and the target that its module names."""
    base, fixture = (Handle, "mcp_handle_sync") if verb == "connect" else (SyncHandle, "mcp_handle")
    if isinstance(kind, type):
        if not issubclass(kind, base):
            what = f"{kind.__name__} is no {base.__name__}"
            hint = f"; use {fixture} for it" if issubclass(kind, Handle | SyncHandle) else ""
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


# Closing


def _client_of(thing: Thing) -> Client:
    client = thing.client if isinstance(thing, Handle | SyncHandle) else thing
    return client._inner if isinstance(client, sync.Client) else client


async def _close(thing: Client | Handle, recorder: RecordingLog | None) -> None:
    if recorder is not None:
        with suppress(Exception):
            await recorder.learn()
    await thing.close()


def _close_here(thing: Thing, recorder: RecordingLog | None) -> None:
    """Close from outside of any running loop."""
    if isinstance(thing, sync.Client | SyncHandle):
        if recorder is not None:
            with suppress(Exception):
                thing._portal.run(recorder.learn())
        thing.close()
        return
    driver = _client_of(thing)._requester.opener.started
    if driver is None:
        # Never connected: a loop of its own disturbs no other.
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(thing.close())
        finally:
            loop.close()
    elif driver.loop.is_running():
        work = asyncio.run_coroutine_threadsafe(_close(thing, recorder), driver.loop)
        work.result(LONGEST_END)
    elif not driver.loop.is_closed():
        driver.loop.run_until_complete(_close(thing, recorder))
    # A closed loop took the connection with it: the driver ends with its loop.


def _raise(faults: list[Exception]) -> None:
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ExceptionGroup("several MCP clients failed to close", faults)


def arrange(request: pytest.FixtureRequest) -> None:
    """Request a fixture that closes the test's clients on its own loop."""
    config = request.config
    marker = request.node.get_closest_marker("asyncio")
    plugins = ("asyncio", "pytest_asyncio")
    make: Any = pytest.fixture
    if "anyio_backend" in request.fixturenames:
        backend = request.getfixturevalue("anyio_backend_name")
        if backend != "asyncio":
            pytest.fail(f"Holdfast runs on asyncio, and this test on {backend}", pytrace=False)
        loop = "anyio"
    elif marker is not None and any(map(config.pluginmanager.hasplugin, plugins)):
        import pytest_asyncio

        scope = marker.kwargs.get("loop_scope") or marker.kwargs.get("scope")
        loop = scope or config.getini("asyncio_default_test_loop_scope")
        make = partial(pytest_asyncio.fixture, loop_scope=loop)
    else:
        return
    name = f"_mcp_end_{loop}"
    if not config.pluginmanager.hasplugin(name):

        async def end(_mcp_scope: ClientScope) -> AsyncIterator[None]:
            yield
            await _mcp_scope.end()

        plugin = ModuleType(name)
        vars(plugin)["end"] = make(name=name)(end)
        config.pluginmanager.register(plugin, name)
    request.getfixturevalue(name)
