"""Every error Holdfast raises.

    HoldfastError                 kind          whose doing
    ├── TransportError            transport     the link was lost, or never came up
    ├── ProtocolError             protocol      the peer broke the protocol
    ├── RpcError                  jsonrpc       the server answered with an error
    │   ├── ResourceNotFoundError jsonrpc       ... which says that there is no such resource
    │   └── HandshakeRefused      jsonrpc       ... already while connecting
    ├── StateError                state         the client is not in a state to do this
    │   ├── CancelledCallError    state         the call was cancelled by its owner
    │   └── TrustError            trust         a project's file wants what nobody approved
    ├── RequestTimeout            timeout       no answer in time (also a TimeoutError)
    │   └── HandshakeTimeout      timeout       ... while connecting
    ├── ShutdownError             shutdown      the client was closed
    ├── ValidationError           validation    arguments or a result do not fit
    ├── ToolError                 tool          the tool ran and failed
    ├── BackpressureError         backpressure  the server does not take what is sent
    ├── AuthError                 auth          the server wants other credentials
    │   ├── LoginRequired         auth          ... and only a person can give them
    │   ├── LoginPending          auth          ... and the person is not done (a TimeoutError)
    │   ├── LoginFailed           auth          ... and the login was refused or broken off
    │   ├── ScopeError            auth          ... with scopes that it does not grant
    │   ├── DiscoveryError        auth          ... and no authorization server can be found
    │   └── GrantError            auth          ... and the authorization server refused
    ├── OutcomeUnknown            unknown       a call with this key began; nobody knows its end
    ├── ApprovalError             approval      nobody approved the call; nothing was sent
    └── DriftError                drift         its tools or skills are not those expected

An error that ends a request tells whether the request may have run: ``outcome_unknown``
is True when it had left for the server and no answer came.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self, TypedDict, Unpack

    from msgspec import Raw

    class ErrorFields(TypedDict, total=False):
        """The fields of errors, besides the message. For type checkers: slow to make."""

        code: int | None
        data: Any
        outcome_unknown: bool
        hints: tuple[Hint, ...]
        task_id: str | None
        server_message: str
        unusual: Mapping[str, Raw]
        exit_code: int | None
        stderr_tail: str
        state: str
        retry_in: float | None
        command: str
        scopes: tuple[str, ...]
        tried: tuple[tuple[str, str], ...]
        error: str
        description: str


LONGEST: Final = 16 * 1024
"""Characters of a message that are shown; ``message`` has them all."""


def _redacted(text: str) -> str:
    """Return a text without credentials: errors are logged, and a server decides what they say."""
    try:
        from holdfast._core.redact.redactor import redact_beginning
    except (OSError, ImportError) as error:
        from holdfast._core.redact.known import UnreadSecrets

        return UnreadSecrets(error).hide(text)
    return redact_beginning(text, LONGEST)


V = TypeVar("V")


def _without_secrets(value: V) -> V:
    """Return a value without the secrets that this process holds, however they are wrapped."""
    from holdfast._core.redact.known import KNOWN

    hidden: V = KNOWN.hide_in(value)
    return hidden


class _Foreign:
    """A field with text of a server, which may repeat a secret: reading it hides the secret.

    Not when the error is made: which arguments of a call are secret is known where the call ends.
    """

    def __init__(self, default: Any) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._searched = f"_{name}_searched"

    def __get__(self, error: HoldfastError | None, owner: type) -> Any:
        value = self._default if error is None else error.__dict__.get(self._name, self._default)
        if error is None or not value:
            return value
        from holdfast._core.redact.known import KNOWN

        # Every sink reads the message, which may be long: search it once for the same secrets.
        KNOWN.settle()
        searched = error.__dict__.get(self._searched)
        if searched is None or searched[0] is not value or searched[1] != KNOWN.version:
            searched = value, KNOWN.version, KNOWN.hide_in(value)
            if KNOWN.version:
                error.__dict__[self._searched] = searched
        return searched[2]

    def __set__(self, error: HoldfastError, value: Any) -> None:
        error.__dict__[self._name] = value


def _foreign(default: V) -> V:
    """Declare a `_Foreign` field, of the type of its default."""
    field: Any = _Foreign(default)
    declared: V = field
    return declared


class Hint(Struct, frozen=True):
    """What could be changed: an option, and what it does.

    A hint is data, because each face of the library has its own words for an option:
    ``Timeouts(handshake=…)`` in a program is ``--timeout`` at a terminal.
    """

    option: str
    """The option of ``connect`` (``headers``), of a policy (``timeouts.handshake``) or of a login
    (``auth.client_id``), a method (``client.resume_task``) or a variable (``env.PATH``); "" if the
    text says everything."""
    text: str
    """What it does: ``gives it longer``."""
    value: str | bool | None = None
    """The value to give it, if there is one that helps."""

    def __str__(self) -> str:
        """Return the hint in the terms of a program."""
        if not self.option:
            return self.text
        group, _, name = self.option.rpartition(".")
        value = "…" if self.value is None else repr(self.value)
        setting = f"{name}={value}"
        match group:
            case "":
                option = setting
            case "env":
                option = name
            case "ledger":
                option = f"ledger.{name}({value}{', ran=…' if name == 'settle' else ''})"
            case "client":
                option = f"client.{name}({'' if self.value is None else repr(self.value)})"
            case _:
                option = f"{_POLICIES[group]}({setting})"
        return f"{option} {self.text}"


_POLICIES: Final = {
    "auth": "OAuth",
    "handlers": "Handlers",
    "limits": "Limits",
    "timeouts": "Timeouts",
    "tools": "ToolPolicy",
}
"""The class of each policy, by the option of ``connect`` that takes it."""


_ARGS: Final[Any] = BaseException.args


class HoldfastError(Exception):
    """The root of the tree: ``kind``, ``code``, ``message`` and ``data``.

    ``message`` is what happened, for anybody, a language model too. ``hints`` are what a developer
    could change; ``str(error)`` has both. An error is not edited once it is made.

    Args:
        message: What happened.
        **fields: Attributes of the error, by name.
    """

    kind: ClassVar[str] = "holdfast"
    code: int | None = None
    """The code of a JSON-RPC error, or the status of an HTTP response."""
    message: str = _foreign("")
    """What happened."""
    data: Any = _foreign(None)
    """More about it, as a program reads it."""
    outcome_unknown: bool = False
    """True if the request had left for the server and no answer came: it may have run."""
    hints: tuple[Hint, ...] = ()
    """What a developer could change."""
    task_id: str | None = None
    """The id of the task that the call had become, for ``client.resume_task``."""

    def __init__(self, message: str, **fields: Unpack[ErrorFields]) -> None:
        for name in fields:
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no field {name!r}")
        super().__init__(message)
        self.message = message
        self.__dict__.update(fields)

    @property
    def args(self) -> tuple[Any, ...]:
        """The message, as exceptions have it."""
        return _without_secrets(_ARGS.__get__(self))

    @args.setter
    def args(self, values: tuple[Any, ...]) -> None:
        _ARGS.__set__(self, values)

    def __reduce__(self) -> Any:
        """Return a copy for another process, which does not know what is secret here."""
        return _without_secrets(super().__reduce__())

    def __str__(self) -> str:
        return self.explain(str)

    def explain(self, render: Callable[[Hint], str]) -> str:
        """Return the message and the hints, redacted; ``render`` gives a hint its words.

        A hint that it returns "" for is left out.
        """
        text = _redacted(self.message)
        for hint in filter(None, map(render, self.hints)):
            text += f"{' ' if text.endswith('?') else '; '}{_redacted(hint)}"
        return text

    def __repr__(self) -> str:
        code = "" if self.code is None else f", code={self.code}"
        return f"{type(self).__name__}({_redacted(self.message)!r}{code})"

    @property
    def redacted(self) -> str:
        """The message without credentials, hints and stderr: what a language model may read."""
        return _redacted(self.message)

    @property
    def final(self) -> bool:
        """Return True if reconnecting cannot help until the cause is fixed."""
        return False

    def again(self, message: str | None = None, **fields: Unpack[ErrorFields]) -> Self:
        """Return a copy to raise, with another message or other fields.

        One exception raised in two tasks would mix their tracebacks. A copy with another message
        has this error as its cause, unless it has hints: a traceback would show them twice.
        """
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.__dict__.update(fields)
        copy.args, copy.__cause__ = self.args, self.__cause__
        if message is not None:
            copy.message, copy.args = message, (message,)
            copy.__cause__ = self.__cause__ if self.hints else self
        return copy


class TransportError(HoldfastError):
    """The link to the server was lost or could not be made."""

    kind = "transport"
    exit_code: int | None = None
    """How the server's process ended: its exit code, or minus the number of a signal."""
    stderr_tail: str = _foreign("")
    """The last lines that the server wrote to stderr."""

    def explain(self, render: Callable[[Hint], str]) -> str:
        """Return the message, the hints and the end of the server's stderr, redacted."""
        message = super().explain(render)
        if not self.stderr_tail:
            return message
        indented = _redacted(self.stderr_tail).replace("\n", "\n    ")
        return f"{message}\n  the end of its stderr:\n    {indented}"


