"""The documentation is true: every example runs, and prints what the page says that it prints.

The rules for a page:

- Each ```python block runs, in the page's order and in one namespace, in a fresh interpreter and
  an empty folder. ``await`` and ``async with`` may stand at the top level, as they may in a
  notebook. ``python`` in a command is the interpreter of the tests.
- A ```text block right after one is what it prints; ``…`` stands for anything.
- A ```console block is run at a terminal, in the same folder and the same order, if such a ```text
  block comes right after it; or if it needs nothing but the demo server: then each of its commands
  succeeds. Whether it runs or not, every ``holdfast`` verb in it exists and takes the options that
  it is given, as do ``make`` targets and ``python -m`` modules.
- A block with tests in it is a file, and a command runs it with pytest and no configuration.
- A block with a title, as in ```json title=".mcp.json", is that file: it is written, and what
  comes after it uses it.
- Every link to a file of the project leads somewhere.
- Every table has a head, and rows of as many fields as that.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.commands import commands, fault
from tests.docs.pages import FENCE, PAGES, PROJECT, blocks, name_of, read, steps
from tests.docs.running import MARK, matches, run_page, run_steps
from tests.rows import rows

LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)\s]*)?\)")
TABLE = re.compile(r"(?:^\|.*\n)+", re.M)
BUSY = r"the handler \S+ \(.*\) held the event loop for \d+ ms, .*\n"
"""Logged of any function while the machine has no time for it: true, and not about the page."""
UNDER_THE_HEAD = re.compile(r"\|(?: ?:?-+:? ?\|)+")

READERS: dict[str, Callable[[str], Any]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "py": ast.parse,
}
"""Kinds of block that are data; ``py`` is Python of others, or that ``make frameworks`` runs."""


PROVABLE = [page for page in PAGES if steps(read(page))]
"""The pages with something to run."""
FIRST = ("README.md", "docs/index.md", "docs/installation.md", "docs/tutorial.md")
"""What people run first, which is proven in short as well."""


def proof(number: int, page: Path) -> Any:
    in_short = name_of(page) in FIRST or number % 5 == 3
    return pytest.param(page, id=name_of(page), marks=pytest.mark.thorough(only=not in_short))


@pytest.mark.req("F1")
@pytest.mark.hang(400)
@pytest.mark.parametrize("page", [proof(*page) for page in enumerate(PROVABLE)])
def test_every_example_runs_and_prints_what_the_page_says(page: Path) -> None:
    done = run_page(page)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.sub(BUSY, "", done.stderr) == ""
    printed = done.stdout.split(MARK)[:-1]
    for step, output in zip(steps(read(page)), printed, strict=True):
        where = f"{name_of(page)}:{step.block.line}"
        expected = step.expected if step.is_printed else None
        wrapped = step.block.kind == "console"
        assert expected is None or matches(expected, output, wrapped=wrapped), (
            f"{where} printed:\n{output}"
        )


@rows("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block that only looks like Python, or is marked not to run, would go unproven."""
    text = page.read_text(encoding="utf-8")
    found = blocks(text)
    assert {block.kind for block in found} <= {"python", "text", "console", *READERS}
    assert text.count("```") == 2 * len(found), "a fence is not closed, or not understood"
    for block in found:
        READERS.get(block.kind, str)(block.text)


@rows("page", PAGES, ids=name_of)
def test_every_file_that_is_shown_is_used(page: Path) -> None:
    wanted = [step.block for step in steps(read(page))]
    for at, block in enumerate(wanted):
        run = [later.text for later in wanted[at + 1 :] if later.title is None]
        assert block.title is None or any(uses(text, block.title) for text in run), block.title


@rows("page", PAGES, ids=name_of)
def test_every_test_that_is_shown_is_run_by_pytest(page: Path) -> None:
    """In an interpreter it would only be defined; and pytest has defaults of its own."""
    run = [step.block.text for step in steps(read(page)) if step.block.kind == "console"]
    for block in read(page):
        if block.kind == "python" and re.search(r"^(?:async )?def test_", block.text, re.M):
            assert block.title is not None, f"{name_of(page)}:{block.line} is no file"
            assert any(f"pytest -q {block.title}" in text for text in run), block.title


def uses(text: str, title: str) -> bool:
    """A module by its name, a configuration by any command that looks for one."""
    return title.removesuffix(".py") in text or (title == ".mcp.json" and "holdfast " in text)


