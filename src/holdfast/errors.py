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
    ├── ApprovalError             approval      nobody approved the call; nothing was sent
    └── DriftError                drift         its tools or skills are not those expected

An error that ends a request tells whether the request may have run: ``outcome_unknown``
is True when it had left for the server and no answer came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class ErrorFields(TypedDict, total=False):
        """The fields of errors, besides the message. For type checkers: slow to make."""

        code: int | None
        data: Any
        outcome_unknown: bool
        hint: str
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
    from holdfast._core.redact import redact_beginning

    return redact_beginning(text, LONGEST)


class HoldfastError(Exception):
    """The root of the tree: ``kind``, ``code``, ``message`` and ``data``.

    ``message`` is what happened, for anybody, a language model too. ``hint`` is what a developer
    could change; ``str(error)`` has both.

    Args:
        message: What happened.
        **fields: Attributes of the error, by name.
    """

    kind: ClassVar[str] = "holdfast"
    code: int | None = None
    """The code of a JSON-RPC error, or the status of an HTTP response."""
    data: Any = None
    """More about it, as a program reads it."""
    outcome_unknown: bool = False
    """True if the request had left for the server and no answer came: it may have run."""
    hint: str = ""
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

    def __str__(self) -> str:
        message = _redacted(self.message)
        return f"{message}; {_redacted(self.hint)}" if self.hint else message

    def __repr__(self) -> str:
        code = "" if self.code is None else f", code={self.code}"
        return f"{type(self).__name__}({_redacted(self.message)!r}{code})"

    @property
    def redacted(self) -> str:
        """The message without credentials, hint and stderr: what a language model may read."""
        return _redacted(self.message)

    @property
    def final(self) -> bool:
        """Return True if reconnecting cannot help until the cause is fixed."""
        return False

    def again(self) -> HoldfastError:
        """Return a copy to raise: one exception raised in two tasks would mix their tracebacks."""
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.args = self.args
        copy.__cause__ = self.__cause__
        return copy


class TransportError(HoldfastError):
    """The link to the server was lost or could not be made."""

    kind = "transport"
    exit_code: int | None = None
    """How the server's process ended: its exit code, or minus the number of a signal."""
    stderr_tail: str = ""
    """The last lines that the server wrote to stderr."""

    def __str__(self) -> str:
        message = super().__str__()
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
    """The server has stopped taking messages; nothing of this request was sent."""

    kind = "backpressure"


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

    tried: tuple[tuple[str, str], ...] = ()
    """Pairs of a URL and the reason why it could not be used."""


class GrantError(AuthError):
    """The authorization server refused to give a token."""

    error: str = ""
    """The OAuth error code, such as ``invalid_grant``."""
    description: str = ""
    """The server's description, truncated."""


class ApprovalError(HoldfastError):
    """The call was not approved (`ToolPolicy.approve`); nothing was sent."""

    kind = "approval"


class DriftError(HoldfastError):
    """The server's tools or skills are not the ones that were expected."""

    kind = "drift"
