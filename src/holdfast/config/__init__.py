"""Configuration: servers by name, from the files that people already have.

load()            reads them all; starts nothing
show, explain     what there is to say about them
preview, approve, revoke    approving what a project's own file says
import_           any dialect as a mcp.json of Holdfast's own

config/         loading · discovery      who wins
                dialects/ · files        what each product writes
                entry · settings         one server, as text
                expansion · resolution   its variables, and the client
                trust                    what may be used
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._core.lazy import lazily

if TYPE_CHECKING:
    from holdfast.config.entry import ServerEntry, Source
    from holdfast.config.expansion import Input, Prompt
    from holdfast.config.export import Imported, import_
    from holdfast.config.loading import Configuration, FileFound, load
    from holdfast.config.problems import Problem
    from holdfast.config.resolution import Resolved
    from holdfast.config.trust import Standing
    from holdfast.config.views import (
        Approval,
        Explanation,
        Overview,
        approve,
        explain,
        preview,
        revoke,
        show,
    )

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
    "approve",
    "explain",
    "import_",
    "load",
    "preview",
    "revoke",
    "show",
]

_HOMES = {
    "trust": ("Standing",),
    "export": ("Imported", "import_"),
    "entry": ("ServerEntry", "Source"),
    "expansion": ("Input", "Prompt"),
    "loading": ("Configuration", "FileFound", "load"),
    "problems": ("Problem",),
    "views": (
        "Approval",
        "Explanation",
        "Overview",
        "explain",
        "preview",
        "show",
        "approve",
        "revoke",
    ),
    "resolution": ("Resolved",),
}
"""Where each name lives. Shells complete server names with `load` alone, and should not wait
for the rest."""

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
