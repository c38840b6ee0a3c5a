"""What must be in a wheel and in an sdist, and what must not: judged from their contents alone."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = "holdfast"
EXTRAS: Final = frozenset({"auth", "load", "otel", "redis", "shell", "uvloop", "yaml"})
"""What ``pip install 'holdfast[…]'`` can be asked for. ``dev`` is for checkouts."""

SDIST_NEEDS: Final = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Makefile",
    "PKG-INFO",
    f"src/{PACKAGE}/py.typed",
    "tests/conftest.py",
)
LITTER: Final = re.compile(
    r"(^|/)(__pycache__|\.git|\.venv|\.cache|\.hypothesis|\.[a-z]+_cache|dist|build)/"
    r"|\.(pyc|pyo|so|orig|rej|swp)$"
)


@dataclass(frozen=True)
class Wheel:
    """The contents of a wheel, by name."""

    files: Mapping[str, bytes]

    @classmethod
    def read(cls, path: Path) -> Wheel:
        with zipfile.ZipFile(path) as archive:
            return cls({name: archive.read(name) for name in archive.namelist()})

    @property
    def metadata(self) -> Message:
        return HeaderParser().parsestr(self._info("METADATA"))

    @property
    def scripts(self) -> dict[str, str]:
        """The console scripts, each with what it calls."""
        _, _, section = self._info("entry_points.txt").partition("[console_scripts]")
        lines = section.partition("\n[")[0].splitlines()
        pairs = (line.split("=", 1) for line in lines if "=" in line)
        return {name.strip(): target.strip() for name, target in pairs}

    def _info(self, name: str) -> str:
        found = (data for path, data in self.files.items() if path.endswith(f".dist-info/{name}"))
        return next(found, b"").decode()


def wheel_faults(
    wheel: Wheel, project: Mapping[str, Any], sources: Mapping[str, bytes]
) -> list[str]:
    """What is wrong with a wheel of ``project`` ([project] of its settings) and its sources."""
    return [
        *_contents(wheel, sources),
        *_metadata(wheel.metadata, project),
        *_scripts(wheel, project.get("scripts", {})),
    ]


def _contents(wheel: Wheel, sources: Mapping[str, bytes]) -> list[str]:
    faults = [f"{name}: does not belong in a wheel" for name in wheel.files if _stray(name)]
    for name, data in sources.items():
        if name not in wheel.files:
            faults.append(f"{name}: missing from the wheel")
        elif wheel.files[name] != data:
            faults.append(f"{name}: not what is in the source tree")
    if f"{PACKAGE}/py.typed" not in wheel.files:
        faults.append("py.typed: missing, so type checkers would ignore the types")
    if not any(name.endswith("/licenses/LICENSE") for name in wheel.files):
        faults.append("LICENSE: missing from the wheel")
    return faults


def _stray(name: str) -> bool:
    inside = name.startswith(f"{PACKAGE}/") or f"{PACKAGE}-" in name.partition(".dist-info/")[0]
    return not inside or LITTER.search(name) is not None


def _metadata(metadata: Message, project: Mapping[str, Any]) -> list[str]:
    faults = []
    for field, wanted in (
        ("Name", project["name"]),
        ("Requires-Python", project["requires-python"]),
        ("License-Expression", project["license"]),
        ("Description-Content-Type", "text/markdown"),
    ):
        if metadata[field] != wanted:
            faults.append(f"{field}: {metadata[field]!r}, not {wanted!r}")
    offered = set(metadata.get_all("Provides-Extra", []))
    faults += [f"extra {extra!r}: not in the metadata" for extra in sorted(EXTRAS - offered)]
    needs = {
        _plain(need) for need in metadata.get_all("Requires-Dist", []) if "extra ==" not in need
    }
    wanted_needs = {_plain(need) for need in project["dependencies"]}
    if needs != wanted_needs:
        faults.append(f"Requires-Dist: {sorted(needs)}, not {sorted(wanted_needs)}")
    return faults


def _plain(requirement: str) -> str:
    """``Jsonschema_RS >= 0.60`` and ``jsonschema-rs>=0.60`` are the same."""
    return requirement.replace(" ", "").replace("_", "-").lower()


def _scripts(wheel: Wheel, wanted: Mapping[str, str]) -> list[str]:
    if wheel.scripts == dict(wanted):
        return []
    return [f"console scripts: {wheel.scripts}, not {dict(wanted)}"]


def sdist_names(path: Path) -> list[str]:
    """The files of an sdist, without the folder that they are all in."""
    with tarfile.open(path) as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    return [name.partition("/")[2] for name in names]


def sdist_faults(names: Sequence[str], sources: Mapping[str, bytes]) -> list[str]:
    """What is wrong with an sdist."""
    present = set(names)
    needed = [*SDIST_NEEDS, *(f"src/{name}" for name in sources)]
    faults = [f"{name}: missing from the sdist" for name in needed if name not in present]
    return faults + [
        f"{name}: does not belong in an sdist" for name in names if LITTER.search(name)
    ]


def read_sources(src: Path) -> dict[str, bytes]:
    """Every file of the package as the wheel should have it, by its name there."""
    return {
        path.relative_to(src).as_posix(): path.read_bytes()
        for path in sorted((src / PACKAGE).rglob("*"))
        if path.is_file() and not LITTER.search(path.relative_to(src).as_posix())
    }