@rows("page", PAGES, ids=name_of)
def test_every_command_exists(page: Path) -> None:
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    for block in read(page):
        for command in commands(block.text) if block.kind == "console" else ():
            program, *words = command or [""]
            if program == "make":
                assert {word for word in words if "=" not in word} <= targets
            elif program == "holdfast":
                assert (found := fault(words)) is None, f"{' '.join(command)}: {found}"
            elif program == "python" and words[0] == "-m" and words[1].startswith("holdfast"):
                assert importlib.util.find_spec(words[1]) is not None


@rows("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = [match["target"] for match in LINK.finditer(text)]
    here = [target for target in targets if "://" not in target]
    assert not [target for target in here if not (page.parent / target).exists()]


SOURCES = [PROJECT, PROJECT / "src" / "holdfast", PROJECT / "src" / "holdfast" / "_core"]


@rows("page", PAGES, ids=name_of)
def test_every_source_file_that_is_named_is_there(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    named = re.findall(r"`([\w./-]+/[\w-]*(?:\.py|\.c)?)`", text)
    paths = [name for name in named if name.endswith(("/", ".py", ".c"))]
    assert not [path for path in paths if not any((root / path).exists() for root in SOURCES)]


@rows("page", PAGES, ids=name_of)
def test_every_table_is_one(page: Path) -> None:
    """A blank line after the head, or a field too many, and it is shown as so many bars."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    assert not [fault for table in TABLE.findall(text) if (fault := wrong_with(table))]


def wrong_with(table: str) -> str | None:
    lines = table.splitlines()
    if len(lines) < 3 or not UNDER_THE_HEAD.fullmatch(lines[1]):
        return f"no table: {lines[0]}"
    wanted = fields(lines[0])
    return next((line for line in lines if fields(line) != wanted), None)


def fields(line: str) -> int:
    return len(re.findall(r"(?<!\\)\|", line)) - 1


# The checks above notice

PAGE = """\
a

```python
print(1)
```

```text
1
```

```python
x = 2
```
text
```text
3
```

```console
$ cat note.txt
```

```text
4
```

```json title="note.txt"
{}
```

```console
make test
```
"""


def test_a_page_is_taken_apart() -> None:
    found = blocks(PAGE)
    assert [(block.kind, block.line, block.title) for block in found] == [
        ("python", 3, None),
        ("text", 7, None),
        ("python", 11, None),
        ("text", 15, None),
        ("console", 19, None),
        ("text", 23, None),
        ("json", 27, "note.txt"),
        ("console", 31, None),
    ]
    assert [(step.block.kind, step.expected) for step in steps(found)] == [
        ("python", "1\n"),
        ("python", None),
        ("console", "4\n"),
        ("json", None),
    ]


def test_blocks_share_a_namespace_and_may_await() -> None:
    page = (
        "```python\nimport asyncio\nx = 1\n```\n```python\nawait asyncio.sleep(0)\nprint(x)\n```\n"
    )
    done = run_steps("page", steps(blocks(page)))
    assert (done.returncode, done.stdout) == (0, f"{MARK}1\n{MARK}")


def test_files_and_commands_share_a_folder() -> None:
    page = (
        '```text title="a.txt"\nhold\n```\n'
        "```console\n$ cat a.txt >&2\n$ ls | wc -l  # files\n```\n```text\nhold\n1\n```\n"
    )
    done = run_steps("page", steps(blocks(page)))
    assert (done.stderr, done.stdout) == ("", f"{MARK}hold\n1\n{MARK}")


def test_a_failing_block_shows_its_line() -> None:
    done = run_steps("page.md", steps(blocks("a\n```python\nx = 1\n1 / 0\n```\n")))
    assert done.returncode != 0
    assert 'File "page.md", line 4' in done.stderr


@rows(
    ("table", "is_one"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", True),
        ("| a | b |\n| --- | ---: |\n| 1 | x \\| y |\n", True),
        ("| a | b |\n|---|---|\n", False),
        ("| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n", False),
        ("| a | b |\n|---|---|\n| 1 | 2 | 3 |\n", False),
    ],
)
def test_a_table_is_told_from_bars(table: str, is_one: bool) -> None:
    assert (wrong_with(table) is None) is is_one


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [("a … c", "a b c", True), ("a", "b", False), ("a … c", "a b", False), ("a", "a\n", True)],
)
def test_an_ellipsis_stands_for_anything(expected: str, printed: str, fits: bool) -> None:
    assert matches(expected, printed) is fits
