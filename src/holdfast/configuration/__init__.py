"""Configuration: servers by name, from the files that people already have.

load()            reads them all; starts nothing
show, explain     what there is to say about them
preview, trust, untrust    approving what a project's own file says
import_           any dialect as a mcp.json of Holdfast's own

configuration/  loading · discovery      who wins
                dialects/ · documents    what each product writes
                entry · settings         one server, as text
                expansion · resolution   its variables, and the client
                approvals                what may be used
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.configuration.approvals import Standing
    from holdfast.configuration.conversion import Imported, import_
    from holdfast.configuration.entry import ServerEntry, Source
    from holdfast.configuration.expansion import Input, Prompt
    from holdfast.configuration.loading import Configuration, FileFound, load
    from holdfast.configuration.problems import Problem
    from holdfast.configuration.report import (
        Approval,
        Explanation,
        Overview,
        explain,
        preview,
        show,
        trust,
        untrust,
    )
    from holdfast.configuration.resolution import Resolved

__all__ = [
    "Approval",
    "Configuration",
    "Explanation",
    "FileFound",
    "Imported",
    "Input",
    "Overview",
    "Problem",
    "Prompt",
    "Resolved",
    "ServerEntry",
    "Source",
    "Standing",
    "explain",
    "import_",
    "load",
    "preview",
    "show",
    "trust",
    "untrust",
]

_HOMES = {
    "Standing": "approvals",
    "Imported": "conversion",
    "import_": "conversion",
    "ServerEntry": "entry",
    "Source": "entry",
    "Input": "expansion",
    "Prompt": "expansion",
    "Configuration": "loading",
    "FileFound": "loading",
    "load": "loading",
    "Problem": "problems",
    "Resolved": "resolution",
}
"""Each name's module; all others are in ``report``. Imported when asked for: shells complete
server names with `load` alone, and should not wait for the rest."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'report')}"), name)
    globals()[name] = found
    return found
