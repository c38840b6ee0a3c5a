"""Installs servers from the registries, by name and version, into a cache beside the sources.

Each goes into a folder of its own, which is used again as long as the pins stay the same.
Only the ordinary clients are used, ``pip`` and ``npm``, with whatever settings they have.
"""

from __future__ import annotations

import fcntl
import json
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

PROJECT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = PROJECT / ".cache" / "interop"
LONGEST: Final = 600.0
"""Seconds for one command of an installation."""

Source: TypeAlias = Literal["pypi", "npm"]
Run: TypeAlias = Callable[[Sequence[str]], None]


class NotHere(Exception):  # noqa: N818  (a reason to skip, not a fault)
    """What an installation needs is not on this machine, or out of reach."""


class Broken(Exception):  # noqa: N818
    """The registry was reached, and the installation failed all the same."""


def run(command: Sequence[str]) -> None:
    """Run one command of an installation; say in one exception or the other why it failed."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotHere(f"{command[0]}: no end after {LONGEST:g} s; is the network up?") from None
    if done.returncode != 0:
        raise verdict(command, done.stdout)


def verdict(command: Sequence[str], output: str) -> Exception:
    """Whether a failed installation is the network's fault, or the packages'."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = next((line for line in lines if _UNREACHABLE.search(line)), None)
    if found is not None:
        return NotHere(f"the registry cannot be reached: {found[:120]}")
    return Broken("\n".join([" ".join(command), *lines[-20:]]))


_UNREACHABLE: Final = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH"
    r"|NewConnectionError|ConnectTimeout|ReadTimeout|NameResolutionError|ProxyError"
    r"|Failed to establish a new connection|Temporary failure in name resolution"
)


def pypi(folder: Path, pins: Sequence[str], run: Run) -> None:
    """A virtual environment without a pip of its own: ours installs into it."""
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    options = "--quiet --no-input --disable-pip-version-check --retries 1 --timeout 30"
    python = str(folder / "bin" / "python")
    run([sys.executable, "-m", "pip", "--python", python, "install", *options.split(), *pins])


def npm(folder: Path, pins: Sequence[str], run: Run) -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotHere(f"{program} is not installed, and this server needs it")
    folder.mkdir(parents=True)
    options = "--ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retries=1"
    run(["npm", "install", "--prefix", str(folder), *options.split(), *pins])


_INSTALLERS: Final[dict[Source, Callable[[Path, Sequence[str], Run], None]]] = {
    "pypi": pypi,
    "npm": npm,
}


def install(
    source: Source, name: str, pins: Sequence[str], cache: Path = CACHE, run: Run = run
) -> Path:
    """The folder in which ``pins`` are installed; by us, unless somebody did it before."""
    folder, stamp = cache / name, cache / f"{name}.json"
    # A virtual environment knows its own path and its Python: moved or upgraded, it is no good.
    wanted = json.dumps([source, *pins, platform.python_version(), str(folder)])
    with locked(cache / f"{name}.lock"):
        if folder.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return folder
        stamp.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        _INSTALLERS[source](folder, pins, run)
        stamp.write_text(wanted, encoding="utf-8")
    return folder


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone, among all processes that install into this cache."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
