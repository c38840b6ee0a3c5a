"""Where hosts keep their files, on each platform."""

from __future__ import annotations

import pytest

from holdfast.config.hosts import HOSTS, host_named, user_paths
from holdfast.errors import ValidationError
from tests.rows import rows

pytestmark = pytest.mark.req("Y6")

HOME = "/home/me"
WINDOWS = {"APPDATA": r"C:\Users\me\AppData\Roaming"}


def paths(host: str, platform: str, **environ: str) -> list[str]:
    home = r"C:\Users\me" if platform == "win32" else HOME
    return user_paths(HOSTS[host], platform, environ, home)


@rows(
    ("host", "linux", "mac", "windows"),
    [
        ("claude-code", ".claude.json", ".claude.json", r"C:\Users\me\.claude.json"),
        (
            "claude-desktop",
            ".config/Claude/claude_desktop_config.json",
            "Library/Application Support/Claude/claude_desktop_config.json",
            r"C:\Users\me\AppData\Roaming\Claude\claude_desktop_config.json",
        ),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json", r"C:\Users\me\.cursor\mcp.json"),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "Library/Application Support/Code/User/mcp.json",
            r"C:\Users\me\AppData\Roaming\Code\User\mcp.json",
        ),
        ("codex", ".codex/config.toml", ".codex/config.toml", r"C:\Users\me\.codex\config.toml"),
        (
            "gemini",
            ".gemini/settings.json",
            ".gemini/settings.json",
            r"C:\Users\me\.gemini\settings.json",
        ),
        (
            "windsurf",
            ".codeium/windsurf/mcp_config.json",
            ".codeium/windsurf/mcp_config.json",
            r"C:\Users\me\.codeium\windsurf\mcp_config.json",
        ),
        (
            "zed",
            ".config/zed/settings.json",
            ".config/zed/settings.json",
            r"C:\Users\me\AppData\Roaming\Zed\settings.json",
        ),
        (
            "copilot",
            ".copilot/mcp-config.json",
            ".copilot/mcp-config.json",
            r"C:\Users\me\.copilot\mcp-config.json",
        ),
        (
            "kiro",
            ".kiro/settings/mcp.json",
            ".kiro/settings/mcp.json",
            r"C:\Users\me\.kiro\settings\mcp.json",
        ),
        (
            "opencode",
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.json",
            r"C:\Users\me\.config\opencode\opencode.json",
        ),
        (
            "goose",
            ".config/goose/config.yaml",
            ".config/goose/config.yaml",
            r"C:\Users\me\AppData\Roaming\Block\goose\config\config.yaml",
        ),
    ],
)
def test_each_platform_has_its_place(host: str, linux: str, mac: str, windows: str) -> None:
    assert paths(host, "linux")[0] == f"{HOME}/{linux}"
    assert paths(host, "darwin")[0] == f"{HOME}/{mac}"
    assert paths(host, "win32", **WINDOWS)[0] == windows
    assert paths(host, "win32")[0] == windows


@rows(
    ("variable", "host", "path"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", "/x/.claude.json"),
        ("CODEX_HOME", "codex", "/x/config.toml"),
        ("GEMINI_CLI_HOME", "gemini", "/x/.gemini/settings.json"),
        ("COPILOT_HOME", "copilot", "/x/mcp-config.json"),
        ("XDG_CONFIG_HOME", "opencode", "/x/opencode/opencode.json"),
        ("XDG_CONFIG_HOME", "vscode", "/x/Code/User/mcp.json"),
    ],
)
def test_variables_move_files(variable: str, host: str, path: str) -> None:
    assert paths(host, "linux", **{variable: "/x"})[0] == path
    default = paths(host, "linux")
    assert paths(host, "linux", **{variable: "relative"}) == default


def test_names_are_taken_in_their_spellings() -> None:
    assert host_named("Claude_Code").name == "claude-code"
    with pytest.raises(ValidationError, match="did you mean 'cursor'"):
        host_named("cursr")
    with pytest.raises(ValidationError, match="there are: claude-code, cursor"):
        host_named("\x1b[31memacs")
