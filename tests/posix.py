"""Which test files need POSIX: on Windows they are left out, and counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_MODULES: Final = r"^\s*(?:import|from) (?:fcntl|grp|pty|pwd|resource|termios|tty)\b"
_CALLS: Final = (
    r"\bos\.(?:chmod|fork|geteuid|getpgid|getpgrp|getuid|kill|killpg|mkfifo|openpty|pipe2|symlink"
    r"|umask|waitpid|waitid)\b|\.symlink_to\(|\.chmod\(|\.st_mode\b|\bloop\.add_signal_handler\b"
)
_SIGNALS: Final = r"\bsignal\.SIG(?!INT\b|TERM\b|_)[A-Z0-9]+|\bsend_signal\("
_PLACES: Final = r"/proc/|/dev/|/bin/|\bAF_UNIX\b|\bunix_connection\b|\bopen_unix"
_PROGRAMS: Final = r"\[[\"'](?:sh|bash|zsh|fish|cat|sleep|true)[\"']"
_HELPERS: Final = r"\btests\.(?:cli\.terminal|redis_server)\b|\bholdfast\.daemon\b"
_NEEDS_POSIX: Final = re.compile(
    "|".join((_MODULES, _CALLS, _SIGNALS, _PLACES, _PROGRAMS, _HELPERS)), re.MULTILINE
)


def posix_part(path: Path) -> str | None:
    """Return the first thing in a test file that only POSIX has; None: it may run anywhere."""
    match = _NEEDS_POSIX.search(path.read_text(encoding="utf-8"))
    return None if match is None else match[0].strip()


def is_left_out(path: Path, platform: str) -> bool:
    """Return whether a test file is left out on a system."""
    is_test = path.name.startswith("test_") and path.suffix == ".py"
    return platform == "win32" and is_test and posix_part(path) is not None
