"""tools/requirements.py on small projects, and on this one."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tools import requirements

PROJECT = Path(__file__).resolve().parents[2]


class Project:
    """A project with a list of requirements and some tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "docs").mkdir()
        (root / "tests").mkdir()

    def rows(self, *rows: str) -> None:
        header = [
            "# All",
            "",
            "## Lifecycle (L)",
            "",
            "| id | status | requirement |",
            "|---|---|---|",
        ]
        text = "\n".join([*header, *(f"| {row} |" for row in rows)])
        (self.root / "docs" / "requirements.md").write_text(text + "\n", encoding="utf-8")

    def tests(self, source: str, name: str = "test_it.py") -> None:
        path = self.root / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(source), encoding="utf-8")

    def examine(self) -> requirements.Findings:
        return requirements.examine(self.root)

    def marks(self) -> set[tuple[str, str]]:
        return {(mark.id, mark.test) for mark in self.examine().marks}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


ONE_TEST = """
    import pytest

    @pytest.mark.req("L1")
    def test_a(): ...
"""


# Where marks are found


def test_a_mark_on_a_function(project: Project) -> None:
    project.rows("L1 | ✓ | States.", "L2 | ✓ | Start.")
    project.tests("""
        import pytest

        @pytest.mark.req("L1", "L2")
        def test_a(): ...

        @pytest.mark.asyncio
        @pytest.mark.req("L2")
        async def test_b(): ...

        @pytest.mark.req("L1")
        def helper(): ...
    """)
    assert project.marks() == {
        ("L1", "tests/test_it.py::test_a"),
        ("L2", "tests/test_it.py::test_a"),
        ("L2", "tests/test_it.py::test_b"),
    }
    assert not project.examine().problems


def test_a_mark_on_a_class_counts_for_its_tests(project: Project) -> None:
    project.rows("L1 | ✓ | States.", "L2 | ✓ | Start.")
    project.tests("""
        import pytest

        @pytest.mark.req("L1")
        class TestStates:
            def test_a(self): ...

            class TestInner:
                pytestmark = [pytest.mark.req("L2")]
                async def test_b(self): ...
    """)
    assert project.marks() == {
        ("L1", "tests/test_it.py::TestStates::test_a"),
        ("L1", "tests/test_it.py::TestStates::TestInner::test_b"),
        ("L2", "tests/test_it.py::TestStates::TestInner::test_b"),
    }


@pytest.mark.parametrize(
    "mark",
    [
        'pytestmark = pytest.mark.req("L1")',
        'pytestmark = [pytest.mark.slow, pytest.mark.req("L1")]',
        'pytestmark: list[pytest.MarkDecorator] = [pytest.mark.req("L1")]',
    ],
)
def test_a_mark_on_a_module_counts_for_its_tests(project: Project, mark: str) -> None:
    project.rows("L1 | ✓ | States.")
    project.tests(f"import pytest\n{mark}\ndef test_a(): ...\n", "deep/er/test_it.py")
    assert project.marks() == {("L1", "tests/deep/er/test_it.py::test_a")}


@pytest.mark.parametrize(
    "source",
    [
        """
        @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.req("L1"))])
        def test_a(x): ...
        """,
        """
        CASES = [pytest.param(2, marks=[pytest.mark.req("L1")], id="two")]
        @pytest.mark.parametrize("x", CASES)
        def test_a(x): ...
        """,
        """
        states = pytest.mark.req("L1")
        @states
        def test_a(): ...
        """,
        """
        req = pytest.mark.req
        @req("L1")
        def test_a(): ...
        """,
        """
        from pytest import mark
        @mark.req("L1")
        def test_a(): ...
        """,
    ],
    ids=["parameter", "list of parameters", "named mark", "short name", "imported mark"],
)
def test_other_ways_to_write_a_mark(project: Project, source: str) -> None:
    project.rows("L1 | ✓ | States.")
    project.tests("import pytest\n" + dedent(source))
    assert project.marks() == {("L1", "tests/test_it.py::test_a")}


def test_marks_that_reach_no_test_do_not_count(project: Project) -> None:
    project.rows("L1 | not yet | States.")
    project.tests("""
        import pytest

        UNUSED = [pytest.param(1, marks=pytest.mark.req("L1"))]
        TEXT = 'pytest.mark.req("L1")'
        loop = [loop]

        @pytest.mark.other("L1")
        def test_a(): ...
    """)
    assert project.marks() == set()


# What fails


def test_all_is_well(project: Project) -> None:
    project.rows("L1 | ✓ | States.", "L2 | not yet | Start.")
    project.tests(ONE_TEST)
    findings = project.examine()
    assert (findings.problems, findings.warnings) == ([], [])
    assert findings.summary == "1 of 2 claimed; 1 test carries an id"


def test_a_claim_without_a_test_fails(project: Project) -> None:
    project.rows("L1 | ✓ | States.", "L2 | ✓ | Start.")
    project.tests(ONE_TEST)
    assert project.examine().problems == ["L2: claimed, but no test carries its id"]


def test_a_test_with_an_unknown_id_fails(project: Project) -> None:
    project.rows("L2 | not yet | Start.")
    project.tests(ONE_TEST)
    assert project.examine().problems == ["tests/test_it.py::test_a (line 4): no such row: 'L1'"]


def test_a_doubled_id_fails(project: Project) -> None:
    project.rows("L1 | ✓ | States.", "L1 | ✓ | Again.")
    project.tests(ONE_TEST)
    assert project.examine().problems == ["L1: listed 2 times"]


