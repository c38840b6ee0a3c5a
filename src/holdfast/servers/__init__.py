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

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "Failure": "status",
    "Hit": "search",
    "Index": "search",
    "ModelCall": "toolset",
    "Names": "naming",
    "Partial": "listing",
    "ServerTool": "listing",
    "Servers": "many",
    "Status": "status",
    "Toolset": "toolset",
}

__all__ = [
    "Failure",
    "Hit",
    "Index",
    "ModelCall",
    "Names",
    "Partial",
    "ServerTool",
    "Servers",
    "Status",
    "Toolset",
]


def __getattr__(name: str) -> Any:
    """Loaded when used: most programs use one of these, many none."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
