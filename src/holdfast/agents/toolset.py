"""Tools for one provider: their definitions, and the way back from a model's calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, Unpack

from msgspec import Struct

from holdfast._core.calls.invocation import Invocation
from holdfast._core.calls.options import CallOptions
from holdfast.agents.listing import ModelTool
from holdfast.agents.naming import no_tool
from holdfast.agents.providers import (
    PROVIDERS,
    SEARCH_TOOLS,
    ModelAnswer,
    Provider,
    ProviderTool,
    answer,
    for_provider,
)
from holdfast.agents.schemas import Loss
from holdfast.errors import HoldfastError, ValidationError
from holdfast.servers.member import Failure
from holdfast.types.tools import ToolResult

log: logging.Logger = logging.getLogger("holdfast")

MOST_OPENAI: Final = 128
"""Tools that OpenAI takes in one request."""


class ModelCall(Struct, frozen=True):
    """A call that a model asked for, in the words of the server that it is for.

    ``id`` is the provider's name for the call, ``name`` the model's for the tool.
    """

    id: str
    name: str
    server: str
    tool: str
    arguments: dict[str, Any]


class Toolset:
    """Tools in the shape of a provider.

    ``definitions`` go into the request: they are its ``tools``, or for Gemini the
    ``functionDeclarations`` of one tool.

    Args:
        shape: The provider's format.
        tools: The tools.
        strict: Ask for OpenAI's strict mode; a tool that does not fit it is given without.
        media: Give pictures and documents to the model; False for models that take only text.
        failures: The servers whose tools could not be listed.
        fence: Mark descriptions as text of their server.
        defer: Let the provider's tool search load definitions: all, or by name or pattern.

    Raises:
        ValidationError: The shape is unknown, or has no strict mode or tool search.
    """

    def __init__(
        self,
        shape: Provider,
        tools: Iterable[ModelTool],
        *,
        strict: bool = False,
        media: bool = True,
        failures: Iterable[Failure] = (),
        fence: bool = False,
        defer: bool | str | Iterable[str] = False,
    ) -> None:
        if shape not in tuple(PROVIDERS):  # it may be anything, and not hashable
            raise ValidationError(f"shape {shape!r}: must be one of {', '.join(PROVIDERS)}")
        if strict and not shape.startswith("openai"):
            raise ValidationError(f"strict=True: shape {shape!r} has no strict mode here")
        if isinstance(defer, bool):
            defer = "*" if defer else ()
        patterns = (defer,) if isinstance(defer, str) else tuple(defer)
        if patterns and shape not in SEARCH_TOOLS:
            can = " and ".join(SEARCH_TOOLS)
            raise ValidationError(f"defer: shape {shape!r} has no tool search; {can} have one")
        self.shape = shape
        self.failures: tuple[Failure, ...] = tuple(failures)
        self._media = media
        self._tools: dict[str, tuple[ModelTool, ProviderTool]] = {}
        for tool in tools:
            provider_tool = for_provider(
                tool.tool,
                shape,
                name=tool.name,
                strict=strict,
                fence=tool.server if fence and tool.server else None,
                defer=any(fnmatchcase(tool.name, pattern) for pattern in patterns),
            )
            self._tools[tool.name] = (tool, provider_tool)
        self._deferred = sum("defer_loading" in tool.definition for _, tool in self._tools.values())
        loaded = len(self) - self._deferred
        if shape.startswith("openai") and loaded > MOST_OPENAI:
            text = "%d tools: OpenAI takes %d at most; choose servers, use finder, or defer=True"
            log.warning(text, loaded, MOST_OPENAI)

    def __repr__(self) -> str:
        return f"<Toolset {self.shape} {len(self._tools)} tools>"

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools, as the provider wants them."""
        search = [dict(SEARCH_TOOLS[self.shape])] if self._deferred else []
        return [*search, *(provider_tool.definition for _, provider_tool in self._tools.values())]

    @property
    def losses(self) -> dict[str, tuple[Loss, ...]]:
        """The parts that the definitions leave out, by the name of the tool."""
        return {
            name: provider_tool.losses
            for name, (_, provider_tool) in self._tools.items()
            if provider_tool.losses
        }

    def read(self, call: Any) -> ModelCall:
        """Return the call of a tool that a model asked for.

        Args:
            call: The provider's object, or the same as a dictionary: an entry of ``tool_calls``,
                a ``function_call`` item, a ``tool_use`` block, a ``functionCall`` part.

        Raises:
            ValidationError: The tool is not in the set, or the arguments are not an object.
        """
        call_id, name, raw_arguments = _take_apart(call)
        entry = self._tools.get(name)
        if entry is None:
            raise no_tool(name, self._tools)
        tool, provider_tool = entry
        arguments = provider_tool.restore(_arguments(name, raw_arguments))
        return ModelCall(call_id, name, tool.server, tool.tool.name, arguments)

    def answer(self, call: Any, outcome: Invocation | ToolResult | BaseException) -> ModelAnswer:
        """Return the message that answers a model's call.

        ``call`` is a `ModelCall`, or what `read` takes: calls that could not be read are
        answered too, with the error as ``outcome``.
        """
        if isinstance(call, ModelCall):
            call_id, name = call.id, call.name
        else:
            call_id, name, _ = _take_apart(call)
        return answer(self.shape, outcome, call_id=call_id, name=name, media=self._media)

    async def run(self, call: ModelCall, **options: Unpack[CallOptions]) -> Invocation:
        """Make the call that a model asked for."""
        return await self._tools[call.name][0].call(call.arguments, **options)

    async def perform(self, call: Any) -> ModelAnswer:
        """Make the call that a model asked for, and return the message that answers it.

        Args:
            call: The call in the provider's format, as an object or a dictionary.

        Returns:
            The answer. A failure is part of its message, for the model to read.

        Raises:
            ValidationError: ``call`` is not a call, so there is nothing to answer.
        """
        try:
            read = self.read(call)
        except HoldfastError as error:
            return self.answer(call, error)
        return self.answer(read, await self.run(read))


def _take_apart(call: Any) -> tuple[str, str, Any]:
    """Return id, name and arguments of a call of any provider."""
    if isinstance(call, Mapping):
        plain: dict[str, Any] = dict(call)
    elif callable(dump := getattr(call, "model_dump", None)):
        plain = dict(dump())
    else:
        text = f"a model's call of type {type(call).__name__}: give it as a dictionary"
        raise ValidationError(text)
    for key in ("function", "functionCall", "function_call"):
        if isinstance(plain.get(key), Mapping):
            plain = {**plain, **plain[key]}
            break
    call_id = str(plain.get("call_id") or plain.get("id") or "")
    name = plain.get("name")
    if not isinstance(name, str):
        raise ValidationError(f"a model's call without a name: {str(plain)[:200]}")
    for key in ("arguments", "input", "args"):
        if plain.get(key) is not None:
            return call_id, name, plain[key]
    return call_id, name, {}


def _arguments(name: str, arguments: Any) -> Mapping[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise ValidationError(f"{name}: the arguments are not JSON: {error}") from None
    if not isinstance(arguments, Mapping):
        kind = type(arguments).__name__
        raise ValidationError(f"{name}: the arguments are no object, but of type {kind}")
    return arguments
