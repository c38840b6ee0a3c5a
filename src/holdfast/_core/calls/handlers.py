"""The application's handlers: they answer a server's questions and receive its notifications."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Raw, Struct

from holdfast._core.callbacks import ends_task
from holdfast.errors import ApprovalError, Hint, ValidationError
from holdfast.policies import ToolPolicy, refused
from holdfast.types.lifecycle import Progress
from holdfast.types.tools import Tool

if TYPE_CHECKING:
    from holdfast._core.auth.options import LoginRequest
    from holdfast.types.inputs import AnyElicitation, SamplingRequest, SamplingResult
    from holdfast.types.lifecycle import LogMessage
    from holdfast.types.resources import Root


class Notification(Struct, frozen=True):
    """A notification of the server.

    Attributes:
        method: Such as ``"notifications/resources/updated"``.
        raw: The parameters as they came; ``params`` decodes them.
    """

    method: str
    raw: Raw | None = None

    def __repr__(self) -> str:
        return f"Notification({self.method!r}, {self.params!r})"

    def __rich_repr__(self) -> list[Any]:
        return [self.method, self.params]

    @property
    def params(self) -> dict[str, Any]:
        """The parameters; empty if there are none."""
        if self.raw is None:
            return {}
        params = msgspec.json.decode(self.raw)
        return params if isinstance(params, dict) else {}


NotificationHandler: TypeAlias = Callable[[Notification], Any]
ProgressHandler: TypeAlias = Callable[[Progress], Any]

SamplingHandler: TypeAlias = (
    "Callable[[SamplingRequest], SamplingResult | str | dict[str, Any] | Awaitable[Any]]"
)
ElicitationHandler: TypeAlias = "Callable[[AnyElicitation], object]"
ApprovalHandler: TypeAlias = "Callable[[ApprovalRequest], bool | str | Awaitable[bool | str]]"
LoginHandler: TypeAlias = "Callable[[LoginRequest], str | None | Awaitable[str | None]]"
Roots: TypeAlias = "Iterable[Root | str] | Callable[[], Any]"


class Handlers(Struct, frozen=True, kw_only=True):
    """One handler each, sync or async; only what has a handler is declared to servers.

    A plain function that answers a question (``sampling``, ``elicitation``, ``roots``) runs in
    a worker thread, so that it may block or ask a person while other calls go on.
    ``notification`` and ``progress`` run on the event loop, so that they may put into an
    ``asyncio.Queue`` or set an event: plain functions there should be quick, slow ones async.

    Attributes:
        sampling: Answers ``sampling/createMessage``: with a `SamplingResult`, a dict or a str.
        elicitation: Answers ``elicitation/create``: with an `ElicitResult`, a dict with ``action``,
            or the form's values as a dict, dataclass or msgspec struct. ``"return"`` returns the
            questions to the caller of the tool (``result.pending``), who answers them by
            `Client.resume`.
        roots: ``file://`` URIs (or `Root`), or a function that returns them.
        notification: Called with every notification.
        progress: Called with the progress of every call.
        login: Sends a person to log in; may return the address the browser was sent back to.
        approval: Asked by ``ToolPolicy(approve="annotations")``: True approves the call, False or
            a reason refuses it.
    """

    sampling: SamplingHandler | None = None
    elicitation: ElicitationHandler | Literal["return"] | None = None
    roots: Roots | None = None
    notification: NotificationHandler | None = None
    progress: ProgressHandler | None = None
    login: LoginHandler | None = None
    approval: ApprovalHandler | None = None

    def __post_init__(self) -> None:
        listed = isinstance(self.roots, Iterable) and not isinstance(self.roots, str)
        fit = {"elicitation": self.elicitation == "return", "roots": listed}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not callable(value) and not fit.get(name):
                raise refused(self, name, _EXPECTED.get(name, "a function"))

    @property
    def abilities(self) -> frozenset[str]:
        """The declared capabilities, as ``capability`` or ``capability.feature``."""
        handlers = {
            "sampling": self.sampling,
            "elicitation.form": self.elicitation,
            "elicitation.url": self.elicitation,
            "roots": self.roots,
        }
        return frozenset(name for name, handler in handlers.items() if handler is not None) or _NONE


_EXPECTED: Final = {
    "elicitation": "a function or 'return'",
    "roots": "a list of file:// URIs, or a function",
}
_NONE: Final[frozenset[str]] = frozenset()
NO_HANDLERS: Final = Handlers()

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


def add_removable(items: list[T], item: T) -> Callable[[], None]:
    """Add an item; return a function that removes it."""
    items.append(item)

    def remove() -> None:
        if item in items:
            items.remove(item)

    return remove


def is_async(handler: Any) -> bool:
    """Return True for a function, method or object whose call returns a coroutine."""
    call = getattr(handler, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)


def require_callable(option: str, function: T) -> T:
    """Return a function; raise `ValidationError` for anything else."""
    if not callable(function):
        raise ValidationError(f"{option}={function!r}: must be a function")
    return function


def require_sync(option: str, function: F) -> F:
    """Return a plain function; refuse a coroutine function, which nothing would await."""
    if is_async(require_callable(option, function)):
        text = "give a plain function; a coroutine cannot be awaited here"
        raise ValidationError(f"{option}={function!r}: {text}")
    return function


def in_thread(handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return a plain function as an async one that runs in a thread of its own.

    Not in the loop's executor: a few handlers that wait for a person would fill it, and name
    resolution runs there. As a daemon, so that one that never returns ends with the program.
    """

    @wraps(handler)
    async def threaded(*arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Any] = loop.create_future()
        context = copy_context()

        def settle(value: Any, error: BaseException | None) -> None:
            if isinstance(error, StopIteration):  # which a future does not take
                error = RuntimeError(f"StopIteration: {error}")
            if not outcome.cancelled():
                outcome.set_result(value) if error is None else outcome.set_exception(error)

        def work() -> None:
            value = failure = None
            try:
                value = context.run(handler, *arguments)
            except BaseException as error:
                failure = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, value, failure)

        threading.Thread(target=work, name="holdfast-handler", daemon=True).start()
        result = await outcome
        return await result if inspect.isawaitable(result) else result

    return threaded


