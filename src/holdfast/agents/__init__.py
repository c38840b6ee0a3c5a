"""Tools as language models see them.

listing     tools in one list, ready to be called, and what could not be listed
naming      names for language models                                   (pure)
providers   definitions and results for OpenAI, Anthropic and Gemini    (pure)
budget      results that are too long for a model, and their rest       (pure)
toolset     both, and the way back from a model's call
search      tools by keywords; searching and calling as two tools of their own
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

if TYPE_CHECKING:
    from holdfast._core.calls.invocation import Media as Media
    from holdfast.agents.listing import ModelTool as ModelTool
    from holdfast.agents.listing import Partial as Partial
    from holdfast.agents.listing import ServerTool as ServerTool
    from holdfast.agents.naming import Names as Names
    from holdfast.agents.providers import ModelAnswer as ModelAnswer
    from holdfast.agents.search import Hit as Hit
    from holdfast.agents.search import ToolIndex as ToolIndex
    from holdfast.agents.toolset import ModelCall as ModelCall
    from holdfast.agents.toolset import Toolset as Toolset

_HOMES = {
    "listing": ("ModelTool", "Partial", "ServerTool"),
    "naming": ("Names",),
    "providers": ("Media", "ModelAnswer"),
    "search": ("Hit", "ToolIndex"),
    "toolset": ("ModelCall", "Toolset"),
}

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
