"""The methods of a handle's namespaces, and their results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, TypeVar

import msgspec

from holdfast.errors import ProtocolError
from holdfast.types.content import Content, TextContent
from holdfast.types.tools import ToolResult

if TYPE_CHECKING:
    from holdfast.handles.handle import Handle

WRAPPER: Final = "result"
"""Servers that can return only objects wrap other values as ``{"result": …}``."""


class HandleResult(ToolResult, kw_only=True):
    """The result of a tool without an output schema, with the JSON in it at hand.

        result = await mcp.tests.run(suite="smoke")
        result.data         # the JSON that the server returned, or its text
        result.passed       # result.data["passed"], if it is an object

    Everything of `ToolResult` is there too: ``text``, ``content``, ``structured``.
    """

    @classmethod
    def of(cls, result: ToolResult) -> Self:
        """Return the same result as a `HandleResult`."""
        fields = {name: getattr(result, name) for name in result.__struct_fields__}
        made = cls(**fields)
        made.__dict__.update(result.__dict__)
        return made

    @cached_property
    def data(self) -> Any:
        """The structured content, else the JSON object or array in the text, else the text."""
        if self.has_structured:
            return unwrapped(self.structured)
        if self.text.lstrip()[:1] in ("{", "["):
            with suppress(ValueError, RecursionError):
                return msgspec.json.decode(self.text)
        return self.text

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            data = self.data
            if isinstance(data, dict) and name in data:
                return data[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getitem__(self, key: Any) -> Any:
        """Return an item of `data`."""
        return self.data[key]


def unwrapped(value: Any) -> Any:
    """Return what is in ``{"result": …}``; anything else as it is."""
    return value[WRAPPER] if isinstance(value, dict) and [*value] == [WRAPPER] else value


class StructuredObject(dict[str, Any]):
    """An object that a tool returned, with the contents that came beside it (pictures, say).

    Its keys are attributes as well: ``result.passed`` is ``result["passed"]``.
    """

    content: list[Content]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class StructuredList(list[Any]):
    """A list that a tool returned, with the contents that came beside it."""

    content: list[Content]


_WITH_CONTENT: Final[dict[type, type]] = {
    dict: StructuredObject,
    list: StructuredList,
    **{kind: type(f"{kind.__name__}_with_content", (kind,), {}) for kind in (str, int, float)},
}
"""The types that can hold contents. There can be none of bool and None."""


def structured(server: str, tool: str, result: ToolResult, *, wrapped: bool = False) -> Any:
    """Return the structured content, which a tool with an output schema has to give."""
    if not result.has_structured:
        text = "its output schema promises structured content, and the result has none"
        raise ProtocolError(f"{server}: tools/call {tool!r}: {text}", data=result)
    value = unwrapped(result.structured) if wrapped else result.structured
    kind = _WITH_CONTENT.get(type(value))
    only_text = all(isinstance(part, TextContent) for part in result.content)
    if kind in (StructuredObject, StructuredList) or (kind and not only_text):
        value = kind(value)
        value.__dict__["content"] = result.content
    return value


Unset: TypeAlias = msgspec.UnsetType
"""The type of `UNSET`, which is its only value."""

UNSET: Final = msgspec.UNSET
"""Left out: the argument is not sent, and the server's own default holds."""


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are not `UNSET`."""
    return {name: value for name, value in arguments.items() if value is not UNSET}


# Namespaces


T = TypeVar("T")


class Methods:
    """Lookup of a namespace's methods by tool name: ``browser["run.file"]``.

    All names are private, because the public ones are the server's to give.
    """

    _NAME: ClassVar[str] = ""
    """The part of the tools' names before the first dot."""
    _METHODS: ClassVar[Mapping[str, str]] = {}
    """The rest of each tool's name, and the attribute made of it."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._METHODS)

    def _find(self, key: str) -> Any:
        if key not in self._METHODS:
            names = ", ".join(self._METHODS) or "none"
            raise KeyError(f"{self._NAME}: there is no tool {key!r} (there are: {names})")
        return getattr(self, self._METHODS[key])


class Calls:
    """The calls that generated methods make, on a namespace or on the handle itself."""

    _handle: Handle

    async def _call(
        self, tool: str, arguments: Mapping[str, object], **options: Any
    ) -> HandleResult:
        """Call a tool with the options of `Handle.call`; raise what it fails with."""
        return HandleResult.of(await self._handle.call(tool, arguments, **options))

    async def _structured(  # T is what the generated method promises
        self, tool: str, arguments: Mapping[str, object], *, wrapped: bool = False, **options: Any
    ) -> T:  # pyright: ignore[reportInvalidTypeVarUse]
        """Call a tool that has an output schema; return what it promises there."""
        result = await self._handle.call(tool, arguments, **options)
        value: T = structured(self._handle.client.name, tool, result, wrapped=wrapped)
        return value


class Namespace(Calls, Methods):
    """The base class of generated namespaces."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._handle!r}>"

    def __getitem__(self, key: str) -> Callable[..., Awaitable[Any]]:
        """Return a method by what follows the first dot of its tool's name."""
        method: Callable[..., Awaitable[Any]] = self._find(key)
        return method


def attribute_for(namespaces: Mapping[str, type[Methods]], name: str) -> str:
    """Return the attribute of a handle for a namespace."""
    for attribute, kind in namespaces.items():
        if name == kind._NAME:
            return attribute
    names = ", ".join(kind._NAME for kind in namespaces.values()) or "none"
    raise KeyError(f"there is no namespace {name!r} (there are: {names})")