def test_a_plan_with_tests_is_only_a_warning(project: Project) -> None:
    project.rows("L1 | not yet | States.")
    project.tests(ONE_TEST)
    findings = project.examine()
    assert findings.problems == []
    assert findings.warnings == ["L1: not yet, but has 1 test: claim it?"]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("L1 | done | States.", "the status of L1 is 'done'"),
        ("Lx | ✓ | States.", "'Lx' is not an id"),
        ("L1 | ✓", "a row has 3 cells, this one 2"),
        ("L1 | ✓ | States. | more", "a row has 3 cells, this one 4"),
    ],
)
def test_a_malformed_row_fails_with_its_line(project: Project, row: str, problem: str) -> None:
    project.rows("L9 | not yet | Gate.", row)
    (found,) = (p for p in project.examine().problems if p.startswith("docs/"))
    assert found.startswith("docs/requirements.md:8: ")
    assert problem in found


@pytest.mark.parametrize("mark", ["req(ID)", "req()", "req('L1', why='so')", "req(1)"])
def test_a_mark_that_cannot_be_read_fails(project: Project, mark: str) -> None:
    project.rows("L1 | not yet | States.")
    project.tests(f"import pytest\nID = 'L1'\n@pytest.mark.{mark}\ndef test_a(): ...\n")
    (problem,) = project.examine().problems
    assert problem.startswith("tests/test_it.py:3: req() takes ")


def test_computed_ids_are_not_counted_and_said_so(project: Project) -> None:
    project.rows("L1 | ✓ | States.")
    project.tests("""
        import pytest

        @pytest.mark.req("L1")
        @pytest.mark.parametrize("x", [pytest.param(x, marks=pytest.mark.req(*x.ids)) for x in ALL])
        def test_a(x): ...
    """)
    findings = project.examine()
    assert findings.problems == []
    (warning,) = findings.warnings
    assert warning.startswith("tests/test_it.py:5: ids that are worked out do not count")


def test_a_test_module_that_does_not_parse_fails(project: Project) -> None:
    project.rows("L1 | not yet | States.")
    project.tests("def test_a(:\n")
    (problem,) = project.examine().problems
    assert problem.startswith("tests/test_it.py:1: cannot be read")


def test_a_missing_or_empty_list_fails(project: Project) -> None:
    assert project.examine().problems == ["docs/requirements.md: not found"]
    project.rows()
    (problem,) = project.examine().problems
    assert "no table with the columns id | status | requirement" in problem


# What is printed


def test_each_row_is_printed_with_its_tests(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.rows("L1 | ✓ | **Named states.** One table.", "L2 | not yet | " + "long " * 40)
    project.tests(ONE_TEST)
    assert requirements.main(["--root", str(project.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "",
        "Lifecycle (L)",
        "  L1   ✓        Named states",
        "                tests/test_it.py::test_a",
    ]
    assert lines[4].startswith("  L2   not yet  long long")
    assert lines[4].endswith("…")
    assert lines[-1] == "1 of 2 claimed; 1 test carries an id"
    assert "\x1b" not in "".join(lines)


def test_missing_shows_the_plans_alone(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.rows("L1 | ✓ | States.", "L2 | not yet | Start.")
    project.tests(ONE_TEST)
    requirements.main(["--root", str(project.root), "--missing"])
    out = capsys.readouterr().out
    assert "L2" in out
    assert "L1" not in out


def test_problems_are_printed_and_fail(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.rows("L1 | ✓ | States.")
    assert requirements.main(["--root", str(project.root)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        "error: L1: claimed, but no test carries its id",
        "1 of 1 claimed; 0 tests carry an id",
    ]


def test_json_carries_everything(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.rows("L1 | not yet | **States.** A \\| B.", "L2 | ✓ | Start.")
    project.tests(ONE_TEST)
    assert requirements.main(["--root", str(project.root), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "requirements": [
            {
                "id": "L1",
                "section": "Lifecycle (L)",
                "claimed": False,
                "title": "States",
                "text": "**States.** A | B.",
                "tests": ["tests/test_it.py::test_a"],
            },
            {
                "id": "L2",
                "section": "Lifecycle (L)",
                "claimed": True,
                "title": "Start.",
                "text": "Start.",
                "tests": [],
            },
        ],
        "warnings": ["L1: not yet, but has 1 test: claim it?"],
        "problems": ["L2: claimed, but no test carries its id"],
        "summary": "1 of 2 claimed; 1 test carries an id",
    }


def test_colours_are_for_terminals(project: Project) -> None:
    project.rows("L1 | ✓ | States.")
    findings = project.examine()
    for colour in (True, False):
        out = io.StringIO()
        requirements.show(findings, out, missing=False, colour=colour)
        assert ("\x1b[" in out.getvalue()) is colour


# This project


def test_the_list_of_this_project_can_be_read() -> None:
    findings = requirements.Findings()
    text = (PROJECT / "docs" / "requirements.md").read_text(encoding="utf-8")
    requirements.read_rows(text, findings, "docs/requirements.md")
    assert findings.problems == []
    ids = [row.id for row in findings.rows]
    assert len(set(ids)) == len(ids)
    # Every line of a table that begins with an id is a row, and nothing else is one.
    assert ids == re.findall(r"^\| ([A-Z]+[0-9]+) \|", text, re.MULTILINE)
    sections = {row.id.rstrip("0123456789"): row.section for row in findings.rows}
    assert all(section.endswith(f"({letter})") for letter, section in sections.items())


def test_it_runs_as_a_program_in_any_locale(project: Project) -> None:
    project.rows("L1 | ✓ | States.")
    project.tests(ONE_TEST)
    done = subprocess.run(
        [sys.executable, PROJECT / "tools" / "requirements.py", "--root", project.root],
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "✓" in done.stdout.decode()
