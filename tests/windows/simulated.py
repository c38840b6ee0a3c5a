"""Pretend to be another system, as far as an interpreter on this one can.

`sys.platform` says so, modules that only POSIX has cannot be imported by Holdfast, and the
functions and signals that only POSIX has are gone. The standard library and other packages were
imported before, and stay what they are: only Holdfast's own code takes its other branches.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import importlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

PRELOADED = (
    *("aiohttp", "asyncio", "click", "concurrent.futures", "ctypes.wintypes", "getpass"),
    *("importlib.metadata", "jsonschema_rs", "logging.handlers", "msgspec", "multiprocessing"),
    *("http.server", "sqlite3", "ssl", "subprocess", "tempfile", "urllib.request", "webbrowser"),
    *("xml.etree.ElementTree", "yaml", "zipfile", "keyring", "cryptography.fernet", "pytest"),
    *("opentelemetry.trace", "opentelemetry.metrics", "rich", "secrets", "uuid", "pydantic"),
)
HIDDEN = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "termios", "tty"}
FUNCTIONS = (
    *("fork", "geteuid", "getuid", "getgid", "killpg", "memfd_create", "pidfd_open", "pread"),
    *("pwrite", "register_at_fork", "setsid", "waitid", "writev", "readv", "mkfifo", "chown"),
    *("O_NOFOLLOW", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_PATH", "getloadavg"),
)
SIGNALS = ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGQUIT", "SIGUSR1", "SIGUSR2")


def pretend(platform: str) -> None:
    """Hide what a system does not have."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    import_module = builtins.__import__

    def limited(name: str, caller: Mapping[str, Any] | None = None, *rest: Any) -> Any:
        module = str((caller or {}).get("__name__", ""))
        if name.partition(".")[0] in HIDDEN and module.startswith("holdfast"):
            raise ImportError(f"{module} imports {name}, which {platform} does not have")
        return import_module(name, caller, *rest)

    builtins.__import__ = limited  # type: ignore[assignment]
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    for name in SIGNALS:
        delattr(signal, name)
    sys.platform = platform


class Kernel:
    """A ``kernel32.dll`` that writes down the names of the calls; answers are given or 1."""

    def __init__(self, answers: Mapping[str, int]) -> None:
        self.calls: list[str] = []
        self._answers = answers

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if name == "Thread32First":
                entry = arguments[1]._obj
                entry.th32OwnerProcessID, entry.th32ThreadID = 4711, 12
            if name == "Thread32Next":
                entry = arguments[1]._obj
                entry.th32OwnerProcessID = 1
                return int(self.calls.count(name) < 3)
            return self._answers.get(name, 1)

        self.__dict__[name] = call
        return call


def pretend_windows(kernel: Kernel) -> None:
    """Be Windows, with a kernel of one's own."""
    ctypes.WinDLL = lambda name, use_last_error=False: kernel  # type: ignore[attr-defined]
    ctypes.get_last_error = lambda: 5  # type: ignore[attr-defined]
    ctypes.WinError = lambda code: OSError(13, f"error {code}")  # type: ignore[attr-defined]
    pretend("win32")
