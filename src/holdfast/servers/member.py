"""One server among many: how its client is made, and what is known of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field

from holdfast._accounts import own_client
from holdfast._core.engine.state import State
from holdfast._core.text import counted
from holdfast.client import Client
from holdfast.errors import AuthError, HoldfastError, ShutdownError, StateError, ValidationError
from holdfast.events import Transition

if TYPE_CHECKING:
    from holdfast.config.loading import Configuration


Config: TypeAlias = "Mapping[str, Any] | Configuration | str | os.PathLike[str] | None"
"""A mapping leads from names to clients, targets, or options of `holdfast.connect`: literals
that mix these are of no type that could be written down usefully."""


class Failure(Struct, frozen=True, kw_only=True):
    """An error of one server, with its time."""

    server: str
    error: HoldfastError
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __str__(self) -> str:
        text = str(self.error)
        return text if text.startswith(f"{self.server}: ") else f"{self.server}: {text}"


class Status(Struct, frozen=True, kw_only=True):
    """One server.

    Attributes:
        state: ``"not started"``; a state of its client (`holdfast.calls.State`); ``"disabled"`` or
            ``"untrusted"`` if it may not be started; ``"invalid"`` if its options are wrong.
        failure: The last failure of the connection; a server that is ready may have one.
        tools: The number of tools listed last; None: never listed.
        server: The name and version that the server reports.
        source: The file it is configured in.
    """

    name: str
    state: str
    failure: Failure | None = None
    tools: int | None = None
    server: str | None = None
    protocol_version: str | None = None
    source: str | None = None

    @property
    def is_ready(self) -> bool:
        """Return True if the server is connected and ready."""
        return self.state == "ready"

    @property
    def error(self) -> HoldfastError | None:
        """The last thing that went wrong."""
        return None if self.failure is None else self.failure.error

    def __str__(self) -> str:
        count = "" if self.tools is None else counted(self.tools, "tool")
        wrong = "" if self.error is None or self.is_ready else self.error.message
        return "  ".join(filter(None, (self.name, self.state, count, self.server, wrong)))


class Member:
    """A server, with a client as soon as one is wanted."""

    def __init__(
        self,
        name: str,
        make: Callable[[], Client],
        *,
        check: Callable[[], object] = lambda: None,
        disabled: bool = False,
        source: str | None = None,
    ) -> None:
        self.name = name
        self.disabled = disabled
        self.source = source
        self.client: Client | None = None
        self.failure: Failure | None = None
        self.tools: int | None = None
        self.closed: bool = False
        self._error: BaseException | None = None
        """The error of the last transition; a client that is closed reports it again."""
        self._make = make
        self._check = check

    def __repr__(self) -> str:
        return f"<Member {self.name} {self.status().state}>"

    def obtain(self) -> Client:
        """Return the client, made but not started if there was none."""
        if self.client is not None:
            return self.client
        if self.closed:
            raise ShutdownError(f"{self.name}: the servers were closed")
        if self.disabled:
            where = "" if self.source is None else f" in {self.source}"
            raise StateError(f"{self.name}: disabled{where}", state="disabled")
        try:
            client = self._make()
        except HoldfastError as error:
            self.note(error)
            raise
        client.events.subscribe(self._moved, Transition.name)
        self.client = client
        return client

    def note(self, error: HoldfastError) -> Failure:
        """Record an error; one that says only that the server is down replaces no other."""
        failure = Failure(server=self.name, error=error)
        if self.failure is None or not isinstance(error, StateError | ShutdownError):
            self.failure = failure
        return failure

    def _moved(self, event: Transition) -> None:
        """Record the failure behind a transition; a server also fails between calls."""
        error = event.reason
        if event.new not in (State.BACKOFF, State.CLOSED) or error is self._error:
            return
        if isinstance(error, HoldfastError):
            self._error = error
            self.note(error)

    def status(self) -> Status:
        """Return the status. Starts nothing."""
        client, failure, state = None, self.failure, "not started"
        with suppress(AuthError, StateError):
            # One for many users has a session for each: none where nobody is named, or at the end.
            client = self.client and own_client(self.client)
        if client is not None:
            state = state if client.state is State.NEW else str(client.state)
        elif self.disabled:
            state = "disabled"
        elif self.closed:
            state = str(State.CLOSED)
        elif (refusal := self._refusal()) is not None:
            distrust = isinstance(refusal, StateError) and refusal.state == "untrusted"
            state = "untrusted" if distrust else "invalid"
            failure = Failure(server=self.name, error=refusal)
        return self._status_of(client, state, failure)

    def _refusal(self) -> HoldfastError | None:
        """Return why it could not be started as it is configured."""
        try:
            self._check()
        except HoldfastError as error:
            return error
        return None

    def _status_of(self, client: Client | None, state: str, failure: Failure | None) -> Status:
        info = None if client is None else client.server_info
        return Status(
            name=self.name,
            state=state,
            failure=failure,
            tools=self.tools,
            server=None if info is None else f"{info.name} {info.version}".strip(),
            protocol_version=None if client is None else client.protocol_version,
            source=self.source,
        )

    async def close(self) -> bool:
        """Close the client, if there is one."""
        self.closed = True
        return False if self.client is None else await self.client.close()


def members(config: Config, overrides: Mapping[str, Any]) -> dict[str, Member]:
    """Return the servers of a configuration, in its order; ``overrides`` go to `connect`."""
    from holdfast._options import refuse_unknown

    refuse_unknown(overrides, of="Servers")
    if isinstance(config, Mapping):
        # As a configuration file has them.
        servers = config["mcpServers"] if [*config] == ["mcpServers"] else config
        if not isinstance(servers, Mapping):
            raise ValidationError("Servers({'mcpServers': …}): must be a mapping of names")
        return {name: _member(name, definition, overrides) for name, definition in servers.items()}
    if config is None or isinstance(config, str | os.PathLike):
        from holdfast.config.loading import load

        config = load(config)
    if not hasattr(config, "servers"):
        raise ValidationError(
            f"Servers({config!r}): must be a mapping of names to targets, a path or a Configuration"
        )
    from holdfast.config.resolution import admit

    return {
        name: Member(
            name,
            partial(entry.connect, **overrides),
            # Raises what keeps an entry from being used: no approval, a variable without a value.
            check=partial(admit, entry),
            disabled=entry.disabled,
            source=entry.source.file,
        )
        for name, entry in config.servers.items()
    }


_HTTP_TYPES: Final = {"sse": "sse", "streamable-http": "streamable"}
"""The HTTP transport of an entry's ``type``; of any other type it is found out."""


def _member(name: str, definition: Any, overrides: Mapping[str, Any]) -> Member:
    """Return the server of a mapping: a client, a target, or options of `connect`."""
    if not name or not isinstance(name, str):
        raise ValidationError(f"Servers({{{name!r}: …}}): a server needs a name, a string")
    if isinstance(definition, Client):
        return Member(name, lambda: definition)
    settings = definition if isinstance(definition, Mapping) else {"target": definition}
    options = {**overrides, **settings}
    disabled = bool(options.pop("disabled", False))
    if "target" not in options:
        # As a configuration file has it.
        command, args = options.pop("command", None), options.pop("args", ())
        words = [command, *((args,) if isinstance(args, str) else args)]
        options["target"] = options.pop("url", None) if command is None else words
        if (transport := _HTTP_TYPES.get(options.pop("type", None))) is not None:
            options.setdefault("transport", transport)

    def make() -> Client:
        from holdfast._connect import connect

        try:
            return connect(**{"name": name, **options})
        except TypeError as error:
            raise ValidationError(f"{name}: {error}") from error
        except ValidationError as error:
            raise ValidationError(f"{name}: {error.message}", hints=error.hints) from error

    return Member(name, make, disabled=disabled)
