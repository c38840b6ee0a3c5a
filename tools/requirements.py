"""Print each requirement with the tests that prove it, and fail where a claim has none.

The rows come from ``docs/requirements.md``, the tests from the ``pytest.mark.req`` markers
in ``tests/``. Both are only read: no test is imported or run.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

CLAIMED = "✓"
NOT_YET = "not yet"

_SECTION = re.compile(r"^##\s+(?P<title>.+?)\s*$")
_ID = re.compile(r"^[A-Z]+[0-9]+$")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_BOLD_LEAD = re.compile(r"^\*\*(.+?)\.?\*\*")
_HEADER = ["id", "status", "requirement"]
_WIDTH = 76


@dataclass(frozen=True)
class Row:
    """One requirement, as the list states it."""

    id: str
    status: str
    text: str
    section: str
    line: int

    @property
    def claimed(self) -> bool:
        return self.status == CLAIMED

    @property
    def title(self) -> str:
        """The bold lead of the text, or its beginning."""
        lead = _BOLD_LEAD.match(self.text)
        if lead:
            return lead[1]
        return self.text if len(self.text) <= _WIDTH else self.text[: _WIDTH - 1].rstrip() + "…"


@dataclass(frozen=True)
class Mark:
    """One test that names one requirement."""

    id: str
    test: str
    line: int


@dataclass
class Findings:
    """Everything that was read, and what is wrong with it."""

    rows: list[Row] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def tests_of(self, row: Row) -> list[str]:
        return sorted({mark.test for mark in self.marks if mark.id == row.id})

    @property
    def summary(self) -> str:
        claimed = sum(row.claimed for row in self.rows)
        tests = len({mark.test for mark in self.marks})
        carry = "test carries" if tests == 1 else "tests carry"
        return f"{claimed} of {len(self.rows)} claimed; {tests} {carry} an id"


# The list


def read_rows(text: str, findings: Findings, name: str) -> None:
    """Collect the rows of every table headed ``id | status | requirement``."""
    section, in_table = "", False
    for number, line in enumerate(text.splitlines(), start=1):
        if heading := _SECTION.match(line):
            section = heading["title"]
        if not line.startswith("|"):
            in_table = False
        elif not in_table:
            in_table = _cells(line) == _HEADER
        elif not re.fullmatch(r"[|\s:-]+", line):
            _read_row(_cells(line), section, number, findings, name)
    if not findings.rows:
        findings.problems.append(f"{name}: no table with the columns {' | '.join(_HEADER)}")


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in _CELL_BORDER.split(inner)]


def _read_row(cells: list[str], section: str, line: int, findings: Findings, name: str) -> None:
    where = f"{name}:{line}"
    if len(cells) != len(_HEADER):
        findings.problems.append(f"{where}: a row has {len(_HEADER)} cells, this one {len(cells)}")
        return
    id_, status, text = cells
    row = Row(id_, status, text, section, line)
    if not _ID.match(row.id):
        findings.problems.append(f"{where}: {row.id!r} is not an id (a letter and a number)")
        return
    if row.status not in (CLAIMED, NOT_YET):
        findings.problems.append(
            f"{where}: the status of {row.id} is {row.status!r}, not {CLAIMED!r} or {NOT_YET!r}"
        )
    findings.rows.append(row)


# The tests


def read_tests(root: Path, findings: Findings) -> None:
    """Collect the marks of every test module under ``root/tests``."""
    for path in sorted((root / "tests").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_bytes(), filename=name)
        except SyntaxError as error:
            findings.problems.append(f"{name}:{error.lineno}: cannot be read: {error.msg}")
            continue
        _TestModule(name, tree, findings).collect()


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _TestModule:
    """The marks of one module: on functions, on classes, in ``pytestmark``, on parameters."""

    def __init__(self, path: str, tree: ast.Module, findings: Findings) -> None:
        self.path = path
        self.tree = tree
        self.findings = findings
        self.names = dict(_assignments(tree.body))

    def collect(self) -> None:
        self._scope(self.tree.body, self.path, ())

    def _scope(self, body: list[ast.stmt], prefix: str, inherited: tuple[ast.Call, ...]) -> None:
        marks = dict(_assignments(body)).get("pytestmark")
        if marks is not None:
            inherited = (*inherited, *self._marks(marks))
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                own = self._decorators(node)
                self._scope(node.body, f"{prefix}::{node.name}", (*inherited, *own))
            elif isinstance(node, _FUNCTIONS) and node.name.startswith("test"):
                for call in (*inherited, *self._decorators(node)):
                    self._record(call, f"{prefix}::{node.name}")

    def _decorators(
        self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    ) -> Iterator[ast.Call]:
        for decorator in node.decorator_list:
            yield from self._marks(decorator)

    def _marks(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[ast.Call]:
        """Every ``mark.req(...)`` in an expression, names of this module followed."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call) and self._is_req(part.func):
                yield part
            elif isinstance(part, ast.Name) and part.id in self.names and part.id not in seen:
                yield from self._marks(self.names[part.id], seen | {part.id})

    def _is_req(self, func: ast.expr) -> bool:
        """``pytest.mark.req``, ``mark.req``, or a name that stands for one of them."""
        if isinstance(func, ast.Name):
            target = self.names.get(func.id)
            return isinstance(target, ast.Attribute) and self._is_req(target)
        if not isinstance(func, ast.Attribute) or func.attr != "req":
            return False
        owner = func.value
        return (isinstance(owner, ast.Attribute) and owner.attr == "mark") or (
            isinstance(owner, ast.Name) and owner.id == "mark"
        )

    def _record(self, call: ast.Call, test: str) -> None:
        where = f"{self.path}:{call.lineno}"
        if not call.args or call.keywords:
            self._problem(f"{where}: req() takes one id or more, and nothing else")
        for arg in call.args:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                self.findings.marks.append(Mark(arg.value, test, call.lineno))
            elif isinstance(arg, ast.Starred):
                self.findings.warnings.append(
                    f"{where}: ids that are worked out do not count; name them on the test as well"
                )
            else:
                self._problem(f"{where}: req() takes plain strings, so that they can be found")

    def _problem(self, text: str) -> None:
        if text not in self.findings.problems:
            self.findings.problems.append(text)


