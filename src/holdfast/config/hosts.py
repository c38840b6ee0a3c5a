"""Hosts: the products that start MCP servers, and where each of them keeps its servers.

The places are a function of the platform, the environment variables and the home folder; nothing is
looked up on disk here.
"""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from holdfast._core.text import did_you_mean, visible
from holdfast.errors import ValidationError


class Place(NamedTuple):
    """A file in one of the folders of `base_folders`."""

    base: str
    path: str


class Host(NamedTuple):
    """One product."""

    name: str
    """The word for it on the command line."""
    product: str
    user: tuple[Place, ...]
    """Files of the user; the first is the one that is made if there is none."""
    project: tuple[str, ...] = ()
    """Files of a project, from its root."""
    tables: tuple[tuple[str, ...], ...] = (("mcpServers",),)
    """Keys that lead to tables of servers in a file; ``*`` is any key."""
    template: Mapping[str, Any] = {}
    """The fields of a new entry beside its command."""
    program: str = "command"
    """The field of the command; ``args`` holds the rest, unless `is_list`."""
    is_list: bool = False
    """True if one list holds the program and its arguments."""


_STDIO: Final = {"type": "stdio"}

HOSTS: Final[dict[str, Host]] = {
    host.name: host
    for host in (
        Host(
            "claude-code",
            "Claude Code",
            (Place("claude", ".claude.json"),),
            (".mcp.json",),
            # The second: servers that a person added for one project alone.
            (("mcpServers",), ("projects", "*", "mcpServers")),
            _STDIO,
        ),
        Host("cursor", "Cursor", (Place("home", ".cursor/mcp.json"),), (".cursor/mcp.json",)),
        Host(
            "vscode",
            "VS Code",
            (Place("app", "Code/User/mcp.json"), Place("app", "Code - Insiders/User/mcp.json")),
            (".vscode/mcp.json",),
            (("servers",),),
            _STDIO,
        ),
        Host(
            "codex",
            "Codex",
            (Place("codex", "config.toml"),),
            (".codex/config.toml",),
            (("mcp_servers",),),
        ),
        Host(
            "gemini",
            "Gemini",
            (Place("gemini", ".gemini/settings.json"),),
            (".gemini/settings.json",),
        ),
        Host(
            "claude-desktop",
            "Claude Desktop",
            (Place("app", "Claude/claude_desktop_config.json"),),
        ),
        Host("windsurf", "Windsurf", (Place("home", ".codeium/windsurf/mcp_config.json"),)),
        Host(
            "zed",
            "Zed",
            (Place("zed", "settings.json"),),
            (".zed/settings.json",),
            (("context_servers",),),
            {"source": "custom"},
        ),
        Host(
            "copilot",
            "Copilot CLI",
            (Place("copilot", "mcp-config.json"),),
            (".github/mcp.json",),
            template={"type": "local", "tools": ["*"]},
        ),
        Host(
            "kiro",
            "Kiro",
            (Place("home", ".kiro/settings/mcp.json"),),
            (".kiro/settings/mcp.json",),
        ),
        Host(
            "opencode",
            "OpenCode",
            (Place("dot", "opencode/opencode.json"), Place("dot", "opencode/opencode.jsonc")),
            ("opencode.json", "opencode.jsonc"),
            # The second: since its version 2.
            (("mcp",), ("mcp", "servers")),
            {"type": "local", "enabled": True},
            is_list=True,
        ),
        Host(
            "goose",
            "Goose",
            (Place("goose", "config.yaml"),),
            tables=(("extensions",),),
            template={"type": "stdio", "enabled": True, "timeout": 300, "envs": {}},
            program="cmd",
        ),
    )
}

OTHERS: Final = (
    ("LM Studio", Place("home", ".lmstudio/mcp.json")),
    ("Amazon Q", Place("home", ".aws/amazonq/mcp.json")),
)
"""Further products that servers are imported from."""


def host_named(word: str) -> Host:
    """Return the host of this name. Raises ValidationError with those that there are."""
    host = HOSTS.get(word.lower().replace("_", "-").replace(" ", "-"))
    if host is None:
        hint = did_you_mean(word, HOSTS) or f"there are: {', '.join(HOSTS)}"
        raise ValidationError(f"no host '{visible(word, 80)}'; {hint}")
    return host


def base_folders(platform: str, environ: Mapping[str, str], home: str) -> dict[str, str]:
    """Return the folders that products keep their files in, on a platform (`sys.platform`)."""
    is_windows = platform == "win32"
    path = ntpath if is_windows else posixpath

    def from_variable(variable: str, default: str) -> str:
        folder = environ.get(variable, "")
        return folder if path.isabs(folder) else default

    dot = from_variable("XDG_CONFIG_HOME", path.join(home, ".config"))
    app = zed = dot
    goose = path.join(dot, "goose")
    if platform == "darwin":
        app = path.join(home, "Library", "Application Support")
    elif is_windows:
        app = zed = from_variable("APPDATA", path.join(home, "AppData", "Roaming"))
        goose = path.join(app, "Block", "goose", "config")
    return {
        "home": home,
        "dot": dot,
        "app": app,
        "zed": path.join(zed, "Zed" if is_windows else "zed"),
        "goose": goose,
        "claude": from_variable("CLAUDE_CONFIG_DIR", home),
        "codex": from_variable("CODEX_HOME", path.join(home, ".codex")),
        "gemini": from_variable("GEMINI_CLI_HOME", home),
        "copilot": from_variable("COPILOT_HOME", path.join(home, ".copilot")),
    }


def user_paths(host: Host, platform: str, environ: Mapping[str, str], home: str) -> list[str]:
    """Return the files of the user that a host reads, whether they exist or not."""
    folders = base_folders(platform, environ, home)
    return [place_path(place, platform, folders) for place in host.user]


def place_path(place: Place, platform: str, folders: Mapping[str, str]) -> str:
    """Return the path of a place."""
    if platform == "win32":
        return ntpath.join(folders[place.base], *place.path.split("/"))
    return posixpath.join(folders[place.base], place.path)
