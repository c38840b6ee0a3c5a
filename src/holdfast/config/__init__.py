"""Configuration: servers by name, from the files that people already have.

    from holdfast.config import load

    config = load()                     # reads files; starts nothing
    client = config["git"].connect()

load, show, explain                     read and look
preview, approve, approve_all, revoke   approve what a project's own file says
add, remove, import_products            edit, and take over from other products

    settings                one table of everything that an entry may say
    loading · files         where configurations are, all servers; bounded reading
    dialects · reader       what each product writes, and one reader for all
    entry · resolution      one server, as text; its variables, and the client
    trust                   what may be used, and approving it
    views · edit            showing and changing it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast.config.edit import ConfigEdit, add, import_products, remove
    from holdfast.config.entry import ConfigProblem, ServerEntry, is_safe_name
    from holdfast.config.entry import ConfigInput, InputPrompt
    from holdfast.config.environment import ConfigEnvironment, EntrySource
    from holdfast.config.loading import Configuration, LoadedFile, load
    from holdfast.config.resolution import ResolvedServer
    from holdfast.config.trust import (
        Approval, TrustStatus, approve, approve_all, preview, revoke,
    )
    from holdfast.config.views import ConfigOverview, ServerExplanation, explain, show

__all__ = [
    "Approval", "ConfigEdit", "ConfigEnvironment", "ConfigInput", "ConfigOverview", "ConfigProblem",
    "Configuration", "EntrySource", "InputPrompt", "LoadedFile", "ResolvedServer", "ServerEntry",
    "ServerExplanation", "TrustStatus", "add", "approve", "approve_all", "explain",
    "import_products", "is_safe_name", "load", "preview", "remove", "revoke", "show",
]

_HOMES = {
    "edit": ("ConfigEdit", "add", "import_products", "remove"),
    "entry": ("ConfigInput", "ConfigProblem", "InputPrompt", "ServerEntry", "is_safe_name"),
    "environment": ("ConfigEnvironment", "EntrySource"),
    "loading": ("Configuration", "LoadedFile", "load"),
    "resolution": ("ResolvedServer",),
    "trust": ("Approval", "TrustStatus", "approve", "approve_all", "preview", "revoke"),
    "views": ("ConfigOverview", "ServerExplanation", "explain", "show"),
}
"""The module of each name. Shells complete server names with `load` alone, and must not wait
for the rest."""
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
