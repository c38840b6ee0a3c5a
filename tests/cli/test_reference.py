"""The page about the command line is true: every verb and option, and no other.

``HOLDFAST_GOLDEN=write`` writes its tables anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from holdfast.cli import app, guide
from holdfast.cli.main import SECTIONS, VERBS
from holdfast.cli.output import Exit
from tests.cli.conftest import Cli

COMMON = app.COMMON | {"output"}
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
BLOCK = re.compile(r"(<!-- verbs:[^\n]*-->\n).*?(<!-- end -->)", re.S)


def written() -> str:
    """The tables as they should be."""
    parts = ["\n## Verbs\n"]
    for title, verbs in SECTIONS.items():
        rows = [_row(name, guide.command(name), line) for name, (_, line) in verbs.items()]
        rows += [
            _row(f"{name} {part}", sub, sub.short_help or "")
            for name in verbs
            for part, sub in _below(guide.command(name)).items()
        ]
        head = f"### {title}\n\n| verb | what it does | its own options |\n|---|---|---|\n"
        parts.append(head + "\n".join(rows) + "\n")
    common = [one for one in guide.command("call").params if one.name in COMMON]
    rows = [f"| {_option(one)} | {_help(one)} |" for one in common]
    head = "### Of every verb about a server\n\n| option | what it does |\n|---|---|\n"
    parts.append(head + "\n".join(rows) + "\n")
    return "\n".join(parts) + "\n"


def _below(command: click.Command) -> dict[str, click.Command]:
    return dict(sorted(command.commands.items())) if isinstance(command, click.Group) else {}


def _row(name: str, command: click.Command, summary: str) -> str:
    words = [one.make_metavar(click.Context(command)) for one in _arguments(command)]
    options = [one for one in command.params if isinstance(one, click.Option)]
    own = [f"{_option(one)}: {_help(one)}" for one in options if one.name not in COMMON]
    return f"| `{' '.join([name, *words])}` | {summary} | {'<br>'.join(own)} |".replace(
        "|bash|", "|"
    )


def _arguments(command: click.Command) -> list[click.Argument]:
    return [one for one in command.params if isinstance(one, click.Argument)]


def _option(option: click.Parameter) -> str:
    assert isinstance(option, click.Option)
    metavar = f" {option.metavar}" if option.metavar else ""
    return ", ".join(f"`{name}{metavar}`" for name in option.opts)


def _help(option: click.Parameter) -> str:
    assert isinstance(option, click.Option)
    assert option.help, f"{option.name} has no help"
    default = f" ({option.default})" if option.show_default else ""
    return f"{option.help.rstrip('.')}{default}"


@pytest.mark.req("F3")
def test_every_verb_and_option_is_on_the_page_and_no_other() -> None:
    page = PAGE.read_text(encoding="utf-8")
    fresh = BLOCK.sub(lambda found: found[1] + written() + found[2], page)
    if os.environ.get("HOLDFAST_GOLDEN") == "write":
        PAGE.write_text(fresh, encoding="utf-8")
        page = fresh
    assert page == fresh, "HOLDFAST_GOLDEN=write writes the tables anew"


@pytest.mark.req("F3")
def test_every_exit_code_is_on_the_page_and_no_other() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("## Exit codes")[2].partition("\n## ")[0]
    codes = [int(code) for code in re.findall(r"^\| (\d+) \|", section, re.M)]
    assert codes == [code.value for code in Exit]


def test_every_variable_on_the_page_is_used() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition("## Environment")[2].partition("\n## ")[0]
    source = "".join(
        one.read_text(encoding="utf-8") for one in (PAGE.parents[2] / "src").rglob("*.py")
    )
    for name in re.findall(r"^\| `(\w+)` \|", section, re.M):
        assert name in source or name.removeprefix("XDG_") in source


@pytest.mark.req("N3")
def test_the_man_page_is_fresh_and_well_formed(cli: Cli) -> None:
    text = cli("help", "--man").out
    page = PAGE.parents[1] / "holdfast.1"
    if os.environ.get("HOLDFAST_GOLDEN") == "write":
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, "HOLDFAST_GOLDEN=write writes it anew"
    for verb in VERBS:
        assert f"\n.SS holdfast {verb}".replace("-", "\\-") in text
    if groff := shutil.which("groff"):
        words = [groff, "-man", "-ww", "-z", "-Tutf8", str(page)]
        assert subprocess.run(words, capture_output=True, text=True, check=True).stderr == ""


@pytest.mark.req("N3")
def test_the_guide_for_agents_names_every_verb_and_exit_code(cli: Cli) -> None:
    done = cli("help", "--skill")
    head, _, body = done.out.removeprefix("---\n").partition("\n---\n")
    assert [line.partition(":")[0] for line in head.splitlines()] == ["name", "description"]
    for verb in VERBS:
        assert f"- `{verb}`: " in body
    for code in Exit:
        assert f"| {code.value} | " in body