class ProtocolError(HoldfastError):
    """The server sent a message that violates the protocol."""

    kind = "protocol"


class RpcError(HoldfastError):
    """The server answered the request with a JSON-RPC error; ``code`` and ``data`` are its own."""

    kind = "jsonrpc"
    server_message: str = _foreign("")
    """The server's own words; ``message`` is the sentence that has them."""
    unusual: Mapping[str, Raw] = MappingProxyType({})
    """Other fields of the server's error, as they came: a relay gives them to its host."""


class ResourceNotFoundError(RpcError):
    """The server says that there is no such resource."""


class HandshakeRefused(RpcError):  # noqa: N818  (named like HandshakeTimeout)
    """The server answered the first words with an error: there is no connection to it."""


class StateError(HoldfastError):
    """The client cannot do this in the state it is in."""

    kind = "state"
    state: str = ""
    """The state of the client."""
    retry_in: float | None = None
    """Seconds until the next attempt to connect."""


class CancelledCallError(StateError):
    """The call was cancelled through its ``cancel()``."""


class TrustError(StateError):
    """A server or setting of a project's own configuration has not been approved."""

    kind = "trust"


class RequestTimeout(HoldfastError, TimeoutError):  # noqa: N818  (named like TimeoutError's kin)
    """No answer within the deadline; the server was told to stop."""

    kind = "timeout"


