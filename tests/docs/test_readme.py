"""Every sentence of the README has a test that tries it.

Blocks of code and commands are run by `test_snippets`, links are followed there, tables are made
from what was measured. What is left is prose: each sentence stands here with the tests that would
fail if it were not true. A new sentence fails until it has one.
"""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.docs.pages import PROJECT
from tests.rows import rows

README = PROJECT / "README.md"
SAID = "said, not claimed"
"""For sentences that introduce what follows, and for facts that no test can try."""

SNIPPETS = "tests/docs/test_snippets.py::test_every_example_runs_and_prints_what_the_page_says"
LINKS = "tests/docs/test_snippets.py::test_every_link_leads_somewhere"
COMMANDS = "tests/docs/test_snippets.py::test_every_command_exists"
PEERS = "tests/benchmarks/test_peers.py::test_the_page_and_the_plot_say_what_was_kept"
TRUST = "tests/cli/test_config.py::test_a_hostile_project_runs_nothing"

CLAIMS: dict[str, tuple[str, ...]] = {
    "An MCP client for Python": (SNIPPETS,),
    "MCP servers are other people's programs.": (SAID,),
    "They crash, hang, flood you": (SAID,),
    "With Holdfast each call ends exactly once": (
        "tests/faults/test_faults_stdio.py::test_every_request_has_one_outcome_whatever_the_server_does",
    ),
    "Why not mcp or FastMCP?": (PEERS,),
    "× is the time as a multiple": (PEERS,),
    "make bench-peers reproduces every figure": (PEERS, COMMANDS),
    "Python 3.11 or newer": ("tests/release/test_packaging_files.py",),
    "Linux is what Holdfast is run on": (
        "tests/windows/test_simulated.py::test_every_module_imports_without_what_only_posix_has",
        "tests/transports/test_child.py",
    ),
    "From a clone:": (COMMANDS,),
    "Once it is published": (SAID,),
    "pip install holdfast, uvx holdfast.": (SAID,),
    "It is not published yet.": (SAID,),
    "Without an event loop:": (SNIPPETS,),
    "The target is a command": ("tests/test_targets.py", SNIPPETS),
    "The demo server comes with Holdfast.": (SNIPPETS,),
    "Servers of twelve products are found without a step": (
        "tests/config/test_loading.py::test_servers_of_twelve_products_are_found_without_a_step",
    ),
    "Add your own:": (SNIPPETS,),
    "A project's own file runs nothing": (TRUST,),
    "Configuration.": (LINKS,),
    "The picture is a real run": ("tests/docs/test_reference.py",),
    "holdfast demo shows": ("tests/cli/test_demo.py", "tests/demo/test_story.py"),
    "More.": (LINKS,),
    "holdfast call … --trace-file": ("tests/cli/test_view.py", "tests/cli/test_trace.py"),
    "make demo ends with such a page.": (
        "tests/demo/test_story.py::test_it_ends_with_a_page_of_what_crossed_the_wire",
    ),
    "Most editors and agents start": (SAID,),
    "Put holdfast serve NAME": ("tests/cli/test_serve.py",),
    "holdfast install": ("tests/cli/test_install.py",),
    "holdfast map": ("tests/cli/test_map.py",),
    "holdfast daemon": ("tests/daemon",),
    "A call with once=": (
        "tests/ledger/test_once.py::test_a_key_runs_once_and_its_result_is_recorded",
    ),
    "holdfast login": (
        "tests/cli/test_auth.py::test_a_login_serves_every_later_command_until_the_logout",
    ),
    "Machines and token exchange": (LINKS,),
    "What each client does with twelve faults": (PEERS,),
    "All five revisions of MCP": ("tests/eras/test_negotiation.py",),
    "Agents: tools of many servers": ("tests/frameworks/test_frameworks.py",),
    "Extensions: tasks": ("tests/calls/test_tasks.py", "tests/calls/test_skills.py"),
    "Tests: a pytest plugin": ("tests/testing", "tests/calllog/test_mock.py"),
    "No silent changes": ("tests/lock", "tests/codegen"),
    "Bounded: limits": (TRUST, "tests/test_policies.py", "tests/schema/test_validate.py"),
    "Observable: events": ("tests/test_events.py", "tests/observers"),
    "Five dependencies": (
        "tests/rules/test_exports.py::test_importing_the_package_is_light",
        "tests/docs/test_readme.py::test_the_number_of_dependencies_is_right",
    ),
    "The first sets up": ("tests/docs/test_readme.py::test_make_demo_installs_only_what_it_runs",),
    "CONTRIBUTING.md has": (COMMANDS,),
    "The documentation has": (LINKS,),
    "What is promised": (LINKS, "tests/tools/test_requirements_tool.py"),
    "Apache 2.0": (LINKS,),
    "Security:": (LINKS,),
    "SECURITY.md.": (LINKS,),
}


def sentences(page: str) -> list[str]:
    """The prose of a page, sentence by sentence, without marks and links."""
    text = re.sub(r"```.*?```", "", page, flags=re.S)
    text = re.sub(r"^(?:\||#|!\[).*$", "", text, flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("**", "").replace("`", "")
    paragraphs = re.split(r"\n\n|^- ", text, flags=re.M)
    parts = (re.split(r"(?<=[.:])\s+(?=[A-Z]|make |holdfast |pip )", part) for part in paragraphs)
    return [" ".join(one.split()) for part in parts for one in part if one.strip()]


@cache
def text_of(path: str) -> str:
    return (PROJECT / path).read_text(encoding="utf-8")


@pytest.mark.req("N4")
@rows("sentence", sentences(README.read_text(encoding="utf-8")), ids=str)
def test_every_sentence_is_tried(sentence: str) -> None:
    claims = [begin for begin in CLAIMS if sentence.startswith(begin)]
    assert claims, f"no test tries this sentence: {sentence}"


@rows("begin", CLAIMS)
def test_every_test_that_tries_a_sentence_is_there(begin: str) -> None:
    said = sentences(README.read_text(encoding="utf-8"))
    assert any(sentence.startswith(begin) for sentence in said), "the README no longer says it"
    for claim in CLAIMS[begin]:
        path, _, name = claim.partition("::")
        if claim != SAID:
            assert (PROJECT / path).exists(), path
            assert not name or f"def {name}(" in text_of(path), claim


def test_the_number_of_dependencies_is_right() -> None:
    block = text_of("pyproject.toml").partition("\ndependencies = [\n")[2].partition("]")[0]
    assert len(block.splitlines()) == 5


def test_make_demo_installs_only_what_it_runs() -> None:
    makefile = text_of("Makefile")
    assert "\ndemo: $(PLAIN) ##" in makefile
    plain = makefile.partition("\n$(PLAIN): ")[2].partition("\n$(STAMP): ")[0]
    assert "--editable .\n" in plain
    assert "[dev]" not in plain
    for target in ("test", "lint", "docs"):
        assert f"\n{target}: $(STAMP) ##" in makefile
