"""Configuration: servers by name, from the files that people already have.

    from holdfast.config import load

    config = load()                     # reads files; starts nothing
    client = config["git"].connect()

load, show, explain                     read and look
preview, approve, approve_all, revoke   approve what a project's own file says
add, remove, find_products, import_products    edit, and take over from other products

    settings                one table of everything that an entry may say
    environment · files     the paths of configurations; bounded reading
    dialects/               what each product writes
    loading · entry         all servers; one of them, as text
    expansion · resolution  its variables, and the client
    trust · approval        what may be used
    views · edit            showing and changing it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast._lazy import lazily

# fmt: off
# isort: off
if TYPE_CHECKING:
    from holdfast.config.approval import Approval, approve, approve_all, preview, revoke
    from holdfast.config.dialects.common import is_safe_name
    from holdfast.config.edit import (
        ConfigEdit, FoundProduct, add, find_products, import_products, remove,
    )
    from holdfast.config.entry import ConfigProblem, EntrySource, ServerEntry
    from holdfast.config.environment import ConfigEnvironment
    from holdfast.config.expansion import ConfigInput, InputPrompt
    from holdfast.config.loading import Configuration, LoadedFile, load
    from holdfast.config.resolution import ResolvedServer
    from holdfast.config.trust import TrustStatus
    from holdfast.config.views import ConfigOverview, ServerExplanation, explain, show

__all__ = [
    "Approval", "ConfigEdit", "ConfigEnvironment", "ConfigInput", "ConfigOverview", "ConfigProblem",
    "Configuration", "EntrySource", "FoundProduct", "InputPrompt", "LoadedFile",
    "ResolvedServer", "ServerEntry", "ServerExplanation", "TrustStatus", "add", "approve",
    "approve_all", "explain", "find_products", "import_products", "is_safe_name", "load",
    "preview", "remove", "revoke", "show",
]

_HOMES = {
    "approval": ("Approval", "approve", "approve_all", "preview", "revoke"),
    "dialects.common": ("is_safe_name",),
    "edit": (
        "ConfigEdit", "FoundProduct", "add", "find_products", "import_products", "remove",
    ),
    "entry": ("ConfigProblem", "EntrySource", "ServerEntry"),
    "environment": ("ConfigEnvironment",),
    "expansion": ("ConfigInput", "InputPrompt"),
    "loading": ("Configuration", "LoadedFile", "load"),
    "resolution": ("ResolvedServer",),
    "trust": ("TrustStatus",),
    "views": ("ConfigOverview", "ServerExplanation", "explain", "show"),
}
"""The module of each name. Shells complete server names with `load` alone, and must not wait
for the rest."""
# isort: on
# fmt: on

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
