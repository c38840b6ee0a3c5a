"""The types of the pytest fixtures, for type-checked suites.

async def test_adding(mcp_client: ClientFactory) -> None: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from holdfast import sync
from holdfast._core.targets import Target
from holdfast.client import Client
from holdfast.handles import Handle, SyncHandle

H = TypeVar("H", bound=Handle)
S = TypeVar("S", bound=SyncHandle)
M_co = TypeVar("M_co", covariant=True)


class ClientFactory(Protocol):
    """The type of ``mcp_client``."""

    def __call__(self, target: Target = None, **options: Any) -> Client: ...


class SyncClientFactory(Protocol):
    """The type of ``mcp_client_sync``."""

    def __call__(self, target: Target = None, **options: Any) -> sync.Client: ...


class Module(Protocol[M_co]):
    """A generated module."""

    @property
    def connect(self) -> Callable[..., M_co]:
        """The module's ``connect``."""


class SyncModule(Protocol[M_co]):
    """A module generated with ``--sync``."""

    @property
    def connect_sync(self) -> Callable[..., M_co]:
        """The module's ``connect_sync``."""


class HandleFactory(Protocol):
    """The type of ``mcp_handle``."""

    @overload
    def __call__(
        self, kind: type[H], session: str | None = None, *, target: Any = None, **options: Any
    ) -> H: ...
    @overload
    def __call__(
        self, kind: Module[H], session: str | None = None, *, target: Any = None, **options: Any
    ) -> H: ...


class SyncHandleFactory(Protocol):
    """The type of ``mcp_handle_sync``."""

    @overload
    def __call__(
        self, kind: type[S], session: str | None = None, *, target: Any = None, **options: Any
    ) -> S: ...
    @overload
    def __call__(
        self, kind: SyncModule[S], session: str | None = None, *, target: Any = None, **options: Any
    ) -> S: ...