def _assignments(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, value


# The verdict


def judge(findings: Findings) -> None:
    """Compare claims and tests."""
    known = {row.id for row in findings.rows}
    for id_, count in Counter(row.id for row in findings.rows).items():
        if count > 1:
            findings.problems.append(f"{id_}: listed {count} times")
    for mark in findings.marks:
        if mark.id not in known:
            findings.problems.append(f"{mark.test} (line {mark.line}): no such row: {mark.id!r}")
    for row in findings.rows:
        tests = len(findings.tests_of(row))
        if row.claimed and not tests:
            findings.problems.append(f"{row.id}: claimed, but no test carries its id")
        if not row.claimed and tests:
            plural = "test" if tests == 1 else "tests"
            findings.warnings.append(f"{row.id}: {NOT_YET}, but has {tests} {plural}: claim it?")


def examine(root: Path) -> Findings:
    """Read the list and the tests of the project at ``root``, and judge them."""
    findings = Findings()
    listing = root / "docs" / "requirements.md"
    name = listing.relative_to(root).as_posix()
    try:
        text = listing.read_text(encoding="utf-8")
    except FileNotFoundError:
        findings.problems.append(f"{name}: not found")
        return findings
    read_rows(text, findings, name)
    read_tests(root, findings)
    judge(findings)
    return findings


# The print


class _Paint:
    """Colours, where somebody is looking."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, style: str, text: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.on else text


_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"


def show(findings: Findings, out: TextIO, *, missing: bool, colour: bool) -> None:
    paint, section = _Paint(colour), None
    for row in findings.rows:
        if missing and row.claimed:
            continue
        if row.section != section:
            section = row.section
            print(f"\n{paint(_BOLD, section)}", file=out)
        style = _GREEN if row.claimed else _DIM
        print(f"  {row.id:<4} {paint(style, f'{row.status:<7}')}  {row.title}", file=out)
        for test in findings.tests_of(row):
            print(f"{'':16}{paint(_DIM, test)}", file=out)
    print(file=out)
    for warning in findings.warnings:
        print(f"{paint(_YELLOW, 'warning:')} {warning}", file=out)
    for problem in findings.problems:
        print(f"{paint(_RED, 'error:')} {problem}", file=out)
    print(findings.summary, file=out)


def as_json(findings: Findings, *, missing: bool) -> dict[str, Any]:
    rows = [row for row in findings.rows if not (missing and row.claimed)]
    return {
        "requirements": [
            {
                "id": row.id,
                "section": row.section,
                "claimed": row.claimed,
                "title": row.title,
                "text": row.text,
                "tests": findings.tests_of(row),
            }
            for row in rows
        ],
        "warnings": findings.warnings,
        "problems": findings.problems,
        "summary": findings.summary,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="requirements", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--missing", action="store_true", help=f"only the rows that are {NOT_YET}")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the project"
    )
    options = parser.parse_args(argv)
    findings = examine(options.root.resolve())
    if options.json:
        print(json.dumps(as_json(findings, missing=options.missing), indent=2, ensure_ascii=False))
    else:
        colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        show(findings, sys.stdout, missing=options.missing, colour=colour)
    return 1 if findings.problems else 0


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # the C locale has no ✓
    sys.exit(main())
