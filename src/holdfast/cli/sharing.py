"""The daemon, as commands use it: when it runs, and what is said when it is not used."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from holdfast.cli import tool_cache

if TYPE_CHECKING:
    from holdfast import Client, Tool
    from holdfast.cli.output import Output
    from holdfast.cli.target import ServerTarget

RECENT: Final = 600.0
"""Seconds after which nobody expects what an earlier call left."""
REPEAT: Final = 3600.0
"""Seconds before the same hint is given again."""

# MCP does not say whether a server keeps something between calls. One that has a tool to close
# what another tool opened does: `browser_close`, `close_page`, `end_session`, `disconnect`. One
# that closes issues or pull requests keeps them elsewhere.
_ENDS: Final = "close closes end quit stop kill terminate reset detach release"
_HELD: Final = (
    "browser page tab session connection context terminal window process shell repl kernel "
    "debugger database db driver device document workbook notebook sandbox vm"
)
_WORD: Final = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"


def use_daemon(options: dict[str, Any], configured: bool | None) -> None:
    """Have a command use the daemon, if one seems to run and nobody says otherwise."""
    from holdfast._core.transports.daemon_socket import socket_path

    is_open = options.get("shared") is None and configured is None
    if is_open and os.name == "posix" and os.path.exists(socket_path()):
        options["shared"] = True


def say_fallback(client: Client, output: Output, *, is_asked_for: bool) -> None:
    """Say on stderr if a daemon that runs, or was asked for, could not be used."""
    transport = client.transport

    def fell_back(sentence: str, is_absent: bool) -> None:
        if is_asked_for or not is_absent:
            output.note(sentence)

    if hasattr(transport, "fell_back"):
        transport.fell_back = fell_back


def keeps_state(names: Iterable[str]) -> bool:
    """Return whether tools of these names suggest that the server keeps something between calls."""
    ends, things = set(_ENDS.split()), set(_HELD.split())
    for name in names:
        words = {word.lower() for word in re.findall(_WORD, name)}
        if "disconnect" in words or (words & ends and words & things):
            return True
    return False


def hint_at_state(target: ServerTarget, client: Client, tools: Iterable[Tool] | None) -> None:
    """Note the second call to a server whose first call left nothing behind, once in a while."""
    transport = client.transport
    is_own = hasattr(transport, "command") and getattr(transport, "daemon", None) is None
    if target.open_client is not None or tools is None or not is_own:
        return
    if not keeps_state(tool.name for tool in tools):
        return
    called, hinted = _times(target.key())
    now = time.time()
    if 0 <= now - called < RECENT and not 0 <= now - hinted < REPEAT:
        hinted = now
        target.output.note(
            f"Each call starts {client.name} anew: what the last one left open is gone. "
            "'holdfast daemon start' keeps servers running, 'holdfast shell' holds one."
        )
    _remember(target.key(), now, hinted)


def _times(key: str) -> tuple[float, float]:
    """Return when a server was called last, and when it was hinted at; 0: never."""
    try:
        with open(f"{tool_cache.path_for(key)}.called", encoding="ascii") as file:
            called, hinted = map(float, file.read(100).split())
            return called, hinted
    except (OSError, ValueError):
        return 0.0, 0.0


def _remember(key: str, called: float, hinted: float) -> None:
    from holdfast._core.files import make_private_folder, write_atomic

    path = f"{tool_cache.path_for(key)}.called"
    with suppress(OSError):
        make_private_folder(os.path.dirname(path))
        write_atomic(path, f"{called} {hinted}".encode(), private=True)
