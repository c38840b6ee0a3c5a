"""The project's source as the rules see it: parsed, never imported."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SRC = PROJECT / "src"
TESTS = PROJECT / "tests"
PACKAGE = "holdfast"


@dataclass(frozen=True)
class Import:
    """One imported module, by its full name, and the line that imports it."""

    target: str
    line: int


@dataclass(frozen=True)
class Module:
    """One source file. ``name`` is dotted and relative to the package: ``wire.framing``."""

    name: str
    path: Path

    @property
    def unit(self) -> str:
        """Return the part of the architecture it belongs to, as `unit_of` has it."""
        return unit_of(self.name)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def tree(self) -> ast.Module:
        # Trees are no garbage: looking for some among them takes twice as long as making them.
        gc.disable()
        try:
            return ast.parse(self.path.read_bytes(), filename=str(self.path))
        finally:
            gc.enable()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Return all of the tree, in the order of `ast.walk`."""
        return list(ast.walk(self.tree))

    def imports(self) -> Iterator[Import]:
        """All of them: at the top, under TYPE_CHECKING, inside functions, by a literal name."""
        for node in self.nodes:
            match node:
                case ast.Import(names=names):
                    yield from (Import(alias.name, node.lineno) for alias in names)
                case ast.ImportFrom(names=names):
                    base = self._base(node)
                    yield from (Import(f"{base}.{alias.name}", node.lineno) for alias in names)
                case ast.Call(func=func, args=[ast.Constant(value=str(target)), *_]) if _last_name(
                    func
                ) in ("import_module", "__import__"):
                    yield Import(target, node.lineno)

    def _base(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = [PACKAGE, *(() if self.name == "__init__" else self.name.split("."))]
        if not self.is_package:
            here.pop()
        here = here[: len(here) - (node.level - 1)]
        return ".".join([*here, *([node.module] if node.module else [])])

    def at(self, line: int) -> str:
        return f"{self.name}:{line}"


def unit_of(name: str) -> str:
    """Return the top module or package of a dotted name; inside ``_core``, the one below it."""
    first, _, rest = name.partition(".")
    return f"_core.{rest.partition('.')[0]}" if first == "_core" and rest else first


@cache
def modules(src: Path = SRC) -> list[Module]:
    """Every module of the package; ``__init__`` is the package itself."""
    root = src / PACKAGE
    return [Module(_dotted(path.relative_to(root)), path) for path in sorted(root.rglob("*.py"))]


def _dotted(path: Path) -> str:
    parts = list(path.with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def write_package(root: Path, files: dict[str, str]) -> Path:
    """A package with these files, for trying a rule; returns its ``src``."""
    for name, text in files.items():
        path = root / "src" / PACKAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root / "src"
