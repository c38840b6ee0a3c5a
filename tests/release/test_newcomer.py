"""tests/newcomer.py, with the package of the checkout in place of a wheel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import newcomer
from tests.rules.source import PROJECT


@pytest.mark.req("N4")
def test_installation_leads_to_a_first_call(tmp_path: Path) -> None:
    tried = list(newcomer.follow("docs/installation.md", Path(sys.executable), tmp_path))
    assert [one.fault for one in tried] == ["", "", ""]


@pytest.mark.req("N4", "N6")
def test_a_configured_server_becomes_a_command_and_another_comes_from_a_registry(
    tmp_path: Path,
) -> None:
    python = Path(sys.executable)
    added = newcomer.at_a_prompt(
        "holdfast add demo -- python -m holdfast.demo.server", python, tmp_path
    )
    assert added.returncode == 0, added.stdout
    tried = list(newcomer.go_on(python, tmp_path))
    assert len(tried) == len(newcomer.TASKS)
    assert not [step for step in tried if step.fault]


def test_a_step_that_prints_something_else_is_a_fault(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\necho a\n```\n\n```text\nb\n```\n", encoding="utf-8")
    (tried,) = newcomer.follow(str(page), Path(sys.executable), tmp_path)
    assert (tried.typed, tried.fault) == ("echo a", "a\n")


@pytest.mark.req("N4")
def test_there_are_pages_for_stability_security_and_contributions() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    for page in ("SECURITY.md", "CONTRIBUTING.md", "docs/installation.md"):
        assert page in readme
        assert (PROJECT / page).is_file()
    assert (PROJECT / "docs" / "reference" / "stability.md").is_file()
