"""Many servers at once: one object to start, list, search and call them.

many        Servers: start, list, call, close, side by side
member      one of them: how its client is made, how it is doing
status      ... as a value
listing     tools in one list, and what could not be listed
naming      names for language models                                   (pure)
shapes      definitions for OpenAI, Anthropic and Gemini                (pure)
answers     results for the same                                        (pure)
toolset     both, and the way back from a model's call                  (pure)
search      tools by keywords                                           (pure)
finder      searching and calling as two tools of their own
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.lazy import lazily

if TYPE_CHECKING:
    from holdfast.servers.listing import Partial as Partial
    from holdfast.servers.listing import ServerTool as ServerTool
    from holdfast.servers.many import Servers as Servers
    from holdfast.servers.naming import Names as Names
    from holdfast.servers.search import Hit as Hit
    from holdfast.servers.search import Index as Index
    from holdfast.servers.status import Failure as Failure
    from holdfast.servers.status import Status as Status
    from holdfast.servers.toolset import ModelCall as ModelCall
    from holdfast.servers.toolset import Toolset as Toolset

_HOMES = {
    "listing": ("Partial", "ServerTool"),
    "many": ("Servers",),
    "naming": ("Names",),
    "search": ("Hit", "Index"),
    "status": ("Failure", "Status"),
    "toolset": ("ModelCall", "Toolset"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
