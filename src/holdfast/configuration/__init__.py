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

from typing import TYPE_CHECKING

from holdfast.lazy import lazily

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
    "approvals": ("Standing",),
    "conversion": ("Imported", "import_"),
    "entry": ("ServerEntry", "Source"),
    "expansion": ("Input", "Prompt"),
    "loading": ("Configuration", "FileFound", "load"),
    "problems": ("Problem",),
    "report": (
        "Approval",
        "Explanation",
        "Overview",
        "explain",
        "preview",
        "show",
        "trust",
        "untrust",
    ),
    "resolution": ("Resolved",),
}
"""Where each name lives. Shells complete server names with `load` alone, and should not wait
for the rest."""

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
