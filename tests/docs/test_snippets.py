"""The documentation is true: every example runs, and prints what the page says that it prints.

The rules for a page:

- Each ```python block runs, in the page's order and in one namespace, in a fresh interpreter.
  ``await`` and ``async with`` may stand at the top level, as they may in a notebook. ``python``
  in a command is the interpreter of the tests.
- A ```text block right after one is what it prints; ``…`` stands for anything.
- In a ```console block every ``make`` target and every ``python -m`` module exists.
- Every link to a file of the project leads somewhere.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import holdfast
from holdfast import Backoff, Client, Handlers, Identity, Limits, Stdio, Timeouts, errors
from holdfast.engine import state
from holdfast.transports.spawn import BASIC_ENVIRONMENT

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
MARK = "\x1e"
"""Parts the outputs of a page's blocks."""

FENCE = re.compile(r"^( *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^\1```$", re.M | re.S)
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")

RUNNER = f"""
import ast, asyncio, inspect, json, sys
page, blocks = json.load(sys.stdin)
namespace = {{"__name__": "__main__"}}
with asyncio.Runner() as runner:
    for line, text in blocks:
        source = "\\n" * line + text
        code = compile(source, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        found = eval(code, namespace)
        if inspect.iscoroutine(found):
            async def run(work=found):
                return await work
            runner.run(run())
        print({MARK!r}, end="", flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is, where it begins, and what stands between it and the last one."""

    info: str
    line: int
    text: str
    between: str


def blocks(text: str) -> list[Block]:
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start("body"))
        between = text[end : match.start()]
        found.append(Block(match["info"].strip(), line, match["body"], between))
        end = match.end()
    return found


def expected_outputs(found: list[Block]) -> list[str | None]:
    """For each Python block what the page says it prints, if it says so."""
    followers = [*found[1:], None]
    return [
        after.text
        if after is not None and after.info == "text" and not after.between.strip()
        else None
        for block, after in zip(found, followers, strict=True)
        if block.info == "python"
    ]


def run_blocks(page: str, snippets: list[Block]) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    env = {name: value for name, value in os.environ.items() if name != "MCP_SERVER_URL"}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", RUNNER],
        input=json.dumps([page, [[block.line, block.text] for block in snippets]]),
        env={**env, "PATH": path},
        capture_output=True,
        encoding="utf-8",
        timeout=55,
        check=False,
    )


def matches(expected: str, printed: str) -> bool:
    pattern = ".*?".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.S) is not None


def by_page(page: Path) -> str:
    return str(page.relative_to(PROJECT))


@pytest.mark.req("F1")
@pytest.mark.parametrize("page", PAGES, ids=by_page)
def test_every_example_runs_and_prints_what_the_page_says(page: Path) -> None:
    found = blocks(page.read_text(encoding="utf-8"))
    snippets = [block for block in found if block.info == "python"]
    if not snippets:
        return
    done = run_blocks(by_page(page), snippets)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    printed = done.stdout.split(MARK)[:-1]
    for block, output, expected in zip(snippets, printed, expected_outputs(found), strict=True):
        where = f"{by_page(page)}:{block.line}"
        assert expected is None or matches(expected, output), f"{where} printed:\n{output}"


@pytest.mark.parametrize("page", PAGES, ids=by_page)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block that only looks like Python, or is marked not to run, would go unproven."""
    text = page.read_text(encoding="utf-8")
    kinds = {block.info for block in blocks(text)}
    assert kinds <= {"python", "text", "console"}
    assert text.count("```") == 2 * len(blocks(text)), "a fence is not closed, or not understood"


@pytest.mark.parametrize("page", PAGES, ids=by_page)
def test_every_command_exists(page: Path) -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))
    text = page.read_text(encoding="utf-8")
    commands = "\n".join(block.text for block in blocks(text) if block.info == "console")
    assert set(re.findall(r"\bmake ([a-z]+)", commands)) <= targets
    for module in re.findall(r"python -m (holdfast[\w.]*)", commands):
        assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize("page", PAGES, ids=by_page)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [match["target"] for match in LINK.finditer(text)]
    here = [target for target in targets if "://" not in target]
    assert not [target for target in here if not (page.parent / target).exists()]


# The reference says what the code says


def reference(name: str) -> str:
    return (PROJECT / "docs" / "reference" / name).read_text(encoding="utf-8")


@pytest.mark.req("L1")
def test_the_table_of_states_is_the_code_s() -> None:
    text = reference("states.md")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    assert state.table() + "\n" in tables


@pytest.mark.parametrize("policy", [Timeouts, Limits, Backoff, Identity])
def test_every_setting_is_listed_with_its_default(policy: type[Timeouts]) -> None:
    text = reference("policies.md").partition(f"## {policy.__name__}")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| `([^|]*)` \|", text, re.M))
    defaults = policy()
    actual = {name: repr(getattr(defaults, name)) for name in policy.__struct_fields__}
    assert rows == actual


def test_every_handler_is_listed() -> None:
    text = reference("policies.md").partition("## Handlers")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == set(Handlers.__struct_fields__)


@pytest.mark.req("E1")
def test_every_error_is_in_the_catalogue() -> None:
    text = reference("errors.md")
    tree = [
        found
        for found in vars(errors).values()
        if isinstance(found, type) and issubclass(found, errors.HoldfastError)
    ]
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.M))
    assert rows == {found.__name__: found.kind for found in tree}


@pytest.mark.req("F1")
def test_every_verb_is_in_the_reference() -> None:
    text = reference("client.md")
    public = [name for name, _ in inspect.getmembers(Client) if not name.startswith("_")]
    assert not [name for name in public if f"`{name}" not in text]


@pytest.mark.parametrize("owner", [holdfast.connect, Stdio.__init__], ids=["connect", "Stdio"])
def test_every_option_of_connecting_is_in_the_reference(owner: object) -> None:
    assert callable(owner)
    names = [
        name for name in inspect.signature(owner).parameters if name not in ("self", "options")
    ]
    text = reference("targets.md")
    assert not [name for name in names if f"`{name}" not in text]


@pytest.mark.req("X1")
def test_the_environment_of_a_server_is_in_the_reference() -> None:
    listed = re.findall(r"^- `(\w+)`$", reference("environment.md"), re.M)
    assert tuple(listed) == BASIC_ENVIRONMENT


# The checks above notice


def test_a_page_is_taken_apart() -> None:
    page = (
        "a\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n"
        "```python\nx = 2\n```\ntext\n```text\n3\n```\n"
    )
    found = blocks(page)
    assert [(block.info, block.line) for block in found] == [
        ("python", 3),
        ("text", 7),
        ("python", 11),
        ("text", 15),
    ]
    assert expected_outputs(found) == ["1\n", None]


def test_blocks_share_a_namespace_and_may_await() -> None:
    page = (
        "```python\nimport asyncio\nx = 1\n```\n```python\nawait asyncio.sleep(0)\nprint(x)\n```\n"
    )
    done = run_blocks("page", blocks(page))
    assert (done.returncode, done.stdout) == (0, f"{MARK}1\n{MARK}")


def test_a_failing_block_shows_its_line() -> None:
    done = run_blocks("page.md", blocks("a\n```python\nx = 1\n1 / 0\n```\n"))
    assert done.returncode != 0
    assert 'File "page.md", line 4' in done.stderr


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [("a … c", "a b c", True), ("a", "b", False), ("a … c", "a b", False), ("a", "a\n", True)],
)
def test_an_ellipsis_stands_for_anything(expected: str, printed: str, fits: bool) -> None:
    assert matches(expected, printed) is fits