class HandshakeTimeout(RequestTimeout):
    """The server did not finish connecting within the handshake timeout."""


class ShutdownError(HoldfastError):
    """The client was closed before the answer came."""

    kind = "shutdown"


class ValidationError(HoldfastError):
    """Arguments or a result do not fit what was declared."""

    kind = "validation"


class ToolError(HoldfastError):
    """The tool ran and reported failure (``is_error``)."""

    kind = "tool"


class BackpressureError(HoldfastError):
    """The server takes no messages for now; nothing of this request was sent."""

    kind = "backpressure"
    retry_in: float | None = None
    """Seconds until the server takes calls again, if it said so."""


class AuthError(HoldfastError):
    """The server refused the credentials."""

    kind = "auth"

    @property
    def final(self) -> bool:
        """Return True if reconnecting cannot help until the cause is fixed."""
        return type(self) is not AuthError or self.code is not None


class LoginRequired(AuthError):  # noqa: N818  (says what to do)
    """A person has to log in; nothing of the request has run."""

    command: str = ""
    """The command that does it."""
    scopes: tuple[str, ...] = ()
    """The scopes that will be asked for."""


class LoginPending(AuthError, TimeoutError):  # noqa: N818
    """The call's time ran out during a login, which goes on; nothing of the call has run."""


class LoginFailed(AuthError):  # noqa: N818
    """The login was denied or broken off, or the wrong server answered."""


class ScopeError(AuthError):
    """The server wants scopes that a new authorization did not bring."""

    scopes: tuple[str, ...] = ()
    """The scopes that the server wants."""


class DiscoveryError(AuthError):
    """No authorization server can be used for this server."""

    tried: tuple[tuple[str, str], ...] = _foreign(())
    """Pairs of a URL and the reason why it could not be used."""


class GrantError(AuthError):
    """The authorization server refused to give a token."""

    error: str = ""
    """The OAuth error code, such as ``invalid_grant``."""
    description: str = _foreign("")
    """The server's description, truncated."""


class OutcomeUnknown(HoldfastError):  # noqa: N818  (says what is known)
    """A call with this key (``once=``) was begun, and how it ended is not known; not sent again.

    ``data`` has what is known: ``key``, ``server``, ``tool``, ``state``, ``host``, ``begun``,
    ``changed``, ``note``.
    """

    kind = "unknown"


class ApprovalError(HoldfastError):
    """The call was not approved (`ToolPolicy.approve`); nothing was sent."""

    kind = "approval"


class DriftError(HoldfastError):
    """The server's tools or skills are not the ones that were expected."""

    kind = "drift"
