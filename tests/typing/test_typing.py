"""The types that users get: complete, and pinned by two files here.

Pyright reads those files here, by ``make thorough``; mypy reads them with all other code, by
``make lint``.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from tests.rules.source import PROJECT, SRC

pytestmark = [pytest.mark.long, pytest.mark.hang(900)]

HERE = Path(__file__).parent
API = HERE / "api.py"
PARTS = HERE / "parts.py"

PUBLIC = (
    "auth",
    "calls",
    "agents",
    "calllog",
    "codegen",
    "config",
    "errors",
    "events",
    "handles",
    "lock",
    "policies",
    "servers",
    "sync",
    "testing",
    "types",
)
"""Packages and modules that users import from, besides the package itself."""


COMMANDS = {
    "pyright": ("pyright", "-p", str(HERE)),
    "completeness": ("pyright", "--verifytypes", "holdfast", "--ignoreexternal", "--outputjson"),
}


class Checkers:
    """The checkers at work, and what each says in the end."""

    def __init__(self) -> None:
        path = os.pathsep.join(filter(None, [str(SRC), os.environ.get("PYTHONPATH")]))
        environ = {**os.environ, "PYTHONPATH": path, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
        # Pyright reads the packages of the first Python on the PATH.
        own = os.path.dirname(sys.executable)
        environ["PATH"] = os.pathsep.join(filter(None, [own, environ.get("PATH")]))
        self._running = {
            name: subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=PROJECT,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for name, command in COMMANDS.items()
        }

    def verdict(self, name: str) -> tuple[int, str]:
        running = self._running[name]
        said, _ = running.communicate()
        return running.returncode, said

    def end(self) -> None:
        for running in self._running.values():
            with running:
                running.kill()


@pytest.fixture(scope="module")
def checkers() -> Iterator[Checkers]:
    found = Checkers()
    yield found
    found.end()


@pytest.mark.thorough(only=True)
def test_the_api_is_seen_as_it_is_pinned(checkers: Checkers) -> None:
    status, said = checkers.verdict("pyright")
    assert status == 0, said


@pytest.mark.thorough(only=True)
def test_every_public_type_is_known(checkers: Checkers) -> None:
    _, said = checkers.verdict("completeness")
    report = json.loads(said)["typeCompleteness"]
    assert report["pyTypedPath"]
    assert len(report["symbols"]) > 1000
    assert not (faults := unknown(report["symbols"])), "\n".join(faults)


def unknown(symbols: list[dict[str, Any]]) -> list[str]:
    """The public names whose type a checker has to guess, each with the reason."""
    return [
        f"{symbol['name']}: {'; '.join(one['message'] for one in symbol['diagnostics'])}"
        for symbol in symbols
        if symbol["isExported"] and not symbol["isTypeKnown"] and is_public(symbol["name"])
    ]


def is_public(name: str) -> bool:
    """``holdfast.Client``, ``holdfast.testing.Peer``; what those are made of shows in them."""
    _, first, *rest = name.split(".")
    if not rest:
        return first in holdfast.__all__
    inner = SRC / "holdfast" / first / rest[0]
    return first in PUBLIC and not inner.is_dir() and not inner.with_suffix(".py").exists()


def test_the_api_file_uses_every_public_name() -> None:
    missing = set(holdfast.__all__) - names_used(API.read_text(encoding="utf-8"))
    assert not missing, f"pin them in {API.name}: {', '.join(sorted(missing))}"


def names_used(source: str) -> set[str]:
    """The names that are taken from the package itself: ``holdfast.Client``."""
    return {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "holdfast"
    }


def test_every_part_is_used_as_an_attribute() -> None:
    missing = set(PUBLIC) - names_used(PARTS.read_text(encoding="utf-8"))
    assert missing == {"calllog", "lock"}, "these two have nothing but modules in them"


def test_every_verb_of_the_client_is_used() -> None:
    used = {
        node.attr
        for node in ast.walk(ast.parse(API.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    verbs = {name for name in vars(holdfast.Client) if not name.startswith("_")}
    assert not (missing := verbs - used), f"pin them in {API.name}: {', '.join(sorted(missing))}"


def test_a_guessed_type_is_told_if_it_is_public() -> None:
    symbols = [
        {"name": name, "isExported": exported, "isTypeKnown": known, "diagnostics": []}
        for name, exported, known in [
            ("holdfast.Client", True, False),
            ("holdfast.sync.Client", True, False),
            ("holdfast.sync.client.Client.name", True, False),
            ("holdfast.events.Event.client", True, False),
            ("holdfast.Stdio", True, True),
            ("holdfast._core.engine.connection.Connection.state", True, False),
            ("holdfast.errors.log", False, False),
        ]
    ]
    told = [fault.rstrip(": ") for fault in unknown(symbols)]
    assert told == ["holdfast.Client", "holdfast.sync.Client", "holdfast.events.Event.client"]
