"""Answering a server's questions: sampling, elicitation, roots.

The same handlers serve the requests of the handshake era and the ``input_required`` rounds
of the stateless one. The server's question is always answered, even if a handler fails.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Raw, Struct

from holdfast._core.callbacks import EXITS, ends_task
from holdfast._core.calls.handlers import ApprovalHandler, Handlers, in_thread, is_async
from holdfast._core.wire import codes
from holdfast._core.wire.jsonrpc import encode
from holdfast.errors import Hint, ProtocolError, RpcError, StateError

if TYPE_CHECKING:
    from holdfast.types.inputs import FormElicitation
    from holdfast.types.resources import RootsResult

EMPTY: Final = Raw(b"{}")
ACTIONS: Final = ("accept", "decline", "cancel")
_ELICITED: Final = (
    "an ElicitResult, a dict with an action (accept, decline, cancel), the values of the form, "
    "or None"
)
LONGEST: Final = 1000
"""The most characters of an error that are sent to a server."""

_NO_CALLER: Final = (
    "this client returns questions to the caller of the tool (Handlers(elicitation='return')), "
    "which needs a server of a stateless revision; a handler function answers in every revision"
)
"""In the handshake era a question is a request of its own: it does not name its call, and the
server keeps that call open, so it could not be resumed later."""


RawAnswerer: TypeAlias = Callable[[str, Raw], Awaitable[Raw]]
"""Answers ``method`` and ``params`` of a server, both as they came, with a result that is sent as
it is; refuses by raising an `RpcError`, whose code and message are sent."""


class _Question(Struct):
    method: str
    params: Raw = EMPTY


class Inputs(Struct, eq=False):
    """The application's handlers, by the method that asks for them.

    At most ``limit`` questions are handled at once, whatever call or request they belong to.
    """

    _handlers: Handlers
    _limit: int
    approval: ApprovalHandler | None = None
    answerer: RawAnswerer | None = None
    """Answers every question of the server instead of the handlers, for a relay."""
    _room: asyncio.Semaphore | None = None
    _threads: threading.Semaphore | None = None

    def for_caller(self, questions: dict[str, Raw]) -> bool:
        """Return True if a round of questions is for the caller to answer."""
        if self._handlers.elicitation != "return":
            return False
        # A malformed question is refused by `answer_all`.
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            methods = [
                msgspec.json.decode(raw, type=_Question).method for raw in questions.values()
            ]
            return "elicitation/create" in methods
        return False

    def require(self, what: str) -> Any:
        """Return a handler that the application itself wants to run."""
        if (handler := getattr(self._handlers, what)) is None:
            text = f"no handler for {what}: pass holdfast.Handlers({what}=…) when connecting"
            raise StateError(text)
        return handler

    async def create_message(self, params: Any) -> Any:
        """Run the sampling handler for the application itself."""
        return await self.sample(self.require("sampling"), Raw(msgspec.json.encode(params)))

    async def answer(self, method: str, params: Raw | None) -> Any:
        """Return the result for one question.

        Raises:
            RpcError: There is none; ``code`` and ``message`` are for the server.
        """
        if params is None or bytes(params) == b"null":
            params = EMPTY
        if self._room is None:
            self._room = asyncio.Semaphore(self._limit)
        if self.answerer is not None:
            async with self._room:
                return await self.answerer(method, params)
        option, ask = _METHODS.get(method, ("", None))
        handler = getattr(self._handlers, option) if option else None
        if ask is None or handler is None:
            raise _no_handler(method, option)
        try:
            async with self._room:
                result = await ask(self, handler, params)
            return Raw(encode(result))
        except RpcError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise refusal(f"invalid {method}", error, codes.INVALID_PARAMS) from error
        except Exception as error:
            raise refusal(f"{method}: unusable answer", error) from error

    async def answer_all(self, name: str, questions: dict[str, Raw]) -> dict[str, Any]:
        """Return the answers to one round of ``input_required``, all asked at once."""
        if len(questions) > self._limit:
            text = f"{len(questions)} questions at once, more than {self._limit}"
            hint = Hint("limits.asks", "sets this")
            raise ProtocolError(f"{name}: the server asks {text}", hints=(hint,))
        decoded = {}
        for key, raw in questions.items():
            try:
                decoded[key] = msgspec.json.decode(raw, type=_Question)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                text = f"{name}: input request {key!r} is malformed: {error}"
                raise ProtocolError(text) from error
        tasks = [
            asyncio.ensure_future(self._answer_one(name, question)) for question in decoded.values()
        ]
        try:
            return dict(zip(decoded, await asyncio.gather(*tasks), strict=True))
        finally:
            for task in tasks:
                task.cancel()

    async def _answer_one(self, name: str, question: _Question) -> Any:
        try:
            return await self.answer(question.method, question.params)
        except RpcError as error:
            if error.code == codes.METHOD_NOT_FOUND:
                text = f"{name}: the server asks for {question.method}, which was not declared"
                raise ProtocolError(text, hints=error.hints) from None
            if self.answerer is not None:
                raise  # the host's own words, which its call ends with
            raise ProtocolError(f"{name}: {error.message}") from error

    async def sample(self, handler: Callable[..., Any], params: Raw) -> Any:
        from holdfast.types.base import decode
        from holdfast.types.content import TextContent
        from holdfast.types.inputs import SamplingRequest, SamplingResult

        result = await self._call(handler, decode(params, SamplingRequest))
        if isinstance(result, str):
            text = TextContent(text=result)
            return SamplingResult(role="assistant", content=text, model="unknown")
        return _fitting(handler, result, SamplingResult, "a SamplingResult, a dict or a str")

    async def elicit(self, handler: Any, params: Raw) -> Any:
        from holdfast.types.inputs import FormElicitation, read_elicitation

        if handler == "return":
            raise RpcError(_NO_CALLER, code=codes.INVALID_REQUEST) from StateError(_NO_CALLER)
        request = read_elicitation(params)
        result = await self._call(handler, request)
        fields = request.fields if isinstance(request, FormElicitation) else None
        try:
            answer = accepted(result, fields)
            plain = msgspec.to_builtins(answer)
        except (TypeError, ValueError) as error:
            raise _unfit(handler, result, _ELICITED, f": {error}") from error
        is_object = isinstance(plain, dict) and isinstance(plain.get("content", {}), dict | None)
        if not is_object or plain.get("action") not in ACTIONS:
            raise _unfit(handler, result, _ELICITED)
        return fill_defaults(request, answer) if isinstance(request, FormElicitation) else answer

    async def list_roots(self, roots: Any, params: Raw = EMPTY) -> RootsResult:
        from holdfast.types.resources import Root, RootsResult

        listed = await self._call(roots) if callable(roots) else roots
        if not isinstance(listed, Iterable) or isinstance(listed, str | bytes | Mapping):
            raise _unfit(roots, listed, "a list of file:// URIs")
        uris = [Root(uri=root) if isinstance(root, str) else root for root in listed]
        for root in uris:
            if not isinstance(_fitting(roots, root, Root, "a list of file:// URIs"), Root | dict):
                raise _unfit(roots, root, "a list of file:// URIs")
        return RootsResult(roots=uris)

    async def _call(self, handler: Callable[..., Any], *arguments: Any) -> Any:
        """Run a handler; its failure becomes an error that names it.

        A plain function runs in a worker thread: it may block, or ask a person, and every other
        call goes on meanwhile. The thread goes on if the server withdraws its question, and
        counts until it ends.
        """
        threads = self._threads = self._threads or threading.Semaphore(self._limit)

        def run() -> Any:
            try:
                return handler(*arguments)
            finally:
                threads.release()

        try:
            if is_async(handler):
                return await handler(*arguments)
            if not threads.acquire(blocking=False):
                raise StateError(f"{self._limit} handlers of earlier questions are still running")
            return await in_thread(run)()
        except BaseException as error:
            if ends_task(error) and not isinstance(error, EXITS):
                raise
            raise refusal(f"the handler {_name(handler)} failed", error) from error


def _no_handler(method: str, option: str) -> RpcError:
    hints = (Hint(f"handlers.{option}", "answers it"),) if option else ()
    lacking = f" (the application gave no Handlers({option}=…))" if option else ""
    text = f"method not found: {method}{lacking}"
    return RpcError(text, code=codes.METHOD_NOT_FOUND, hints=hints)


def accepted(result: Any, fields: Container[str] | None = ()) -> Any:
    """Return the answer to a question, of which ``fields`` are those of its form, if it is one.

    A dict with ``action`` is the whole answer, any other the values of a form that is accepted; so
    is an instance of a dataclass, struct or model. None declines.
    """
    if result is None:
        return {"action": "decline"}
    if isinstance(result, dict):
        is_whole = fields is None or _is_answer(result, fields)
        return result if is_whole else {"action": "accept", "content": result}
    if hasattr(result, "action"):
        return result
    dump = getattr(result, "model_dump", None)
    content = dump(mode="json") if callable(dump) else msgspec.to_builtins(result)
    if isinstance(result, msgspec.Struct):
        msgspec.convert(content, type(result))  # a struct does not check its own fields
    return {"action": "accept", "content": content} if isinstance(content, dict) else result


def _is_answer(result: dict[str, Any], fields: Container[str]) -> bool:
    """Tell an answer from the values of a form, which may have a field ``action`` itself."""
    return "action" in result and (result["action"] in ACTIONS or "action" not in fields)


def fill_defaults(request: FormElicitation, result: Any) -> Any:
    """Return an accepted form with the schema's defaults in the fields that were left out."""
    builtin = msgspec.to_builtins(result)
    if not isinstance(builtin, dict) or builtin.get("action") != "accept":
        return result
    content = builtin.get("content") or {}
    if not isinstance(content, dict):
        return result
    values = {name: schema.get("default") for name, schema in request.fields.items()}
    defaults = {name: value for name, value in values.items() if value is not None}
    return {**builtin, "content": {**defaults, **content}}


