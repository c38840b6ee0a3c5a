"""A namespace of a handle: the tools whose names begin alike, as methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, Unpack

from holdfast._core.calls.options import CallOptions
from holdfast.handles.results import HandleResult, structured

if TYPE_CHECKING:
    from holdfast.handles.handle import Handle

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
            known = ", ".join(self._METHODS) or "none"
            raise KeyError(f"{self._NAME}: there is no tool {key!r} (there are: {known})")
        return getattr(self, self._METHODS[key])


class Calls:
    """The calls that generated methods make, on a namespace or on the handle itself."""

    _handle: Handle

    async def _call(
        self,
        tool: str,
        arguments: Mapping[str, object],
        *,
        parallel: bool = False,
        **options: Unpack[CallOptions],
    ) -> HandleResult:
        """Call a tool; raise what it fails with."""
        result = await self._handle.call(tool, arguments, parallel=parallel, **options)
        return HandleResult.of(result)

    async def _structured(  # T is what the generated method promises
        self,
        tool: str,
        arguments: Mapping[str, object],
        *,
        parallel: bool = False,
        wrapped: bool = False,
        **options: Unpack[CallOptions],
    ) -> T:  # pyright: ignore[reportInvalidTypeVarUse]
        """Call a tool that has an output schema; return what it promises there."""
        result = await self._handle.call(tool, arguments, parallel=parallel, **options)
        found: T = structured(self._handle.client.name, tool, result, wrapped=wrapped)
        return found


class Namespace(Calls, Methods):
    """The base class of generated namespaces."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._handle!r}>"

    def __getitem__(self, key: str) -> Callable[..., Awaitable[Any]]:
        """Return a method by what follows the first dot of its tool's name."""
        found: Callable[..., Awaitable[Any]] = self._find(key)
        return found


def attribute_for(namespaces: Mapping[str, type[Methods]], name: str) -> str:
    """Return the attribute of a handle for a namespace."""
    for attribute, kind in namespaces.items():
        if name == kind._NAME:
            return attribute
    known = ", ".join(kind._NAME for kind in namespaces.values()) or "none"
    raise KeyError(f"there is no namespace {name!r} (there are: {known})")
