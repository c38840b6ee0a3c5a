"""tools/release.py without a build: its order, its environment, what it says of a failure."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast.policies import Identity
from tests.rules.source import PROJECT
from tools import release
from tools.release import Bench, NotFit, check, clean, lay_out, oldest
from tools.wheel import EXTRAS


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_checks_end_with_the_first_that_fails(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(bench: Bench) -> str:
        raise NotFit("py.typed: missing")

    steps = [("first", lambda bench: "fine"), ("second", fails), ("third", lambda bench: "never")]
    assert check(bench, steps) is False
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    first: fine (")
    assert lines[1:] == ["FAIL  second", "py.typed: missing"]


def test_a_command_that_fails_shows_the_end_of_what_it_said(bench: Bench) -> None:
    with pytest.raises(NotFit, match=r"(?s)exit status 3\n.*\nlast words$") as caught:
        bench.run(sys.executable, "-c", "print('x\\n' * 100, 'last words', sep='\\n'); exit(3)")
    assert str(caught.value).count("\n") <= 31


def test_nothing_of_the_source_tree_leaks_in(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "src"))
    code = "import os, sys; print(os.environ.get('PYTHONPATH'), os.getcwd())"
    assert bench.run(sys.executable, "-c", code).split() == ["None", str(bench.folder.resolve())]
    assert clean({"VIRTUAL_ENV": "x", "PATH": "y"}) == {"PATH": "y"}


def test_one_wheel_is_built_not_two(bench: Bench) -> None:
    bench.dist.mkdir()
    with pytest.raises(NotFit, match="0 files were built"):
        _ = bench.wheel
    (bench.dist / "a.whl").touch()
    assert bench.wheel.name == "a.whl"


def test_the_tests_that_go_along_are_there_and_reach_for_no_sources(tmp_path: Path) -> None:
    lay_out(PROJECT, tmp_path / "suite")
    copied = list((tmp_path / "suite" / "tests").rglob("test_*.py"))
    assert len(copied) > 20
    reaching = [path.name for path in copied if "tests.rules" in path.read_text(encoding="utf-8")]
    assert not reaching


def test_the_test_tools_are_those_the_project_names(bench: Bench) -> None:
    named = [re.split(r"[<>=~!]", need)[0] for need in bench.test_tools()]
    assert sorted(named) == ["hypothesis", "pytest", "pytest-asyncio"]


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    project = {
        "dependencies": ["b>=2", "a>=1.5"],
        "optional-dependencies": {
            "auth": ["k>=25"],
            "load": ["l>=2"],
            "otel": ["o>=1"],
            "redis": ["r>=6"],
            "shell": ["s>=3"],
            "uvloop": ["u>=0.21; sys_platform != 'win32'"],
            "yaml": ["y>=6"],
            "dev": ["pytest>=9,<10"],
        },
    }
    pins = ["a==1.5", "b==2", "k==25", "l==2", "o==1", "r==6", "s==3", "u==0.21", "y==6"]
    assert oldest(project) == pins


def test_every_extra_of_the_project_is_tried() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"].keys() == {*EXTRAS, "dev"}


@pytest.mark.parametrize("source", [release.SMOKE, release.EXTRAS, release.SAME])
def test_what_is_run_in_the_new_environment_parses(source: str) -> None:
    compile(source, "there", "exec")


# One version


def test_servers_are_told_the_version_of_the_package() -> None:
    assert Identity().version == holdfast.__version__


def test_the_changelog_tells_of_this_version() -> None:
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## \[?v?([\w.]+)", text, re.M)
    assert {holdfast.__version__, "Unreleased"} & set(heads)


def test_the_changelog_tells_nothing_twice() -> None:
    text = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    for version in re.split(r"^## ", text, flags=re.M)[1:]:
        entries = [" ".join(entry.split()) for entry in re.split(r"^- ", version, flags=re.M)[1:]]
        assert sorted(set(entries)) == sorted(entries)


@pytest.mark.req("S5")
def test_the_tests_of_the_wheel_bring_all_that_they_import() -> None:
    places = [PROJECT / "tests" / name for name in release.SUITE]
    files = {
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    }
    imported = {
        (file.name, module)
        for file in files
        for module in re.findall(r"^ *from tests\.([\w.]+) import", file.read_text("utf-8"), re.M)
    }
    missing = {
        (name, module)
        for name, module in imported
        if PROJECT / "tests" / f"{module.replace('.', '/')}.py" not in files
    }
    assert imported
    assert not missing
