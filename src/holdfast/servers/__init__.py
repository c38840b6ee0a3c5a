"""Many servers at once: one object to start, list, search and call them.

group       Servers: start, list, call, close, side by side
member      one of them: its client and its status
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

if TYPE_CHECKING:
    from holdfast.servers.group import Servers as Servers
    from holdfast.servers.member import Failure as Failure
    from holdfast.servers.member import Status as Status

_HOMES = {"group": ("Servers",), "member": ("Failure", "Status")}

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