def log_handler(handler: Callable[[LogMessage], Any]) -> NotificationHandler:
    """Return a handler of notifications that calls ``handler`` with log messages."""
    require_callable("handler", handler)

    def read(notification: Notification) -> Any:
        from holdfast.types.base import decode
        from holdfast.types.lifecycle import LogMessage

        raw = Raw(b"{}") if notification.raw is None else notification.raw
        return handler(decode(raw, LogMessage))

    return read


def run_in_threads(handlers: Handlers | None) -> Handlers | None:
    """Return handlers for a synchronous application: notifications run in threads too."""
    if handlers is None or handlers.notification is None or is_async(handlers.notification):
        return handlers
    return msgspec.structs.replace(handlers, notification=in_thread(handlers.notification))


# Approval of a tool call, before anything is sent


class ApprovalRequest(Struct, frozen=True):
    """A tool call that waits for approval.

    Attributes:
        server: The server's name.
        tool: The tool's name.
        arguments: The arguments of the call.
        definition: The tool as its server describes it; None if it was not listed.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any]
    definition: Tool | None = None

    @property
    def destructive(self) -> bool:
        """True unless the tool is annotated as read-only or not destructive.

        Specification, "Tool annotations": a tool without annotations is destructive.
        """
        hints = None if self.definition is None else self.definition.annotations
        if hints is None:
            return True
        return not hints.read_only_hint and hints.destructive_hint is not False


class Approver:
    """Approves calls, by the policy and the handlers of a client."""

    def __init__(self, server: str, policy: ToolPolicy, handler: ApprovalHandler | None) -> None:
        self._server = server
        self._policy = policy
        self._handler = handler
        self.wanted: bool = policy.approve is not None

    async def ask(self, name: str, arguments: Mapping[str, Any], tool: Tool | None) -> None:
        """Return if the call may be sent.

        Raises:
            ApprovalError: It may not; nothing was sent.
        """
        request = ApprovalRequest(self._server, name, arguments, tool)
        ask: Any = self._policy.approve_of(name)
        if ask in (None, "never") or (ask == "annotations" and not request.destructive):
            return
        ask = self._handler if isinstance(ask, str) else ask
        if ask is None:
            hint = Hint("handlers.approval", "gets to be asked")
            raise self._refusal(name, "it needs approval, and nobody can be asked", hint)
        verdict = await self._verdict(ask, request)
        if verdict is not True:
            why = f"not approved: {verdict}" if isinstance(verdict, str) else "not approved"
            raise self._refusal(name, why)

    async def _verdict(self, ask: Any, request: ApprovalRequest) -> Any:
        try:
            return await (ask if is_async(ask) else in_thread(ask))(request)
        except BaseException as error:
            if ends_task(error):
                raise
            text = f"asking for approval failed: {type(error).__name__}: {error}"
            raise self._refusal(request.tool, text) from error

    def _refusal(self, name: str, why: str, *hints: Hint) -> ApprovalError:
        text = f"{self._server}: tools/call {name!r}: {why}; nothing was sent"
        return ApprovalError(text, hints=hints)
