"""Modules stay small, and the tests of a module are where one would look for them."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.rules.source import PROJECT, SRC, TESTS, Module, modules, write_package

MOST_LINES = 400

PROVEN_ELSEWHERE: dict[str, str] = {
    "__init__": "tests/rules/test_exports.py",
    "__main__": "tests/cli/test_main.py",
    "_build": "tests/test_connect.py",
    "_core": "tests/rules/test_layers.py",
    "_core.alarm": "tests/test_driver_time.py",
    "_core.jitter": "tests/test_driver_time.py",
    "_core.boundary": "tests/engine/test_connection.py",
    "_core.system": "tests/transports/test_child.py",
    "_lazy": "tests/rules/test_exports.py",
    "_options": "tests/test_connect.py",
    "_version": "tests/rules/test_exports.py",
    "langchain": "tests/frameworks/test_frameworks.py",
    "openai_agents": "tests/frameworks/test_frameworks.py",
    "pydantic_ai": "tests/frameworks/test_frameworks.py",
}
"""Units whose proof has another home: where it is."""


def too_long(src: Path, limit: int = MOST_LINES) -> list[str]:
    sizes = {module.name: lines_of_code(module) for module in modules(src)}
    return [
        f"{name}: {lines} lines, {limit} at most; would two nouns be clearer?"
        for name, lines in sizes.items()
        if lines > limit
    ]


def lines_of_code(module: Module) -> int:
    """Count the lines of code: neither documentation nor an essay makes a module long."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        line
        for node in module.nodes
        if isinstance(node, documented) and ast.get_docstring(node) is not None
        for first in node.body[:1]
        for line in range(first.lineno, (first.end_lineno or first.lineno) + 1)
    }
    return sum(
        line not in docstrings and bool(row.strip()) and not row.lstrip().startswith("#")
        for line, row in enumerate(module.path.read_text(encoding="utf-8").splitlines(), 1)
    )


def unproven(src: Path, tests: Path, elsewhere: dict[str, str]) -> list[str]:
    """Find the units (public modules and packages, and those of ``_core``) without tests."""
    units = dict.fromkeys(module.unit for module in modules(src))
    return [
        f"{unit}: neither {homes[0]} nor {homes[1]}; write it, or extend PROVEN_ELSEWHERE"
        for unit in units
        if unit not in elsewhere
        for homes in [_homes(unit)]
        if not any(next(tests.parent.glob(home), None) for home in homes)
    ]


def _homes(unit: str) -> tuple[str, str]:
    """``_core.wire``: tests/wire/test_*.py, or tests/test_wire.py."""
    name = unit.rpartition(".")[2].strip("_")
    return f"tests/{name}/test_*.py", f"tests/test_{name}.py"


def test_no_module_is_too_long() -> None:
    assert not (faults := too_long(SRC)), "\n".join(faults)


def test_every_unit_has_its_tests() -> None:
    assert not (faults := unproven(SRC, TESTS, PROVEN_ELSEWHERE)), "\n".join(faults)


def test_every_other_home_exists() -> None:
    missing = [path for path in PROVEN_ELSEWHERE.values() if not (PROJECT / path).exists()]
    assert not missing


def test_a_long_module_is_found(tmp_path: Path) -> None:
    src = write_package(tmp_path, {"long.py": "x = 1\n" * 401, "short.py": "x = 1\n\n" * 400})
    (fault,) = too_long(src)
    assert fault.startswith("long: 401 lines")


def test_docstrings_do_not_make_a_module_long(tmp_path: Path) -> None:
    text = "\n".join(["    more"] * 30)
    source = f'def f() -> None:\n    """Do it.\n{text}\n    """\n' + "x = 1\n" * 399
    assert not too_long(write_package(tmp_path, {"documented.py": source}))


def test_comments_do_not_make_a_module_long(tmp_path: Path) -> None:
    source = "# An essay.\n" * 30 + "    # Inside of it.\n" * 30 + "x = 1\n" * 400
    assert not too_long(write_package(tmp_path, {"explained.py": source}))


def test_a_package_without_tests_is_found(tmp_path: Path) -> None:
    files = {"_core/wire/framing.py": "", "_core/wire/jsonrpc.py": "", "client.py": ""}
    src = write_package(tmp_path, files)
    tests = tmp_path / "tests"
    (tests / "wire").mkdir(parents=True)
    (fault,) = unproven(src, tests, {"client": "tests/elsewhere.py"})
    assert fault.startswith("_core.wire: neither tests/wire/test_*.py nor tests/test_wire.py")
    (tests / "wire" / "test_jsonrpc.py").touch()
    assert unproven(src, tests, {"client": "tests/elsewhere.py"}) == []
