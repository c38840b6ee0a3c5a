"""Pure units have no clock, loop, socket, chance or log: time and luck are handed to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.source import SRC, Module, modules, write_package

PURE = (
    "errors",
    "policies",
    "types",
    "codegen",
    "schema",
    "_core.boundary",
    "_core.wire",
    "_core.eras",
    "_core.engine",
    "_core.server",
    "_core.text",
)

IMPURE_MODULES = frozenset(
    {
        "aiohttp",
        "asyncio",
        "concurrent",
        "http",
        "logging",
        "multiprocessing",
        "os",
        "random",
        "secrets",
        "select",
        "selectors",
        "signal",
        "socket",
        "ssl",
        "subprocess",
        "threading",
        "time",
        "uuid",
        "uvloop",
    }
)
IMPURE_CALLS = frozenset({"breakpoint", "input", "open", "print"})
READS_THE_CLOCK = frozenset({"now", "today", "utcnow"})
"""As methods of datetime or date; ``now`` as a plain argument is how time should come in."""


def impurities(src: Path) -> list[str]:
    return [
        f"{module.at(line)} {what}; {module.unit} is pure"
        for module in modules(src)
        if module.unit in PURE
        for what, line in _faults(module)
    ]


def _faults(module: Module) -> Iterator[tuple[str, int]]:
    for entry in module.imports():
        top = entry.target.partition(".")[0]
        if top in IMPURE_MODULES:
            yield f"imports {top}", entry.line
    for node in module.nodes:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                yield f"calls {name}()", node.lineno
            case ast.Attribute(attr=name, value=owner) if (
                name in READS_THE_CLOCK and _is_date_class(owner)
            ):
                yield f"uses {ast.unparse(node)}", node.lineno


def _is_date_class(node: ast.expr) -> bool:
    return ast.unparse(node).rpartition(".")[2] in ("date", "datetime")


@pytest.mark.req("H7")
def test_pure_units_are_pure() -> None:
    assert not (faults := impurities(SRC)), "\n".join(faults)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("import time", "imports time"),
        ("from asyncio import Future", "imports asyncio"),
        ("import os.path", "imports os"),
        ("if TYPE_CHECKING:\n    import socket", "imports socket"),
        ("def late():\n    import random", "imports random"),
        ("from logging import getLogger", "imports logging"),
        ("stamp = datetime.now()", "uses datetime.now"),
        ("stamp = datetime.datetime.now(UTC)", "uses datetime.datetime.now"),
        ("day = date.today()", "uses date.today"),
        ("print('here')", "calls print()"),
        ("text = open('file').read()", "calls open()"),
    ],
)
def test_an_impurity_is_found(tmp_path: Path, line: str, what: str) -> None:
    (fault,) = impurities(write_package(tmp_path, {"_core/engine/state.py": line}))
    assert fault.startswith("_core.engine.state:")
    assert what in fault


@pytest.mark.parametrize(
    "line",
    [
        "def due(now: float) -> float: return now",
        "self.open(now=clock.now)",
        "from datetime import datetime",
        "import re, json, enum",
    ],
)
def test_what_only_looks_impure_is_fine(tmp_path: Path, line: str) -> None:
    assert impurities(write_package(tmp_path, {"_core/engine/state.py": line})) == []


def test_the_shell_may_do_as_it_likes(tmp_path: Path) -> None:
    assert impurities(write_package(tmp_path, {"_core/driver.py": "import asyncio, time"})) == []
