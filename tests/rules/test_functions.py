"""A function is one thought that a reader can hold, and its names say what they are.

The aim is at most 120 functions above a complexity of 10; `MOST_BRANCHING` is where we are, and
only ever goes down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.rules.source import SRC, Module, modules, write_package

MOST_COMPLEX = 30
BRANCHING = 10
MOST_BRANCHING = 70
GENERIC = frozenset(
    (
        "found",
        "one",
        "said",
        "told",
        "given",
        "own",
        "kept",
        "wanted",
        "named",
        "shown",
        "left",
        "more",
        "known",
        "asked",
        "other",
        "both",
        "each",
    )
)
MOST_GENERIC = 0.01
"""The share of all bound names."""

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_APART = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)
_BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.IfExp,
    ast.ExceptHandler,
    ast.comprehension,
    ast.match_case,
    ast.Assert,
)


def complexity(function: ast.AST) -> int:
    """Count the ways through a function; functions inside it are counted apart."""
    count, todo = 1, list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if isinstance(node, _APART):
            continue
        if isinstance(node, _BRANCHES):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        todo.extend(ast.iter_child_nodes(node))
    return count


@cache
def functions(src: Path) -> list[tuple[int, str]]:
    """Return the functions, each with its complexity before it."""
    return [
        (complexity(node), f"{module.at(node.lineno)} {node.name}")
        for module in modules(src)
        for node in module.nodes
        if isinstance(node, _FUNCTIONS)
    ]


def branching(src: Path, limit: int) -> list[str]:
    """Return the functions above a complexity, the most complex first."""
    above = sorted((row for row in functions(src) if row[0] > limit), reverse=True)
    return [f"{where}: complexity {count}" for count, where in above]


def bindings(module: Module) -> Iterator[tuple[str, int]]:
    """Yield the names that are assigned, and the parameters."""
    for node in module.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                yield name, node.lineno
            case ast.arg(arg=name) if name not in ("self", "cls"):
                yield name, node.lineno


def generic_names(src: Path, share: float) -> list[str]:
    """Return the names that could stand for anything, if they are more than a share of all."""
    bound = [(name, module.at(line)) for module in modules(src) for name, line in bindings(module)]
    generic = [f"{where}: {name}" for name, where in bound if name in GENERIC]
    return generic if len(generic) > share * len(bound) else []


def test_no_function_is_a_knot() -> None:
    assert not (faults := branching(SRC, MOST_COMPLEX)), "\n".join(faults)


def test_few_functions_branch_much() -> None:
    above = branching(SRC, BRANCHING)
    text = f"{len(above)} functions above complexity {BRANCHING}, {MOST_BRANCHING} at most:"
    assert len(above) <= MOST_BRANCHING, "\n".join([text, *above])


def test_names_say_what_they_are() -> None:
    assert not (faults := generic_names(SRC, MOST_GENERIC)), "\n".join(faults)


def test_a_complex_function_is_found(tmp_path: Path) -> None:
    knot = "def knot(x):\n" + "    if x and x:\n        pass\n" * 5
    src = write_package(tmp_path, {"plain.py": "def plain(x):\n    return x\n", "knotty.py": knot})
    assert branching(src, 11) == []
    assert branching(src, 10) == ["knotty:1 knot: complexity 11"]


def test_every_way_to_branch_counts(tmp_path: Path) -> None:
    source = """
async def all_ways(x):
    assert x
    try:
        async for item in x:
            pass
        for item in x:
            pass
        while x:
            pass
    except ValueError:
        pass
    match x:
        case 1:
            pass
    return [item for item in x] if x or not x else None
"""
    src = write_package(tmp_path, {"ways.py": source})
    assert branching(src, 0) == ["ways:2 all_ways: complexity 10"]


def test_an_inner_function_counts_apart(tmp_path: Path) -> None:
    source = """
def outer(x):
    def inner(y):
        if y:
            return 1
    class Local:
        def method(self, z):
            return z or x
    return lambda z: z or x
"""
    src = write_package(tmp_path, {"nested.py": source})
    assert branching(src, 0) == [
        "nested:7 method: complexity 2",
        "nested:3 inner: complexity 2",
        "nested:2 outer: complexity 1",
    ]


def test_generic_names_are_found(tmp_path: Path) -> None:
    source = """
def find(given, *, tool):
    found = given
    for one in found:
        self.kept = one.other
    return [(name, login) for name, login in found]
"""
    src = write_package(tmp_path, {"vague.py": source})
    assert sorted(generic_names(src, 0.49)) == ["vague:2: given", "vague:3: found", "vague:4: one"]
    assert generic_names(src, 0.5) == []
