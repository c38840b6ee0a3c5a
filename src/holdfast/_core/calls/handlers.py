"""What the application lends to servers, and wants to hear from them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from holdfast.types.notifications import Progress

if TYPE_CHECKING:
    from holdfast._core.auth.options import LoginRequest
    from holdfast.types.elicitation import AnyElicitation, ElicitResult
    from holdfast.types.resources import Root
    from holdfast.types.sampling import SamplingRequest, SamplingResult


class Notification(Struct, frozen=True):
    """A notification of the server. ``params`` is decoded when asked for."""

    method: str
    raw: Raw | None = None

    @property
    def params(self) -> dict[str, Any]:
        if self.raw is None:
            return {}
        params = msgspec.json.decode(self.raw)
        return params if isinstance(params, dict) else {}


NotificationHandler: TypeAlias = Callable[[Notification], Any]
ProgressHandler: TypeAlias = Callable[[Progress], Any]

SamplingHandler: TypeAlias = (
    "Callable[[SamplingRequest], SamplingResult | dict[str, Any] | Awaitable[Any]]"
)
ElicitationHandler: TypeAlias = (
    "Callable[[AnyElicitation], ElicitResult | dict[str, Any] | Awaitable[Any]]"
)
LoginHandler: TypeAlias = "Callable[[LoginRequest], str | None | Awaitable[str | None]]"
Roots: TypeAlias = "Iterable[Root | str] | Callable[[], Any]"


class Handlers(Struct, frozen=True, kw_only=True):
    """One handler each, sync or async; only what has a handler is declared to servers.

    ``sampling`` and ``elicitation`` answer a server's questions, in both protocol eras.
    ``roots`` is a list of ``file://`` URIs (or `Root`), or a function that gives one.
    ``notification`` hears every notification, ``progress`` the progress of every call.
    ``login`` sends a person to log in, and may return where the browser was sent back to.
    """

    sampling: SamplingHandler | None = None
    elicitation: ElicitationHandler | None = None
    roots: Roots | None = None
    notification: NotificationHandler | None = None
    progress: ProgressHandler | None = None
    login: LoginHandler | None = None

    @property
    def abilities(self) -> frozenset[str]:
        """What is declared, as ``capability`` or ``capability.feature``."""
        declared = set()
        if self.sampling is not None:
            declared.add("sampling")
        if self.elicitation is not None:
            declared |= {"elicitation.form", "elicitation.url"}
        if self.roots is not None:
            declared.add("roots")
        return frozenset(declared)