def _fitting(handler: Any, result: Any, kind: type[Any], expected: str) -> Any:
    """Return a handler's result, which must be an object with the fields of ``kind``."""
    from holdfast.types.base import decode

    try:
        plain = result if isinstance(result, dict) else msgspec.to_builtins(result)
        if isinstance(plain, dict):
            decode(encode(plain), kind)
            return result if isinstance(result, dict | Struct) else plain
    except (TypeError, ValueError) as error:  # a DecodeError is a ValueError
        raise _unfit(handler, result, expected, f": {error}") from error
    raise _unfit(handler, result, expected)


def _unfit(handler: Any, result: Any, expected: str, why: str = "") -> RpcError:
    """Return the error of a handler whose result fits no form of an answer."""
    text = f"the handler {_name(handler)} must return {expected}, not {_shown(result)}{why}"
    return RpcError(text[:LONGEST], code=codes.INTERNAL_ERROR)


def _shown(result: Any) -> str:
    """Return the type of a result, and the fields of a dict. Values are a person's own."""
    kind = type(result).__name__
    return (
        f"a {kind} with {', '.join(map(str, result)) or 'nothing'}"
        if result.__class__ is dict
        else kind
    )


def refusal(what: str, error: BaseException, code: int = codes.INTERNAL_ERROR) -> RpcError:
    """Return the error to answer a server with; its text can always be encoded."""
    try:
        why = f"{type(error).__name__}: {error}"
    except Exception:
        why = type(error).__name__
    text = f"{what}: {why}".encode(errors="replace").decode()
    return RpcError(text[:LONGEST], code=code)


def _name(handler: Any) -> str:
    return getattr(handler, "__name__", None) or type(handler).__name__


_METHODS: Final[dict[str, tuple[str, Callable[..., Awaitable[Any]]]]] = {
    "sampling/createMessage": ("sampling", Inputs.sample),
    "elicitation/create": ("elicitation", Inputs.elicit),
    "roots/list": ("roots", Inputs.list_roots),
}
"""The handler that answers each method, and the function that calls it."""
