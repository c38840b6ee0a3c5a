"""Handles, for code without a loop.

Written by tools/sync_face.py from handle.py and results.py: change those instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Self, TypeVar

from holdfast import sync
from holdfast._core.targets import Target
from holdfast.handles.drift import Drift, Registry
from holdfast.handles.handle import Handle, Log, client_for
from holdfast.handles.results import HandleResult, Methods, attribute_for, structured
from holdfast.handles.sessions import SessionAdapter
from holdfast.sync.portal import SyncWrapper, blocking, closing

T = TypeVar("T")


class SyncHandle(SyncWrapper[Handle]):
    """A `Handle` for code without a loop. It may be shared by threads."""

    _REGISTRY: ClassVar[Registry]
    _NAMESPACES: ClassVar[Mapping[str, type[SyncNamespace]]] = {}

    def __init__(
        self,
        target: Target | sync.Client = None,
        *,
        session: str | None = None,
        adapter: SessionAdapter | None = None,
        drift: Drift = "raise",
        log: Log = None,
        open_arguments: Mapping[str, object] | None = None,
        registry: Registry | None = None,
        **options: Any,
    ) -> None:
        expected = registry or getattr(self, "_REGISTRY", None)
        client = client_for(target, sync.Client, sync.connect, expected, options, log=log)
        inner = Handle(
            client._inner,
            session=session,
            adapter=adapter,
            drift=drift,
            open_arguments=open_arguments,
            registry=expected,
        )
        super().__init__(inner, client._portal)
        self._handle: SyncHandle = self
        self.client: sync.Client = client
        self.registry: Registry | None = expected
        self.adapter: SessionAdapter | None = adapter
        self.session: str | None = session
        for attribute, kind in self._NAMESPACES.items():
            setattr(self, attribute, kind(self))
        # A program that ends without closing: the session first, then the client.
        self._portal.closables.discard(client._inner)
        self._portal.closables.add(inner)

    def __repr__(self) -> str:
        return repr(self._inner).replace("<Handle", f"<{type(self).__name__}", 1)

    def __getitem__(self, name: str) -> SyncNamespace:
        """Return a namespace by the part before the first dot; ``_root`` for tools without."""
        namespace: SyncNamespace = getattr(self, attribute_for(self._NAMESPACES, name))
        return namespace

    def __enter__(self) -> Self:
        self._portal.run(self._inner.__aenter__())
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self._portal.end(self._inner, self._inner.__aexit__(kind, error, traceback))

    @property
    def closed(self) -> bool:
        """Return True if the handle is closed and refuses all calls."""
        return self._inner.closed

    def open(self) -> Self:
        """Start the server and the session now; if that fails, close the handle."""
        self._portal.run(self._inner.open())
        return self

    close: Final = closing(Handle.close)
    call: Final = blocking(Handle.call)
    call_tool: Final = blocking(Handle.call_tool)


class SyncCalls:
    """The calls that generated methods make, on a namespace or on the handle itself."""

    _handle: SyncHandle

    def _call(self, tool: str, arguments: Mapping[str, object], **options: Any) -> HandleResult:
        """Call a tool with the options of `SyncHandle.call`; raise what it fails with."""
        return HandleResult.of(self._handle.call(tool, arguments, **options))

    def _structured(  # T is what the generated method promises
        self, tool: str, arguments: Mapping[str, object], *, wrapped: bool = False, **options: Any
    ) -> T:  # type: ignore[type-var]  # pyright: ignore[reportInvalidTypeVarUse]
        """Call a tool that has an output schema; return what it promises there."""
        result = self._handle.call(tool, arguments, **options)
        value: T = structured(self._handle.client.name, tool, result, wrapped=wrapped)
        return value


class SyncNamespace(SyncCalls, Methods):
    """The base class of generated namespaces."""

    def __init__(self, handle: SyncHandle) -> None:
        self._handle = handle

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._handle!r}>"

    def __getitem__(self, key: str) -> Callable[..., Any]:
        """Return a method by what follows the first dot of its tool's name."""
        method: Callable[..., Any] = self._find(key)
        return method
