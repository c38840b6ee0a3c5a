"""What depends on the protocol's revision is asked of an era: no date, no comparison elsewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rules.source import SRC, Module, modules, write_package

KNOW_REVISIONS = ("_core.eras",)

_DATE = re.compile(r"20\d\d-\d\d-\d\d")
_VERSION = re.compile(r"protocol_?version$", re.IGNORECASE)


def leaks(src: Path) -> list[str]:
    return [
        f"{module.at(line)} {what}: make it a question to the era (holdfast/eras)"
        for module in modules(src)
        if module.unit not in KNOW_REVISIONS
        for what, line in _faults(module)
    ]


def _faults(module: Module) -> Iterator[tuple[str, int]]:
    prose = {id(node.value) for node in module.nodes if isinstance(node, ast.Expr)}
    for node in module.nodes:
        match node:
            case ast.Constant(value=str() | bytes() as value) if id(node) not in prose:
                text = value if isinstance(value, str) else value.decode("latin-1")
                if date := _DATE.search(text):
                    yield f"names the revision {date[0]}", node.lineno
            case ast.Compare(left=left, comparators=others, ops=ops) if not _asks_if_known(ops):
                if any(_is_version(side) for side in (left, *others)):
                    yield f"compares {ast.unparse(node)}", node.lineno
            case ast.Match(subject=subject) if _is_version(subject):
                yield f"matches on {ast.unparse(subject)}", node.lineno


def _asks_if_known(ops: list[ast.cmpop]) -> bool:
    """``is None`` asks whether a version was agreed, not which."""
    return all(isinstance(op, ast.Is | ast.IsNot) for op in ops)


def _is_version(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return bool(_VERSION.search(name))
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            return bool(_VERSION.search(key))
        case ast.Call(args=[ast.Constant(value=str(key)), *_]):
            return bool(_VERSION.search(key))
    return False


def test_revisions_are_known_to_the_eras_alone() -> None:
    assert not (faults := leaks(SRC)), "\n".join(faults)


@pytest.mark.parametrize(
    "line",
    [
        "LATEST = '2026-07-28'",
        "header = b'2025-06-18'",
        "text = f'speaks {name} 2024-11-05'",
        "if self.protocol_version == pinned: pass",
        "modern = protocol_version >= other",
        "known = client.protocol_version in supported",
        "same = params['protocolVersion'] != mine",
        "same = params.get('protocolVersion') != mine",
        "match link.protocol_version:\n    case _: pass",
    ],
)
def test_a_leak_is_found(tmp_path: Path, line: str) -> None:
    (fault,) = leaks(write_package(tmp_path, {"runtime/driver.py": line}))
    assert fault.startswith("runtime.driver:1 ")


@pytest.mark.parametrize(
    "line",
    [
        "'''Since 2025-06-18.'''",
        "limit = 5\n'''As 2025-11-25 asks.'''",
        "x = 1  # 2024-11-05 has none",
        "agreed = self.protocol_version is not None",
        "version = link.protocol_version",
    ],
)
def test_prose_and_passing_on_are_fine(tmp_path: Path, line: str) -> None:
    assert leaks(write_package(tmp_path, {"runtime/driver.py": line})) == []


def test_the_eras_may_name_revisions(tmp_path: Path) -> None:
    files = {"_core/eras/base.py": "A = '2025-11-25'"}
    assert leaks(write_package(tmp_path, files)) == []
