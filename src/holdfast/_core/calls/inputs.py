"""Answering a server's questions: sampling, elicitation, roots.

The same handlers serve the requests of the handshake era and the ``input_required`` rounds
of the stateless one.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from holdfast._core.calls.handlers import Handlers
from holdfast._core.wire.codes import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from holdfast.errors import ProtocolError, RpcError, StateError

if TYPE_CHECKING:
    from holdfast.types.resources import RootsResult

EMPTY: Final = Raw(b"{}")


class _Question(Struct):
    method: str
    params: Raw = EMPTY


_question = msgspec.json.Decoder(_Question)


class Inputs:
    """The application's handlers, by the method that asks for them."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def require(self, what: str) -> None:
        """Raise unless there is a handler for ``what``."""
        if getattr(self._handlers, what) is None:
            text = f"no handler for {what}: pass holdfast.Handlers({what}=…) when connecting"
            raise StateError(text)

    async def answer(self, method: str, params: Raw | None) -> Any:
        """The result for one question; raise ``RpcError`` with the code that a server is told."""
        handle = _METHODS.get(method)
        if handle is None:
            raise RpcError(f"method not found: {method}", code=METHOD_NOT_FOUND)
        try:
            return await handle(self, EMPTY if params is None else params)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise RpcError(f"invalid {method}: {error}", code=INVALID_PARAMS) from error

    async def answer_all(self, name: str, questions: dict[str, Raw]) -> dict[str, Any]:
        """The answers to one round of ``input_required``, all asked at once."""
        asked = {key: _read_question(name, key, raw) for key, raw in questions.items()}
        tasks = [asyncio.ensure_future(self._answer_one(name, one)) for one in asked.values()]
        try:
            answers = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        return dict(zip(asked, answers, strict=True))

    async def _answer_one(self, name: str, question: _Question) -> Any:
        try:
            return await self.answer(question.method, question.params)
        except RpcError as error:
            if error.code == METHOD_NOT_FOUND:
                text = f"{name}: the server asks for {question.method}, which was not declared"
                raise ProtocolError(text) from None
            raise ProtocolError(f"{name}: {error.message}") from error

    async def sample(self, params: Raw) -> Any:
        from holdfast.types.base import decode
        from holdfast.types.sampling import SamplingRequest

        handler = self._handlers.sampling
        if handler is None:
            raise _undeclared("sampling/createMessage")
        return await _call(handler, decode(params, SamplingRequest))

    async def elicit(self, params: Raw) -> Any:
        from holdfast.types.elicitation import FormElicitation, read_elicitation

        handler = self._handlers.elicitation
        if handler is None:
            raise _undeclared("elicitation/create")
        request = read_elicitation(params)
        result = await _call(handler, request)
        return fill_defaults(request, result) if isinstance(request, FormElicitation) else result

    async def list_roots(self, params: Raw = EMPTY) -> RootsResult:
        from holdfast.types.resources import Root, RootsResult

        roots = self._handlers.roots
        if roots is None:
            raise _undeclared("roots/list")
        found = await _call(roots) if callable(roots) else roots
        return RootsResult(
            roots=[Root(uri=root) if isinstance(root, str) else root for root in found]
        )


def fill_defaults(request: Any, result: Any) -> Any:
    """An accepted form with the schema's defaults in the fields that were left out."""
    builtin = msgspec.to_builtins(result)
    if not isinstance(builtin, dict) or builtin.get("action") != "accept":
        return result
    properties = request.requested_schema.get("properties", {})
    defaults = {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, dict) and "default" in schema
    }
    return {**builtin, "content": {**defaults, **(builtin.get("content") or {})}}


async def _call(handler: Callable[..., Any], *arguments: Any) -> Any:
    """Run a handler, sync or async; its failure becomes an error that names it."""
    try:
        result = handler(*arguments)
        return await result if inspect.isawaitable(result) else result
    except Exception as error:
        name = getattr(handler, "__name__", repr(handler))
        text = f"the handler {name} failed: {type(error).__name__}: {error}"
        raise RpcError(text, code=INTERNAL_ERROR) from error


def _undeclared(method: str) -> RpcError:
    return RpcError(f"no handler for {method}", code=METHOD_NOT_FOUND)


def _read_question(name: str, key: str, raw: Raw) -> _Question:
    try:
        return _question.decode(raw)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"{name}: input request {key!r} is malformed: {error}") from error


_METHODS: Final[dict[str, Callable[[Inputs, Raw], Awaitable[Any]]]] = {
    "sampling/createMessage": Inputs.sample,
    "elicitation/create": Inputs.elicit,
    "roots/list": Inputs.list_roots,
}
